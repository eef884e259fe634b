"""What the supervisor knows of each rank, folded from the ranks' own journals and the process table."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from meshscope.capture import processes
from meshscope.recording.entries import Entry, FlightWritten, Phase, RankEnded, RankStarted, StacksTaken, StepDone
from meshscope.recording.frames import apart, frame
from meshscope.recording.journal import Tail
from meshscope.recording.layout import JOURNAL

_AT_WORK = ("training", "profiling")
_LONGEST_STEPS = 10


@dataclass
class Member:
    """One rank. Times are ns of the recording.

    ``ended`` is the rank's own last word. ``gone_ns`` is when its process was first seen to have ended without one
    (−1: it was not), ``exit_code`` what the process table told of it then. ``called`` maps each process group to the
    last collective that the rank has called in it, None where its flight recorder was not dumped; ``waits_in`` is
    the one that it is in. ``told`` are its stacks, None until it has left some since it was asked.
    """

    rank: int
    process: psutil.Process | None = None
    phase: str = "launching"
    phase_since_ns: int = 0
    moved_ns: int = 0
    step: int = -1
    longest_ns: int = 0
    ended: RankEnded | None = None
    gone_ns: int = -1
    exit_code: int | None = None
    called: dict[str, int] | None = None
    told: StacksTaken | None = None
    waits_in: str = ""

    def fold(self, entry: Entry) -> None:
        # Asked for from outside, so it shows no life.
        if isinstance(entry, FlightWritten):
            self.called, self.waits_in = entry.newest, entry.waits_in
            return
        if isinstance(entry, StacksTaken):
            self.told = entry
            return
        self.moved_ns = max(self.moved_ns, entry.t_ns)
        if isinstance(entry, Phase):
            # A heartbeat repeats the phase: it shows life, and the phase began when it began.
            if entry.phase != self.phase:
                self.phase, self.phase_since_ns = entry.phase, entry.t_ns
        elif isinstance(entry, StepDone):
            self.step = max(self.step, entry.step)
            self.longest_ns = max(self.longest_ns, entry.end_ns - entry.start_ns)
        elif isinstance(entry, RankStarted):
            self.process = processes.known(entry.pid)
        elif isinstance(entry, RankEnded):
            self.ended, self.gone_ns = entry, -1

    @property
    def is_at_work(self) -> bool:
        """Whether it makes steps, by its own last word."""
        return self.phase in _AT_WORK

    def look(self, now_ns: int) -> None:
        """Ask the process table whether it is still there."""
        if self.process is None or self.ended is not None or processes.is_alive(self.process):
            return
        self.gone_ns = now_ns if self.gone_ns < 0 else self.gone_ns
        if self.exit_code is None:
            self.exit_code = processes.exit_code(self.process.pid)

    def is_late(self, now_ns: int, *, patience_s: float, startup_patience_s: float) -> bool:
        """Whether it has shown no progress for longer than its phase allows."""
        if self.ended is not None:
            return False
        if self.is_at_work:
            return now_ns - self.moved_ns > max(patience_s * 1e9, _LONGEST_STEPS * self.longest_ns)
        return now_ns - self.phase_since_ns > startup_patience_s * 1e9


@dataclass
class Roster:
    """The ranks of one recording and the journals they write; with 0 ranks, those that announce themselves.

    ``first`` is the rank of the first of them, which is not 0 on every node.
    """

    recording: Path
    ranks: int
    first: int = 0
    members: dict[int, Member] = field(init=False)
    _tails: dict[Path, Tail] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.members = {rank: Member(rank) for rank in range(self.first, self.first + self.ranks)}

    def fresh(self, now_ns: int) -> list[Entry]:
        """What the ranks have appended since the last call, folded into ``members`` as well, in time order."""
        # First the process table, then the journals: a last word written in between is then seen.
        for member in self.members.values():
            member.look(now_ns)
        entries: list[Entry] = []
        for path in sorted((self.recording / JOURNAL).glob("rank*.jsonl")):
            entries += self._tails.setdefault(path, Tail(path)).read()
        entries.sort(key=lambda entry: entry.t_ns)
        for entry in entries:
            rank = getattr(entry, "rank", -1)
            if not self.ranks and isinstance(entry, RankStarted) and rank >= 0:
                self.members.setdefault(rank, Member(rank))
            if rank in self.members:
                self.members[rank].fold(entry)
        return entries

    @property
    def is_broken(self) -> bool:
        """Whether some rank said that it failed, or is gone without a word."""
        return any(m.gone_ns >= 0 or (m.ended and m.ended.exit_code) for m in self.members.values())

    @property
    def is_over(self) -> bool:
        """Whether every rank has said its last word."""
        return bool(self.members) and all(member.ended is not None for member in self.members.values())

    @property
    def leading(self) -> list[Member]:
        """One member per process: the one that reports for it."""
        found: dict[int, Member] = {}
        for _, member in sorted(self.members.items()):
            if member.process is not None:
                found.setdefault(member.process.pid, member)
        return list(found.values()) or list(self.members.values())[:1]

    def pids(self) -> dict[int, int]:
        """Rank → process id; the ranks of one process appear once, as the first of them."""
        return {member.rank: member.process.pid for member in self.leading if member.process is not None}

    def processes(self) -> list[psutil.Process]:
        return [member.process for member in self.leading if member.process is not None]


def hung(roster: Roster, now_ns: int, *, patience_s: float, startup_patience_s: float) -> tuple[int, str] | None:
    """(rank, why) once some rank is late; rank −1 where nothing tells the ranks apart; None while all move."""
    leading = roster.leading
    late = [m for m in leading if m.is_late(now_ns, patience_s=patience_s, startup_patience_s=startup_patience_s)]
    if not late:
        return None
    idle_s = (now_ns - statistics.fmean(member.moved_ns for member in late)) / 1e9
    still = [m for m in leading if m.process is not None and processes.is_stopped(m.process)]
    if still:
        return still[0].rank, f"it was stopped by a signal in {_place(still[0])}; no progress for {idle_s:.0f} s"
    if len(leading) < len(roster.members):
        return -1, f"no device made progress for {idle_s:.0f} s; their process is in {_place(late[0])}"
    culprit = _hindmost(leading)
    if culprit is None:
        return -1, f"no rank made progress for {idle_s:.0f} s; all are in {_place(late[0])}"
    return culprit.rank, f"no progress for {idle_s:.0f} s in {_place(culprit)}"


def absent(roster: Roster) -> tuple[int, str] | None:
    """(rank, why) of the one rank that lacks a collective which others have called, by the flight recorders.

    None where not every rank left a dump, none lacks one, or several do.
    """
    leading = roster.leading
    known = {member.rank: member.called for member in leading if member.called is not None}
    if len(known) < len(leading):
        return None
    behind: dict[int, str] = {}
    for group in sorted({group for called in known.values() for group in called}):
        members = {rank: called[group] for rank, called in known.items() if group in called}
        most = max(members.values())
        late = {rank: last for rank, last in members.items() if last < most}
        behind |= {rank: f"the others wait in collective {last + 1} of group {group}" for rank, last in late.items()}
    return next(iter(behind.items())) if len(behind) == 1 else None


def elsewhere(roster: Roster) -> int | None:
    """The rank that its stack tells apart: all others wait inside torch. None where a process has left no stack."""
    innermost = {
        member.rank: found
        for member in roster.leading
        if member.told is not None and (found := frame(member.told.threads[0][0])) is not None
    }
    return apart(innermost) if len(innermost) == len(roster.members) else None


def standing(roster: Roster) -> dict[int, str]:
    """Rank → where it stands, in words, by the stacks that its process has left: in the program's own code where it is.

    A process that drives several ranks has a main thread that waits for all of them, and tells of those that another of
    its threads names.
    """
    found: dict[int, str] = {}
    for member in roster.leading:
        threads = member.told.threads if member.told is not None else ()
        is_lone = len(roster.leading) == len(roster.members)
        for thread in threads[:1] if is_lone else threads[1:]:
            own = next((one for text in thread if (one := frame(text)) is not None and one.is_own), None)
            rank = member.rank if is_lone else own.place if own is not None else None
            if own is not None and rank in roster.members:
                found[rank] = own.words
    return found


def _place(member: Member) -> str:
    return f"step {member.step + 1}" if member.phase in _AT_WORK else f"phase “{member.phase}”"


def _hindmost(members: list[Member]) -> Member | None:
    """The one rank that is behind all others; None when several are."""
    least = min(member.step for member in members)
    behind = [member for member in members if member.step == least]
    return behind[0] if len(behind) == 1 else None
