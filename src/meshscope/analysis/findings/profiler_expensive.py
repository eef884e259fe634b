"""The profiler costs too much: what is measured is not what runs without it.

Fires when profiling added a tenth of the training time, over fifty unprofiled steps and three windows or more, or a
quarter of it: each window has to be written, and what the first two cost weighs more in a short run than in one worth
watching.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Finding, Rule, share
from meshscope.analysis.findings.whole import training
from meshscope.analysis.steps import steps
from meshscope.run import Run
from meshscope.units import counted, duration, percent

LEAST_FRAC, MUCH_FRAC = 0.1, 0.25
FEWEST_STEPS, FEWEST_WINDOWS = 50, 3

_FIX = """# shorter windows, further apart, without shapes, stacks and memory:
schedule = torch.profiler.schedule(wait=200, warmup=1, active=1)
torch.profiler.profile(schedule=schedule, with_stack=False)"""
_FIX_JAX = """# two steps at a time: a longer trace takes longer to stop
jax.profiler.start_trace(folder); run_two_steps()
jax.profiler.stop_trace()"""


def profiler_expensive(run: Run) -> tuple[Finding, ...]:
    found = steps(run)
    windows = len({(entry.first_step, entry.end_step) for entry in run.traces})
    least_frac = LEAST_FRAC if windows >= FEWEST_WINDOWS else MUCH_FRAC
    if found.measured < FEWEST_STEPS or not found.profiler_cost_frac >= least_frac:
        return ()
    stop_ns = max((entry.stop_ns for entry in run.traces), default=0)
    return (
        Finding(
            code=FINDING.code,
            title="the profiler costs too much",
            **vars(share(found.profiler_cost_frac, training(run))),
            evidence=(
                f"profiling added {percent(found.profiler_cost_frac)} of the training time: "
                f"{counted(windows, 'window')}, the longest of which held a rank for {duration(stop_ns)} to write",
                f"{counted(found.profiled, 'profiled step')} took {duration(found.profiled_median_ns)} in the median, "
                f"others {duration(found.median_ns)}",
            ),
            advice="Profile fewer and shorter windows: numbers of profiled steps are those of a slower program.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


FINDING = Rule("profiler-expensive", profiler_expensive)
