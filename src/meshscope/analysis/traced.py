"""A run that only its traces tell of, in one row and one sentence: where a step goes, or what was traced in all."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.analysis.breakdown import Breakdown, Part, combine, measure, per_step
from meshscope.analysis.overlap import overlap
from meshscope.analysis.standing import shares
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ratio

_MOSTLY_FRAC = 0.6


@dataclass(frozen=True)
class Traced:
    """``mean`` is the mean complete step over all ranks (``is_stepped``), else the mean rank's whole windows.

    None where no rank has device work: ``why`` then says why. ``share`` adds up to 1, as in the comparison;
    ``told`` names what there is where there are no spans (a snapshot of the allocator, a device log).
    ``exposed_in`` is the collective that most of the exposed time is in, "" where it is not mostly one.
    """

    name: str
    framework: str
    device_kind: str
    ranks: int
    files: int
    steps: tuple[int, ...]
    is_stepped: bool
    mean: Breakdown | None
    share: dict[str, float]
    exposed_in: str
    events: int
    dropped: int
    repaired: int
    why: str
    told: str = ""


def traced(run: Run) -> Traced:
    """The row of one run."""
    parts = {window: measure(window) for window in run.windows if window.device_kind != "none"}
    ranks = len({window.rank for window in parts})
    whole = combine(parts.values()) if parts else None
    stepped = per_step(whole) if whole else None
    mean = stepped or (_per_rank(whole, ranks) if whole else None)
    # Several ranks of one JAX file share its counts.
    counts = {window.source: window.counts for window in run.windows}.values()
    reasons = dict.fromkeys(why for window in run.windows for what, why in window.cannot_say if what == "breakdown")
    return Traced(
        name=run.name,
        framework=run.experiment.framework,
        device_kind=run.experiment.device_kind,
        ranks=len({window.rank for window in run.windows}),
        files=len(counts),
        steps=tuple(sorted({step for part in parts.values() for step in part.steps})),
        is_stepped=stepped is not None,
        mean=mean,
        share=shares(mean) if mean else {},
        exposed_in=_mostly(run),
        events=sum(count.read for count in counts),
        dropped=sum(sum(count.dropped.values()) for count in counts),
        repaired=sum(sum(count.repaired.values()) for count in counts),
        why="; ".join(reasons) if mean is None else "",
        told="" if run.windows else ", ".join(dict.fromkeys(record.kind for record in run.records)),
    )


def _per_rank(whole: Part, ranks: int) -> Breakdown | None:
    """The mean over ranks of all that was traced: as the mean over steps, with ranks in the place of steps."""
    if not whole.total.span_ns:
        return None
    return per_step(Part(whole.total, whole.total, tuple(range(ranks)), 0, 0, whole.dropped, whole.repaired))


def _mostly(run: Run) -> str:
    found = overlap(run)
    total_ns = sum(kind.exposed_ns for kind in found)
    if found and total_ns and found[0].exposed_ns >= total_ns * _MOSTLY_FRAC and found[0].name != "unnamed":
        return found[0].name.replace("_", "-")
    return "collectives" if total_ns else ""


def sentence(found: Traced) -> str:
    """What there is to say of it first, every share with what it is a share of."""
    if found.told:
        return f"No spans were traced here; there is: {found.told}."
    if found.mean is None:
        return f"No device work to split: {found.why}." if found.why else "No device work to split."
    who = counted(found.ranks, "rank")
    took = duration(found.mean.span_ns)
    head = f"A step takes {took}" if found.is_stepped else f"{took} traced"
    over = f"{head}, mean of {who}" + (f" and {counted(len(found.steps), 'step')}" if found.is_stepped else "")
    return f"{over}: {', '.join(_parts(found, found.mean))} of {'it' if found.is_stepped else 'that time'}."


def _parts(found: Traced, mean: Breakdown) -> list[str]:
    words = [f"computing {percent(ratio(mean.compute_ns, mean.span_ns))}"]
    if mean.collective_ns:
        where = f" in {found.exposed_in}" if found.exposed_in and mean.exposed_ns else ""
        words.append(f"exposed{where} {percent(ratio(mean.exposed_ns, mean.span_ns))}")
    return [*words, f"idle {percent(ratio(mean.idle_ns, mean.span_ns))}"]
