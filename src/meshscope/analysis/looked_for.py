"""What of the pitfalls was looked for in a run: which could be judged, which not and why, and which do not apply.

No finding of a kind is good news only where that kind could have been found. Each rule needs data of its own; where it
is absent, or a rule abstains on purpose, this says so in words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshscope.analysis.calls import calls
from meshscope.analysis.ddp import ddp
from meshscope.analysis.findings import findings, rules
from meshscope.analysis.findings.exposed_gathers import unsure_gathers
from meshscope.analysis.findings.host_bound import late_hosts
from meshscope.analysis.findings.no_overlap import unsure_why
from meshscope.analysis.findings.profiler_expensive import FEWEST_STEPS
from meshscope.analysis.findings.ranks_drift import holds_replicas
from meshscope.analysis.findings.slow_link import is_in_one_process, why_not
from meshscope.analysis.findings.small_collectives import shares_matrices
from meshscope.analysis.flight import flight
from meshscope.analysis.fsdp import doubts, fsdp
from meshscope.analysis.idle_shares import ENDS, RankIdle, idle_shares
from meshscope.analysis.imbalance import memory_imbalance
from meshscope.analysis.launches import BOUND_FRAC, launches
from meshscope.analysis.needed_at_once import is_mostly_needed_at_once
from meshscope.analysis.not_finite import not_finite
from meshscope.analysis.out_of_memory import out_of_memory
from meshscope.analysis.parts import per_run
from meshscope.analysis.pipeline import is_pipeline, pipeline
from meshscope.analysis.standing import device_kind, shares_cores
from meshscope.analysis.steps import steps
from meshscope.analysis.waiting import waiting
from meshscope.records import MemoryRecord
from meshscope.run import Run
from meshscope.spans import Kind
from meshscope.units import percent, ratio

FOUND, JUDGED, UNTOLD, ELSEWHERE = "found", "judged", "cannot say", "does not apply"

_NO_TRACE = "no trace of device work"
_NO_JOURNAL = "no recording of steps"
_NO_COLLECTIVE = "no collective was traced"
_NO_CHECKS = "no recording compared its ranks"
_SHARED = "CPU ranks share their cores, so what overlaps is the scheduler's choice"
_IN_LINE = "a stage of a pipeline waits for what the one before it computes"
_UNLIKE = "stages of a pipeline have different work by design"
_AT_ONCE = "most results are needed at once, as under tensor parallelism"
_NEVER_RAN = "about a machine and what happened on it, and a simulated step ran on none"
_UNCOUNTED = "CPU ranks of whose cores nothing is known, so what overlaps may be the scheduler's choice"


@dataclass(frozen=True)
class LookedFor:
    """One rule: ``title`` in words; ``state`` is found, judged (and not found), cannot say or does not apply, with
    ``why`` for the last two."""

    code: str
    title: str
    state: str
    why: str = ""


@per_run
def looked_for(run: Run) -> tuple[LookedFor, ...]:
    """Every rule, in the order of their names."""
    found = {one.code for one in findings(run)} | ({"host-bound"} if late_hosts(run) else set())
    codes = dict.fromkeys(rule.code for rule in rules())
    return tuple(sorted((_one(code, run, is_found=code in found) for code in codes), key=lambda one: one.title))


def _one(code: str, run: Run, *, is_found: bool) -> LookedFor:
    rule = _RULES.get(code, _Needs(code.replace("-", " "), _nothing))
    if is_found:
        return LookedFor(code, rule.title, FOUND)
    framework = run.experiment.framework
    if run.is_simulated and not any(one.code == code and one.is_of_plan for one in rules()):
        return LookedFor(code, rule.title, ELSEWHERE, _NEVER_RAN)
    if rule.framework and framework and framework != rule.framework:
        return LookedFor(code, rule.title, ELSEWHERE, f"{_FRAMEWORKS[rule.framework]} only")
    if why := rule.elsewhere(run):
        return LookedFor(code, rule.title, ELSEWHERE, why)
    why = rule.lacks(run)
    return LookedFor(code, rule.title, UNTOLD if why else JUDGED, why)


def _nothing(run: Run) -> str:
    return ""


@dataclass(frozen=True)
class _Needs:
    """``lacks`` says what a run does not have that the rule needs, ``elsewhere`` why the rule is not about it."""

    title: str
    lacks: Callable[[Run], str]
    framework: str = ""
    elsewhere: Callable[[Run], str] = _nothing


_FRAMEWORKS = {"torch": "PyTorch", "jax": "JAX"}


def _traced(run: Run) -> str:
    return "" if any(window.device_kind != "none" for window in run.windows) else _NO_TRACE


def _stepped(run: Run) -> str:
    return "" if len(run.steps) else _NO_JOURNAL


def _collectives(run: Run) -> str:
    if why := _traced(run):
        return why
    spans = (window.spans for window in run.windows)
    return "" if any(bool((one.kind == Kind.COLLECTIVE).any()) for one in spans) else _NO_COLLECTIVE


def _carried(run: Run) -> str:
    return _collectives(run) or why_not(run)


def _overlapping(run: Run) -> str:
    if why := _collectives(run):
        return why
    return (_SHARED if run.experiment.cores else _UNCOUNTED) if shares_cores(run) else ""


def _in_turns_or_not(run: Run) -> str:
    return _overlapping(run) or unsure_why(run)


def _gathered(run: Run) -> str:
    return _overlapping(run) or unsure_gathers(run)


def _numbered(run: Run) -> str:
    """Calls of groups whose ranks and sequence numbers are told."""
    told = {
        window.rank
        for window in run.windows
        for queue, some in calls(window).items()
        if queue.ranks and len(some.sequence) and int(some.sequence.min()) >= 0
    }
    return "" if flight(run) or len(told) > 1 else "no flight recorder, and no traces of two ranks that number calls"


def _launched(run: Run) -> str:
    if why := _traced(run):
        return why
    return "" if any(one.linked for one in launches(run)) else "no trace ties device work to its launches"


def _fed(run: Run) -> str:
    """Why nobody can say that devices do not wait for their host: idle time at the ends of what was traced is charged
    to nobody, though a host that launches nothing there is late all the same."""
    if why := _launched(run):
        return why
    worst = max(idle_shares(run).ranks, key=_ends_frac, default=None)
    if worst is None or not _ends_frac(worst) >= BOUND_FRAC:
        return ""
    frac, step = percent(_ends_frac(worst)), "mean step" if worst.steps else "trace"
    return f"rank {worst.rank}'s device is idle before its first or after its last traced work for {frac} of its {step}"


def _ends_frac(one: RankIdle) -> float:
    """Of idle time that is charged to nothing, as a share of the mean step; 0 where nothing was to be charged."""
    return ratio(one.of(ENDS), one.span_ns) if one.causes and one.span_ns else 0.0


def _hanging(run: Run) -> str:
    is_told = len(run.steps) or flight(run) or _has_end(run)
    return "" if is_told else "neither a recording of steps nor a flight recorder"


def _possible(run: Run) -> str:
    return "" if len(run.steps) or not _launched(run) else "neither a recording of steps nor launches of kernels"


def _waited(run: Run) -> str:
    is_gpu = any(window.device_kind == "gpu" for window in run.windows)
    if is_gpu or steps(run).measured:
        return ""
    return "neither unprofiled steps past warm-up nor a GPU trace"


def _reserved(run: Run) -> str:
    by_snapshot = any(
        isinstance(record, MemoryRecord) and "inactive_split_bytes" in record.figures for record in run.records
    )
    table = run.steps
    by_counters = bool(((table.reserved_bytes >= 0) & (table.peak_bytes >= 0)).any())
    return "" if by_snapshot or by_counters else "nothing tells what an allocator reserved"


def _growing(run: Run) -> str:
    if why := _stepped(run):
        return why
    has_resident = any(
        len(run.samples.series(f"rank {rank}", "rss_bytes")[1]) for rank in np.unique(run.steps.rank).tolist()
    )
    return "" if bool((run.steps.allocated_bytes >= 0).any()) or has_resident else "no memory was recorded step by step"


def _peaks(run: Run) -> str:
    return "" if memory_imbalance(run) is not None else "the peaks of fewer than two ranks are known"


def _exhausted(run: Run) -> str:
    is_told = any(isinstance(record, MemoryRecord) for record in run.records) or out_of_memory(run)
    return "" if is_told or _has_end(run) or len(run.steps) else "neither a memory record nor a recording"


def _has_end(run: Run) -> bool:
    """Whether the recording tells how the run ended; that of an attached job ends when its watcher leaves."""
    return run.ended is not None and not run.experiment.is_attached


def _checked(run: Run) -> str:
    return "" if len({entry.rank for entry in run.checks}) > 1 else _NO_CHECKS


def _alike(run: Run) -> str:
    """Why sums of replicas cannot be compared."""
    step = not_finite(run).parameters_step
    if step is None:
        return _checked(run)
    return f"parameters are not finite since step {step}, and what is no number equals nothing"


def _random(run: Run) -> str:
    return "" if any(entry.rng for entry in run.checks) else "no recording tells the state of random generators"


def _finite(run: Run) -> str:
    has_loss = bool(np.isfinite(run.steps.loss).any())
    return "" if has_loss or run.checks else "no recording tells a loss or the sums of parameters"


def _batches(run: Run) -> str:
    has_ranks = len(np.unique(run.steps.rank)) > 1
    return "" if has_ranks or not _checked(run) else "batches of fewer than two ranks are recorded"


def _compiled(run: Run) -> str:
    return _stepped(run) or ("" if run.compiles else "no compilation was recorded")


def _profiled(run: Run) -> str:
    if why := _stepped(run) or ("" if run.traces else "nothing was profiled"):
        return why
    return "" if steps(run).measured >= FEWEST_STEPS else f"fewer than {FEWEST_STEPS} unprofiled steps past warm-up"


def _late(run: Run) -> str:
    if waiting(run).matched or len(np.unique(run.steps.rank)) > 1:
        return ""
    return _traced(run) or "nothing was matched over ranks"


def _complete(run: Run) -> str:
    return "" if run.windows or run.records or run.refused or len(run.steps) else "nothing was read"


def _no_ddp(run: Run) -> str:
    return "" if _traced(run) or ddp(run) is not None else "no all-reduces of DDP in the traces"


def _no_fsdp(run: Run) -> str:
    return "" if _traced(run) or fsdp(run) is not None or doubts(run) else "no all-gathers of FSDP in the traces"


def _of_modules(lacks: Callable[[Run], str], run: Run) -> str:
    """What is lacking where all-gathers have to be told apart by module."""
    return lacks(run) or ("" if fsdp(run) is not None else "; ".join(why for _, why in doubts(run)))


def _one_rank(run: Run) -> str:
    return "one rank" if run.experiment.ranks == 1 and len({window.rank for window in run.windows}) < 2 else ""


def _without_link(run: Run) -> str:
    return _one_rank(run) or ("the devices are in one process" if is_in_one_process(run) else "")


def _in_line(run: Run) -> str:
    return _one_rank(run) or (_UNLIKE if is_pipeline(run) else "")


def _layer_by_layer(run: Run) -> str:
    return "ranks share each matrix, and a layer needs the others' part before the next" if shares_matrices(run) else ""


def _no_pipeline(run: Run) -> str:
    return "" if is_pipeline(run) else "no pipeline"


def _balanced(run: Run) -> str:
    found = pipeline(run)
    if why := _traced(run):
        return why
    if found is None or not found.is_whole:
        return "not every stage has a complete traced step"
    return "CPU ranks share their cores, so a step is no stage's to make longer" if found.shares_cores else ""


def _sharded(run: Run) -> str:
    return "" if holds_replicas(run) else "only ranks that each hold the whole model must be equal"


def _on_cpu(run: Run) -> str:
    return "XLA has no asynchronous collectives on CPUs" if _is_jax_on_cpu(run) else ""


def _in_turns(run: Run) -> str:
    """Why collectives cannot run beside compute here."""
    is_at_once = is_mostly_needed_at_once(run) or shares_matrices(run)
    return _on_cpu(run) or (_IN_LINE if is_pipeline(run) else _AT_ONCE if is_at_once else "")


def _in_place(run: Run) -> str:
    """Why XLA's collectives cannot but run in the place of compute."""
    return _on_cpu(run) or (_IN_LINE if is_pipeline(run) else "")


