"""Launch-bound: kernels are so short that the host cannot launch them as fast as the device runs them.

Fires when a device is idle for a tenth of the traced time because the next kernel had not been launched (operators,
Python, the optimizer and launch calls together) and half of its kernels or more last less than 10 µs.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Finding, Rule, share
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.launches import SHORT_NS, Launches, launches
from meshscope.run import Run
from meshscope.units import duration, percent, ratio

SHORT_FRAC = 0.5

_FIX = """# fuse kernels, and replay them as one CUDA graph:
model = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.AdamW(parameters, fused=True)"""


def is_short(one: Launches) -> bool:
    """Whether half of a rank's kernels or more are shorter than their launch takes."""
    return ratio(one.short, one.kernels) >= SHORT_FRAC


def launch_bound(run: Run) -> tuple[Finding, ...]:
    bound = [one for one in launches(run) if one.bound == "launch" and is_short(one)]
    if not bound:
        return ()
    most = max(bound, key=lambda one: one.bound_frac)
    return (
        Finding(
            code=FINDING.code,
            title="launch-bound",
            ranks=tuple(one.rank for one in bound),
            **vars(share(most.bound_frac, traced_step(run))),
            evidence=(
                f"{ranks_words([most.rank])}: its device is idle for {percent(most.bound_frac)} of the time traced "
                "because the next kernel had not been launched",
                f"{percent(ratio(most.short, most.kernels))} of its {most.kernels} kernels last less than "
                f"{duration(SHORT_NS)}; a launch call takes {duration(most.call.median_ns)} in the median",
                f"before {percent(most.empty_frac)} of launches nothing was queued",
            ),
            advice="Fewer, longer kernels: fuse them, capture the step in a graph, or make the batch larger.",
            fix=_FIX,
        ),
    )


FINDING = Rule("launch-bound", launch_bound)
