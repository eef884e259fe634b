"""Launch-bound: kernels are so short that the host cannot launch them as fast as the device runs them.

Fires when a device is idle for a tenth of a traced step, in many gaps shorter than a millisecond, because the next
kernel had not been launched (operators, Python, the optimizer and launch calls together) and half of its kernels or
more last less than 10 µs. A longer gap is a pause of the host, which no fusion shortens.
"""

from __future__ import annotations

from meshscope.analysis.findings.idle_cost import bound_by, cost, words
from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.idle import PAUSE_NS
from meshscope.analysis.launches import SHORT_NS
from meshscope.run import Run
from meshscope.units import duration, percent, ratio

_FIX = """# fuse kernels, and replay them as one CUDA graph:
model = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.AdamW(parameters, fused=True)"""


def launch_bound(run: Run) -> tuple[Finding, ...]:
    bound = bound_by(run, "launch")
    if not bound:
        return ()
    most = bound[0]
    return (
        Finding(
            code=FINDING.code,
            title="launch-bound",
            ranks=tuple(sorted(one.rank for one in bound)),
            **vars(cost(most, run)),
            evidence=(
                f"{words(most, run)}, in gaps shorter than {duration(PAUSE_NS)}, "
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
