"""Whether two runs can be compared at all, and what was changed between them."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.difference import FEWEST, QUIET_CORES, Side, crowded
from meshscope.analysis.figures import Figures
from meshscope.analysis.flight_words import ranks_words
from meshscope.units import UNTOLD, counted

_SHAPE = ("layers", "width", "heads", "vocab", "experts", "top_k", "image", "classes")
_TOLD = ("model", "batch", "seq", "devices", "inject")
"""Options that are fields of their own as well."""

_NOT_THE_SAME = (
    ("model", "model"),
    ("global_batch", "global batch"),
    ("sequence_length", "sequence length"),
    ("ranks", "number of ranks"),
    ("world", "number of ranks in the job"),
    ("device_kind", "kind of device"),
)


def other(a: Figures, b: Figures) -> str:
    """Why B is not the same job as A, all of it; "" where it is, as far as both say."""
    fields = {name: (getattr(a, field), getattr(b, field)) for field, name in _NOT_THE_SAME}
    if _differ(fields["number of ranks"]):
        del fields["number of ranks in the job"]  # says the same once more
    shape = {name: (a.options.get(name, ""), b.options.get(name, "")) for name in _SHAPE}
    apart = [f"{name} {values[0]} and {values[1]}" for name, values in shape.items() if _differ(values)]
    drawn = [title for title, run in ((a.title, a), (b.title, b)) if run.simulated_by]
    if len(drawn) == 1:
        return f"{drawn[0]} is simulated and the other was measured: a prediction is no measurement to compare with"
    said = [f"other {name}: {values[0]} and {values[1]}" for name, values in fields.items() if _differ(values)]
    return "; ".join([*said, *([f"other model: {', '.join(apart)}"] if apart else [])])


def _differ(values: tuple[object, object]) -> bool:
    return values[0] != values[1] and all(value not in ("", 0, "none") for value in values)


def unsure(a: Side, b: Side, *, called: tuple[str, str] = ("A", "B")) -> str:
    """Why their step times cannot be told apart or alike; "" where they can."""
    for name, side in zip(called, (a, b), strict=True):
        for run in side.runs:
            if not run.step_ns:
                return f"{name} {_stepless(run)}"
            if run.outcome in ("failed", "lost"):
                return f"{name} {'failed' if run.outcome == 'failed' else 'broke off'} before its last step"
        if any(keep.sum() < FEWEST for keep in side.keep):
            fewest = min(int(keep.sum()) for keep in side.keep)
            return f"{name} has {counted(fewest, 'unprofiled step')} past warm-up; {FEWEST} are needed"
    return ""


def crowd(a: Side, b: Side, *, called: tuple[str, str] = ("A", "B")) -> str:
    """Who else used the cores while steps were measured, so that their length says little; "" where nobody did."""
    for name, side in zip(called, (a, b), strict=True):
        cores = crowded(side)
        if side.runs[0].device_kind == "cpu" and cores > QUIET_CORES:
            return f"other programs used {cores:.1f} of {side.runs[0].cores} cores while {name} was measured"
    return ""


def _stepless(run: Figures) -> str:
    if run.finished_steps:
        return "has no unprofiled step past warm-up"
    return "holds no unprofiled step: a native trace shows only steps that were being profiled"


def injected(a: Figures, b: Figures) -> str:
    """What was put into both sides on purpose; "" for clean runs and where the sides differ in it."""
    return f"Both sides ran with injected {' and '.join(a.faults)}." if a.faults and a.faults == b.faults else ""


def changed(a: Sequence[Figures], b: Sequence[Figures]) -> tuple[str, ...]:
    """What else differs: options, versions, machine. Any of it may be the cause."""
    before, after = a[0], b[0]
    said = [
        f"{name}: {old or UNTOLD} → {new or UNTOLD}"
        for name, old, new in (
            ("injected on purpose", " and ".join(before.faults) or "none", " and ".join(after.faults) or "none"),
            ("strategy", before.strategy, after.strategy),
            ("model", before.model, after.model),
            ("global batch", str(before.global_batch or ""), str(after.global_batch or "")),
            ("sequence length", str(before.sequence_length or ""), str(after.sequence_length or "")),
            ("ranks", str(before.ranks or ""), str(after.ranks or "")),
            ("ranks that are here", _seen(before), _seen(after)),
            ("host", before.host, after.host),
            ("cores", str(before.cores or ""), str(after.cores or "")),
            ("device", ", ".join(before.devices), ", ".join(after.devices)),
            *_pairs(before.options, after.options, skip=_TOLD),
            *_pairs(before.versions, after.versions),
        )
        if old != new
    ]
    for what, old, new in (("options", before.options, after.options), ("versions", before.versions, after.versions)):
        said += _of_one_side(what, old, new)
    return tuple(said)


def _seen(side: Figures) -> str:
    return ranks_words(side.seen_ranks) if side.seen_ranks else ""


def _pairs(a: dict[str, str], b: dict[str, str], skip: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """What both sides tell."""
    called = {"device": "device asked for"}
    return [(called.get(name, name), a[name], b[name]) for name in sorted({*a} & {*b}) if name not in skip]


def _of_one_side(what: str, a: dict[str, str], b: dict[str, str]) -> list[str]:
    """What only one side tells, in a line for all of it: a native trace tells no options."""
    only = (("A", sorted({*a} - {*b} - {*_TOLD})), ("B", sorted({*b} - {*a} - {*_TOLD})))
    return [f"{what} that only {side} tells: {', '.join(names)}" for side, names in only if names]
