"""Asks ranks of a user's own command where they stand once some have ended no step for long; ends nothing.

A script may evaluate for an hour, on one rank or on all. So it is said what is seen, and no more: which ranks still
step, which do not, and in which line of theirs those are.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from meshscope.capture.roster import Member, Roster, standing
from meshscope.recording import control
from meshscope.recording.control import STAND, Ask
from meshscope.recording.entries import Entry, Log, StepDone
from meshscope.recording.journal import Journal
from meshscope.recording.standstill import patience_ns
from meshscope.units import NS_PER_S, ranges

_ANSWER_NS = 3 * NS_PER_S
_REMEMBERED = 200
_MOST = 4


@dataclass
class Standing:
    """``take`` is called several times a second with what the ranks wrote since."""

    recording: Path
    roster: Roster
    journal: Journal
    _lengths_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _stepped_ns: dict[int, int] = field(default_factory=dict)
    _still: frozenset[int] = frozenset()
    _asked_ns: int = -1

    def take(self, entries: list[Entry], now_ns: int) -> Log | None:
        """What is worth a line now: ranks that stand still, or that go on; appended to the journal too."""
        for entry in entries:
            if isinstance(entry, StepDone):
                self._lengths_ns.append(entry.end_ns - entry.start_ns)
                self._stepped_ns[entry.rank] = entry.t_ns
        still = frozenset(member.rank for member in self.roster.members.values() if self._is_still(member, now_ns))
        if self._asked_ns >= 0:
            return self._answered(still, now_ns)
        if still - self._still:
            self._ask(now_ns)
            return None
        gone, self._still = self._still - still, still
        return self._say("info", f"{_who(gone)} no longer without a step.") if gone else None

    def _is_still(self, member: Member, now_ns: int) -> bool:
        """In its training, by its own last word, and without a step for longer than steps explain."""
        stepped_ns = self._stepped_ns.get(member.rank)
        if stepped_ns is None or member.ended is not None or member.gone_ns >= 0 or not _trains(member):
            return False
        return now_ns - max(stepped_ns, member.phase_since_ns) >= self.patience_ns

    @property
    def patience_ns(self) -> float:
        """Ten seconds, and at least twenty usual steps."""
        return patience_ns(statistics.median(self._lengths_ns or (0,)))

    def _ask(self, now_ns: int) -> None:
        for member in self.roster.members.values():
            member.told = member.called = None
        self._asked_ns = now_ns
        control.ask(self.recording, Ask(what=STAND))

    def _answered(self, still: frozenset[int], now_ns: int) -> Log | None:
        """Once all have told where they are, or had their time to."""
        leading = [member for member in self.roster.leading if member.ended is None and member.gone_ns < 0]
        has_all = all(member.told is not None for member in leading)
        if not has_all and now_ns - self._asked_ns < _ANSWER_NS:
            return None
        self._asked_ns, self._still = -1, still
        return self._say("warning", self._words(still, now_ns)) if still else None

    def _words(self, still: frozenset[int], now_ns: int) -> str:
        since_ns = now_ns - max(self._stepped_ns[rank] for rank in still)
        others = [
            member.rank
            for member in self.roster.members.values()
            if member.rank not in still and member.ended is None and member.gone_ns < 0
        ]
        steps = f", while {_ranks(others)} still step" + ("s" if len(others) == 1 else "") if others else ""
        return f"{_ranks(still)} ended no step for {since_ns / NS_PER_S:.0f} s{steps}.{self._places(still)}"

    def _places(self, still: frozenset[int]) -> str:
        by_place: dict[str, list[int]] = {}
        for rank, words in standing(self.roster).items():
            if rank in still:
                by_place.setdefault(words, []).append(rank)
        told = sorted(by_place.items(), key=lambda item: len(item[1]))[:_MOST]
        places = "; ".join(f"{_ranks(ranks)} {'are' if len(ranks) > 1 else 'is'} in {words}" for words, ranks in told)
        return f" {places[:1].upper()}{places[1:]}." if places else ""

    def _say(self, level: str, text: str) -> Log:
        log = Log(t_ns=self.journal.now_ns(), level=level, text=f"{text[:1].upper()}{text[1:]}")
        self.journal.append(log)
        return log


def _trains(member: Member) -> bool:
    return member.is_at_work or member.phase == "warming profiler"


def _ranks(ranks: Iterable[int]) -> str:
    known = sorted(ranks)
    return f"{'ranks' if len(known) > 1 else 'rank'} {ranges(known)}"


def _who(ranks: frozenset[int]) -> str:
    return f"{_ranks(ranks)} {'are' if len(ranks) > 1 else 'is'}"
