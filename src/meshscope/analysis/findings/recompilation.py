"""Recompilation storm: programs are compiled again and again while the run trains.

Fires from three recompilations of one rank on that together took a hundredth of the training time. One or two are the
last batch of an epoch, or a change of shape that was meant.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import training
from meshscope.recording.entries import Compiled
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ranges

FEWEST = 3
LEAST_FRAC = 0.01
_MOST = 3

_FIX = """model = torch.compile(model, dynamic=True)
# or for one dimension: torch._dynamo.mark_dynamic(batch, 0)
TORCH_LOGS=recompiles torchrun …   # says which guard failed"""
_FIX_JAX = """# a few lengths instead of any:
missing = length - batch.shape[1]
batch = jax.numpy.pad(batch, ((0, 0), (0, missing)))
jax.config.update("jax_explain_cache_misses", True)   # what changed"""


def recompilation(run: Run) -> tuple[Finding, ...]:
    """Of the rank that spent most on it: ranks compile at the same time."""
    by_rank: dict[int, list[Compiled]] = defaultdict(list)
    for entry in run.compiles:
        if entry.is_recompilation:
            by_rank[entry.rank].append(entry)
    if not by_rank:
        return ()
    rank, again = max(by_rank.items(), key=lambda item: (sum(entry.duration_ns for entry in item[1]), -item[0]))
    programs = [entry for entry in again if entry.stage == "compile"]
    spent_ns = sum(entry.duration_ns for entry in again)
    cost = part(spent_ns, training(run))
    if len(programs) < FEWEST or not cost.cost_frac >= LEAST_FRAC:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="recompilation storm",
            ranks=(rank,) if len(by_rank) == 1 and run.experiment.ranks > 1 and _is_alone(run, rank) else (),
            **vars(cost),
            evidence=(
                f"{counted(len(programs), 'recompilation')} took {duration(spent_ns)}, {percent(cost.cost_frac)} of "
                f"{cost.of}{_steps(programs)}",
                *_reasons(programs),
            ),
            advice="Each new shape compiles a new program. Pad batches to a few lengths, or let the compiler take the "
            "dimension as unknown.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


def _is_alone(run: Run, rank: int) -> bool:
    """Whether the others compile for themselves and did not; one JAX process compiles for all of its devices."""
    return run.experiment.framework != "jax" and any(entry.rank != rank for entry in run.compiles)


def _steps(programs: list[Compiled]) -> str:
    steps = [entry.step for entry in programs if entry.step >= 0]
    return f", in steps {ranges(steps, most=4)}" if steps else ""


def _reasons(programs: list[Compiled]) -> tuple[str, ...]:
    said = Counter(f"{entry.name}{f': {entry.reason}' if entry.reason else ''}" for entry in programs)
    return tuple(f"{words} ({counted(count, 'time')})" for words, count in said.most_common(_MOST))


FINDING = Rule("recompilation-storm", recompilation)
