"""A run that only its traces tell of, in one row and one sentence: where a step goes, or what was traced in all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.analysis.breakdown import Breakdown, Part, combine, parts, per_step
from meshscope.analysis.exposure import exposure
from meshscope.analysis.overlap import exposed_in, overlap
from meshscope.analysis.standing import shares
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.waiting import waiting
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ranges, ratio


@dataclass(frozen=True)
class Traced:
    """``mean`` is the mean complete step over all ranks (``is_stepped``), else the mean rank's whole windows.

    None where no rank has device work: ``why`` then says why. ``share`` adds up to 1, as in the comparison;
    ``told`` names what there is where there are no spans (a snapshot of the allocator, a device log).
    ``of_ranks`` of the ``ranks`` are those the mean is over: the others have no whole step, or no device work.
    ``exposed_in`` says in which collectives the exposed time is. ``wait_ns`` is the part of the mean that is spent
    waiting for peers, None unless all of it is known, and ``late`` are the ranks that the others wait for.
    """

    name: str
    framework: str
    device_kind: str
    ranks: int
    of_ranks: int
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
    wait_ns: int | None = None
    late: tuple[int, ...] = ()


def traced(run: Run) -> Traced:
    """The row of one run."""
    known = {window: part for window, part in parts(run).items() if window.device_kind != "none"}
    ranks = len({window.rank for window in known})
    whole = combine(known.values()) if known else None
    stepped = per_step(whole) if whole else None
    mean = stepped or (_per_rank(whole, ranks) if whole else None)
    # Several ranks of one JAX file share its counts.
    counts = {window.source: window.counts for window in run.windows}.values()
    reasons = dict.fromkeys(why for window in run.windows for what, why in window.cannot_say if what == "breakdown")
    return Traced(
        name=run.name,
        framework=run.experiment.framework,
        device_kind=run.experiment.device_kind,
        ranks=_ranks(run),
        of_ranks=len({window.rank for window, part in known.items() if part.steps}) if stepped else ranks,
        files=len(counts),
        steps=tuple(sorted({step for part in known.values() for step in part.steps})),
        is_stepped=stepped is not None,
        mean=mean,
        share=shares(mean) if mean else {},
        exposed_in=exposed_in(overlap(run), exposure(run).exposed_ns),
        events=sum(count.read for count in counts),
        dropped=sum(sum(count.dropped.values()) for count in counts),
        repaired=sum(sum(count.repaired.values()) for count in counts),
        why="; ".join(reasons) if mean is None else "",
        told="" if run.windows else ", ".join(dict.fromkeys(record.kind for record in run.records)),
        wait_ns=mean.wait_ns if mean is not None and knows_waiting(run) else None,
        late=tuple(sorted(one.rank for one in stragglers(run))),
    )


def knows_waiting(run: Run) -> bool:
    """Waits that torch on CPU recorded as operators may be a part of the waiting only."""
    is_part = any(window.framework == "torch" and window.device_kind == "cpu" for window in run.windows)
    return _ranks(run) > 1 and not (is_part and waiting(run).unmatched)


def _ranks(run: Run) -> int:
    """Those that spans tell of; else those that the files without spans do."""
    return len({window.rank for window in run.windows}) if run.windows else run.experiment.ranks


def unfinished(found: Traced) -> Traced:
    """The row of a run of which more is to be read: who is late shows when all ranks are there."""
    return replace(found, wait_ns=None, late=())


def _per_rank(whole: Part, ranks: int) -> Breakdown | None:
    """The mean over ranks of all that was traced: as the mean over steps, with ranks in the place of steps."""
    if not whole.total.span_ns:
        return None
    return per_step(Part(whole.total, whole.total, tuple(range(ranks)), 0, 0, whole.dropped, whole.repaired))


def sentence(found: Traced) -> str:
    """What there is to say of it first, every share with what it is a share of."""
    if found.told:
        return f"No spans were traced here; there is: {found.told}."
    if found.mean is None:
        return f"No device work to split: {found.why}." if found.why else "No device work to split."
    whole = found.of_ranks == found.ranks
    who = counted(found.ranks, "rank") if whole else f"{found.of_ranks} of {counted(found.ranks, 'rank')}"
    took = duration(found.mean.span_ns)
    head = f"A step takes {took}" if found.is_stepped else f"{took} traced"
    over = f"{head}, mean of {who}" + (f" and {counted(len(found.steps), 'step')}" if found.is_stepped else "")
    of = "it" if found.is_stepped else "that time"
    return f"{over}: {', '.join(_parts(found, found.mean))} of {of}{_late(found, found.mean)}."


def _late(found: Traced, mean: Breakdown) -> str:
    """What is lost to waiting, and for whom. It lies beside the parts, which add up without it."""
    words = []
    if found.wait_ns:
        words.append(f"{percent(ratio(found.wait_ns, mean.span_ns))} is waiting" + ("" if found.late else " for peers"))
    if found.late:
        words.append(f"late: {'rank' if len(found.late) == 1 else 'ranks'} {ranges(found.late)}")
    return f"; {', '.join(words)}" if words else ""


def _parts(found: Traced, mean: Breakdown) -> list[str]:
    words = [f"computing {percent(ratio(mean.compute_ns, mean.span_ns))}"]
    if mean.collective_ns:
        share = percent(ratio(mean.exposed_ns, mean.span_ns))
        where = found.exposed_in
        # A share right behind the name of a collective is read as that collective's own.
        named = f"{share} ({where})" if where.startswith("mostly") else f"{where} {share}"
        words.append(f"exposed {named if mean.exposed_ns else share}")
    return [*words, f"idle {percent(ratio(mean.idle_ns, mean.span_ns))}"]
