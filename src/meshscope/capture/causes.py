"""Which rank failed first, and why: when one goes, its peers' errors follow within milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from meshscope.capture.processes import signal_name
from meshscope.capture.roster import Member, Roster
from meshscope.recording.entries import Ended, RankEnded

# What peers of a dead rank say. A rank that says this alone has most likely lost a peer.
_SECOND_HAND = re.compile(
    r"closed by (the )?(remote )?peer|connection (was )?(reset|refused|closed|aborted)|broken pipe|timed out waiting"
    r"|remote process|socket (closed|error)|DistBackendError|DistNetworkError|failed to (recv|send)",
    re.IGNORECASE,
)
_ELASTIC_ENTRY = re.compile(r"rank\s*:\s*(?P<rank>\d+)\s.*?\n\s*exitcode\s*:\s*(?P<code>-?\d+)")
_NOISE = re.compile(r"^(USDT:|\[?W\d{4}|INFO:)")
_LINES = 8
_LINE_LENGTH = 300
_TAIL_BYTES = 16_384
_ENDED_BY_US = -15


@dataclass(frozen=True)
class Death:
    """A rank that ended badly. ``why`` is its exception, "" when it had no time to say one."""

    rank: int
    t_ns: int
    exit_code: int | None
    why: str = ""

    @property
    def text(self) -> str:
        if self.why:
            return self.why
        return "its process is gone and nothing tells why" if self.exit_code is None else code_text(self.exit_code)


def code_text(code: int) -> str:
    name = signal_name(code)
    if not name:
        return f"it ended with exit code {code}"
    # Nothing tells who sent it, so every usual sender is named.
    by = " (by hand, by a scheduler, or by the kernel when memory runs out)" if name == "SIGKILL" else ""
    return f"it was ended by {name}{by}"


def ended(roster: Roster, logs: Path, launcher_code: int) -> Ended:
    """How a run ended whose launcher is gone: by its ranks' last words, the process table and the launcher's log."""
    deaths = _deaths(roster, logs)
    if deaths:
        death = first(deaths)
        said = "" if death.why else _last_said(logs / f"rank{death.rank}.txt")
        return Ended(t_ns=0, outcome="failed", rank=death.rank, why=f"rank {death.rank}: {death.text}{said}")
    if launcher_code == 0 or roster.is_over:
        return Ended(t_ns=0, outcome="done")
    last = "; ".join(last_lines(logs / "launcher.txt")[-1:])
    return Ended(
        t_ns=0, outcome="failed", why=f"the launcher: {code_text(launcher_code)}" + (f" ({last})" if last else "")
    )


def _last_said(log: Path) -> str:
    """What a rank that ended without an exception wrote last."""
    return "".join(f"; its last line: {line.strip()}" for line in last_lines(log)[-1:])


def first(deaths: list[Death]) -> Death:
    """The one that the others follow from: neither a lost peer's message nor, among equals, the later one."""
    return min(deaths, key=lambda death: (is_second_hand(death.why), death.t_ns, death.rank))


def is_second_hand(why: str) -> bool:
    """Whether this is what a rank says that has lost a peer."""
    return _SECOND_HAND.search(why) is not None


def _deaths(roster: Roster, logs: Path) -> list[Death]:
    told = elastic_codes(logs / "launcher.txt")
    found = [_death(member, told.get(member.rank)) for member in roster.members.values()]
    return [death for death in found if death]


def _death(member: Member, told: int | None) -> Death | None:
    if member.ended is not None:
        said = member.ended
        return Death(member.rank, said.t_ns, said.exit_code, said.why) if said.exit_code else None
    code = told if member.exit_code is None else member.exit_code
    if member.gone_ns >= 0 and code not in (0, _ENDED_BY_US):
        return Death(member.rank, member.gone_ns, code)
    return None if code in (None, 0, _ENDED_BY_US) else Death(member.rank, member.moved_ns, code)


def last_words(roster: Roster, logs: Path, ended: Ended, now_ns: int) -> list[RankEnded]:
    """An entry for every rank that left none itself, with the last lines of its log."""
    told = elastic_codes(logs / "launcher.txt")
    return [
        _last_word(member, told.get(member.rank), ended, logs, now_ns)
        for member in roster.members.values()
        if member.ended is None
    ]


def _last_word(member: Member, told: int | None, ended: Ended, logs: Path, now_ns: int) -> RankEnded:
    code = told if member.exit_code is None else member.exit_code
    is_culprit = member.rank == ended.rank
    if ended.outcome == "done":
        code, why = 0, ""
    elif is_culprit and member.gone_ns >= 0:
        code, why = (1, "its process is gone and nothing tells why") if code is None else (code, code_text(code))
    else:
        code, why = code or _ENDED_BY_US, ended.why if is_culprit else "ended with the run"
    log = logs / f"rank{member.rank}.txt"
    return RankEnded(t_ns=now_ns, rank=member.rank, exit_code=code, why=why, log_lines=last_lines(log))


def elastic_codes(log: Path) -> dict[int, int]:
    """Exit codes by rank out of torchrun's closing report; empty where it wrote none."""
    text = "\n".join(_tail(log, lines=400))
    return {int(match["rank"]): int(match["code"]) for match in _ELASTIC_ENTRY.finditer(text)}


def last_lines(log: Path) -> tuple[str, ...]:
    """The last lines of a log, without what the profiler and torch say about themselves."""
    lines = [line[:_LINE_LENGTH] for line in _tail(log, lines=60) if line.strip() and not _NOISE.match(line)]
    return tuple(lines[-_LINES:])


def _tail(path: Path, *, lines: int) -> list[str]:
    """The last lines of a text file; none where it is missing."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return []
