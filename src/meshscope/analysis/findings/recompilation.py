"""Recompilation storm: programs are compiled again and again while the run trains.

Fires from three recompilations of one rank on that together took a hundredth of the training time. One or two are the
last batch of an epoch, or a change of shape that was meant; those of the first two steps are programs that settle.
"""

from __future__ import annotations

from collections import Counter

from meshscope.analysis.compilation import Compilation, Recompilation, compilation
from meshscope.analysis.compilation_words import why_words
from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import training
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ranges

FEWEST = 3
LEAST_FRAC = 0.01
_MOST = 3

_FIX = """loader = DataLoader(dataset, batch_size, drop_last=True)  # one size
torch._dynamo.mark_dynamic(batch, 0)        # or one program for any
model = torch.compile(model, dynamic=True)  # size of it, or of all
TORCH_LOGS=recompiles torchrun …            # says which guard failed"""
_FIX_JAX = """# a few lengths instead of any, and no short batch (drop_last=True):
missing = -batch.shape[1] % 64
batch = jax.numpy.pad(batch, ((0, 0), (0, missing)))
jax.config.update("jax_compilation_cache_dir", "/kept/between/runs")
jax.config.update("jax_explain_cache_misses", True)   # what changed"""


def recompilation(run: Run) -> tuple[Finding, ...]:
    """Of the rank that spent most on it: ranks compile at the same time."""
    found = compilation(run)
    again = tuple(one for one in found.storm if found.rank in one.ranks)
    cost = part(found.cost_ns, training(run))
    if len(again) < FEWEST or not cost.cost_frac >= LEAST_FRAC:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="recompilation storm",
            ranks=(found.rank,) if _is_alone(run, found) else (),
            **vars(cost),
            evidence=(
                f"{counted(len(again), 'recompilation')} took {duration(found.cost_ns)}, {percent(cost.cost_frac)} of "
                f"{cost.of}, in steps {ranges((one.step for one in again), most=4)}",
                *_reasons(again),
            ),
            advice="Each new shape compiles a new program. Pad batches to a few lengths, drop the short last batch, or "
            "let the compiler take the dimension as unknown.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


def _is_alone(run: Run, found: Compilation) -> bool:
    """Whether the others compile for themselves and did not; one JAX process compiles for all of its devices."""
    others = {rank for one in found.storm for rank in one.ranks} - {found.rank}
    return run.experiment.framework != "jax" and not others and len(found.reporting) > 1


def _reasons(again: tuple[Recompilation, ...]) -> tuple[str, ...]:
    """The most frequent ones, and how many more there are: with lengths that never come back all differ."""
    said = Counter(f"{one.function}: {why_words(one)}" for one in again)
    shown = said.most_common(_MOST)
    rest = len(said) - len(shown)
    more = (f"and for {counted(rest, 'other reason')}",) if rest else ()
    return (*(f"{words} ({counted(count, 'time')})" for words, count in shown), *more)


FINDING = Rule("recompilation-storm", recompilation)
