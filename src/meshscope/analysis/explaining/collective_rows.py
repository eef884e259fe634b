"""Explains the rows of ``collectives``: each collective by name, process group and size, over all that was profiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from meshscope.analysis.bandwidth import bus_factor
from meshscope.analysis.collectives import CollectiveTotal, Row, collective_rows, narrowed, total_of
from meshscope.analysis.explaining.adding import is_all, is_within
from meshscope.analysis.explaining.evidence import Pick, events, evidence, labels, place
from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    PRODUCT,
    RATE,
    ROUNDED_QUOTIENT,
    Figure,
    counted_of,
    made,
    total,
)
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.waiting import in_rendezvous
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.units import UNKNOWN, size

_ALL = "steps that were not being profiled"
_UNTOLD = "waiting cannot be told apart"
_LINKS = "waiting for the last rank; what collectives of other rows move at the same time (see beside)"

Figured = Callable[[CollectiveTotal, tuple[Row, ...]], Figure]


def numbers(run: Run) -> tuple[Number, ...]:
    names = dict.fromkeys(found.name for found, _ in collective_rows(run))
    is_recorded = in_rendezvous(run)
    return tuple(_number(name, what, is_recorded=is_recorded) for name in names for what in _WHAT)


def _number(name: str, what: str, *, is_recorded: bool) -> Number:
    field, unit, said, excludes, _ = _WHAT[what]
    said = _RECORDED.get(what, said) if is_recorded else said
    called = name or "unnamed"
    return Number(
        name=f"collectives.{called}.{what}",
        unit=unit,
        definition=said.replace("COLLECTIVE", called.replace("_", "-")),
        excludes=excludes,
        cases=partial(_cases, name=name, what=what),
        also=(f"collectives.{called}.{field}",) if field not in ("", what) else (),
        by=("step",) if what == "busbw" else ("rank", "step"),
        no_rank="what a link carries is by all ranks of a call; algbw can",
    )


def _cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    """One for each row of that name."""
    found = enumerate(collective_rows(asked.run))
    told = [_case(asked, at, row, rows, what) for at, (row, rows) in found if row.name == name]
    known = tuple(case for case in told if case is not None)
    return known or (Case(name, None, why="no call of it begins there", rank=asked.rank),)


def _case(asked: Asked, at: int, row: CollectiveTotal, rows: tuple[Row, ...], what: str) -> Case | None:
    """None where nothing of the row is within what was asked about."""
    field, *_, figure = _WHAT[what]
    if not is_all(asked):
        rows = tuple(_narrowed(asked, rows))
        if not rows:
            return None
        row = total_of(row, rows)
    windows = [window for window, _, _ in rows]
    why = _why(row, field)
    picks = [] if why else [_pick(found) for found in rows]
    return Case(
        of=label(row) if asked.rank is None else f"{label(row)}, rank {asked.rank}",
        figure=None if why else figure(row, rows),
        json="" if why or not is_all(asked) or not field else f"collectives[{at}].{field}",
        why=why,
        rank=asked.rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
        evidence=evidence(picks, "collective spans") if picks else None,
        events=events(windows),
        notes=() if why else (*_notes(row, what), *when(asked)),
    )


def _narrowed(asked: Asked, rows: tuple[Row, ...]) -> Iterator[Row]:
    """The rows of the rank, and of each the calls that begin in the step."""
    for row in rows:
        window, piece, _ = row
        if not asked.has(window.rank) or (asked.step is not None and asked.step not in window.steps):
            continue
        keep = is_within(asked, window, window.spans.start_ns[piece.row])
        if keep.any():
            yield narrowed(asked.run, row, keep)


def when(asked: Asked) -> tuple[str, ...]:
    return () if asked.step is None else (f"of calls that begin in step {asked.step}",)


def label(row: CollectiveTotal) -> str:
    """A row in words: what it moves, and in which process group."""
    group = f", group {row.group}" if row.group else ""
    if row.size_class is not None:
        return f"{row.name} of {size(row.size_class[0])} to {size(row.size_class[1])}{group}"
    return f"{row.name} of {UNKNOWN if row.size_bytes is None else size(row.size_bytes)}{group}"


def _pick(found: Row) -> Pick:
    window, piece, _ = found
    spans = window.spans
    return Pick.within(window, piece.row, union(spans.start_ns[piece.row], spans.end_ns[piece.row]))


def _why(row: CollectiveTotal, field: str) -> str:
    """Why a row has no such number; "" where it has."""
    # What has no field of its own is the bytes of all calls.
    if (row.size_bytes if not field else getattr(row, field)) is not None:
        return ""
    if field in ("wait_ns", "transfer_ns") or (field and row.transfer_ns is None):
        return _UNTOLD
    if row.size_bytes is None:
        return "sizes are not known"
    if row.algbw_bytes_per_s is None:
        return "nothing was moved, or in no time"
    if row.is_uneven:
        return "ranks move different amounts in one call"
    return "nccl-tests defines none for it" if row.group_size > 1 else "how many ranks take part is not known"


def _notes(row: CollectiveTotal, what: str) -> tuple[str, ...]:
    notes = []
    if what in ("wait", "transfer", "algbw", "busbw", "matched"):
        notes.append(f"over the {row.matched} of {row.count} calls that have a counterpart on every rank")
    if what in ("wait", "transfer", "algbw", "busbw"):
        notes.append("transfer is what is left of a call once its last rank has come: until then it waits")
    if what in ("algbw", "busbw"):
        notes.append("calls that transfer at once share their time: a link carries them together, and each alone less")
    if what in ("size", "bytes", "algbw", "busbw"):
        notes.append(BYTES)
    if what == "busbw":
        notes.append(
            f"bus factor as in nccl-tests: {_FACTORS.get(row.name, _SHARED)} for n ranks; n = {row.group_size}"
        )
    return tuple(notes)


BYTES = (
    "bytes are those of the whole buffer: as NCCL's annotation counts them (In and Out msg nelems, the larger, times "
    "the width of the type), as the tensors' shapes give them, or as the XLA program's shapes do"
)
_FACTORS = {"all_reduce": "2 (n − 1) / n"} | dict.fromkeys(
    ("broadcast", "reduce", "send", "recv", "send_recv", "permute"), "1"
)
_SHARED = "(n − 1) / n"


def _summed(what: str, unit: str, told: Callable[[Row], int]) -> Figured:
    def figure(row: CollectiveTotal, rows: tuple[Row, ...]) -> Figure:
        del row
        names = labels([window for window, _, _ in rows])
        leaves = [Figure(called, told(one), unit) for one, called in zip(rows, names, strict=True)]
        return total(what, leaves, unit)

    return figure


_COUNT = _summed("calls", "calls", lambda one: one[1].count)
_BUSY = _summed("busy", "ns", lambda one: one[1].busy_ns)
_BYTES = _summed("bytes of all calls", "bytes", lambda one: one[1].bytes)
_MATCHED = _summed("matched calls", "calls", lambda one: one[2].matched)
_HIDDEN = _summed("hidden", "ns", lambda one: one[1].hidden_ns)
_WAIT = _summed("waiting", "ns", lambda one: one[2].wait_ns)
_TRANSFER = _summed("transfer", "ns", lambda one: one[2].transfer_ns)
_BESIDE = _summed("beside others", "ns", lambda one: one[2].beside_ns)


def _exposed(row: CollectiveTotal, rows: tuple[Row, ...]) -> Figure:
    return made("exposed", DIFFERENCE, _BUSY(row, rows), _HIDDEN(row, rows))


def _size(row: CollectiveTotal, rows: tuple[Row, ...]) -> Figure:
    moved = _BYTES(row, rows)
    return made("size of a call", ROUNDED_QUOTIENT, moved, counted_of(row.count, "calls"), unit="bytes")


def _algbw(row: CollectiveTotal, rows: tuple[Row, ...]) -> Figure:
    moved = [one for one in rows if one[2].matched]
    of = _summed("bytes of matched calls", "bytes", lambda one: one[2].bytes)(row, tuple(moved))
    return made("algorithm bandwidth", RATE, of, _TRANSFER(row, rows), unit="bytes/s")


def _busbw(row: CollectiveTotal, rows: tuple[Row, ...]) -> Figure:
    factor = Figure(f"bus factor among {row.group_size} ranks", bus_factor(row.name, row.group_size) or 0.0, "×")
    return made("bus bandwidth", PRODUCT, _algbw(row, rows), factor, unit="bytes/s")


_RECORDED = {
    "wait": "The part of its time in XLA's rendezvous, as the trace records it, added up over ranks.",
    "transfer": "The part of its time outside XLA's rendezvous, as the trace records it, added up over ranks.",
}
"""What waiting is where XLA records it: that stands, whatever matching ranks tells."""

_WHAT: dict[str, tuple[str, str, str, str, Figured]] = {
    "count": ("count", "calls", "How many COLLECTIVE spans there are, over all ranks.", _ALL, _COUNT),
    "size": ("size_bytes", "bytes", "The size of one COLLECTIVE call, a mean of a class of sizes.", _ALL, _size),
    "bytes": ("", "bytes", "What all COLLECTIVE calls move, added up over ranks.", _ALL, _BYTES),
    "matched": ("matched", "calls", "How many COLLECTIVE calls have a counterpart on every rank.",
                "calls at the edge of another rank's window", _MATCHED),
    "busy": ("busy_ns", "ns", "Time in which at least one COLLECTIVE ran, added up over ranks.", _ALL, _BUSY),
    "hidden": ("hidden_ns", "ns", "The part of its time in which compute of the same rank ran too.", _ALL, _HIDDEN),
    "exposed": ("exposed_ns", "ns", "The part of its time in which no compute of the same rank ran.", _ALL, _exposed),
    "wait": ("wait_ns", "ns", "The part of its time before the last rank had come, added up over ranks.",
             "waiting beside the transfer or the wait of another such call; calls without a counterpart on every rank",
             _WAIT),
    "transfer": ("transfer_ns", "ns", "The part of its time after the last rank had come, added up over ranks.",
                 "waiting for the last rank; calls without a counterpart on every rank", _TRANSFER),
    "beside": ("beside_ns", "ns", "The part of its transfer in which a collective of another row transfers on the same "
               "device, and its links carry both.", "waiting for the last rank", _BESIDE),
    "algbw": ("algbw_bytes_per_s", "bytes/s", "The size of COLLECTIVE calls over the time in which any of them "
              "transfers.",
              _LINKS, _algbw),
    "busbw": ("busbw_bytes_per_s", "bytes/s", "The algorithm bandwidth times what each link has to carry, by "
              "nccl-tests' factors; of calls that run at once, what links carry for all of them.", _LINKS, _busbw),
}  # fmt: skip

GROUP = Group("collectives by name, group and size", 5, numbers)
