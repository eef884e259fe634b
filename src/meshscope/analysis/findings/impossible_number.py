"""An impossible number: something the run says of itself, or of its clocks, cannot be.

Fires when the model FLOPs that cannot be left out exceed the datasheet's peak, when batches are waited for longer than
their steps take, and when kernels start before they were launched (a hundredth of them or more): then times of host and
device are not of one clock.
"""

from __future__ import annotations

from collections.abc import Iterator

from meshscope.analysis.efficiency import efficiency
from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.launches import Launches, launches
from meshscope.analysis.steps import steps
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ratio

LEAST_FRAC, FEWEST = 0.01, 2
_TERA = 1e12

_FIX = """# launches return before their kernels have run: wait around the clock
torch.cuda.synchronize(); start = time.perf_counter()
run_steps(); torch.cuda.synchronize()
took_s = time.perf_counter() - start"""
_FIX_JAX = """# steps return before they have run: wait before reading the clock
jax.block_until_ready(state)"""


def impossible_number(run: Run) -> tuple[Finding, ...]:
    is_jax = run.experiment.framework == "jax"
    said, clocks = (*_mfu(run), *_waits(run)), tuple(_launches(run))
    wrong = Finding(
        code=FINDING.code,
        title="impossible number",
        evidence=said,
        advice="Do not compare or publish it: the clock is read before the work is done, or the model, batch or device "
        "is not what the run says.",
        fix=_FIX_JAX if is_jax else _FIX,
        is_grave=True,
    )
    apart = Finding(
        code=FINDING.code,
        title="impossible times of launches",
        ranks=tuple(one.rank for one in launches(run) if _contradicts(one)),
        evidence=clocks,
        advice="Host and device are not by one clock in this trace, or one number stands for several launches: what "
        "rests on launches (causes of idle time, latencies) holds for the others only.",
        fix="# what is installed: a later driver may align the clocks\npython -m torch.utils.collect_env",
    )
    return tuple(finding for finding in (wrong, apart) if finding.evidence)


def _mfu(run: Run) -> Iterator[str]:
    found = efficiency(run)
    if found.is_impossible:
        each = found.flop_per_step / run.experiment.ranks
        yield (
            f"{each / _TERA:.4g} TFLOP per rank in the median step of {duration(steps(run).median_ns)} are "
            f"{found.flops_per_s / _TERA:.4g} TFLOP/s, {percent(found.mfu_frac)} of the "
            f"{found.peak_flops_per_s / _TERA:.4g} that {found.device} has in {found.precision}"
        )


def _waits(run: Run) -> Iterator[str]:
    table = run.steps
    longer = table.data_wait_ns > table.end_ns - table.start_ns
    if longer.any():
        yield f"{counted(int(longer.sum()), 'step')} of a rank waited for the batch longer than the step took"


def _launches(run: Run) -> Iterator[str]:
    for one in launches(run):
        if _contradicts(one):
            share = percent(ratio(one.contradicting, one.contradicting + one.linked))
            yield f"rank {one.rank}: {one.contradicting} kernels ({share} of those launched) start before their launch"


def _contradicts(one: Launches) -> bool:
    return one.contradicting >= max(LEAST_FRAC * (one.contradicting + one.linked), FEWEST)


FINDING = Rule("impossible-number", impossible_number)
