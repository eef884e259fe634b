"""``meshscope advise --try N``: the best candidates are run on this machine, and what was measured stands beside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshscope.errors import InputError

if TYPE_CHECKING:
    from meshscope.advisor.against import Against
    from meshscope.advisor.answer import Answer
    from meshscope.advisor.bundled import Bundled
    from meshscope.advisor.cluster import Cluster
    from meshscope.advisor.ranking import Ranked
    from meshscope.run import Run

STEPS = 40
INTERRUPTED = 130


@dataclass(frozen=True)
class Trial:
    """A candidate as the workload that trains it."""

    ranked: Ranked
    bundled: Bundled
    name: str


def tried(found: Answer, tries: int, *, is_json: bool) -> int:
    """Runs the best ``tries`` candidates that a bundled workload can train, one after another, and prints each beside
    its prediction, settings such as the bucket size included. Exit code 1 where one of them failed.

    Raises InputError where this machine has not those devices, or no candidate can be run.
    """
    from meshscope.capture.places import default_folder
    from meshscope.cli.headless import Interrupted

    question = found.posed.question
    _refuse_others(question.cluster, found)
    chosen = list(trials(found, tries))
    if not chosen:
        raise InputError(
            f"No candidate for {found.posed.model.name} can be run here.",
            hint="Bundled models can: --model tiny, 125m, 350m or 1.3b.",
        )
    folder = default_folder(found.posed.model.name)
    try:
        runs = [_run(trial, folder / f"{number}-{trial.bundled.workload.strategy}", is_cpu=_is_cpu(question.cluster))
                for number, trial in enumerate(chosen, start=1)]  # fmt: skip
    except Interrupted:
        click.echo(f"Stopped as asked; what was recorded is in {folder}", err=True)
        return INTERRUPTED
    return _told(found, chosen, runs, folder, is_json=is_json)


def trials(found: Answer, tries: int) -> Iterator[Trial]:
    """The fastest first, each layout and each of its settings once; those that no workload trains are passed over."""
    from meshscope.advisor.bundled import bundled
    from meshscope.advisor.coverage import NotCovered
    from meshscope.advisor.naming import layout_name, turned

    question = found.posed.question
    seen: set[tuple[str, ...]] = set()
    for ranked in sorted((*found.advice.ranked, *found.advice.settings), key=lambda each: each.step_s):
        if len(seen) == tries:
            return
        try:
            one = bundled(found.posed.model.name, ranked.candidate, question.cluster.devices)
        except (NotCovered, InputError):
            continue
        key = (one.workload.strategy, *one.flags)
        if key not in seen:
            seen.add(key)
            yield Trial(ranked, one, ", ".join([layout_name(ranked.candidate), *turned(ranked.candidate)]))


def _is_cpu(cluster: Cluster) -> bool:
    return cluster.device.family == "cpu"


def _refuse_others(cluster: Cluster, found: Answer) -> None:
    """InputError where the question is of devices that are not here."""
    from meshscope.capture.frameworks import probe

    if _is_cpu(cluster):
        return
    names = tuple(dict.fromkeys(found.posed.question.frameworks))
    here = max((framework.count for framework in probe(names).values()), default=0)
    if here < cluster.devices:
        raise InputError(
            f"This machine has not {cluster.devices} × {cluster.device.name}, so nothing can be tried on them.",
            hint="Ask about the devices that are here, such as --devices 2xcpu.",
        )


def _run(trial: Trial, out: Path, *, is_cpu: bool) -> Run:
    """The recording, once it has ended."""
    from meshscope.capture import launch
    from meshscope.capture.request import Request
    from meshscope.cli.headless import follow
    from meshscope.run import Gallery

    flags = (*trial.bundled.flags, *(("--device", "cpu") if is_cpu else ()))
    asked = Request(
        strategies=(trial.bundled.workload.strategy,),
        model=str(trial.bundled.options.model),
        ranks=trial.bundled.devices,
        steps=STEPS,
        out=str(out),
        options=flags,
    )
    plan = launch.plan(asked)
    place = Path(plan.request["out"])
    click.echo(f"{trial.name}: {trial.bundled.workload.strategy} {' '.join(flags)}", err=True)
    supervisor = launch.start(place, plan)
    gallery = Gallery(place)
    follow(place, gallery, supervisor, say=partial(click.echo, err=True))
    _, runs = gallery.at(time.time_ns())
    return runs[0]


def _told(found: Answer, chosen: Sequence[Trial], runs: Sequence[Run], folder: Path, *, is_json: bool) -> int:
    from meshscope.advisor.against import against

    question = found.posed.question
    sides = [against(run, question.cluster, question.multipliers) for run in runs]
    failed = [run for run in runs if run.ended is not None and run.ended.outcome == "failed"]
    click.echo(_json(chosen, sides, folder) if is_json else _text(chosen, sides, folder))
    for run in failed:
        click.echo(f"meshscope: {run.name} failed: {run.ended.why if run.ended else ''}", err=True)
    return 1 if failed else 0


def _text(chosen: Sequence[Trial], sides: Sequence[Against], folder: Path) -> str:
    from meshscope.reports.against_text import against_text
    from meshscope.reports.columns import table, wrapped

    heading = ["tried", "predicted ms", "low to high", "measured ms", "its steps", "off by"]
    lines = [*table(heading, [_row(trial, side) for trial, side in zip(chosen, sides, strict=True)], indent="")]
    lines += ["", *(line for sentence in _orders(chosen, sides) for line in wrapped(sentence, indent=""))]
    for side in sides:
        lines += ["", against_text(side)]
    return "\n".join([*lines, "", f"meshscope replay {folder}"])


def _row(trial: Trial, side: Against) -> list[str]:
    step, measured = side.step, side.measured
    if step is None:
        return [trial.name, *["–"] * 5]
    return [
        trial.name,
        f"{step.value * 1e3:.1f}",
        f"{step.low * 1e3:.0f} to {step.high * 1e3:.0f}",
        f"{measured.step_s * 1e3:.1f}",
        f"{measured.low_s * 1e3:.0f} to {measured.high_s * 1e3:.0f}",
        f"{side.error_frac * 100:+.1f} %",
    ]


def _orders(chosen: Sequence[Trial], sides: Sequence[Against]) -> Iterator[str]:
    """Whether the measurement agrees with the order, of neighbours in it, as far as one run of each tells."""
    for at in range(len(sides) - 1):
        first, second = sides[at], sides[at + 1]
        names = f"{chosen[at].name} before {chosen[at + 1].name}"
        if first.measured.high_s < second.measured.low_s:
            yield f"{names}: so it was measured."
        elif second.measured.high_s < first.measured.low_s:
            yield f"{names}: measured the other way round."
        else:
            yield f"{names}: their steps overlap, so one run of each does not tell."


def _json(chosen: Sequence[Trial], sides: Sequence[Against], folder: Path) -> str:
    from meshscope.reports.advice_json import encoded
    from meshscope.reports.against_json import against_json

    rows = [
        {"name": trial.name, "flags": list(trial.bundled.flags)} | against_json(side)
        for trial, side in zip(chosen, sides, strict=True)
    ]
    return encoded({"format": 1, "tried": rows, "folder": str(folder)})
