"""Trace incomplete: a file was cut, could not be read or is missing, so answers rest on less than was recorded.

Fires for files that were cut or refused, for lines of a journal that cannot be read, for ranks of which nothing was
read beside others (one rank's file alone is what its owner chose to open), and where a hundredth of a trace's events or
more were dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.waiting import world
from meshscope.run import Run
from meshscope.units import counted, gap_ranges, gaps, percent

LEAST_DROPPED_FRAC = 0.01
_MOST = 4

_FIX = """# let every rank end by itself, after it has waited for the others:
prof.stop(); torch.distributed.barrier()
torch.distributed.destroy_process_group()"""
_FIX_JOURNAL = """# is the disk full, or was a file of the journal changed by hand?
df -h RECORDING; tail -n 3 RECORDING/*/journal/*.jsonl"""
_ADVICE = (
    "Answers leave out what is missing. Copy the files again if they were cut on the way; a rank that "
    "is killed while it writes leaves half a file."
)
_ADVICE_ABSENT = (
    "Answers leave out what is missing, and waiting for a rank that is not here cannot be told. Put the files of all "
    "ranks into one folder: those that are here are whole."
)
_ADVICE_DROPPED = (
    "Answers leave out what was dropped. The files are not cut, and copying them again changes nothing: trace anew, "
    "with nothing between the profiler and its file."
)
_ADVICE_JOURNAL = (
    "Answers leave out what those lines say. A line is torn where its writer was killed, or the disk was full, or the "
    "recording was copied while it grew: copy it again."
)
_FIX_JAX = """# stops before the process ends, also when a step raises:
with jax.profiler.trace(folder):
    jax.block_until_ready(run_steps(state))"""


def trace_incomplete(run: Run) -> tuple[Finding, ...]:
    said = [*_cut(run), *_refused(run), *_absent(run), *_dropped(run)]
    if not said:
        return ()
    more = (f"{len(said) - _MOST} more of the kind",) if len(said) > _MOST else ()
    return (
        Finding(
            code=FINDING.code,
            title="trace incomplete",
            evidence=(*said[:_MOST], *more),
            advice=_advice(run),
            fix=_fix(run),
        ),
    )


def _is_of_traces(run: Run) -> bool:
    """Whether more is missing than lines of the journal, which no profiler wrote."""
    return any(True for _ in _cut_files(run)) or any(any(part(run)) for part in (_refused, _absent, _dropped))


def _advice(run: Run) -> str:
    """By the gravest of what is so: a file that was cut, a rank that is not here, events that say nothing."""
    if not _is_of_traces(run):
        return _ADVICE_JOURNAL
    if any(True for _ in _cut_files(run)) or any(_refused(run)):
        return _ADVICE
    return _ADVICE_ABSENT if any(_absent(run)) else _ADVICE_DROPPED


def _fix(run: Run) -> str:
    if not _is_of_traces(run):
        return _FIX_JOURNAL
    return _FIX_JAX if run.experiment.framework == "jax" else _FIX


def _cut(run: Run) -> Iterator[str]:
    yield from _cut_files(run)
    if run.skipped_lines:
        yield f"{counted(run.skipped_lines, 'line')} of the journal could not be read"


def _cut_files(run: Run) -> Iterator[str]:
    files = {window.source: window.rank for window in run.windows if not window.is_complete}
    yield from (f"rank {rank}: {source} was cut short" for source, rank in files.items())
    yield from (f"{record.source} was cut short" for record in run.records if not record.is_complete)


def _refused(run: Run) -> Iterator[str]:
    yield from (f"{path} could not be read: {why}" for path, why, _ in run.refused)


def _absent(run: Run) -> Iterator[str]:
    here = {window.rank for window in run.windows if window.rank_from != "order"}
    missing = gaps(here, world(run))
    if len(here) > 1 and missing:
        ranks = "rank" if len(missing) == 1 and missing[0][0] == missing[0][1] else "ranks"
        yield f"of {ranks} {gap_ranges(missing)} no trace was read, beside {counted(len(here), 'rank')} of {world(run)}"


def _dropped(run: Run) -> Iterator[str]:
    files = {window.source: window.counts for window in run.windows}
    read, dropped = (
        sum(count.read for count in files.values()),
        sum(sum(count.dropped.values()) for count in files.values()),
    )
    if read and dropped >= LEAST_DROPPED_FRAC * read:
        reasons = Counter[str]()
        for count in files.values():
            reasons.update(count.dropped)
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(_MOST))
        yield f"{counted(dropped, 'event')} of {read} were dropped, {percent(dropped / read)} of them: {why}"


FINDING = Rule("trace-incomplete", trace_incomplete)
