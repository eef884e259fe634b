"""Uneven stages: one stage of a pipeline computes longer than the mean, and every turn of all others is as long as its.

Fires when the longest stage computes a tenth more than the mean one, and a step of stages as long as the mean would be
a twentieth shorter: a turn of each micro-batch, and of each further stage, would be shorter by the difference. On CPU
ranks that share their cores a step is as long as the work of all stages together, and nothing is said.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.pipeline import Pipeline, balanced_ns, pipeline
from meshscope.analysis.pipeline_words import uneven_words
from meshscope.run import Run
from meshscope.units import counted, duration

LEAST_FRAC = 0.05
_MOST = 8

_FIX = """# fewer blocks to the longest stage; the output layer counts as
# vocab / (12 * width) blocks, so the last stage gets fewer:
blocks_per_stage = [4, 4, 4, 2]"""


def uneven_stages(run: Run) -> tuple[Finding, ...]:
    found = pipeline(run)
    if found is None or found.longest is None or not found.is_uneven or found.shares_cores:
        return ()
    cost = part(balanced_ns(found), traced_step(run))
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="uneven stages",
            ranks=(found.longest.rank,),
            **vars(cost),
            evidence=(uneven_words(found), _each(found)),
            advice="A pipeline is as fast as its slowest stage. Move blocks from it to the others, or cut the model so "
            "that stages take equally long, the embedding and the output layer counted.",
            fix=_FIX,
        ),
    )


def _each(found: Pipeline) -> str:
    """What each stage computes in a step; of many the shortest as well as the longest."""
    if len(found.ranks) <= _MOST:
        return "a step's compute: " + ", ".join(f"rank {one.rank} {duration(one.compute_ns)}" for one in found.ranks)
    least = min(found.ranks, key=lambda one: (one.compute_ns, one.rank))
    said = f"of {counted(len(found.ranks), 'stage')} rank {least.rank} computes the least of a step"
    return f"{said}, {duration(least.compute_ns)}"


FINDING = Rule("uneven-stages", uneven_stages, is_of_plan=True)
