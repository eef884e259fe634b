"""Runs drawn as pictures, and made from entries: a test shows its case.

A picture has a line per rank and kind. One mark is 10 ns; ``#`` (or any letter) is covered, ``.`` is not, and a
run of equal marks is one span. A ``step`` line gives the steps of its rank, numbered from 0.

    0 compute     ####....####
    0 all_reduce  ..####......
    0 step        aaaaaabbbbbb
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from meshscope.experiment import Experiment
from meshscope.kinds import Kind
from meshscope.recording.entries import Entry, StepDone
from meshscope.run import Run, fold
from meshscope.spans import Counts, Window, span_table

MARK_NS = 10
KINDS = {"compute": Kind.COMPUTE, "copy": Kind.COPY, "wait": Kind.WAIT, "host": Kind.HOST, "other": Kind.OTHER}

Drawn = tuple[str, int, int]


def marks(line: str) -> list[tuple[int, int]]:
    """(start, end) in ns of each run of equal marks."""
    found, at = [], 0
    for mark, run in groupby(line):
        length = len(list(run))
        if mark != ".":
            found.append((at * MARK_NS, (at + length) * MARK_NS))
        at += length
    return found


def windows(picture: str, *, device_kind: str = "gpu", tells_wait: bool = True, **about: Any) -> tuple[Window, ...]:
    """One window per rank of the picture. Whatever kind is not known is the name of a collective."""
    ranks: dict[int, list[Drawn]] = {}
    for line in picture.strip().splitlines():
        rank, kind, drawn = line.split()
        ranks.setdefault(int(rank), []).extend((kind, start, end) for start, end in marks(drawn))
    return tuple(_window(rank, drawn, device_kind, tells_wait, about) for rank, drawn in ranks.items())


def _window(rank: int, drawn: list[Drawn], device_kind: str, tells_wait: bool, about: dict[str, Any]) -> Window:
    steps = [(start, end) for kind, start, end in drawn if kind == "step"]
    spans = sorted(((kind, start, end) for kind, start, end in drawn if kind != "step"), key=lambda span: span[1])
    collectives = tuple(dict.fromkeys(kind for kind, _, _ in spans if kind not in KINDS))
    kinds = [KINDS.get(kind, Kind.COLLECTIVE) for kind, _, _ in spans]
    work = [span for span, kind in zip(spans, kinds, strict=True) if kind in (1, 2, 3)]
    table = span_table(
        start_ns=[start for _, start, _ in spans],
        end_ns=[end for _, _, end in spans],
        rank=rank,
        kind=[int(kind) for kind in kinds],
        collective=[_collective(kind, collectives, tells_wait) for kind, _, _ in spans],
        collectives=collectives,
    )
    window = Window(
        rank=rank,
        device=rank,
        rank_from="trace",
        framework="torch",
        device_kind=device_kind,
        start_ns=min((start for _, start, _ in work), default=0),
        end_ns=max((end for _, _, end in work), default=0),
        steps=tuple(range(len(steps))),
        step_ns=np.array(steps, dtype=np.int64).reshape(-1, 2),
        is_complete=True,
        spans=table,
        counts=Counts(read=len(spans), device=len(work)),
        source="drawn",
        cannot_say=() if tells_wait else (("wait_ns", "not told apart"),),
    )
    return replace(window, **about)


def _collective(kind: str, collectives: tuple[str, ...], tells_wait: bool) -> int:
    """A wait is the first collective's."""
    if kind in collectives:
        return collectives.index(kind)
    return 0 if kind == "wait" and tells_wait and collectives else -1


def experiment(strategy: str = "ddp", **about: Any) -> Experiment:
    known: dict[str, Any] = {
        "t0_unix_ns": 0, "strategy": strategy, "title": f"the {strategy} strategy", "framework": "torch", "ranks": 2,
        "device_kind": "gpu", "model": "tiny", "planned_steps": 10, "global_batch": 32, "cores": 2,
    }  # fmt: skip
    return Experiment(**(known | about))


def run(
    entries: Iterable[Entry] = (), *, now_ns: int | None = None, windows: Iterable[Window] = (), **about: Any
) -> Run:
    """A run folded from entries, with windows put in; ``about`` is about the experiment."""
    here = experiment(**about)
    return replace(fold(here, entries, now_ns=now_ns, path=here.strategy), windows=tuple(windows))


def timeline(picture: str, **about: Any) -> Run:
    """The run of a picture."""
    return run(windows=windows(picture, **about))


def steps(
    durations_ms: Iterable[float], *, ranks: int = 2, samples: int = 16, profiled: Iterable[int] = (), **about: Any
) -> list[StepDone]:
    """One step after the other on every rank, written as each ends. Rank 1 begins and ends 1 ms later, and so on."""
    found: list[StepDone] = []
    at_ms = 0.0
    for number, duration_ms in enumerate(durations_ms):
        for rank in range(ranks):
            start_ns, end_ns = round((at_ms + rank) * 1e6), round((at_ms + rank + duration_ms) * 1e6)
            known: dict[str, Any] = {
                "samples": samples,
                "tokens": samples * 10,
                "loss": 5.0 - number,
                "data_wait_ns": 0,
            }
            known |= {"is_profiled": number in tuple(profiled)} | about
            found.append(StepDone(t_ns=end_ns, rank=rank, step=number, start_ns=start_ns, end_ns=end_ns, **known))
        at_ms += duration_ms + ranks
    return found
