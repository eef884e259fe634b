"""The comparison in one sentence, and what its numbers stand on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from meshscope.analysis.because import because
from meshscope.analysis.overlap import CollectiveOverlap
from meshscope.analysis.settling import settling
from meshscope.analysis.simulation import simulation_note
from meshscope.analysis.standing import NO_STEP, NO_STEP_YET, Row
from meshscope.analysis.winner import LEVEL, WON, Decision, nobody
from meshscope.experiment import Experiment
from meshscope.run import Run
from meshscope.units import counted, milliseconds, ranges, rate

Collectives = dict[str, tuple[CollectiveOverlap, ...]]

_STEPLESS = (NO_STEP, NO_STEP_YET)
_NOTHING = "Nothing has run yet."


def verdict(
    ranked: Sequence[Row], decisions: Sequence[Decision], collectives: Collectives, apart: Sequence[Row] = ()
) -> str:
    """Who leads, by how much, and why as far as profiled steps say. ``ranked`` is in order of throughput.

    ``decisions`` are of the first against each of the others, in their order. ``apart`` are the rows that are not
    ranked: they tell why nobody leads.
    """
    if not ranked:
        return _nobody(apart)
    first, *others = ranked
    if not others:
        return f"{first.strategy}: {rate(first.samples_per_s)} samples/s, {milliseconds(first.median_ns)} ms per step."
    judged = list(zip(others, decisions, strict=True))
    behind = [row for row, found in judged if found.verdict == WON]
    if not behind and judged[0][1].verdict != LEVEL:
        return nobody(first.strategy, others[0].strategy, judged[0][1])
    level = [first, *(row for row, found in judged if found.verdict == LEVEL)]
    unsure = _unsure(first, [(row, found) for row, found in judged if found.verdict not in (WON, LEVEL)])
    if not behind:
        least_frac = max(found.least_frac for _, found in judged if found.verdict == LEVEL)
        rates = _listed([rate(row.samples_per_s) for row in level])
        noise = f"one run of each tells apart {least_frac * 100:.0f} % and more"
        return f"{_names(level)} are level: {rates} samples/s; {noise}.{unsure}"
    leads = f"{_names(level)} {'leads' if len(level) == 1 else 'are level and lead'}"
    shown = [behind[0], behind[-1]] if len(behind) > 1 else behind
    factors = ", ".join(f"{_times(first.samples_per_s / row.samples_per_s)} {row.strategy}" for row in shown)
    return f"{leads}: {factors}{because(first, behind[-1], collectives.get(behind[-1].strategy, ()))}.{unsure}"


def _unsure(first: Row, judged: Sequence[tuple[Row, Decision]]) -> str:
    """Over whom it is not known to lead, with the reason."""
    return "".join(
        f" Whether {first.strategy} leads {row.strategy} is not known: {found.why}." for row, found in judged
    )


def _nobody(apart: Sequence[Row]) -> str:
    whys = {row.not_ranked_why for row in apart if not row.is_baseline}
    if not whys:
        return ("Only a baseline has run." if len(apart) == 1 else "Only baselines have run.") if apart else _NOTHING
    if whys <= {NO_STEP, NO_STEP_YET}:
        return f"No strategy has an {(NO_STEP_YET if NO_STEP_YET in whys else NO_STEP).removeprefix('no ')}."
    return "No strategy can be ranked."


def footnotes(runs: tuple[Run, ...], rows: tuple[Row, ...]) -> tuple[str, ...]:
    """What the figures of the table stand on, most important first."""
    said = [
        *_simulated(runs),
        _injected(runs),
        *map(_one_node, runs),
        _shared_cores(runs, rows),
        *_apart(rows),
        _batches(runs),
        *map(settling, runs),
        _against(runs, rows),
        _medians(rows),
        _profiled(rows),
    ]
    return tuple(
        note for note in (*said, *_stepless(rows), *_cut(runs), *_refused(runs), *_unread(runs), _dropped(rows)) if note
    )


def _simulated(runs: tuple[Run, ...]) -> list[str]:
    """Before anything else: what was predicted and never ran. What several have in common is said once."""
    by_note: dict[str, list[str]] = {}
    for run in runs:
        if run.experiment.simulated is not None:
            by_note.setdefault(simulation_note(run), []).append(run.name)
    return [f"{_listed(names)}: {note}" for note, names in by_note.items()]


def _injected(runs: tuple[Run, ...]) -> str:
    """Before anything else: what was put in on purpose, and into which runs."""
    by_faults: dict[str, list[str]] = {}
    for run in runs:
        if run.experiment.faults:
            by_faults.setdefault(" and ".join(run.experiment.faults), []).append(run.name)
    said = [f"{_listed(names)} ran with injected {faults}" for faults, names in by_faults.items()]
    return f"No clean {'runs' if sum(map(len, by_faults.values())) > 1 else 'run'}: {'; '.join(said)}." if said else ""


def _one_node(run: Run) -> str:
    """A node's own recording shows its ranks alone, and so not the throughput of the run."""
    here = run.experiment
    if here.nodes < 2:
        return ""
    # Of a JAX process one device stands for all in the table of steps.
    seen = ranges(list(here.own_ranks) if here.framework == "jax" else np.unique(run.steps.rank).tolist())
    return (
        f"{run.name} ran on {here.nodes} nodes, and only ranks {seen} of {here.ranks} are here: samples/s are theirs "
        "alone. The recordings of all nodes together show all of it."
    )


