"""Where the ranks of a run that stands still are: by stacks that were taken then, what XLA said, and who computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from meshscope.recording.entries import StacksTaken
from meshscope.recording.frames import Frame, apart, frame
from meshscope.run import Run
from meshscope.units import counted, ranges

_MOST = 4
_MOST_RANKS = 16
_SETTLED_NS = 1_000_000_000
_RENDEZVOUS = re.compile(
    r"\[id=(?P<id>\d+)\].*?waiting for `(?P<what>[a-z -]+) RendezvousKey\{run_id=(?P<run>.*?), "
    r"global_devices=\[(?P<devices>[\d, ]*)\].*?op_id=(?P<op>\d+)\}`.*?Expected (?P<expected>\d+) threads"
)


@dataclass(frozen=True)
class Stood:
    """Where one thread was: its innermost ``frame``, and the innermost of the program's own (None: there is none)."""

    rank: int
    is_main: bool
    inner: Frame
    own: Frame | None

    @property
    def words(self) -> str:
        if self.own is None or self.own == self.inner:
            return self.inner.words
        return f"{self.inner.words}, reached from {self.own.words}"


def newest(run: Run) -> tuple[StacksTaken, ...]:
    """The last stacks of each rank that were taken since the last step ended, by rank."""
    last_ns = int(run.steps.end_ns.max()) if len(run.steps) else 0
    return tuple({one.rank: one for one in run.stacks if one.t_ns > last_ns}[rank] for rank in _ranks(run, last_ns))


def _ranks(run: Run, last_ns: int) -> list[int]:
    return sorted({one.rank for one in run.stacks if one.t_ns > last_ns})


def stood(run: Run) -> tuple[Stood, ...]:
    """The main thread of each rank, and those others that are in the program's own code."""
    return tuple(each for taken in newest(run) for each in _threads(taken))


def stood_of(run: Run, ranks: Sequence[int]) -> tuple[Stood, ...]:
    """The main threads of ``ranks`` by stacks since their own last step ended, whatever other ranks did since."""
    last_ns: dict[int, int] = {}
    for rank, end_ns in zip(run.steps.rank.tolist(), run.steps.end_ns.tolist(), strict=True):
        last_ns[rank] = max(end_ns, last_ns.get(rank, 0))
    taken = {one.rank: one for one in run.stacks if one.t_ns > last_ns.get(one.rank, 0)}
    return tuple(each for rank in ranks if rank in taken for each in _threads(taken[rank]) if each.is_main)[:_MOST]


def _threads(taken: StacksTaken) -> Iterator[Stood]:
    for number, thread in enumerate(taken.threads):
        frames = [found for text in thread if (found := frame(text)) is not None]
        own = next((found for found in frames if found.is_own), None)
        if frames and (number == 0 or own is not None):
            yield Stood(taken.rank, number == 0, frames[0], own)


def places(run: Run) -> tuple[int, ...]:
    """The ranks that the others wait for, by the stacks; () where those do not tell.

    Of a process that drives several: by the threads beside its main one that name theirs. Else the one rank that is in
    no call of torch's while all others are.
    """
    odd = apart({each.rank: each.inner for each in stood(run) if each.is_main})
    if odd is not None and run.experiment.framework == "torch" and len(newest(run)) == run.experiment.ranks:
        return (odd,)
    found = {each.own.place for each in stood(run) if not each.is_main and each.own is not None}
    return tuple(sorted(rank for rank in found if rank is not None and rank < run.experiment.ranks))


def stall_words(run: Run) -> tuple[str, ...]:
    """What is known of a standstill, a sentence each; () where no stacks were taken in it."""
    taken = newest(run)
    if not taken:
        return ()
    return (*_rendezvous(taken), *_where(stood(run)), *_activity(run))


def _rendezvous(taken: Sequence[StacksTaken]) -> Iterator[str]:
    """What XLA says of the devices that wait for each other, of each collective once."""
    told: dict[tuple[str, str, str, str, str], set[str]] = {}
    for line in (line for one in taken for line in one.said):
        if found := _RENDEZVOUS.search(line):
            key = (found["what"], found["run"], found["op"], found["devices"], found["expected"])
            told.setdefault(key, set()).add(found["id"])
    for (what, _, op, devices, expected), ids in list(told.items())[-_MOST:]:
        numbers = [int(number) for number in devices.split(",") if number.strip()]
        missing = int(expected) - len(ids)
        come = f"{len(ids)} of {counted(int(expected), 'participant')} wait in {what.replace(' ', '_')} {op}"
        yield f"XLA: {come} of devices {ranges(numbers)}" + (f", {missing} of them not there" if missing > 0 else "")


def _where(found: Sequence[Stood]) -> Iterator[str]:
    by_place: dict[tuple[str, bool], list[int]] = {}
    for each in found:
        by_place.setdefault((each.words, each.is_main), []).append(each.rank)
    # The odd ones out first: a place that few ranks are in.
    for (words, is_main), ranks in sorted(by_place.items(), key=lambda item: (item[0][1], len(item[1])))[:_MOST]:
        who = f"{'ranks' if len(set(ranks)) > 1 else 'rank'} {ranges(ranks)}"
        thread = "" if is_main else "a thread beside the main one of "
        yield f"{thread}{who} stood in {words}"


def _activity(run: Run) -> Iterator[str]:
    """How much each rank's process computes, and each accelerator, since a second after the last step."""
    since_ns = (int(run.steps.end_ns.max()) if len(run.steps) else 0) + _SETTLED_NS
    cores = [
        f"rank {rank} {_mean(run, f'rank {rank}', 'cpu_cores', since_ns):.2f}"
        for rank in range(min(run.experiment.ranks, _MOST_RANKS))
        if _mean(run, f"rank {rank}", "cpu_cores", since_ns) is not None
    ]
    if cores:
        yield f"cores in use since then: {', '.join(cores)}"
    busy = [
        f"{device} {mean * 100:.0f} %"
        for device, name in run.samples.each()
        if name == "utilization_frac" and device != "host"
        if (mean := _mean(run, device, name, since_ns)) is not None
    ]
    if busy:
        yield f"devices at work since then, in % of the time: {', '.join(busy[:_MOST_RANKS])}"


def _mean(run: Run, device: str, field: str, since_ns: int) -> float | None:
    time_ns, value = run.samples.series(device, field)
    kept = value[time_ns > since_ns]
    return float(kept.mean()) if len(kept) else None
