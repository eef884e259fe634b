"""Explains what else is told of idle time: its stretches, and why nothing is computed beside communication."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from meshscope.analysis.explaining.adding import over_windows
from meshscope.analysis.explaining.evidence import events, gaps, place
from meshscope.analysis.explaining.figure import DIFFERENCE, LARGEST, Figure, made
from meshscope.analysis.explaining.idle_causes import EXCLUDES, NO_WORK
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.idle import PAUSE_NS, Idle, measure
from meshscope.intervals import EMPTY, complement
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import duration

_Found = list[tuple[Window, Idle]]
_BESIDE = "time without any device work, and time in which something is computed"

_SAID: dict[str, tuple[str, str, str, Callable[[Idle], int], str]] = {
    "span": ("span_ns", "ns", "The length of a rank's windows, from the first device event to the last.",
             lambda one: one.span_ns, EXCLUDES),
    "gaps": ("gaps", "stretches", "How many stretches without device work a rank has.", lambda one: one.gaps, EXCLUDES),
    "pauses": ("pauses", "stretches", f"How many of a rank's stretches without device work last {duration(PAUSE_NS)} "
               "or longer: no launch takes so long.", lambda one: one.pauses, "shorter stretches"),
    "late_starts": ("late_starts", "stretches", "How many stretches without device work ended with work that the host "
                    "had begun to launch after the stretch began.", lambda one: one.late_starts,
                    "stretches whose next work was queued, and those of which the launch is not known"),
    "waits.collective": ("waits.collective", "ns", "The time beside communication alone in which the next kernel had "
                         "been launched: it waited for the collective.", lambda one: one.waits.get("collective", 0),
                         _BESIDE),
    "waits.copy": ("waits.copy", "ns", "The time beside copies alone in which the next kernel had been launched: it "
                   "waited for the copy.", lambda one: one.waits.get("copy", 0), _BESIDE),
    "late_beside": ("late_beside_ns", "ns", "The time beside communication and copies alone in which the host had not "
                    "launched the next kernel.", lambda one: one.late_beside_ns, _BESIDE),
    "unseen_beside": ("unseen_beside_ns", "ns", "The time beside communication and copies alone in which the launch of "
                      "the next kernel is not known.", lambda one: one.unseen_beside_ns, _BESIDE),
}  # fmt: skip


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    longest = Number(
        "idle.longest", "ns", "The longest stretch without device work of a rank.", EXCLUDES, partial(_cases, name="")
    )
    return (
        *(
            Number(f"idle.{name}", unit, said, excludes, partial(_cases, name=name),
                   (f"idle.{field}",) if field != name else ())
            for name, (field, unit, said, _, excludes) in _SAID.items()
        ),
        longest,
    )  # fmt: skip


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    ranks: dict[int, list[Window]] = {}
    for window in asked.run.windows:
        if asked.has(window.rank):
            ranks.setdefault(window.rank, []).append(window)
    if not ranks:
        return (Case("all ranks", None, why="nothing was traced"),)
    return tuple(_case(rank, ranks[rank], name) for rank in sorted(ranks))


def _case(rank: int, windows: list[Window], name: str) -> Case:
    found = [(window, part) for window in windows if (part := measure(window)) is not None]
    why = next((part.why for _, part in found if part.why), "") if found else NO_WORK
    figure = None if why else _figure(found, name)
    if figure is None:
        told = why or "the trace shows no launches, or no stretch without work"
        return Case(f"rank {rank}", None, why=told, rank=rank, events=events(windows))
    return Case(
        of=f"rank {rank}",
        figure=figure,
        json=f"idle[rank={rank}].{_SAID[name][0]}" if name and _is_told(found, name) else "",
        rank=rank,
        places=tuple(place(window) for window, _ in found),
        evidence=None if name.startswith(("waits", "late_b", "unseen", "span")) else gaps(
            [(window, complement(EMPTY, window.start_ns, window.end_ns)) for window, _ in found]
        ),
        events=events(windows),
    )  # fmt: skip


def _is_told(found: _Found, name: str) -> bool:
    """Waiting that took no time is left out where several windows are added up."""
    what = name.removeprefix("waits.")
    return not name.startswith("waits.") or (all(what in part.waits for _, part in found) if len(found) == 1 else
                                             any(part.waits.get(what) for _, part in found))  # fmt: skip


def _figure(found: _Found, name: str) -> Figure | None:
    if name:
        return over_windows(name, found, _SAID[name][3], _SAID[name][1])
    each = [
        made(f"until {gap.next_name or 'the next work'}, mostly {gap.cause}", DIFFERENCE,
             Figure("its end", gap.end_ns), Figure("its start", gap.start_ns))
        for _, part in found
        if (gap := part.longest) is not None
    ]  # fmt: skip
    return made("longest stretch", LARGEST, *each) if each else None


GROUP = Group("stretches without device work", 15, numbers, heads=("idle.",))
