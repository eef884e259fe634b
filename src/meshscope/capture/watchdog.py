"""Looks after a run that stands still: asks every rank where it is before anything is ended.

In two stages. After a few seconds without a step it asks and tells, and the run goes on: whoever watches knows which
rank waits for whom long before patience is over. Once it is over the ranks are asked again, and the run is ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from meshscope.capture import processes, stacks
from meshscope.capture.request import Request
from meshscope.capture.roster import Member, Roster, absent, elsewhere, hung, standing
from meshscope.recording.entries import Log
from meshscope.recording.journal import Journal
from meshscope.recording.layout import LOGS

SUSPECT_S = 10.0
_SUSPECT_STEPS = 3
_SUSPECT_FRAC = 0.8
_ANSWER_S = 5.0
_SETTLE_S = 0.5
_POLL_S = 0.1


@dataclass
class Watchdog:
    """``look`` folds what the ranks write into ``roster``; it is called while their answers are waited for.

    ``elsewhere`` says what all ranks here wait in together, where others that are not here may be to blame; else "".
    """

    recording: Path
    roster: Roster
    request: Request
    journal: Journal
    has_flight: bool
    look: Callable[[], None]
    elsewhere: Callable[[], str] = str
    _still_ns: int = -1
    _asked: int = 0
    _log_ends: dict[int, int] = field(default_factory=dict)

    def stuck(self) -> tuple[int, str] | None:
        """(rank, why) once patience is over and every rank has been asked; rank −1 where nothing tells them apart."""
        now_ns = self.journal.now_ns()
        found = hung(
            self.roster,
            now_ns,
            patience_s=self.request.patience_s,
            startup_patience_s=self.request.startup_patience_s,
        )
        if found is None:
            self._suspect(now_ns)
            return None
        self._ask()
        return self._told_apart(*found)

    def _suspect(self, now_ns: int) -> None:
        """Ask once when it looks like a hang; say so too when it was none."""
        late = [member for member in self.roster.leading if self._is_suspect(member, now_ns)]
        if self._still_ns >= 0 and not late:
            moved_ns = max(member.moved_ns for member in self.roster.leading)
            self._say("info", f"The run goes on after {(moved_ns - self._still_ns) / 1e9:.0f} s without a step.")
            self._still_ns = -1
        if self._still_ns >= 0 or not late:
            return
        self._still_ns = min(member.moved_ns for member in late)
        self._ask()
        rank, why = self._told_apart(-1, f"no step has ended for {self._suspect_s():.0f} s")
        self._say("warning", f"Looks like a hang{f' of rank {rank}' if rank >= 0 else ''}: {why}.")

    def _suspect_s(self) -> float:
        """Never beyond the patience after which the run is ended."""
        longest_s = max((member.longest_ns for member in self.roster.leading), default=0) / 1e9
        return min(max(SUSPECT_S, _SUSPECT_STEPS * longest_s), self.request.patience_s * _SUSPECT_FRAC)

    def _is_suspect(self, member: Member, now_ns: int) -> bool:
        """At work without a step, or held by its profiler's stop for as long as a step may take at most."""
        if member.ended is not None or member.step < 0:
            return False
        if member.phase == "stopping profiler":
            return now_ns - member.phase_since_ns > self.request.patience_s * 1e9
        return member.is_at_work and now_ns - member.moved_ns > self._suspect_s() * 1e9

    def _ask(self) -> None:
        """Stacks by faulthandler, which needs no interpreter; then the rest by the rank's own thread."""
        self._asked += 1
        self._log_ends = {member.rank: _size(self._log(member)) for member in self.roster.leading}
        for member in self.roster.leading:
            member.told = member.called = None
            if member.process is not None:
                processes.ask_for_stacks(member.process)
                processes.ask_for_flight(member.process)

    def _told_apart(self, rank: int, why: str) -> tuple[int, str]:
        """Wait for the answers. Where steps do not tell which rank the others wait for, a flight recorder may."""
        deadline = time.monotonic() + _ANSWER_S
        while time.monotonic() < deadline and not all(map(self._has_answered, self.roster.leading)):
            time.sleep(_POLL_S)
            self.look()
        missing = absent(self.roster) if self.has_flight else None
        time.sleep(_SETTLE_S)  # faulthandler writes on its own account
        for member in self.roster.leading:
            if member.told is None:
                self._keep(member)
        if missing is None and (said := self.elsewhere()):
            return -1, f"{why}; {said}"
        stands = standing(self.roster)
        if rank < 0 and missing is not None:
            rank, why = missing[0], f"{why}; {missing[1]}, which it has not called"
        elif rank < 0 and len(stands) == 1 < len(self.roster.members):
            rank = next(iter(stands))
        elif rank < 0 and (odd := elsewhere(self.roster)) is not None:
            rank, why = odd, f"{why}; all others wait inside torch"
        return rank, f"{why}; it stands in {stands[rank]}" if rank in stands else why

    def _has_answered(self, member: Member) -> bool:
        return member.ended is not None or (
            member.told is not None and (not self.has_flight or member.called is not None)
        )

    def _keep(self, member: Member) -> None:
        """What faulthandler has written into the log of a rank whose interpreter gives no answer."""
        try:
            with self._log(member).open("rb") as file:
                file.seek(self._log_ends.get(member.rank, 0))
                text = file.read().decode(errors="replace")
        except OSError:
            return
        stacks.keep(text, self.recording, self.journal, rank=member.rank, name=f"faulthandler{self._asked}")

    def _log(self, member: Member) -> Path:
        return self.recording / LOGS / f"rank{member.rank}.txt"

    def _say(self, level: str, text: str) -> None:
        self.journal.append(Log(t_ns=self.journal.now_ns(), level=level, text=text))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
