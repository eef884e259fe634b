"""Exposed tail bucket: DDP's last all-reduces run when the backward pass has nothing left to compute.

Fires from three backward passes of a rank on whose tails take a twentieth of a traced step: some tail there always is,
because the last gradients are ready last. Waiting for a late rank, where it is known, is left out: no bucket size wins
that back. Not on CPU ranks that share their cores.
"""

from __future__ import annotations

from meshscope.analysis.critical_path import critical_paths
from meshscope.analysis.ddp import Ddp, ddp
from meshscope.analysis.findings.rule import Cost, Finding, Rule, of_traced, part
from meshscope.analysis.findings.whole import Whole, traced_step
from meshscope.analysis.standing import shares_cores
from meshscope.run import Run
from meshscope.units import counted, duration, percent, size

FEWEST_PASSES = 3
LEAST_FRAC = 0.05
_MIB = 1 << 20
_USUAL_BYTES = 25 * _MIB


def exposed_tail(run: Run) -> tuple[Finding, ...]:
    if shares_cores(run):
        return ()
    found = ddp(run)
    if found is None or found.passes < FEWEST_PASSES * len(found.ranks):
        return ()
    cost = _cost(found, run)
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    last = found.buckets[-1] if found.buckets else None
    said = [
        f"in the mean of {counted(found.passes, 'backward pass', 'backward passes')} all-reduces are exposed "
        f"for {duration(found.tail_ns)} after the last computation{_waiting(found, run)}"
    ]
    if last is not None:
        of = f"of {size(last.size_bytes)} " if last.size_bytes is not None else ""
        said.append(
            f"the last of {counted(len(found.buckets), 'bucket')} {of}is ready {duration(last.ready_ns)} into a pass "
            f"that computes for {duration(found.computed_ns)}, and is exposed for {duration(last.after_ns)} after it"
        )
    best_bytes, words = _best(run)
    return (
        Finding(
            code=FINDING.code,
            title="exposed tail bucket",
            **vars(cost),
            evidence=(*said, *words),
            advice="The last bucket has nothing left to hide under; a smaller one ends sooner. Where all of "
            "communication is longer than the backward pass, only fewer bytes help.",
            fix=_fix(best_bytes or _smaller(found)),
        ),
    )


def _cost(found: Ddp, run: Run) -> Cost:
    """What transfers in the tails of a step; devices may come to them behind the step's marks on the host."""
    tail_ns = found.tail_ns - found.waited_ns
    if found.passes_per_step > 0:
        return part(tail_ns * found.passes_per_step, _step(found, run))
    ranks = len(found.ranks)
    return of_traced(tail_ns * found.passes / ranks, found.covered_ns / ranks)


def _step(found: Ddp, run: Run) -> Whole:
    """The traced step; what devices need for one where that is longer, because hosts are ahead of them."""
    whole, device_ns = traced_step(run), found.device_step_ns
    if not device_ns > whole.ns:
        return whole
    return Whole(device_ns, f"the {duration(device_ns)} that a step takes a device")


def _waiting(found: Ddp, run: Run) -> str:
    said = f", of which they wait {duration(found.waited_ns)} for a late rank" if found.waited_ns else ""
    if not found.unmatched:
        return said
    ranks = {window.rank for window in run.windows}
    why = f"only rank {min(ranks)}'s trace is here" if len(ranks) == 1 else "not all were matched over ranks"
    passes = counted(found.passes, "pass", "passes")
    of = "" if found.unmatched == found.passes else f" in {found.unmatched} of {passes}"
    return f"{said}; waiting for a late rank could not be told from transfer{of}: {why}"


def _best(run: Run) -> tuple[int, tuple[str, ...]]:
    """The bucket size that replays of the newest steps favour, and what they say of it."""
    paths = critical_paths(run)
    answers = [one for one in paths[-1].what_ifs if one.bucket_bytes] if paths else []
    best = min(answers, key=lambda one: one.total_ns, default=None)
    if best is None or best.bucket_bytes is None or best.saved_frac <= 0:
        return 0, ()
    said = f"replayed with buckets of {size(best.bucket_bytes)}, a step would take {duration(best.step_ns)}"
    return best.bucket_bytes, (f"{said}, {percent(best.saved_frac)} less",)


def _smaller(found: Ddp) -> int:
    """Half of the last bucket's size, at least a megabyte."""
    last = found.buckets[-1].size_bytes if found.buckets else None
    return max((last or _USUAL_BYTES) // 2, _MIB)


def _fix(bucket_bytes: int) -> str:
    return f"""DistributedDataParallel(model, bucket_cap_mb={bucket_bytes / _MIB:.3g})
# or half the bytes:
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
model.register_comm_hook(None, default_hooks.bf16_compress_hook)"""


FINDING = Rule("exposed-tail", exposed_tail, is_of_plan=True)
