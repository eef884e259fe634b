"""``meshscope doctor``: what works on this machine, and the command that mends what does not."""

from __future__ import annotations

from pathlib import Path

import click

from meshscope.cli import options

_MARKS = {"ok": "ok  ", "warning": "warn", "missing": "MISS"}


@click.command("doctor")
@click.option("--gpu", "on_gpu", is_flag=True, help="Run the GPU checks (real ranks on real GPUs) and write a report.")
@click.option(
    "--report",
    type=options.PATH,
    default=Path("meshscope-gpu-report.md"),
    show_default=True,
    help="Where --gpu writes its report.",
)
def command(*, on_gpu: bool, report: Path) -> int:
    """Check Python, torch, jax, devices, NVML and the terminal. Exit code 1 when nothing can be recorded."""
    if on_gpu:
        from meshscope.cli.gpu_checks import run_and_report

        return run_and_report(report)
    from meshscope.cli.checkup import checkup

    findings = checkup()
    for finding in findings:
        click.echo(f"{_MARKS[finding.state]}  {finding.subject:<12}{finding.text}")
        if finding.mend:
            click.echo(f"      {'':<12}mend: {finding.mend}")
    can_record = any(f.subject in ("torch", "jax") and f.state != "missing" for f in findings)
    return 0 if can_record else 1
