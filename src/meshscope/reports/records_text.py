"""What the text report says of files without spans: allocators, flight recorders, device logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from meshscope.analysis.devices import DeviceField, devices
from meshscope.analysis.flight import Flight, flight
from meshscope.analysis.flight_words import mismatch_words, ranks_words, unfinished_words
from meshscope.analysis.memory import RankMemory
from meshscope.records import MemoryRecord, SensorRecord
from meshscope.reports.columns import table, wrapped
from meshscope.reports.memory_text import alive_lines
from meshscope.run import Run
from meshscope.units import UNKNOWN, counted, duration, size

_MOST = 16
_MOST_READINGS = 64
_KINDS_OF_BYTES = (
    ("pending_free_bytes", "freed and still in use by a stream"),
    ("expandable_bytes", "in expandable segments"),
    ("private_pool_bytes", "in private pools (CUDA graphs)"),
)
_IN, _HANGING = "    ", "  "


def allocator_lines(ranks: Iterable[RankMemory]) -> list[str]:
    """The allocators that files tell of: a row for each device of each rank, and their categories at the peak."""
    told = [(rank, rank.record) for rank in ranks if rank.record is not None]
    lines: list[str] = []
    for kind in dict.fromkeys(record.kind for _, record in told):
        mine = [(rank, record) for rank, record in told if record.kind == kind]
        over = max(record.end_ns - record.start_ns for _, record in mine)
        lines += wrapped(f"memory ({kind}{f', {duration(over)} of history' if over else ', without a history'}):")
        lines += _columns([_row(rank, record) for rank, record in mine[:_MOST]])
        lines += [f"    … {counted(len(mine) - _MOST, 'more')}"] if len(mine) > _MOST else []
        for rank, record in mine[:_MOST]:
            lines += _details(rank, record)
    return lines


_HEADING = ("rank", "device", "at start", "peak", "at end", "reserved", "free", "largest free")


def _row(rank: RankMemory, record: MemoryRecord) -> tuple[str, ...]:
    free, largest = (record.figures.get(name) for name in ("free_bytes", "largest_free_bytes"))
    known = (record.preexisting_bytes, record.peak_bytes, record.end_bytes, record.reserved_bytes, free, largest)
    device = str(rank.device) if rank.device >= 0 else UNKNOWN
    return (str(rank.rank), device, *(UNKNOWN if value is None else size(value) for value in known))


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Without the columns that no row knows."""
    kept = [at for at in range(len(_HEADING)) if any(row[at] != UNKNOWN for row in rows)]
    return table([_HEADING[at] for at in kept], [[row[at] for at in kept] for row in rows], indent="    ")


def _details(rank: RankMemory, record: MemoryRecord) -> list[str]:
    words = []
    if rank.categories:
        listed = ", ".join(f"{category.name} {size(category.size_bytes)}" for category in rank.categories)
        words.append(f"at the peak: {listed}")
    figures = record.figures
    if figures:
        words.append(
            f"of what is free, {size(figures['unused_segment_bytes'])} are whole segments that empty_cache() gives "
            f"back and {size(figures['inactive_split_bytes'])} lie between blocks in use"
        )
        words += [f"{size(figures[name])} {what}" for name, what in _KINDS_OF_BYTES if figures.get(name)]
    if record.actions.get("oom"):
        failed = size(record.history.get("largest_failed_bytes", 0))
        words.append(f"out of memory {counted(record.actions['oom'], 'time')}, asking for up to {failed}")
    whose = f"rank {rank.rank}, device {rank.device}" if rank.device >= 0 else f"rank {rank.rank}"
    lines = [line for text in words for line in wrapped(f"{whose}: {text}", indent="    ", hanging="  ")]
    return [*lines, *alive_lines(record, whose)]


def sensor_lines(run: Run) -> list[str]:
    """Readings of the device logs that belong to the run."""
    logs = [record for record in run.records if isinstance(record, SensorRecord)]
    if not logs:
        return []
    found = devices(run)
    over = max(record.end_ns - record.start_ns for record in logs)
    rows = [_reading(field) for field in found.fields]
    names = [name for record in logs for name in record.device_names]
    lines = wrapped(
        f"devices ({counted(max((f.count for f in found.fields), default=0), 'reading')} over {duration(over)}):"
    )
    heading = ("device", "field", "mean", "max", "last")
    lines += table(heading, rows[:_MOST_READINGS], indent="    ") if rows else []
    lines += [f"    … {counted(len(rows) - _MOST_READINGS, 'more row')}"] if len(rows) > _MOST_READINGS else []
    lines += [line for name in names for line in wrapped(name, indent="    ")]
    by_why: dict[str, list[str]] = {}
    for device, name, why in found.failed:
        by_why.setdefault(why, []).append(f"{device} {name}")
    return lines + [line for why, what in by_why.items() for line in wrapped(f"not read: {', '.join(what)}: {why}",
                                                                             indent="    ", hanging="  ")]  # fmt: skip


def _reading(field: DeviceField) -> tuple[str, ...]:
    values = (field.mean, field.maximum, field.last)
    return (field.device, field.field, *(_value(value, field.field) for value in values))


def _value(value: float, field: str) -> str:
    """In the unit that the field's name ends with; the name stands beside it."""
    if field.endswith("_bytes"):
        return size(value)
    if field.endswith("_frac"):
        return f"{value * 100:.1f} %"
    if field.endswith("_hz"):
        return f"{value / 1e6:.0f} MHz"
    unit = next((unit for suffix, unit in (("_w", " W"), ("_c", " °C")) if field.endswith(suffix)), "")
    return f"{value:.1f}{unit}"


def flight_lines(run: Run) -> list[str]:
    """What the ranks' flight recorders say of collectives: how many, which were not done, and where ranks differ."""
    found = flight(run)
    if found is None:
        return []
    calls = sum(called.count for called in found.calls)
    lines = wrapped(f"flight recorder ({ranks_words(found.ranks)}; {counted(calls, 'call')} that it still holds):")
    rows = [
        (
            called.collective,
            called.group or UNKNOWN,
            str(called.count),
            str(called.unfinished),
            str(called.last_sequence),
        )
        for called in found.calls
    ]
    lines += table(("collective", "group", "calls", "not done", "last number"), rows[:_MOST], indent="    ")
    lines += [f"    … {counted(len(rows) - _MOST, 'more kind')}"] if len(rows) > _MOST else []
    lines += [
        line
        for one in found.unfinished[:_MOST]
        for line in wrapped(unfinished_words(one), indent=_IN, hanging=_HANGING)
    ]
    if len(found.unfinished) > _MOST:
        lines.append(f"    … {counted(len(found.unfinished) - _MOST, 'more')} not done")
    lines += [
        line for one in found.mismatches[:_MOST] for line in wrapped(mismatch_words(one), indent=_IN, hanging=_HANGING)
    ]
    if len(found.mismatches) > _MOST:
        lines.append(f"    … {counted(len(found.mismatches) - _MOST, 'more')} that differ")
    return lines + _unhurt(found)


def _unhurt(found: Flight) -> list[str]:
    lines: list[str] = []
    if not found.unfinished:
        lines += wrapped("every call had completed when it was dumped", indent="    ")
    if not found.mismatches and len(found.ranks) > 1:
        lines += wrapped("ranks agree in every collective that two of them recorded", indent="    ")
    if not found.has_members:
        why = "no dump tells which ranks a group has: a rank without a dump of its own would not be missed"
        lines += wrapped(why, indent="    ")
    return lines
