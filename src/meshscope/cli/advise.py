"""``meshscope advise``: which way to train, from the model and the devices alone; why, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshscope.cli import options

if TYPE_CHECKING:
    from meshscope.advisor.answer import Answer
    from meshscope.advisor.multipliers import Multipliers
    from meshscope.advisor.request import Request

_KEPT = ("none", "selective", "full")


@click.command("advise")
@click.option("--model", metavar="NAME", help="7b, llama-3-70b, gpt-175b, 1.3b, … or layers=32,d_model=4096,…, or "
              "your own package.module:factory.")  # fmt: skip
@click.option("--devices", metavar="N×DEVICE", help="8xH100, 4x8xH100 (nodes first), 64xA100-40GB@200 (Gbit/s each).")
@click.option("--batch", "--global-batch", "batch", type=click.IntRange(min=1), help="Samples of a step, all devices.")
@click.option("--micro-batch", type=click.IntRange(min=1), help="Samples at once on a data rank (what suits).")
@click.option("--seq", type=click.IntRange(min=1), help="Tokens of a sample (as the model is usually trained).")
@click.option("--precision", metavar="NAME", help="bf16-mixed, amp, bf16-pure, megatron, fp8, fp32, … (each strategy's "
              "usual).")  # fmt: skip
@click.option("--framework", type=click.Choice(["torch", "jax", "both"]), help="Whose strategies (torch; JAX on TPUs).")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME[,NAME...]",
              help="Only these: ddp, fsdp, tp, pp, … A + joins parts; may be given again.")  # fmt: skip
@click.option("--checkpointing", multiple=True, type=click.Choice(_KEPT), help="Only this much; may be given again.")
@click.option("--compile/--no-compile", "is_compiled", default=None, help="Compiled kernels (default), or eager ones.")
@click.option("--software", metavar="NAME", help="torchtitan (default), megatron-te, deepspeed, …: for all strategies.")
@click.option("--most-tensor", type=click.IntRange(min=1), help="Widest tensor parallelism (as many as a node has).")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Candidates that are listed.")
@click.option("--explain", metavar="N|NAME", help="The arithmetic of one candidate, term by term.")
@click.option("--no-sensitivity", is_flag=True, help="Leave out what would flip the choice: it takes the most time.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object on stdout, and nothing else.")
@click.option("--markdown", "is_markdown", is_flag=True, help="Markdown on stdout.")
@click.option("--runs", type=options.PATH, metavar="FILE.csv", help="Predict each row of a table of published runs.")
@click.option("--score", "with_score", is_flag=True, help="With --runs: also the errors against what was measured.")
@click.option("--against", type=options.SOURCE, metavar="RECORDING", help="Prediction beside what was measured.")
@click.option("--calibration", type=options.SOURCE, metavar="FILE|RECORDING", help="What is known of the machine.")
@click.option("--try", "tries", type=click.IntRange(min=1), metavar="N", help="Run the best N here, and compare.")
@click.option(
    "--exact", "is_exact", is_flag=True, help="Memory as torch or XLA themselves plan it (bundled and own models)."
)
@click.option("--screen", "on_screen", is_flag=True, help="On the screen, where the question can be changed.")
@click.option("--hardware", type=options.PATH, metavar="FOLDER", help="Your descriptions of devices (TOML).")
@click.option("--save-simulated", type=options.PATH, metavar="DIR", help="The listed candidates' steps as a recording.")
def command(**given: Any) -> int:
    """Rank every legal strategy × mesh × micro-batch × checkpointing: fits or not, step time, exposed communication.

    Nothing is run: numbers are predicted, and say how sure they are. The choice comes with its reason, with the rules
    that practitioners go by (agreeing or not), and with what would flip it.

    \b
      meshscope advise --model 7b --devices 8xH100
      meshscope advise --model 1.1b --devices 8xA100-40GB --micro-batch 4
      meshscope advise --model 70b --devices 512xH100@400 --explain 1
      meshscope advise --runs published_runs.csv --json --score
    """
    if given["is_json"] and given["is_markdown"]:
        raise click.UsageError("--json and --markdown exclude each other.")
    if given["runs"] is not None:
        from meshscope.cli.advise_runs import predicted

        return predicted(given["runs"], is_json=given["is_json"], with_score=given["with_score"], folder=_folder(given))
    if given["with_score"]:
        raise click.UsageError("--score needs --runs.")
    if given["against"] is not None:
        from meshscope.cli.advise_against import compared

        return compared(given["against"], given["calibration"], given["devices"], is_json=given["is_json"],
                        folder=_folder(given))  # fmt: skip
    if given["on_screen"] and options.draws(headless=False):
        return _on_screen(given)
    if not given["model"] or not given["devices"]:
        raise click.UsageError("Give --model and --devices, or --runs FILE, or --against RECORDING.")
    return _advised(given)


def _folder(given: dict[str, Any]) -> Path | None:
    folder: Path | None = given["hardware"]
    if folder is None and _is_description(given["calibration"]):
        return Path(given["calibration"]).absolute().parent
    if folder is not None and not folder.is_dir():
        from meshscope.errors import InputError

        raise InputError(f"{folder} is no folder.", hint="--hardware takes a folder of TOML files.")
    return folder


def _is_description(path: Path | None) -> bool:
    """A description of hardware, as ``meshscope calibrate`` writes one: a device of its own, named by --devices."""
    return path is not None and path.suffix == ".toml" and path.is_file()


def _request(given: dict[str, Any]) -> Request:
    from meshscope.advisor.request import Request

    words = tuple(word for words in given["strategies"] for word in words.split(",") if word.strip())
    return Request(
        model=given["model"],
        devices=given["devices"],
        batch=given["batch"] or 0,
        micro_batch=given["micro_batch"] or 0,
        seq_len=given["seq"] or 0,
        precision=given["precision"] or "",
        framework=given["framework"] or "",
        strategies=words,
        checkpointing=tuple(dict.fromkeys(given["checkpointing"])),
        is_compiled=given["is_compiled"],
        software=given["software"] or "",
        most_tensor=given["most_tensor"] or 0,
        hardware=_folder(given),
    )


def _advised(given: dict[str, Any]) -> int:
    from meshscope.advisor.answer import answer
    from meshscope.advisor.presets import is_own
    from meshscope.advisor.request import posed

    request = _request(given)
    if is_own(request.model) or given["is_exact"]:
        from meshscope.cli.advise_exact import planned

        return planned(request, is_json=given["is_json"])
    asked = posed(request, _multipliers(given))
    short = given["no_sensitivity"] or given["explain"] is not None
    found = answer(asked, with_sensitivities=not short)
    if given["save_simulated"] is not None:
        from meshscope.cli.advise_saving import saved

        saved(found, given["save_simulated"], top=given["top"])
    if given["tries"]:
        from meshscope.cli.advise_trying import tried

        return tried(found, given["tries"], is_json=given["is_json"])
    click.echo(_printed(found, given))
    return 0


def _on_screen(given: dict[str, Any]) -> int:
    """What is not said yet is asked there."""
    from meshscope.cli import screen
    from meshscope.ui.advise.form import Form, asking

    said = _request(given | {name: given[name] or getattr(Form(), name) for name in ("model", "devices")})
    screen.advise(asking(said, _multipliers(given)))
    return 0


def _multipliers(given: dict[str, Any]) -> Multipliers:
    from meshscope.advisor.multipliers import NEUTRAL

    if given["calibration"] is None or _is_description(given["calibration"]):
        return NEUTRAL
    from meshscope.cli.advise_against import multipliers

    return multipliers(given["calibration"])


def _printed(found: Answer, given: dict[str, Any]) -> str:
    if given["explain"] is not None:
        return _explained(found, given["explain"], is_json=given["is_json"])
    if given["is_json"]:
        from meshscope.reports.advice_json import advice_json

        return advice_json(found)
    if given["is_markdown"]:
        from meshscope.reports.advice_markdown import advice_markdown

        return advice_markdown(found, top=given["top"]).rstrip("\n")
    from meshscope.reports.advice_text import advice_report

    return advice_report(found, top=given["top"])


def _explained(found: Answer, which: str, *, is_json: bool) -> str:
    from meshscope.advisor.answer import numbered
    from meshscope.reports.advice_explained import Explained, explained_json, explained_report

    shown = Explained(found, numbered(found, which))
    return explained_json(shown) if is_json else explained_report(shown)
