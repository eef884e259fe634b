"""Host-bound: the device waits for a host that synchronizes, allocates, or runs long stretches between launches.

Fires when a device is idle for a tenth of a traced step for one of these, and not merely because its kernels are short
(then it is launch-bound). A rank that the others wait for because its host is late is told as a straggler, with this as
the reason: one cause is one finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from meshscope.analysis.findings.idle_cost import bound_by, cost, words
from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.findings.whole import all_traced
from meshscope.analysis.idle import Idle, idle
from meshscope.analysis.idle_shares import ENDS, idle_shares
from meshscope.analysis.launches import Launches
from meshscope.analysis.stragglers import stragglers
from meshscope.run import Run
from meshscope.units import duration, percent, ratio

_BECAUSE = {
    "sync": "the host waited for it (a synchronization) and launched the next kernel only then",
    "allocation": "the host was allocating or freeing device memory",
    "host": "the host was in operators, Python, the optimizer or launch calls and had not launched the next kernel",
}
_ADVICE = {
    "sync": "Do not read values of the device in every step: .item(), print(loss) and copies to pageable memory wait "
    "for it.",
    "allocation": "Let the allocator keep its memory: no empty_cache() in the loop, and segments that can grow.",
    "host": "Take work out of the loop between launches: compile the model, use a fused optimizer, log less often.",
}
_FIXES = {
    "sync": """if step % 50 == 0: print(loss.item())   # not in every step
batch = batch.pin_memory().to(device, non_blocking=True)
torch.cuda.set_sync_debug_mode("warn")   # names what synchronizes""",
    "allocation": "PYTORCH_ALLOC_CONF=expandable_segments:True torchrun …",
    "host": """model = torch.compile(model)
optimizer = torch.optim.AdamW(parameters, fused=True)""",
}
_CALLED = {ENDS: "before the first or after the last device work"}


@dataclass(frozen=True)
class Reason:
    """Why one rank's device waits for its host, in words, and what to do about it."""

    said: str
    advice: str
    fix: str


def host_bound(run: Run) -> tuple[Finding, ...]:
    late = late_hosts(run)
    bound = [one for one in bound_by(run, *_BECAUSE) if one.rank not in late]
    if not bound:
        return ()
    most = bound[0]
    alike = tuple(sorted(one.rank for one in bound if one.bound == most.bound))
    causes = next(one for one in idle(run) if one.rank == most.rank)
    return (
        Finding(
            code=FINDING.code,
            title="host-bound",
            ranks=alike,
            **vars(cost(most, run)),
            evidence=(_said(most, run), _causes(causes, run)),
            advice=_ADVICE[most.bound],
            fix=_FIXES[most.bound],
        ),
    )


def late_hosts(run: Run) -> frozenset[int]:
    """Stragglers whose device idles meanwhile, and idles for its host."""
    bound = {one.rank for one in bound_by(run, *_BECAUSE)}
    return frozenset(one.rank for one in stragglers(run) if one.phase == "idle" and one.rank in bound)


def host_reason(rank: int, run: Run) -> Reason | None:
    """None where the rank's device does not wait for its host for a tenth of a step."""
    one = next((one for one in bound_by(run, *_BECAUSE) if one.rank == rank), None)
    return (
        Reason(_said(one, run).partition(": ")[2], _ADVICE[one.bound], _FIXES[one.bound]) if one is not None else None
    )


def _said(one: Launches, run: Run) -> str:
    return f"{words(one, run)} because {_BECAUSE[one.bound]}"


def _causes(found: Idle, run: Run) -> str:
    """Of the mean step as the idle table tells it; over all that was traced where the rank has no mean step."""
    step = next((one for one in idle_shares(run).ranks if one.rank == found.rank and one.steps and one.causes), None)
    if step is None:
        return f"of its {duration(found.idle_ns)} of idle time {all_traced(run)}: {_shares(found.causes)}"
    return f"of its {duration(step.idle_ns)} of idle time in its mean step: {_shares(step.causes)}"


def _shares(causes: Mapping[str, float]) -> str:
    whole_ns = sum(causes.values())
    largest = sorted(causes.items(), key=lambda cause: -cause[1])[:3]
    return ", ".join(f"{_CALLED.get(name, name)} {percent(ratio(ns, whole_ns))}" for name, ns in largest)


FINDING = Rule("host-bound", host_bound)
