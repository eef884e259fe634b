"""One run in the text report: where its time goes, its collectives, memory, steps, and what cannot be said."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from meshscope.analysis.axes import axes
from meshscope.analysis.breakdown import Breakdown, RankBreakdown, breakdown
from meshscope.analysis.doubts import doubt_words, doubts
from meshscope.analysis.efficiency import efficiency
from meshscope.analysis.hosts_ahead import ahead_words
from meshscope.analysis.known_waits import KnownWait, known_waits
from meshscope.analysis.memory import memory
from meshscope.analysis.overlap import CollectiveOverlap, overlap
from meshscope.analysis.progress import progress
from meshscope.analysis.several_devices import several_devices
from meshscope.analysis.simulation import MARK, SIMULATED, predicted, simulation_note
from meshscope.analysis.standing import device_kind, shares
from meshscope.analysis.steps import Steps, steps
from meshscope.analysis.waiting_words import WAIT_WORDS, wait_name
from meshscope.reports.axes_text import axes_lines
from meshscope.reports.columns import table, wrapped
from meshscope.reports.devices_text import device_lines
from meshscope.reports.efficiency_text import efficiency_lines
from meshscope.reports.findings_text import findings_lines, looked_for_lines
from meshscope.reports.measured_text import measured_lines, traced_lines
from meshscope.reports.memory_text import headroom_lines
from meshscope.reports.pipeline_text import pipeline_lines
from meshscope.reports.records_text import allocator_lines, flight_lines, sensor_lines
from meshscope.reports.stacks import stack_lines
from meshscope.reports.waiting_text import waiting_lines
from meshscope.reports.why_text import why_lines
from meshscope.run import Run
from meshscope.units import NS_PER_S, UNKNOWN, counted, duration, milliseconds, percent, ranges, rate, ratio, size

MOST_RANKS = 16
_AT_LEAST = "≥ "

_RANK_FROM = {
    "trace": "as the trace says",
    "device": "one for each device, by its number",
    "file name": "by the name of the file",
    "folder name": "by the name of the folder",
    "order": "by order, since no file says which rank it is",
}


def run_lines(run: Run) -> list[str]:
    """Lines of at most 80 characters (names of files may be longer)."""
    wait = wait_name(run)
    lines = wrapped(_title(run), indent="")
    lines += wrapped(simulation_note(run), hanging="  ") if run.is_simulated else []
    lines += _rank_from(run)
    lines += findings_lines(run)
    lines += _split(breakdown(run), wait, known_waits(run))
    lines += wrapped(ahead_words(run), hanging="  ") if ahead_words(run) else []
    lines += looked_for_lines(run)
    lines += device_lines(several_devices(run))
    lines += _collectives(overlap(run), wait, is_simulated=run.is_simulated)
    lines += axes_lines(axes(run), wait)
    lines += pipeline_lines(run)
    lines += [] if run.is_simulated else waiting_lines(run)
    lines += why_lines(run)
    lines += measured_lines(run)
    lines += traced_lines(run)
    lines += allocator_lines(memory(run))
    lines += headroom_lines(run)
    lines += flight_lines(run)
    lines += stack_lines(run)
    lines += sensor_lines(run)
    lines += _predicted_step(run, steps(run)) if run.is_simulated else _steps(steps(run))
    lines += efficiency_lines(efficiency(run))
    lines += _events(run)
    lines += _refused(run)
    lines += _unread(run)
    return lines + _unsaid(run)


def _title(run: Run) -> str:
    here, state = run.experiment, progress(run)
    kind = device_kind(run)
    if not here.strategy and not run.windows and run.records:
        kinds = dict.fromkeys(record.kind for record in run.records)
        return f"{run.path}: {', '.join(kinds)}{f', {_count(here.ranks)}' if here.ranks else ''}"
    if not here.strategy:
        drawn = f" ({MARK})" if run.is_simulated else _traced(run)
        return f"{run.path}: {here.framework}, {_ranks(here.ranks, kind)}{drawn}"
    step = f"step {state.step} of {state.planned}" if state.planned else f"step {state.step}"
    title = f": {here.title}" if here.title else ""
    if here.is_attached:
        return f"{here.strategy}{title} ({here.framework}, {_ranks(here.ranks, kind)}, {state.state})"
    ranks = _ranks(here.ranks, kind) + (f" on {' and '.join(here.hosts)}" if here.hosts else "")
    if run.is_simulated:
        return f"{here.strategy}{title} ({here.framework}, {ranks}, never run)"
    return f"{here.strategy}{title} ({here.framework}, {ranks}, {state.state}, {step})"


def _rank_from(run: Run) -> list[str]:
    """How it is known which rank is which, where no journal says it."""
    if run.experiment.strategy:
        return []
    told: dict[str, list[int]] = {}
    for window in run.windows:
        told.setdefault(_RANK_FROM.get(window.rank_from, window.rank_from), []).append(window.rank)
    return [line for how, ranks in told.items() for line in wrapped(f"{_plural('rank', ranks)} {ranges(ranks)}: {how}")]


def _traced(run: Run) -> str:
    """When it was, by which two runs of one folder can be told apart."""
    if not run.experiment.t0_unix_ns:
        return ""
    moment = time.gmtime(run.experiment.t0_unix_ns // NS_PER_S)
    return f", traced {time.strftime('%Y-%m-%d %H:%M:%S', moment)} UTC"


def _count(ranks: int) -> str:
    return counted(ranks, "rank")


def _ranks(count: int, kind: str) -> str:
    return f"{counted(count, 'rank')} without device work" if kind == "none" else counted(count, f"{kind.upper()} rank")


def _split(ranks: tuple[RankBreakdown, ...], wait: str, least: Mapping[int, KnownWait]) -> list[str]:
    """Every rank's mean complete step; whole windows where no rank has a complete one."""
    known = [rank for rank in ranks if rank.device_kind != "none"]
    if not known:
        return []
    has_steps = any(rank.per_step is not None for rank in known)
    profiled = [step for rank in known for step in rank.steps]
    of = f"mean of {_steps_of(profiled)}" if has_steps else "whole windows: no step lies wholly in one"
    rows = [
        _split_row(rank.rank, rank.per_step if has_steps else _traced_of(rank), least) for rank in ranks[:MOST_RANKS]
    ]
    heading = ("rank", "ms", "compute alone", "hidden", "exposed", "copy", "idle", f"{wait} ms")
    lines = wrapped(
        f"where a step goes, in % of it ({of}): compute alone, hidden communication with the compute that hides it, "
        f"exposed communication, copies alone and idle add up to it; {wait}: {WAIT_WORDS[wait]}:"
    )
    return [*lines, *table(heading, rows, indent="    "), *_more(len(ranks)), *_least(rows, least)]


