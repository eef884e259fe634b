"""No overlap at all: devices communicate and compute in turns.

Fires when less than a fiftieth of the time of collectives is hidden under compute, they are exposed for a tenth of the
traced step, there are at least four of them, and computing takes a tenth as well: with less there is nothing to win, or
nothing to hide behind. Waiting for a late rank is left out: no overlap wins that back. So is the time of collectives
that have no counterpart on every rank of their group, since nobody knows how much of it is waiting: where they would
make the finding, nothing is said, and why (:func:`unsure_why`). Not on CPU ranks that share their cores, nor under JAX
on CPU, whose runtime has no asynchronous collectives to turn on; nor where XLA says why: it runs them synchronously,
which is a finding of its own. Nor where most of what is exposed is needed at once, as by tensor parallelism, or in a
pipeline: there is nothing that could be computed beside it.
"""

from __future__ import annotations

from meshscope.analysis.exposure import Exposure, exposure
from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.small_collectives import shares_matrices
from meshscope.analysis.findings.synchronous_collectives import synchronous_collectives
from meshscope.analysis.findings.whole import all_traced, computing_frac, traced_step
from meshscope.analysis.fsdp import fsdp, is_fsdp1
from meshscope.analysis.needed_at_once import is_mostly_needed_at_once
from meshscope.analysis.overlap import CollectiveOverlap, overlap
from meshscope.analysis.passes import is_ddp
from meshscope.analysis.pipeline import is_pipeline
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.waiting import waiting
from meshscope.analysis.xla_checks import xla
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ratio

MOST_HIDDEN_FRAC = 0.02
LEAST_FRAC = 0.1
FEWEST_CALLS = 4

_FIX = """# DDP reduces while backward computes, FSDP gathers one block while
# another computes:
torch.distributed.fsdp.fully_shard(block)   # each block, then model
block.set_modules_to_forward_prefetch([next_block])
block.set_modules_to_backward_prefetch([block_before])"""
_FIX_FSDP1 = """# gather the next block's parameters while this one computes:
FullyShardedDataParallel(
    model, auto_wrap_policy=policy, forward_prefetch=True,
    backward_prefetch=BackwardPrefetch.BACKWARD_PRE)"""
_FIX_TORCH = """# a handle instead of a wait, and other work before its result:
work = torch.distributed.all_reduce(tensor, async_op=True)
compute_something_else(); work.wait()"""
_FIX_JAX = 'XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"'
_FIX_COMMANDS = """# once without command buffers, to see whether they are the cause:
XLA_FLAGS="--xla_gpu_enable_command_buffer=" python …"""


def no_overlap(run: Run) -> tuple[Finding, ...]:
    if shares_cores(run) or _is_jax_on_cpu(run) or _is_needed_at_once(run):
        return ()
    found, total = overlap(run), exposure(run)
    hidden_frac = ratio(total.busy_ns - total.exposed_ns, total.busy_ns)
    cost = part(total.exposed_ns - total.waited_ns - total.unsure_ns, traced_step(run))
    if not cost.cost_frac >= LEAST_FRAC or not _is_in_turns(run):
        return ()
    most = found[0]
    return (
        Finding(
            code=FINDING.code,
            title="no overlap of communication and compute",
            **vars(cost),
            evidence=(
                f"{percent(hidden_frac)} of the time of collectives is under compute; {duration(total.exposed_ns)} are "
                f"not{_left_out(total)}",
                f"most by {most.name.replace('_', '-')}: {duration(most.exposed_ns)} of that; it has "
                f"{counted(most.count, 'call')} of all ranks {all_traced(run)}",
                *_in_commands(run),
            ),
            advice="Start each collective before what does not need it, and wait where its result is used.",
            fix=_fix(run),
        ),
    )


def _is_in_turns(run: Run) -> bool:
    """Whether hardly anything is hidden, of enough calls beside enough compute, and nothing else says why."""
    total = exposure(run)
    if not ratio(total.busy_ns - total.exposed_ns, total.busy_ns) <= MOST_HIDDEN_FRAC:
        return False
    return (
        _calls(overlap(run)) >= FEWEST_CALLS and computing_frac(run) >= LEAST_FRAC and not synchronous_collectives(run)
    )


def unsure_why(run: Run) -> str:
    """Why this cannot be judged: what is exposed would be enough, and may be waiting. "" where it can be."""
    total = exposure(run)
    if not total.unsure_ns or not _is_in_turns(run):
        return ""
    with_waiting, without = (
        part(ns, traced_step(run)).cost_frac
        for ns in (total.exposed_ns - total.waited_ns, total.exposed_ns - total.waited_ns - total.unsure_ns)
    )
    return unmatched_why(run) if with_waiting >= LEAST_FRAC and not without >= LEAST_FRAC else ""


def unmatched_why(run: Run) -> str:
    """Why waiting cannot be told from transfer, by the reason that most calls have."""
    reasons = waiting(run).unmatched
    return f"waiting may be in it: {reasons[0][0]}" if reasons else "waiting may be in it"


def _left_out(total: Exposure) -> str:
    said = []
    if total.waited_ns:
        said.append(f"{duration(total.waited_ns)} wait for a late rank")
    if total.unsure_ns:
        said.append(f"{duration(total.unsure_ns)} may be waiting, in calls that have no counterpart on every rank")
    return f", of which {' and '.join(said)}: left out" if said else ""


def _is_needed_at_once(run: Run) -> bool:
    return is_mostly_needed_at_once(run) or shares_matrices(run) or is_pipeline(run)


def _fix(run: Run) -> str:
    """DDP and FSDP overlap by themselves where they are asked to; who calls collectives otherwise has to do it."""
    if run.experiment.framework == "jax":
        return _FIX_COMMANDS if _in_commands(run) else _FIX_JAX
    if is_fsdp1(run):
        return _FIX_FSDP1
    is_wrapped = run.experiment.approach in ("ddp", "fsdp") or fsdp(run) or any(map(is_ddp, run.windows))
    return _FIX if is_wrapped else _FIX_TORCH


def _is_jax_on_cpu(run: Run) -> bool:
    return any(window.framework == "jax" and window.device_kind == "cpu" for window in run.windows)


def _in_commands(run: Run) -> tuple[str, ...]:
    found = xla(run)
    grouped = sum(one.in_commands for one in found.collectives) if found is not None else 0
    if found is None or not grouped:
        return ()
    of = counted(sum(one.count for one in found.collectives), "collective")
    return (f"{grouped} of {of} ran in command buffers, in which an asynchronous one may be held to its place",)


def _calls(found: tuple[CollectiveOverlap, ...]) -> int:
    return sum(one.count for one in found)


FINDING = Rule("no-overlap", no_overlap, is_of_plan=True)
