"""Explains what memory a rank holds: its peak, its categories, and how each was come by."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import LARGEST, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Events, Group, Number
from meshscope.analysis.memory import LASTING, RankMemory, growth_bytes, memory
from meshscope.run import Run
from meshscope.spans import Window

_HOW = {
    "exact": "exact: summed over the framework's own trees",
    "measured": "measured: by the allocator or the profiler",
    "derived": "derived: by arithmetic on other figures",
    "compiler": "compiler: XLA's plan",
}
_FIELDS = {
    "peak": ("peak_bytes", "peak_bytes", "The most memory that a rank held, as far as its instrument sees.",
             "other allocators, the framework itself, and other processes"),
    "reserved": ("reserved_bytes", "pool_bytes", "What the caching allocator of a rank keeps from the system.",
                 "memory outside that allocator"),
    "in_use": ("in_use_bytes", "in_use_bytes", "What a rank's allocator had given out at the newest measurement.",
               "memory that the allocator keeps and has not given out"),
    "limit": ("limit_bytes", "limit_bytes", "The most that a rank's allocator may take.", "other allocators"),
    "capacity": ("capacity_bytes", "capacity_bytes", "All the memory of a rank's device.", "the host's memory"),
    "largest_free": ("largest_free_bytes", "largest_free_bytes", "The largest block that a rank's allocator could give "
                     "out.", "smaller free blocks, however many"),
    "start": ("preexisting_bytes", "", "What a rank's allocator held when its own record began.", "other allocators"),
    "end": ("end_bytes", "", "What a rank's allocator held when its own record ended.", "other allocators"),
}  # fmt: skip
_NOT_MEASURED = "no memory was measured"


def numbers(run: Run) -> tuple[Number, ...]:
    fields = tuple(
        Number(f"memory.{name}", "bytes", said, excludes, partial(_cases, field=field, attribute=attribute),
               (f"memory.{field}", field, *(("peak/rank", "peak") if name == "peak" else ())), ("rank", "step"),
               known_steps=_measured_steps)
        for name, (field, attribute, said, excludes) in _FIELDS.items()
    )  # fmt: skip
    names = dict.fromkeys(category.name for rank in memory(run) for category in rank.categories)
    categories = tuple(
        Number(
            f"memory.{name.replace(' ', '_')}",
            "bytes",
            f"The memory of a rank's {name}, at the newest measurement or at the peak of an allocator's record.",
            "every other category",
            partial(_category_cases, name=name),
            (f"memory.categories.{name}", name, f"memory.categories.{name}.bytes"),
            ("rank", "step"),
            known_steps=_measured_steps,
        )
        for name in names
    )
    return fields + categories


def _cases(asked: Asked, *, field: str, attribute: str) -> tuple[Case, ...]:
    asked, is_told = _at_step(asked)
    found = memory(asked.run)
    if not found:
        return (Case("all ranks", None, why=_NOT_MEASURED),)
    told = [
        (at, rank, _figure(asked.run, rank, field, attribute)) for at, rank in enumerate(found) if asked.has(rank.rank)
    ]
    cases = [_case(asked, at, rank, field, figure, is_told=is_told) for at, rank, figure in told]
    known = [figure for _, _, figure in told if figure is not None]
    if field == "peak_bytes" and asked.rank is None and len(known) > 1:
        named = f"comparison.strategies[strategy={asked.run.experiment.strategy}].peak_bytes"
        fullest = made("fullest rank", LARGEST, *known, unit="bytes")
        cases.insert(0, Case("the fullest rank", fullest, named if is_told and asked.run.experiment.strategy else ""))
    return tuple(cases)


def _at_step(asked: Asked) -> tuple[Asked, bool]:
    """As if nothing had been measured but after the step that was asked about; and whether none was."""
    if asked.step is None:
        return asked, True
    kept = tuple(entry for entry in asked.run.memory if entry.step == asked.step)
    run = replace(asked.run, memory=kept, records=(), windows=_holding(asked))
    return replace(asked, run=run), False


def _holding(asked: Asked) -> tuple[Window, ...]:
    return tuple(window for window in asked.run.windows if asked.step in window.steps)


def _measured_steps(run: Run) -> set[int]:
    """The steps after which memory was measured."""
    return {entry.step for entry in run.memory if entry.step >= 0}


def _case(asked: Asked, at: int, rank: RankMemory, field: str, figure: Figure | None, *, is_told: bool) -> Case:
    of = f"rank {rank.rank}" if rank.rank >= 0 else f"record {at}"
    if figure is None:
        why = (
            "neither the instrument nor the traces tell it"
            if field == "peak_bytes"
            else "the instrument does not tell it"
        )
        return Case(of, None, why=f"{why} ({rank.source})", rank=rank.rank)
    windows = _traced(asked.run, rank) if figure.how else []
    notes = [f"by {rank.source}", *([f"after step {rank.step}"] if rank.step >= 0 else [])]
    if field == "peak_bytes":
        notes.append(_HOW.get(rank.peak_how, rank.peak_how or "how is not told"))
    return Case(
        of=of,
        figure=figure,
        json=f"memory[{at}].{field}" if is_told and not _is_elsewhere(rank, field) else "",
        rank=rank.rank,
        places=tuple(place(window) for window in windows),
        events=_events(rank, windows),
        notes=tuple(notes),
    )


def _is_elsewhere(rank: RankMemory, field: str) -> bool:
    """What an allocator's own file tells of its blocks stands among its figures."""
    return field == "largest_free_bytes" and rank.record is not None


