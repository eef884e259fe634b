"""A number and its noun."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 step``, ``2 steps``: a noun whose plural ends in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
