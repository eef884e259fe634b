"""What happened, in order: phases, traces, compilations, warnings, and how ranks ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from textual.strip import Strip

from meshscope.analysis.flight import flight
from meshscope.analysis.flight_words import mismatch_words, unfinished_words
from meshscope.recording.entries import TraceWritten
from meshscope.run import Run
from meshscope.ui.about import log as about
from meshscope.ui.marks.cells import Line, strips, wrapped
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.ui.words import clock_time, steps_of
from meshscope.units import counted, duration, printable, size

_ROLES = {"error": "bad", "warning": "warn"}
# Told by steps and traces already.
_TRACED = ("training", "warming profiler", "profiling", "stopping profiler")
_SIGNS = {"error": "✗", "warning": "!"}
# The line of a traceback that names what was raised, and how many lines one may take that explains an ending.
_RAISED = re.compile(r"\b\w*(Error|Exception|Interrupt)\b: ")
_DECISIVE = 12


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


def question(scene: Scene) -> Chronicle:
    """Everything worth a line in the run that is looked at, oldest first."""
    run = scene.run
    if run is None:
        return Chronicle()
    lines = tuple(sorted(_happened(run), key=lambda line: line.t_ns))
    return Chronicle(lines, Fresh(of=counted(len(lines), "line") if lines else ""))


def _happened(run: Run) -> Iterator[Happened]:
    for log in run.logs:
        yield Happened(log.t_ns, log.level, _who(log.rank) + log.text)
    last: dict[int, str] = {}
    for phase in run.phases:
        if phase.rank <= 0 and last.get(phase.rank) != phase.phase and phase.phase not in _TRACED:
            detail = f": {phase.detail}" if phase.detail else ""
            yield Happened(phase.t_ns, "info", _who(phase.rank) + phase.phase + detail)
        last[phase.rank] = phase.phase
    yield from _traces(run)
    for compiled in run.compiles:
        if compiled.is_recompilation:
            told = ", ".join(compiled.changed) or compiled.reason
            why = f": {told}" if told else ""
            text = f"compiled {compiled.function} again, {duration(compiled.duration_ns)}{why}"
            yield Happened(compiled.t_ns, "warning", _who(compiled.rank) + text)
    for path, why, hint in run.refused:
        yield Happened(run.last_entry_ns, "warning", f"{path}: {why} {hint}")
    yield from _flight(run)
    yield from _endings(run)


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
    windows: dict[tuple[int, int], list[TraceWritten]] = {}
    for trace in run.traces:
        windows.setdefault((trace.first_step, trace.end_step), []).append(trace)
    for (first, end), traces in windows.items():
        count = f"{len(traces)} traces" if len(traces) > 1 else "trace"
        total = size(sum(trace.size_bytes for trace in traces))
        slowest = duration(max(trace.stop_ns for trace in traces))
        text = f"{count} of {steps_of(range(first, end))}, {total}; writing took {slowest}"
        yield Happened(max(trace.t_ns for trace in traces), "info", text)


def _endings(run: Run) -> Iterator[Happened]:
    for end in run.rank_ends:
        if end.exit_code == 0 and not end.why:
            continue
        yield Happened(end.t_ns, "error", f"rank {end.rank} ended with {end.exit_code}: {end.why}")
        for line in end.log_lines:
            yield Happened(end.t_ns, "info", f"rank {end.rank}: {line}")
    if run.ended is not None:
        level = "info" if run.ended.outcome == "done" else "error"
        why = f": {run.ended.why}" if run.ended.why else ""
        yield Happened(run.ended.t_ns, level, f"{run.ended.outcome}{why}")


def _who(rank: int) -> str:
    return f"rank {rank}: " if rank >= 0 else ""


def draw(chronicle: Chronicle, frame: Frame) -> list[Strip]:
    """The newest lines that fit, ``frame.scroll`` lines further back."""
    if not chronicle.lines:
        return note(PANEL.promise, frame)
    lines: list[Line] = []
    last = max(len(chronicle.lines) - frame.scroll, min(len(chronicle.lines), 1))
    for happened in reversed(chronicle.lines[:last]):
        lines = [*_line(happened, frame), *lines]
        if len(lines) >= frame.height:
            break
    return strips(lines[-frame.height :], frame.width, frame.height, frame.look)


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
