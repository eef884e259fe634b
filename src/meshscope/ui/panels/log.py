"""What happened, in order: phases, traces, compilations, warnings, and how ranks ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from textual.strip import Strip

from meshscope.analysis.flight import flight
from meshscope.analysis.flight_words import mismatch_words, unfinished_words
from meshscope.recording.entries import TraceWritten
from meshscope.run import Run
from meshscope.ui.about import log as about
from meshscope.ui.marks.cells import Line, clip, longest, strips, wrapped
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import clock_time, steps_of
from meshscope.units import counted, duration, printable, ranges, size

_ROLES = {"error": "bad", "warning": "warn"}
# Told by steps and traces already.
_TRACED = ("training", "warming profiler", "profiling", "stopping profiler")
_SIGNS = {"error": "✗", "warning": "!"}
# The line of a traceback that names what was raised, and how many lines one may take that explains an ending.
_RAISED = re.compile(r"\b\w*(Error|Exception|Interrupt)\b: ")
_DECISIVE = 12

_TALL = 4
"""From here on there is room to say how it went."""

_SINGLY, _RANGES = 3, 4
"""As many ranks that say the same are told one by one, and as many ranges of ranks by their numbers."""

_NUMBER = re.compile(r"\d+")
_WINDOW = re.compile(r"window\d+")


class _OfRank(Protocol):
    @property
    def rank(self) -> int: ...


E = TypeVar("E", bound=_OfRank)


@dataclass(frozen=True)
class Happened:
    """One line: when (ns since the recording's start), how grave, and what."""

    t_ns: int
    level: str
    text: str


@dataclass(frozen=True)
class Chronicle:
    lines: tuple[Happened, ...] = ()
    fresh: Fresh = UNSTATED
    ended: Happened | None = None


def question(scene: Scene) -> Chronicle:
    """Everything worth a line in the run that is looked at, oldest first."""
    run = scene.run
    if run is None:
        return Chronicle()
    lines = tuple(sorted(_happened(run), key=lambda line: line.t_ns))
    ended = None
    if run.ended is not None:
        ended = Happened(run.ended.t_ns, "info" if run.ended.outcome == "done" else "error", run.ended.outcome)
    return Chronicle(lines, Fresh(of=counted(len(lines), "line") if lines else ""), ended)


def _happened(run: Run) -> Iterator[Happened]:
    for alike in _alike(run.logs, lambda log: (log.level, _likeness(log.text))):
        first = alike[0]
        yield Happened(first.t_ns, first.level, _who(alike) + first.text)
    last: dict[int, str] = {}
    for phase in run.phases:
        if phase.rank <= 0 and last.get(phase.rank) != phase.phase and phase.phase not in _TRACED:
            detail = f": {phase.detail}" if phase.detail else ""
            yield Happened(phase.t_ns, "info", _who([phase]) + phase.phase + detail)
        last[phase.rank] = phase.phase
    yield from _traces(run)
    yield from _compiles(run)
    for path, why, hint in run.refused:
        yield Happened(run.last_entry_ns, "warning", f"{path}: {why} {hint}")
    yield from _flight(run)
    yield from _endings(run)


def _alike(entries: Iterable[E], key: Callable[[E], Hashable]) -> Iterator[list[E]]:
    """What more than a few ranks say alike together, else one by one; in the order of the first of each.

    What one rank says again is another matter: the second time goes with the second time of the others.
    """
    groups: dict[Hashable, list[E]] = {}
    times: Counter[Hashable] = Counter()
    for entry in entries:
        alike = key(entry)
        times[entry.rank, alike] += 1
        groups.setdefault((alike, times[entry.rank, alike]), []).append(entry)
    for together in groups.values():
        yield from [together] if len(together) > _SINGLY else ([entry] for entry in together)


def _likeness(text: str) -> str:
    """Ranks that say the same differ in numbers: their own, ports, addresses."""
    return _NUMBER.sub("#", text)


def _who(alike: Sequence[E]) -> str:
    """``rank 3: ``, ``ranks 0–1023: ``; "" for the supervisor."""
    ranks = sorted({entry.rank for entry in alike} - {-1})
    if not ranks:
        return ""
    return f"{_named(ranks)}: "


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks ({_in_short(ranks)})"


def _in_short(ranks: Sequence[int]) -> str:
    words = ranges(ranks).split(", ")
    return ", ".join(words if len(words) <= _RANGES else [*words[:_RANGES], "…"])


def _compiles(run: Run) -> Iterator[Happened]:
    again = [compiled for compiled in run.compiles if compiled.is_recompilation]
    for alike in _alike(again, lambda one: (one.function, one.stage, one.step, one.changed or one.reason)):
        first = alike[0]
        told = ", ".join(first.changed) or first.reason
        took = ("up to " if len(alike) > 1 else "") + duration(max(one.duration_ns for one in alike))
        text = f"compiled {first.function} again, {took}{f': {told}' if told else ''}"
        yield Happened(first.t_ns, "warning", _who(alike) + text)


def _flight(run: Run) -> Iterator[Happened]:
    """Calls that were not done when the ranks' flight recorders were dumped, and calls in which ranks differ."""
    found = flight(run)
    if found is None:
        return
    for one in found.unfinished:
        t_ns = one.since_ns - run.experiment.t0_unix_ns if one.since_ns else run.last_entry_ns
        yield Happened(t_ns, "error", unfinished_words(one))
    for differing in found.mismatches:
        yield Happened(run.last_entry_ns, "error", mismatch_words(differing))
    if not found.unfinished and not found.mismatches:
        calls = counted(sum(called.count for called in found.calls), "call")
        yield Happened(
            run.last_entry_ns, "info", f"flight recorders of {counted(len(found.ranks), 'rank')}: {calls}, all done"
        )


def _traces(run: Run) -> Iterator[Happened]:
    """One line per window, however many ranks wrote a trace of it."""
    windows: dict[tuple[int, int, str], list[TraceWritten]] = {}
    for trace in run.traces:
        # The windows of a job that was attached to have no steps to tell them apart.
        named = _WINDOW.search(trace.path) if trace.first_step == trace.end_step else None
        windows.setdefault((trace.first_step, trace.end_step, named[0] if named else ""), []).append(trace)
    for (first, end, window), traces in windows.items():
        count = f"{len(traces)} traces" if len(traces) > 1 else "trace"
        total = size(sum(trace.size_bytes for trace in traces))
        slowest = duration(max(trace.stop_ns for trace in traces))
        text = f"{count} of {steps_of(range(first, end)) or window}, {total}; writing took {slowest}"
        yield Happened(max(trace.t_ns for trace in traces), "info", text)


def _endings(run: Run) -> Iterator[Happened]:
    """How ranks ended, those together that ended alike: who failed is not to be sought among whom that ended."""
    ends = sorted((end for end in run.rank_ends if end.exit_code != 0 or end.why), key=lambda end: end.t_ns)
    for alike in _alike(ends, lambda end: (end.exit_code, _likeness(end.why))):
        end, ranks = alike[0], sorted(end.rank for end in alike)
        yield Happened(end.t_ns, "error", f"{_named(ranks)} ended with {end.exit_code}: {end.why}")
        for line in end.log_lines:
            yield Happened(end.t_ns, "info", f"rank {end.rank}: {line}")
    if run.ended is not None:
        level = "info" if run.ended.outcome == "done" else "error"
        why = f": {run.ended.why}" if run.ended.why else ""
        yield Happened(run.ended.t_ns, level, f"{run.ended.outcome}{why}")


def draw(chronicle: Chronicle, frame: Frame) -> list[Strip]:
    """The newest lines that fit, ``frame.scroll`` lines further back."""
    if not chronicle.lines:
        return note(PANEL.promise, frame)
    above: list[Line] = []
    if frame.height >= _TALL:
        text, role = reading(chronicle, frame.width - 1)
        above = [[(" " + clip(text, frame.width - 1), role)]]
    room = frame.height - len(above)
    lines: list[Line] = []
    last = max(len(chronicle.lines) - frame.scroll, min(len(chronicle.lines), 1))
    for happened in reversed(chronicle.lines[:last]):
        lines = [*_line(happened, frame), *lines]
        if len(lines) >= room:
            break
    return strips([*above, *lines[-room:]], frame.width, frame.height, frame.look)


def reading(chronicle: Chronicle, width: int) -> tuple[str, str]:
    """How the run stands, how many errors and warnings there are and when the first was; and in which role."""
    found = {
        level: [line for line in chronicle.lines if line.level == level] for level in ("error", "warning")
    }  # fmt: skip
    worst = next((level for level, lines in found.items() if lines), "")
    ended = chronicle.ended
    how = f"{ended.text} at {clock_time(ended.t_ns)}" if ended is not None else "so far"
    how = how[:1].upper() + how[1:]
    if not worst:
        return longest((f"{how}, no error or warning", how), width), "text"
    full = ", ".join(
        f"{counted(len(lines), level)} (first at {clock_time(lines[0].t_ns)})"
        for level, lines in found.items()
        if lines
    )
    brief = ", ".join(counted(len(lines), level) for level, lines in found.items() if lines)
    return longest((f"{how}: {full}", f"{how}: {brief}", brief), width), _ROLES[worst]


def _line(happened: Happened, frame: Frame) -> list[Line]:
    role = _ROLES.get(happened.level, "text")
    at = f" {clock_time(happened.t_ns):>5} "
    sign = _SIGNS.get(happened.level, " ")
    most = min(_DECISIVE, max(frame.height - 1, 3)) if _is_decisive(happened) else 3 if frame.width >= 72 else 2
    text = wrapped(printable(happened.text), max(frame.width - len(at) - 2, 8), most)
    first: Line = [(at, "faint"), (sign + " ", role), (text[0] if text else "", role)]
    return [first, *([(" " * (len(at) + 2), "text"), (more, role)] for more in text[1:])]


def _is_decisive(happened: Happened) -> bool:
    """Whether a line tells why a run ended as it did: what a person came here to read to its end."""
    return happened.level == "error" or _RAISED.search(happened.text) is not None


def depends(scene: Scene) -> tuple[object, ...]:
    run = scene.run
    if run is None:
        return ()
    told = (run.logs, run.phases, run.traces, run.compiles, run.refused, run.rank_ends, run.records)
    return (*(len(entries) for entries in told), run.ended)


PANEL = Panel(
    name="log",
    title="log",
    number=7,
    promise="What happens appears here: phases, traces, compilations, warnings, and how ranks ended.",
    question=question,
    draw=draw,
    fresh=lambda chronicle: chronicle.fresh,
    depends=depends,
    of=("recording", "traces"),
    # Traces by themselves have a log where flight recorders tell of calls.
    suits=lambda scene: scene.is_recorded or (scene.run is not None and flight(scene.run) is not None),
    scrolls=True,
    help=about.HELP,
    data=lambda chronicle: about.lines((line.t_ns, line.level, line.text) for line in chronicle.lines),
)