def _is_jax_on_cpu(run: Run) -> bool:
    return run.experiment.framework == "jax" and device_kind(run) == "cpu"


_RULES = {
    "collectives-differ": _Needs("collectives that differ between ranks", _numbered, elsewhere=_one_rank),
    "exposed-gathers": _Needs("exposed all-gathers of FSDP", partial(_of_modules, _gathered), "torch", _no_fsdp),
    "exposed-tail": _Needs("an exposed tail of DDP", _overlapping, "torch", _no_ddp),
    "fragmentation": _Needs("fragmented memory", _reserved),
    "hang": _Needs("a hang or deadlock", _hanging),
    "host-bound": _Needs("devices that wait for their host", _fed),
    "impossible-number": _Needs("impossible numbers", _possible),
    "input-bound": _Needs("waiting for data", _waited),
    "launch-bound": _Needs("kernels too short to launch", _fed),
    "memory-imbalance": _Needs("uneven memory", _peaks, elsewhere=_one_rank),
    "memory-leak": _Needs("growing memory", _growing),
    "no-overlap": _Needs("communication and compute in turns", _in_turns_or_not, elsewhere=_in_turns),
    "not-finite": _Needs("a loss or parameters that are no numbers", _finite),
    "out-of-memory": _Needs("running out of memory", _exhausted),
    "profiler-expensive": _Needs("a profiler that costs too much", _profiled),
    "ragged-batch": _Needs("batches of different size", _batches, elsewhere=_one_rank),
    "ranks-drift": _Needs("replicas that drift apart", _alike, elsewhere=_sharded),
    "recompilation-storm": _Needs("compiling again and again", _compiled),
    "root-resharded": _Needs("FSDP's root gathered twice", partial(_of_modules, _collectives), "torch", _no_fsdp),
    "same-key": _Needs("the same random numbers on all ranks", _random, elsewhere=_one_rank),
    "slow-link": _Needs("a slow link", _carried, elsewhere=_without_link),
    "small-collectives": _Needs("many small collectives", _collectives, elsewhere=_layer_by_layer),
    "straggler": _Needs("late ranks", _late, elsewhere=_in_line),
    "synced-accumulation": _Needs("gradients reduced in every micro-batch", _collectives, "torch", _no_ddp),
    "synchronous-collectives": _Needs("collectives that XLA runs synchronously", _collectives, "jax", _in_place),
    "trace-incomplete": _Needs("incomplete traces", _complete),
    "uneven-stages": _Needs("stages of unequal work", _balanced, elsewhere=_no_pipeline),
    "unused-search": _Needs("DDP's search for unused parameters", _traced, "torch", _no_ddp),
}
