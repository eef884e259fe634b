"""The critical path, in words and as tables."""

from __future__ import annotations

from meshscope.analysis.critical_path import CriticalPath
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet
from meshscope.units import ranges, ratio

HELP = Help(
    "The chain of work, launches and collectives over all ranks that took the whole of the steps' time: what is on it "
    "held the run up, what is not did not. The bar and its legend are shares of the path.",
    columns=(
        ("what if", "the path replayed with that one thing changed, and no other effect"),
        ("ms/step", "what a step would take (ms: all that was traced, where no step is marked)"),
        ("saves", "what would go, as a share of the measured path"),
        ("rank", "whom the path goes through"),
        (
            "when the path is on it",
            "from the beginning of the path to its end; the darker, the longer; blank: on another rank",
        ),
        ("visits", "stretches of the path on that rank"),
        ("share", "time of the path on it, as a share of the path"),
        (
            "longest on the path",
            "kernels, operators (each without those it calls) and collectives by their time on the path",
        ),
        ("as", "what it counts for: compute, communication, copy, …"),
        ("calls", "their spans on the path"),
        ("backward", "share of its time on the path that is backward"),
    ),
    states=(("Cannot say", "why no path could be found: a rank missing, nothing matched, …"),),
)


def parts(found: CriticalPath | None) -> Sheet:
    """A row per part of the path; ranks, what-ifs and the longest work are tables of their own."""
    columns = ("part", "path_ns", "path_frac")
    if found is None:
        return sheet(columns, ())
    rows = [(name, ns, ratio(ns, found.of_ns)) for name, ns in found.parts.items()]
    by_rank = [(rank if rank >= 0 else None, ns, ratio(ns, found.of_ns)) for rank, ns in sorted(found.by_rank.items())]
    asked = [(one.name, one.bucket_bytes, one.total_ns, one.step_ns, one.saved_frac, one.caveat or None)
             for one in found.what_ifs]  # fmt: skip
    works = [(one.name, one.part, one.count, one.total_ns, one.backward_ns) for one in found.works]
    return sheet(
        columns,
        rows,
        about={"of_ns": found.of_ns, "error_ns": found.error_ns, "steps": ranges(found.steps) or None},
        more={
            "ranks": sheet(("rank", "path_ns", "path_frac"), by_rank),
            "what_ifs": sheet(("what_if", "bucket_bytes", "total_ns", "step_ns", "saved_frac", "caveat"), asked),
            "works": sheet(("name", "part", "calls", "path_ns", "backward_ns"), works),
        },
    )
