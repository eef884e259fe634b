"""The same random numbers on every device: dropout masks, noise and sampling repeat over ranks.

Fires when all ranks have the same state of their random generators in every check (three or more) and that state moves
on between checks, which shows that random numbers are drawn: equal generators that nobody uses are no pitfall. A JAX
key is told once and never moves, so for JAX the run has to say that it uses one: by a dropout above zero.
"""

from __future__ import annotations

from collections import defaultdict

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.run import Run
from meshscope.units import counted

FEWEST = 3

_FIX = """torch.manual_seed(seed)   # while the model is built: equal weights
# from then on each rank draws for itself:
torch.manual_seed(seed + 1 + torch.distributed.get_rank())"""
_FIX_JAX = """# inside the mapped step:
key = jax.random.fold_in(key, jax.lax.axis_index("data"))
# or outside of it: keys = jax.random.split(key, jax.device_count())"""


def same_key(run: Run) -> tuple[Finding, ...]:
    by_step: dict[int, dict[int, str]] = defaultdict(dict)
    for entry in run.checks:
        if entry.rng:
            by_step[entry.step][entry.rank] = entry.rng
    whole = [set(states.values()) for _, states in sorted(by_step.items()) if len(states) > 1]
    is_jax = run.experiment.framework == "jax"
    if not whole or any(len(states) > 1 for states in whole):
        return ()
    moves = len({next(iter(states)) for states in whole})
    if not _is_used(run, len(whole), moves):
        return ()
    ranks = max(len(states) for states in by_step.values())
    return (
        Finding(
            code=FINDING.code,
            title="same random key on every device",
            evidence=(
                f"all {counted(ranks, 'rank')} have the same random {'key' if is_jax else 'state'} in "
                f"{counted(len(whole), 'check')}",
                "the model draws from it: it has a dropout" if is_jax else f"random numbers are drawn: {moves} states",
            ),
            advice="Every rank drops the same units and draws the same noise, so that a batch over ranks has less "
            "randomness than it seems to. Give each rank a seed of its own once the weights are made.",
            fix=_FIX_JAX if is_jax else _FIX,
            is_grave=True,
        ),
    )


def _is_used(run: Run, checks: int, moves: int) -> bool:
    if run.experiment.framework == "jax":
        dropout = run.experiment.options.get("dropout", 0)
        return isinstance(dropout, int | float) and dropout > 0
    return checks >= FEWEST and moves > 1


FINDING = Rule("same-key", same_key)
