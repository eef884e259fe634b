"""Whether both sides of a comparison are one recording, told by what it holds and not by where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import msgspec

from meshscope.analysis.figures import Figures


def is_one(a: Sequence[Figures], b: Sequence[Figures]) -> bool:
    """Whether the sides hold the same runs: every figure of every step, to the nanosecond. Their order does not count.

    No two runs take the same nanoseconds, step by step or work by work. Runs of which nothing was timed say nothing.
    """
    return all(map(_is_timed, (*a, *b))) and sorted(map(_content, a)) == sorted(map(_content, b))


def _is_timed(run: Figures) -> bool:
    return any(run.step_ns) or any(ns for work in run.works.works for ns in work.total_ns)


def _content(run: Figures) -> bytes:
    """All but what a copy is called; NaN is equal to NaN."""
    return msgspec.json.encode(asdict(replace(run, title="")))