def _shared_cores(runs: tuple[Run, ...], rows: tuple[Row, ...]) -> str:
    cpu = [r.experiment for r, row in zip(runs, rows, strict=True) if row.device_kind == "cpu" and not row.is_baseline]
    if not cpu or not cpu[0].cores:
        return "This compares code paths on CPU ranks, not GPUs." if cpu else ""
    on = ", ".join(dict.fromkeys(_on(here) for here in cpu))
    return f"{on}: this compares code paths, not GPUs."


def _on(here: Experiment) -> str:
    verb = "has" if here.ranks == 1 else "share"
    return f"{counted(here.ranks, 'CPU rank')} {verb} {counted(here.cores, 'core') if here.cores else 'unknown cores'}"


def _apart(rows: tuple[Row, ...]) -> list[str]:
    """Strategies that are shown but not ranked, with what they did or did not."""
    apart = [row for row in rows if not row.is_baseline and not row.is_ranked and row.not_ranked_why not in _STEPLESS]
    return [f"{row.strategy} is not ranked: {_it(row.not_ranked_why)}." for row in apart]


def _it(why: str) -> str:
    return why if why.startswith("its ") else f"it {why}"


def _stepless(rows: tuple[Row, ...]) -> list[str]:
    said = []
    for why in _STEPLESS:
        names = [row.strategy for row in rows if not row.is_baseline and row.not_ranked_why == why]
        if names:
            said.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} not ranked: {why}.")
    return said


def _batches(runs: tuple[Run, ...]) -> str:
    batches = {run.experiment.strategy: run.experiment.global_batch for run in runs if run.experiment.global_batch}
    if len(set(batches.values())) < 2 or all(name.endswith(f" batch {batch}") for name, batch in batches.items()):
        return ""  # a sweep's names tell it
    return "Global batches differ: " + ", ".join(f"{name} {batch}" for name, batch in batches.items()) + "."


def _against(runs: tuple[Run, ...], rows: tuple[Row, ...]) -> str:
    """The one device of a CPU run is as many cores as it was given: said where the strategies had more."""
    pairs = list(zip(runs, rows, strict=True))
    known = [(run, row) for run, row in pairs if row.is_baseline and not math.isnan(row.samples_per_s)]
    if not known:
        return ""
    most = max((run.experiment.cores for run, row in pairs if _is_on_cores(row) and not row.is_baseline), default=0)
    rates = ", ".join(
        f"{row.strategy} {rate(row.samples_per_s)} samples/s{_on_cores(run, row, most)}" for run, row in known
    )
    return f"×1 is throughput over that of one device: {rates}."


def _is_on_cores(row: Row) -> bool:
    return row.device_kind == "cpu"


def _on_cores(run: Run, row: Row, most: int) -> str:
    cores = run.experiment.cores
    return f" on {cores} of {counted(most, 'core')}" if _is_on_cores(row) and 0 < cores < most else ""


def _medians(rows: tuple[Row, ...]) -> str:
    known = [f"{row.strategy} {row.measured_steps}" for row in rows if row.measured_steps and not row.is_simulated]
    if not known:
        return ""
    return f"Rates and times are medians over unprofiled steps past warm-up ({', '.join(known)}); ± half the IQR."


def _profiled(rows: tuple[Row, ...]) -> str:
    known = [f"{row.strategy} {_pairs(row)}" for row in rows if row.profiled_steps and not row.is_simulated]
    return f"Shares are of the mean profiled step, over steps × ranks ({', '.join(known)})." if known else ""


def _pairs(row: Row) -> str:
    of = "" if row.profiled_pairs == row.profiled_steps * row.profiled_ranks else f"{row.profiled_pairs} of "
    return f"{of}{row.profiled_steps} × {row.profiled_ranks}"


def _cut(runs: tuple[Run, ...]) -> list[str]:
    """Files that were cut, by strategy; one that holds several ranks is told once."""
    files: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        for window in run.windows:
            if not window.is_complete:
                files.setdefault((run.experiment.strategy, window.source), []).append(window.rank)
    return [_cut_file(strategy, source, sorted(set(ranks))) for (strategy, source), ranks in files.items()]


def _cut_file(strategy: str, source: str, ranks: list[int]) -> str:
    whose = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {_listed([str(rank) for rank in ranks])}"
    return f"{strategy} {whose}: {source} was cut short; none of its steps is counted."


def _refused(runs: tuple[Run, ...]) -> list[str]:
    return [f"{run.experiment.strategy}: {path} could not be read." for run in runs for path, _, _ in run.refused]


def _unread(runs: tuple[Run, ...]) -> list[str]:
    known = [(run.experiment.strategy, run.skipped_lines) for run in runs if run.skipped_lines]
    return [f"{counted(lines, 'line')} of {strategy}'s journal could not be read." for strategy, lines in known]


def _dropped(rows: tuple[Row, ...]) -> str:
    known = [f"{row.strategy} {row.dropped_events}" for row in rows if row.dropped_events]
    return f"Trace events dropped: {', '.join(known)}." if known else ""


def _names(rows: list[Row]) -> str:
    return _listed([row.strategy for row in rows])


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _times(factor: float) -> str:
    return f"{factor:.1f}×" if factor >= 1.1 else f"{factor:.2f}×"
