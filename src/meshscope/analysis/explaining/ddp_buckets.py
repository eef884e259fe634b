"""Explains DDP's buckets: when each became ready, began and ended in a backward pass, and how much of it is exposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from meshscope.analysis.ddp import ddp
from meshscope.analysis.explaining.adding import Ints, is_all
from meshscope.analysis.explaining.ddp_passes import NO_DDP, Passed, passed
from meshscope.analysis.explaining.evidence import delays, events, place
from meshscope.analysis.explaining.figure import DIFFERENCE, MEAN, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.run import Run
from meshscope.units import counted

_SAID = {
    "size": ("size_bytes", "bytes", "The gradients in bucket N, as the trace tells its all-reduce's size"),
    "ready": ("ready_ns", "ns", "From the beginning of the backward pass to when the all-reduce of bucket N had been "
              "asked for and what was launched before it had been computed, in the mean over passes"),
    "begin": ("begin_ns", "ns", "From the beginning of the backward pass to when the all-reduce of bucket N began, in "
              "the mean over passes"),
    "end": ("end_ns", "ns", "From the beginning of the backward pass to the end of the all-reduce of bucket N, in the "
            "mean over passes"),
    "busy": ("busy_ns", "ns", "How long the all-reduce of bucket N takes, in the mean over passes"),
    "exposed": ("exposed_ns", "ns", "The part of the all-reduce of bucket N beside which nothing is computed, in the "
                "mean over passes"),
    "after": ("after_ns", "ns", "The exposed part of the all-reduce of bucket N after the last computation of the "
              "backward pass, in the mean over passes"),
}  # fmt: skip
_FROM_START = ("ready", "begin", "end")


def numbers(run: Run) -> tuple[Number, ...]:
    found = ddp(run)
    if found is None:
        return ()
    return tuple(_number(bucket.number, what) for bucket in found.buckets for what in _SAID)


def _number(bucket: int, what: str) -> Number:
    field, unit, said = _SAID[what]
    return Number(
        name=f"ddp.buckets.{bucket}.{what}",
        unit=unit,
        definition=f"{said.replace('bucket N', f'bucket {bucket}')}.",
        excludes="passes with buckets of other sizes; waiting for a late rank is included",
        cases=partial(_cases, bucket=bucket, what=what),
        also=(f"ddp.buckets.{bucket}.{field}",),
        by=("rank", "step"),
        is_listed=what in ("ready", "exposed"),
    )


def _alike(run: Run) -> list[Passed]:
    """The passes with the most frequent series of sizes, of all ranks and steps."""
    every = passed(Asked(run, (run,)))
    counts = Counter(told.one.signature for told in every)
    return [told for told in every if counts and told.one.signature == counts.most_common(1)[0][0]]


def _cases(asked: Asked, *, bucket: int, what: str) -> tuple[Case, ...]:
    found = [
        told
        for told in _alike(asked.run)
        if asked.has(told.window.rank) and asked.step in (None, told.one.step)
    ]  # fmt: skip
    of = f"bucket {bucket}" + ("" if asked.rank is None else f", rank {asked.rank}")
    if not found:
        return (Case(of, None, why=NO_DDP, rank=asked.rank),)
    at = bucket - 1
    size_bytes = found[0].one.signature[at]
    if what == "size" and size_bytes < 0:
        return (Case(of, None, why="the trace does not tell the size of its all-reduce", rank=asked.rank),)
    figure = (
        Figure("its gradients", size_bytes, "bytes")
        if what == "size"
        else made(f"{what} of the mean pass", MEAN, *(_each(told, at, what) for told in found))
    )
    windows = list(dict.fromkeys(told.window for told in found))
    rows = [(told.window, told.one.row[at : at + 1], _busy(told, at)) for told in found]
    return (
        Case(
            of=of,
            figure=figure,
            json=f"ddp.buckets[{at}].{_SAID[what][0]}" if is_all(asked) else "",
            rank=asked.rank,
            places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
            evidence=delays(rows, "all-reduces of this bucket"),
            events=events(windows),
            notes=_notes(asked, found),
        ),
    )


def _busy(told: Passed, at: int) -> Ints:
    length_ns: Ints = told.one.end_ns[at : at + 1] - told.one.begin_ns[at : at + 1]
    return length_ns


def _each(told: Passed, at: int, what: str) -> Figure:
    one = told.one
    if what in _FROM_START:
        moment = Figure(f"{what} on rank {one.rank}", int(getattr(one, f"{what}_ns")[at]))
        return made(told.label, DIFFERENCE, moment, Figure("the pass's beginning", one.begun_ns))
    return Figure(told.label, int(_busy(told, at)[0] if what == "busy" else getattr(one, f"{what}_ns")[at]))


def _notes(asked: Asked, found: Sequence[Passed]) -> tuple[str, ...]:
    every = len(passed(asked))
    notes = ["buckets are numbered in the order in which their all-reduces were asked for"]
    if every > len(found):
        notes.append(f"of {counted(every, 'pass', 'passes')}, the {len(found)} with the most frequent series of sizes")
    return tuple(notes)


GROUP = Group("DDP: buckets", 19, numbers, heads=("ddp.",))
