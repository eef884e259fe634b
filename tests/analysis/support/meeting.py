"""Ranks that meet in collectives, made from when each of them arrives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from drawn import run

from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import Counts, ProcessGroup, Window, span_table

MS = 1_000_000


def window(
    rank: int,
    start_ns: Sequence[int],
    end_ns: Sequence[int],
    *,
    names: Sequence[str] | str = "all_reduce",
    steps: Sequence[int] = (),
    spans: dict[str, Any] | None = None,
    **about: Any,
) -> Window:
    """A GPU window whose collectives are given; ``steps`` are those of each. ``spans`` are further columns."""
    count = len(start_ns)
    each = [names] * count if isinstance(names, str) else list(names)
    table_names = tuple(dict.fromkeys(each))
    code = [table_names.index(name) for name in each]
    known: dict[str, Any] = {
        "start_ns": start_ns, "end_ns": end_ns, "rank": rank, "name": code, "collective": code,
        "kind": int(Kind.COLLECTIVE), "names": table_names, "collectives": table_names,
    }  # fmt: skip
    if len(steps):
        known["step"] = steps
    table = span_table(**(known | (spans or {})))
    numbers, first, count_of = np.unique(np.asarray(steps, dtype=np.int64), return_index=True, return_counts=True)
    bounds = np.stack(
        (np.asarray(start_ns)[first], np.asarray(end_ns)[first + count_of - 1]), axis=1
    )  # steps are in order
    made = Window(
        rank=rank,
        device=rank,
        rank_from="trace",
        framework="torch",
        device_kind="gpu",
        start_ns=min(start_ns, default=0),
        end_ns=max(end_ns, default=0),
        steps=tuple(numbers.tolist()),
        step_ns=bounds.astype(np.int64).reshape(-1, 2),
        is_complete=True,
        spans=table,
        counts=Counts(read=count, device=count),
        source=f"rank{rank}.json",
    )
    return replace(made, **about)


def met(arrival_ns: Any, transfer_ns: Any, **about: Any) -> list[Window]:
    """One window per row of ``arrival_ns`` (ranks, collectives): each ends ``transfer_ns`` after its last."""
    arrival = np.asarray(arrival_ns, dtype=np.int64)
    end = arrival.max(axis=0) + np.asarray(transfer_ns)
    known: dict[str, Any] = {"world": len(arrival)} | about
    return [window(rank, row.tolist(), end.tolist(), **known) for rank, row in enumerate(arrival)]


def later(made: Window, by_ns: int) -> Window:
    """The same by a clock that is ahead."""
    return made.shifted(by_ns)


def without_first(made: Window, count: int) -> Window:
    """The same window, begun some collectives later."""
    kept = made.spans.where(np.arange(count, len(made.spans)))
    return replace(made, spans=kept, start_ns=int(kept.start_ns.min()))


def run_of(windows: Sequence[Window], **about: Any) -> Run:
    known: dict[str, Any] = {"strategy": "", "ranks": len({made.rank for made in windows})}
    return run(windows=windows, **(known | about))


def groups(*members: Sequence[int]) -> tuple[ProcessGroup, ...]:
    """Process groups named by their number."""
    return tuple(ProcessGroup(str(number), len(ranks), tuple(ranks)) for number, ranks in enumerate(members))