def _least(rows: Sequence[tuple[str, ...]], least: Mapping[int, KnownWait]) -> list[str]:
    """What a bound on waiting rests on, where one is shown."""
    if not any(row[-1].startswith(_AT_LEAST) for row in rows):
        return []
    matched, calls = (sum(getattr(one, name) for one in least.values()) for name in ("matched", "calls"))
    return wrapped(
        f"{_AT_LEAST.strip()}: by the {matched} of {calls} calls of those ranks that have a counterpart on every rank; "
        "what the others wait is not known",
        indent="    ",
    )


def _traced_of(rank: RankBreakdown) -> Breakdown | None:
    return rank.total if rank.device_kind != "none" else None


def _split_row(rank: int, found: Breakdown | None, least: Mapping[int, KnownWait]) -> tuple[str, ...]:
    name = str(rank)
    if found is None:
        return (name, *[UNKNOWN] * 7)
    share = shares(found)
    cells = [percent(share.get(part, math.nan)) for part in ("compute", "hidden", "exposed", "copy", "idle")]
    wait = UNKNOWN if found.wait_ns is None else milliseconds(found.wait_ns)
    if found.wait_ns is None and rank in least:
        wait = f"{_AT_LEAST}{milliseconds(least[rank].least_ns)}"
    return (name, milliseconds(found.span_ns), *cells, wait)


def _refused(run: Run) -> list[str]:
    return [line for path, why, _ in run.refused for line in wrapped(f"not read: {path}: {why}", hanging="  ")]


def _more(count: int) -> list[str]:
    return [f"    … {counted(count - MOST_RANKS, 'more rank')}"] if count > MOST_RANKS else []


def _steps_of(values: Iterable[int]) -> str:
    """``steps 20–21, 40–41``."""
    values = tuple(values)
    return f"{_plural('step', values)} {ranges(values)}"


def _plural(word: str, values: Iterable[int]) -> str:
    return f"{word}s" if len(set(values)) > 1 else word


