"""Hang or deadlock: ranks wait in a collective that another has not called, or no step ends any more.

Fires where a flight recorder's dump shows ranks inside a call that another rank of the group had not made (for ten
seconds, where it was taken of a job that was attached to and may train on); and in a
recording where no step has ended for ten seconds and for twenty usual steps, while every rank says that it trains (a
compilation, a profiler that stops and the end of a run say so); or where a rank died of a collective's timeout, or the
supervisor asked the ranks where they stand since no step had ended for too long, or ended the run for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from meshscope.analysis.findings.left_behind import left_behind, patience_of
from meshscope.analysis.findings.rule import Cost, Finding, Rule, part
from meshscope.analysis.findings.whole import Whole
from meshscope.analysis.flight import Flight, Unfinished, flight
from meshscope.analysis.flight_words import ranks_words, unfinished_words
from meshscope.analysis.stalls import newest, places, stall_words, stood_of
from meshscope.analysis.steps import steps
from meshscope.recording.standstill import PATIENCE_NS
from meshscope.run import Run
from meshscope.units import duration

_MOST = 3

_TRAINING = ("training", "profiling", "warming profiler")
_ENDED_FOR_IT = re.compile(r"\bhangs\b|\bmade progress\b")
_FRAME = re.compile(r'^\s*File "')
_TIMED_OUT = re.compile(
    r"timed out|watchdog caught|collective operation timeout|timeout after|termination timeout for", re.IGNORECASE
)

_FIX = """# all ranks must reach the same collectives in the same order; find the
# one that differs, and fail after a minute instead of ten or more:
TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 \\
TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun …
torch.distributed.init_process_group(timeout=timedelta(seconds=60))"""
_FIX_JAX = """# no collective under a condition that differs between processes;
# dump stacks while it hangs:
import faulthandler; faulthandler.dump_traceback_later(60, repeat=True)"""


def hang(run: Run) -> tuple[Finding, ...]:
    """At most one: flight recorders say more of it than steps do, and both are evidence."""
    recorders = flight(run)
    stuck = [one for one in recorders.unfinished if _is_stuck(one, run)] if recorders else []
    still_ns, told = _standstill(run)
    if not stuck and not told:
        return _behind(run)
    missing = sorted({rank for one in stuck for rank in one.absent}) or list(places(run)) or _odd_ranks(run)
    evidence = (*told, *_calls(stuck, recorders), *(() if told else stall_words(run)))
    return (
        Finding(
            code=FINDING.code,
            title="hang or deadlock",
            ranks=tuple(missing),
            **vars(_cost(run, still_ns)),
            evidence=evidence,
            advice=_advice(missing),
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
            is_grave=True,
        ),
    )


def _behind(run: Run) -> tuple[Finding, ...]:
    """Some ranks stand still, and others train on without them."""
    found = left_behind(run)
    if found is None:
        return ()
    step = "step" if len(found.moving) > 1 else "steps"
    stands = (stall for stall in stood_of(run, found.still))
    return (
        Finding(
            code=FINDING.code,
            title="ranks that stand still while others step",
            ranks=found.still,
            evidence=(
                f"{ranks_words(found.still)} ended no step for {duration(found.still_ns)}{_usually(run)}",
                f"{ranks_words(found.moving)} still {step}",
                *(f"rank {one.rank} stood in {one.words}" for one in stands),
            ),
            advice=f"Look at what {ranks_words(found.still)} did instead, and whether the others should go on alone.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


def _is_stuck(one: Unfinished, run: Run) -> bool:
    """Whether ranks wait in a call for one that has not made it.

    Where a job was attached to, it is asked while it trains, each rank at a moment of its own: there a call that was
    made just now is no hang.
    """
    if not one.absent or one.done or _is_over(run):
        return False
    if not run.experiment.is_attached:
        return True
    asked_ns = max((taken.t_ns for taken in run.stacks), default=0) + run.experiment.t0_unix_ns
    return one.since_ns > 0 and asked_ns - one.since_ns >= PATIENCE_NS


def _is_over(run: Run) -> bool:
    """Whether the ranks went on after they were asked where they stand: what they were in then is over."""
    is_asked = bool(run.stacks) and not run.experiment.is_attached
    return is_asked and (not newest(run) or (run.ended is not None and run.ended.outcome == "done"))


def _advice(missing: list[int]) -> str:
    if missing:
        who = ranks_words(missing)
        return f"Look at what {who} did instead: a branch, an exception or a data loader that the others do not have."
    return "Look at each rank's stack: one of them does not reach the collective that the others wait in."


def _cost(run: Run, still_ns: int) -> Cost:
    """All of the time since the last step ended, as a share of the run's so far."""
    if not still_ns:
        return Cost()
    begun_ns = int(run.steps.start_ns.min()) if len(run.steps) else 0
    whole_ns = _until_ns(run) - begun_ns
    return part(still_ns, Whole(whole_ns, f"the {duration(whole_ns)} since the first step began"))


