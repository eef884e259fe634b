"""How far the recordings of a folder reach, told from the ends of their journals alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from meshscope.recording.layout import JOURNAL, PLAN, read_experiment, read_plan, recordings

_TAIL_BYTES = 1 << 16


@dataclass(frozen=True)
class Stretch:
    """One recording (or the plan itself, named ""): its first, newest and last moment in unix ns.

    ``ended_unix_ns`` is when its Ended entry was written, None while there is none.
    """

    strategy: str
    start_unix_ns: int
    newest_unix_ns: int
    ended_unix_ns: int | None


@dataclass(frozen=True)
class Extent:
    """``stretches`` in the order of the plan. A folder of one recording has one stretch."""

    stretches: tuple[Stretch, ...]
    awaited: int = 0

    @property
    def start_unix_ns(self) -> int:
        return min((stretch.start_unix_ns for stretch in self.stretches), default=0)

    @property
    def newest_unix_ns(self) -> int:
        return max((stretch.newest_unix_ns for stretch in self.stretches), default=0)

    @property
    def ended_unix_ns(self) -> int | None:
        """When the last of all that was planned ended; None while anything is still to come.

        Where the supervisor has ended nothing more will come, whatever else was planned.
        """
        ends = [stretch.ended_unix_ns for stretch in self.stretches if stretch.ended_unix_ns is not None]
        is_over = any(stretch.ended_unix_ns is not None for stretch in self.stretches if not stretch.strategy)
        return max(ends) if ends and (is_over or (len(ends) == len(self.stretches) and not self.awaited)) else None


class _Stamp(msgspec.Struct):
    t_ns: int
    type: str = ""


_STAMP = msgspec.json.Decoder(_Stamp)


def extent(folder: Path) -> Extent:
    """Reads the last 64 kB of each journal. Raises RecordingError when the folder holds no recording."""
    plan = read_plan(folder)
    found = recordings(folder)
    if plan is None and not found:
        read_experiment(folder)
    stretches = [_stretch(path, *_head(path)) for path in found]
    awaited = 0
    if plan is not None:
        own = _stretch(folder, "", plan.t0_unix_ns)
        # A plan's own journal may be missing (loose recordings put together): then its recordings decide.
        stretches = (
            [own, *stretches] if (folder / PLAN).is_file() and own.newest_unix_ns > own.start_unix_ns else stretches
        )
        awaited = len(plan.runs) - len(found)
    return Extent(tuple(stretches), awaited)


def _head(path: Path) -> tuple[str, int]:
    experiment = read_experiment(path)
    return experiment.strategy, experiment.t0_unix_ns


def _stretch(folder: Path, strategy: str, t0_unix_ns: int) -> Stretch:
    newest, ended = 0, None
    for path in (folder / JOURNAL).glob("*.jsonl"):
        for stamp in _stamps(path):
            newest = max(newest, stamp.t_ns)
            if stamp.type == "ended":
                ended = stamp.t_ns
    return Stretch(strategy, t0_unix_ns, t0_unix_ns + newest, None if ended is None else t0_unix_ns + ended)


def _stamps(path: Path) -> Iterator[_Stamp]:
    """The whole lines at the end of a journal; damaged ones are passed over."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _TAIL_BYTES, 0))
        lines = file.read().split(b"\n")
    for line in lines[:-1]:
        try:
            yield _STAMP.decode(line)
        except msgspec.MsgspecError:
            continue
