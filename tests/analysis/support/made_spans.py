"""Windows made span by span, with threads, streams and launches: what a picture cannot draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meshscope.kinds import Kind
from meshscope.spans import Counts, Window, span_table


@dataclass(frozen=True)
class Made:
    """One span. ``launch`` is the span that launched it (of the same window), or the call that it carries out."""

    kind: Kind
    lane: str
    start_ns: int
    end_ns: int
    name: str = ""
    launch: Made | None = None
    collective: str = ""
    size_bytes: int = -1
    rule: str = ""
    group: str = ""


def host(start_ns: int, end_ns: int, name: str = "aten::mm", *, lane: str = "main", rule: str = "") -> Made:
    return Made(Kind.HOST, lane, start_ns, end_ns, name, rule=rule)


def launch(start_ns: int, end_ns: int, name: str = "cudaLaunchKernel", *, lane: str = "main") -> Made:
    return Made(Kind.LAUNCH, lane, start_ns, end_ns, name)


def kernel(
    start_ns: int, end_ns: int, launch: Made | None = None, name: str = "gemm", *, lane: str = "stream 7"
) -> Made:
    return Made(Kind.COMPUTE, lane, start_ns, end_ns, name, launch)


def copy(start_ns: int, end_ns: int, launch: Made | None = None, *, lane: str = "stream 7") -> Made:
    return Made(Kind.COPY, lane, start_ns, end_ns, "Memcpy HtoD (Pinned -> Device)", launch)


def collective(start_ns: int, end_ns: int, launch: Made | None = None, kind: str = "all_reduce", *,
               size_bytes: int = -1, lane: str = "stream 20", group: str = "") -> Made:  # fmt: skip
    return Made(
        Kind.COLLECTIVE, lane, start_ns, end_ns, f"nccl:{kind}", launch, kind, size_bytes=size_bytes, group=group
    )


def window(spans: Sequence[Made], *, rank: int = 0, steps: Sequence[tuple[int, int]] = (), **about: Any) -> Window:
    """Spans in any order, with the launches that they name; the extent is that of the device work."""
    named = {id(one): one for one in (*spans, *(one.launch for one in spans if one.launch is not None))}
    ordered = sorted(named.values(), key=lambda one: one.start_ns)
    place = {id(one): row for row, one in enumerate(ordered)}
    names, lanes, rules, kinds, groups = (
        tuple(dict.fromkeys(values))
        for values in (
            [one.name for one in ordered],
            [one.lane for one in ordered],
            [one.rule for one in ordered if one.rule],
            [one.collective for one in ordered if one.collective],
            [one.group for one in ordered if one.group],
        )
    )
    step_ns = np.array(steps, dtype=np.int64).reshape(-1, 2)
    starts = np.array([one.start_ns for one in ordered], dtype=np.int64)
    inside = (starts[:, None] >= step_ns[:, 0]) & (starts[:, None] < step_ns[:, 1]) if len(steps) else None
    table = span_table(
        start_ns=starts,
        end_ns=[one.end_ns for one in ordered],
        rank=rank,
        lane=[lanes.index(one.lane) for one in ordered],
        name=[names.index(one.name) for one in ordered],
        kind=[int(one.kind) for one in ordered],
        link=[-1 if one.launch is None else place[id(one.launch)] for one in ordered],
        size_bytes=[one.size_bytes for one in ordered],
        step=-1 if inside is None else np.where(inside.any(axis=1), inside.argmax(axis=1), -1),
        collective=[kinds.index(one.collective) if one.collective else -1 for one in ordered],
        rule=[rules.index(one.rule) if one.rule else -1 for one in ordered],
        group=[groups.index(one.group) if one.group else -1 for one in ordered],
        names=names,
        lanes=lanes,
        rules=rules,
        collectives=kinds,
        groups=groups,
    )
    work = [one for one in ordered if one.kind in (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)]
    made = Window(
        rank=rank,
        device=rank,
        rank_from="trace",
        framework="torch",
        device_kind="gpu",
        start_ns=min((one.start_ns for one in work), default=0),
        end_ns=max((one.end_ns for one in work), default=0),
        steps=tuple(range(len(steps))),
        step_ns=step_ns,
        is_complete=True,
        spans=table,
        counts=Counts(read=len(ordered), device=len(work)),
        source=f"made-{rank}.json",
    )
    return replace(made, **about)