def _calls(stuck: list[Unfinished], found: Flight | None) -> Iterator[str]:
    if found is None:
        return
    yield from (unfinished_words(one) for one in stuck[:_MOST])
    if len(stuck) > _MOST:
        yield f"{len(stuck) - _MOST} more calls that some ranks are in and others have not made"


def _until_ns(run: Run) -> int:
    """When it was over, or the moment that is looked at; a supervisor that is gone saw nothing after its last entry."""
    if run.ended is not None:
        return run.ended.t_ns
    return run.last_entry_ns if run.is_lost else run.now_ns


def _standstill(run: Run) -> tuple[int, tuple[str, ...]]:
    """How long no step has ended, and what shows that it is a hang; 0 and nothing where it is not one."""
    if not len(run.steps) or (run.ended is not None and run.ended.outcome == "done"):
        return 0, ()
    last_ns = int(run.steps.end_ns.max())
    still_ns = max(_until_ns(run) - last_ns, 0)
    timed_out = [end for end in run.rank_ends if end.exit_code and _TIMED_OUT.search(_words(end.why, end.log_lines))]
    ended = _ended_for_it(run)
    is_asked = bool(newest(run))  # The supervisor asks where ranks are when it waits for them too long.
    if not timed_out and not ended and not is_asked and not (_trains(run) and still_ns >= patience_of(run)):
        return 0, ()
    said = [*ended, f"no step has ended for {duration(still_ns)}{_usually(run)}", _where(run)]
    said += stall_words(run) or _stack(run)
    said += [f"rank {end.rank} gave up: {_line(end.why, end.log_lines)}" for end in timed_out[:_MOST]]
    return still_ns, tuple(said)


def _ended_for_it(run: Run) -> tuple[str, ...]:
    """What the supervisor said when it ended the run for making no progress."""
    return (run.ended.why,) if run.ended is not None and _ENDED_FOR_IT.search(run.ended.why) else ()


def _stack(run: Run) -> tuple[str, ...]:
    """Where the rank was that the supervisor named, by the last frame in its log."""
    rank = run.ended.rank if run.ended is not None and _ended_for_it(run) else -1
    lines = [line.strip() for end in run.rank_ends if end.rank == rank for line in end.log_lines]
    frame = next((line for line in lines if _FRAME.match(line)), "")
    return (f"rank {rank} was at {frame.removeprefix('File ')}",) if frame else ()


def _words(why: str, lines: tuple[str, ...]) -> str:
    return "\n".join((why, *lines))


def _line(why: str, lines: tuple[str, ...]) -> str:
    return next((line.strip() for line in (why, *lines) if _TIMED_OUT.search(line)), why)


def _usually(run: Run) -> str:
    median_ns = steps(run).median_ns
    return "" if math.isnan(median_ns) else f"; the median step took {duration(median_ns)}"


def _trains(run: Run) -> bool:
    """Whether the last that every rank said is that it trains."""
    last = {phase.rank: phase.phase for phase in run.phases if phase.rank >= 0}
    return bool(last) and all(phase in _TRAINING for phase in last.values())


def _last_steps(run: Run) -> dict[int, int]:
    """The last step that each rank finished."""
    last: dict[int, int] = {}
    for rank, step in zip(run.steps.rank.tolist(), run.steps.step.tolist(), strict=True):
        last[rank] = max(step, last.get(rank, -1))
    return last


def _where(run: Run) -> str:
    last = _last_steps(run)
    if len(set(last.values())) == 1:
        return f"{ranks_words(sorted(last))} finished step {next(iter(last.values()))} and none after it"
    by_step: dict[int, list[int]] = {}
    for rank, step in sorted(last.items()):
        by_step.setdefault(step, []).append(rank)
    return "; ".join(f"{ranks_words(ranks)} finished step {step} last" for step, ranks in sorted(by_step.items()))


def _odd_ranks(run: Run) -> list[int]:
    """The rank that the supervisor named; else those that stopped at an earlier step than others; else those that did
    not give up as the others did."""
    if run.ended is not None and run.ended.rank >= 0 and _ended_for_it(run):
        return [run.ended.rank]
    last = _last_steps(run)
    behind = [rank for rank, step in last.items() if step < max(last.values())]
    if behind:
        return sorted(behind)
    ends = {end.rank: bool(_TIMED_OUT.search(_words(end.why, end.log_lines))) for end in run.rank_ends}
    waited = [rank for rank, is_victim in ends.items() if is_victim]
    others = sorted(rank for rank in last if rank not in waited)
    return others if waited and len(others) < len(last) else []


FINDING = Rule("hang", hang)