def _events(rank: RankMemory, windows: list[Window]) -> Events | None:
    if rank.record is not None:
        counts = rank.record.counts
        return Events(counts.read, counts.device, dict(counts.dropped), dict(counts.repaired))
    return events(windows) if windows else None


def _traced(run: Run, rank: RankMemory) -> list[Window]:
    return [window for window in run.windows if window.rank == rank.rank and growth_bytes(window) is not None]


def _figure(run: Run, rank: RankMemory, field: str, attribute: str) -> Figure | None:
    value = getattr(rank, attribute) if attribute else getattr(rank.record, field, None)
    if value is None:
        return None
    if field == "peak_bytes" and rank.record is None and not _is_measured(run, rank):
        return _derived(run, rank)
    called = f"{field.removesuffix('_bytes').replace('_', ' ')} of rank {rank.rank}"
    growth = _growth(run, rank) if field == "peak_bytes" and rank.record is None else None
    if growth is None or growth.value > value:
        return Figure(called, value, "bytes")
    # Of the two, the recording keeps the sum alone: the trace tells the growth, and the other is what is left.
    before = Figure("alive before the window and not cleared in it", value - int(growth.value), "bytes")
    return made(called, SUM, before, growth, unit="bytes")


def _growth(run: Run, rank: RankMemory) -> Figure | None:
    """What the allocator grew by in the window that a recorded, derived peak is of; None where no trace tells it."""
    entries = [entry for entry in run.memory if entry.rank == rank.rank and entry.peak_bytes >= 0]
    if rank.peak_how != "derived" or not entries:
        return None
    for window in run.windows:
        grown_bytes = growth_bytes(window)
        if window.rank == rank.rank and entries[-1].step in window.steps and grown_bytes is not None:
            return Figure("most that the allocator grew in the window", grown_bytes, "bytes")
    return None


def _is_measured(run: Run, rank: RankMemory) -> bool:
    return any(entry.rank == rank.rank and entry.peak_bytes >= 0 for entry in run.memory)


def _derived(run: Run, rank: RankMemory) -> Figure:
    sizes = {category.name: category.size_bytes for category in rank.categories}
    grown = [(window, growth_bytes(window)) for window in run.windows if window.rank == rank.rank]
    growths = [Figure(f"in {window.source}", growth, "bytes") for window, growth in grown if growth is not None]
    lasting = [Figure(name, sizes[name], "bytes") for name in LASTING]
    growth = made("most that the allocator grew in a traced window", LARGEST, *growths, unit="bytes")
    return made(f"peak of rank {rank.rank}", SUM, *lasting, growth, unit="bytes")


def _category_cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    cases = []
    asked, is_told = _at_step(asked)
    for at, rank in enumerate(memory(asked.run)):
        if not asked.has(rank.rank):
            continue
        of = f"rank {rank.rank}" if rank.rank >= 0 else f"record {at}"
        found = next((category for category in rank.categories if category.name == name), None)
        if found is None:
            cases.append(Case(of, None, why=f"{rank.source} tells no such category", rank=rank.rank))
            continue
        notes = [_HOW.get(found.how, found.how or "how is not told"), f"by {rank.source}"]
        notes += [f"after step {rank.step}"] if rank.step >= 0 else []
        figure = Figure(f"{name} of rank {rank.rank}", found.size_bytes, "bytes")
        json = f"memory[{at}].categories.{name}.bytes" if is_told else ""
        cases.append(Case(of, figure, json, rank=rank.rank, events=_events(rank, []), notes=tuple(notes)))
    return tuple(cases)


GROUP = Group("memory of each rank", 4, numbers)
