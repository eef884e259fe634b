"""Exposed tail bucket: DDP's last all-reduces run when the backward pass has nothing left to compute.

Fires from three backward passes of a rank on whose tails take a twentieth of a traced step: some tail there always is,
because the last gradients are ready last. Waiting for a late rank, where it is known, is left out: no bucket size wins
that back. Not on CPU ranks that share their cores.
"""

from __future__ import annotations

from meshscope.analysis.critical_path import critical_paths
from meshscope.analysis.ddp import Ddp, ddp, sent_as
from meshscope.analysis.findings.rule import Cost, Finding, Rule, of_traced, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.standing import shares_cores
from meshscope.run import Run
from meshscope.units import counted, duration, percent, size

FEWEST_PASSES = 3
LEAST_FRAC = 0.05
_MIB = 1 << 20
_USUAL_BYTES = 25 * _MIB
_FEW = 4


def exposed_tail(run: Run) -> tuple[Finding, ...]:
    if shares_cores(run):
        return ()
    found = ddp(run)
    if found is None or found.passes < FEWEST_PASSES * len(found.ranks):
        return ()
    cost = _cost(found, run)
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    said = [
        f"in the mean of {counted(found.passes, 'backward pass', 'backward passes')} all-reduces are exposed "
        f"for {duration(found.tail_ns)} after the last computation{_waiting(found, run)}"
    ]
    if found.buckets:
        said.append(_last(found))
    best_bytes, words = _best(run)
    return (
        Finding(
            code=FINDING.code,
            title="exposed tail bucket",
            **vars(cost),
            evidence=(*said, *words),
            advice=_advice(sent_as(run)),
            fix=_fix(best_bytes or _smaller(found), is_half=bool(sent_as(run))),
        ),
    )


def _cost(found: Ddp, run: Run) -> Cost:
    """What transfers in the tails of a step."""
    tail_ns = found.tail_ns - found.waited_ns
    if found.passes_per_step > 0:
        return part(tail_ns * found.passes_per_step, traced_step(run))
    ranks = len(found.ranks)
    return of_traced(tail_ns * found.passes / ranks, found.covered_ns / ranks)


def _last(found: Ddp) -> str:
    """By the device's clock alone: its host may be steps ahead of it."""
    last = found.buckets[-1]
    return (
        f"the last of {counted(len(found.buckets), 'bucket')}{_sizes(found)} is ready {duration(last.ready_ns)} after "
        f"the first computation of a pass that ends its last after {duration(found.computed_ns)}, and is exposed for "
        f"{duration(last.after_ns)} behind that"
    )


def _sizes(found: Ddp) -> str:
    """Of each bucket where there are few, of the last where there are many."""
    sizes = [size(one.size_bytes) for one in found.buckets if one.size_bytes is not None]
    if len(sizes) < len(found.buckets):
        return ""
    if len(sizes) > _FEW:
        return f", of {sizes[-1]},"
    return f" ({', '.join(sizes)})"


def _advice(sent: str) -> str:
    said = (
        "The last bucket has nothing left to hide under; a smaller one ends sooner. Where all of communication is "
        "longer than the backward pass, only fewer bytes help"
    )
    return f"{said}: gradients are sent in {sent} already." if sent else f"{said}."


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


def _fix(bucket_bytes: int, *, is_half: bool) -> str:
    smaller = f"DistributedDataParallel(model, bucket_cap_mb={bucket_bytes / _MIB:.3g})"
    return (
        smaller
        if is_half
        else f"""{smaller}
# or half the bytes:
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
model.register_comm_hook(None, default_hooks.bf16_compress_hook)"""
    )


FINDING = Rule("exposed-tail", exposed_tail, is_of_plan=True)
