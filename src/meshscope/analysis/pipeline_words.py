"""A pipeline's bubble in words, the same in a report and on the screen."""

from __future__ import annotations

from meshscope.analysis.pipeline import Pipeline
from meshscope.units import counted, duration, percent

FEW_STAGES = 8
_NAMES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B"}


def pipeline_words(found: Pipeline) -> str:
    """How long stages wait and transfer beside no work, and how long equal ones would wait."""
    over = f"{counted(found.stages, 'stage')} and {counted(found.micro_batches, 'micro-batch', 'micro-batches')}"
    said = f"{_NAMES[found.schedule]} over {over}: "
    if found.ranks:
        whom = "a stage" if found.is_whole else f"each of {len(found.ranks)} traced stages"
        said += f"{whom} computes nothing, and receives or is in a collective, for {percent(found.wait_frac)} of its "
        said += "step in the mean; "
    turns = found.chunks * found.micro_batches + found.stages - 1
    ideal = f"{percent(found.ideal_frac)} ({_formula(found)}, {turns} turns)"
    return f"{said}equal stages that pass on at once would compute nothing for {ideal}"


def _formula(found: Pipeline) -> str:
    """``3 / (8 + 3)``, with the letters of the papers."""
    p = found.stages - 1
    m = str(found.micro_batches) if found.chunks == 1 else f"{found.chunks} × {found.micro_batches}"
    return f"{p} / ({m} + {p})"


def uneven_words(found: Pipeline) -> str:
    """Which stage computes longest, and by how much; "" where they are even, or some were not traced."""
    longest = found.longest
    if longest is None or not found.is_uneven:
        return ""
    said = f"stages are uneven: rank {longest.rank} computes {duration(longest.compute_ns)} of a step, "
    said += (
        f"{percent(found.excess_frac)} more than the mean stage's {duration(found.mean_ns)}, and the others wait for it"
    )
    return f"{said}; ranks share their cores, so some of that may be the scheduler's" if found.shares_cores else said


def staged_words(found: Pipeline) -> str:
    """How long stages wait and transfer, each where they are few; then whether they are even, and what they are."""
    over = f"{_NAMES[found.schedule]} over {found.stages} stages × {found.micro_batches} micro-batches"
    if not found.ranks:
        return pipeline_words(found)
    each = ", ".join(f"{one.rank}: {percent(one.wait_frac)}" for one in found.ranks)
    said = f"stages compute nothing, and receive or are in a collective, for {percent(found.wait_frac)} of their step"
    said += f" (rank {each})" if len(found.ranks) <= FEW_STAGES else ""
    said += f"; even ones that pass on at once would compute nothing for {percent(found.ideal_frac)}"
    uneven = uneven_words(found)
    return f"{said}; {uneven}; {over}" if uneven else f"{said}; {over}"