def _collectives(found: tuple[CollectiveOverlap, ...], wait: str, *, is_simulated: bool) -> list[str]:
    if not found:
        return []
    how = "simulated" if is_simulated else "profiled"
    of = f"per {how} step and rank" if found[0].steps else "per rank, over whole windows"
    rows = [
        (
            row.name,
            str(row.count),
            milliseconds(row.busy_ns),
            percent(ratio(row.hidden_ns, row.busy_ns)),
            milliseconds(row.exposed_ns),
            UNKNOWN if row.wait_ns is None else milliseconds(row.wait_ns),
            UNKNOWN if row.size_bytes is None else size(row.size_bytes),
        )
        for row in found
    ]
    heading = ("collective", "calls", "ms", "hidden", "exposed ms", f"{wait} ms", "bytes")
    counted_in = f"the {how} steps" if found[0].steps else "whole windows"
    lines = wrapped(
        f"collectives ({of}; hidden in % of their time; {wait}: {WAIT_WORDS[wait]}, hidden or not; calls in "
        f"{counted_in}, over all ranks):"
    )
    return [*lines, *table(heading, rows, indent="    ")]


def _predicted_step(run: Run, found: Steps) -> list[str]:
    here = run.experiment.simulated
    said = f"the simulated step: {duration(found.median_ns)}"
    if here is not None and here.step_low_ns:
        said += f", {predicted(here.step_low_ns, here.step_high_ns)} to be expected (90 %)"
    said += f"; {rate(found.samples_per_s)} samples/s"
    said += "" if math.isnan(found.tokens_per_s) else f", {rate(found.tokens_per_s)} tokens/s"
    return wrapped(said, hanging="  ") if found.count else []


def _steps(found: Steps) -> list[str]:
    if not found.count:
        return []
    said = f"steps: {found.measured} unprofiled past warm-up: median {duration(found.median_ns)}"
    said += f" ± {duration(found.spread_ns)}, p95 {duration(found.p95_ns)}; first {duration(found.first_ns)}"
    if not math.isnan(found.compile_ns):
        said += f"; compiled in {duration(found.compile_ns)}"
    if found.recompilations:
        said += f"; compiled again {counted(found.recompilations, 'time')}"
    said += f"; {rate(found.samples_per_s)} samples/s"
    said += "" if math.isnan(found.tokens_per_s) else f", {rate(found.tokens_per_s)} tokens/s"
    return [*wrapped(said, hanging="  "), *wrapped(_profiler(found), hanging="  ")]


def _profiler(found: Steps) -> str:
    if not found.profiled:
        return "profiler: not used"
    longer = "" if math.isnan(found.profiled_slowdown_frac) else f" ({_signed(found.profiled_slowdown_frac)})"
    cost = percent(found.profiler_cost_frac)
    took = (
        f"profiler: {counted(found.profiled, 'warm step')} that profiling touched took "
        f"{duration(found.profiled_median_ns)}{longer}"
    )
    return f"{took}; with starting and stopping it, that is {cost} of the training time"


def _signed(frac: float) -> str:
    return f"{'+' if frac >= 0 else '−'}{abs(frac) * 100:.0f} %"


def _events(run: Run) -> list[str]:
    return [*_trace_events(run), *_record_events(run)]


def _record_events(run: Run) -> list[str]:
    """Of files without spans; said where something in them was not as it should be."""
    dropped = {record.source: record.counts.dropped for record in run.records if record.counts.dropped}
    repaired = {record.source: record.counts.repaired for record in run.records if record.counts.repaired}
    if not dropped and not repaired:
        return []
    read = sum(record.counts.read for record in run.records)
    said = f"records: {read} read{_counted('dropped', dropped)}{_counted('mended', repaired)}"
    return wrapped(said, hanging="  ")


def _trace_events(run: Run) -> list[str]:
    if not run.windows:
        return []
    files = {window.source: window.counts.read for window in run.windows}  # one JAX file holds several ranks
    device = sum(window.counts.device for window in run.windows)
    said = f"trace events: {sum(files.values())} read, {device} of device work"
    dropped = {window.source: window.counts.dropped for window in run.windows}
    repaired = {window.source: window.counts.repaired for window in run.windows}
    return wrapped(said + _counted("dropped", dropped) + _counted("repaired", repaired), hanging="  ")


def _counted(verb: str, files: dict[str, dict[str, int]]) -> str:
    total: Counter[str] = Counter()
    for counts in files.values():
        total.update(counts)
    return "".join(f"; {verb} {count} ({reason})" for reason, count in sorted(total.items()))


def _unread(run: Run) -> list[str]:
    if not run.skipped_lines:
        return []
    return wrapped(f"not read: {counted(run.skipped_lines, 'line')} of the journal", hanging="  ")


def _unsaid(run: Run) -> list[str]:
    # That it is simulated stands at the head.
    said = [doubt for doubt in doubts(run) if doubt[0] != SIMULATED]
    return [line for doubt in said for line in wrapped(doubt_words(run, doubt), hanging="  ")]
