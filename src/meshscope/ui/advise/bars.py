"""What a candidate needs of memory and time, as bars: in textures by part, with the limit and the interval on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, TimeForecast
from meshscope.ui.look import Look
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece
from meshscope.ui.palette import BYTES, texture
from meshscope.units import NS_PER_S, milliseconds

_BEYOND = 1.25
"""A bar shows so many times the limit at most; what needs more ends in an arrow."""
_GB = 1e9
_LEAST_GB = 0.005
"""Parts below it are not named: they would read as nothing."""
_WORDS = {
    "wait": "bubble", "parameters": "params", "gradients": "grads", "optimizer": "optim", "activations": "activ",
    "communication": "comm", "temporaries": "temp",
}  # fmt: skip
"""Shorter, where the parts stand in one line."""


@dataclass(frozen=True)
class Scale:
    """``full`` is what the whole ``width`` stands for, in bytes or seconds."""

    full: float
    width: int

    def column(self, value: float) -> int:
        """The cell in which a value ends."""
        return min(max(round(value / self.full * self.width) - 1, 0), self.width - 1) if self.full > 0 else 0


def memory_scale(some: Sequence[MemoryForecast], width: int) -> Scale:
    """One for all that stand below one another: as far as the largest reaches, a bit beyond the limit at most."""
    limit = max((one.limit_bytes for one in some), default=0.0)
    most = max((one.used.high for one in some), default=0.0)
    return Scale(max(limit, min(most, limit * _BEYOND)) * (1 + 1 / max(width, 1)), width)


def memory_parts(memory: MemoryForecast) -> list[tuple[str, float]]:
    """Bytes of each category that is there, and last what the process holds outside of them."""
    told = [(name, memory.categories[name].value) for name in BYTES if name in memory.categories]
    return [*told, ("outside", max(memory.used.value - sum(value for _, value in told), 0.0))]


def memory_bar(memory: MemoryForecast, scale: Scale, look: Look) -> list[Piece]:
    """The parts, the limit as a line, and an arrow where it goes on beyond the bar."""
    parts = [(name, value / scale.full) for name, value in memory_parts(memory)]
    marks = {scale.column(memory.limit_bytes): ("|" if look.is_ascii else "│", "warn")}
    if memory.used.value > scale.full:
        marks[scale.width - 1] = (">" if look.is_ascii else "▶", "bad")
    return _marked(stacked(parts, scale.width, look), marks)


def time_parts(time: TimeForecast) -> list[tuple[str, float]]:
    """Seconds of each part of the step; compute is what hides no communication, so that they add up to the step."""
    hidden_s = min(time.hidden_s, time.compute_s)
    return [
        ("compute", time.compute_s - hidden_s),
        ("hidden", hidden_s),
        ("exposed", time.exposed_s),
        ("wait", time.bubble_s),
        ("idle", time.idle_s),
    ]


def time_bar(time: TimeForecast, scale: Scale, look: Look) -> list[Piece]:
    return stacked([(name, value / scale.full) for name, value in time_parts(time)], scale.width, look)


def interval(figure: Figure, scale: Scale, look: Look) -> list[Piece]:
    """From the lowest to the highest of 90 % of outcomes, the value itself marked."""
    left, right, line, mark = "|", "|", "-", "+"
    if not look.is_ascii:
        left, right, line, mark = "├", "┤", "─", "┼"
    first, last = scale.column(figure.low), scale.column(min(figure.high, scale.full))
    cells = [" "] * scale.width
    cells[first : last + 1] = line * (last + 1 - first)
    cells[scale.column(figure.value)] = mark
    cells[first], cells[last] = left, right
    return [("".join(cells), "quiet")]


def memory_legend(memory: MemoryForecast, look: Look) -> Line:
    """``▓ parameters 5.26  ╬ gradients 5.26 … GB``"""
    parts = [(name, f"{value / _GB:.3g}") for name, value in memory_parts(memory) if value >= _LEAST_GB * _GB]
    return [*_legend(parts, look), (" GB", "quiet")]


def time_legend(time: TimeForecast, look: Look) -> Line:
    """``█ compute 210  ▒ hidden 26.3 … ms``"""
    parts = [(name, milliseconds(value * NS_PER_S)) for name, value in time_parts(time) if value > 0]
    return [*_legend(parts, look), (" ms", "quiet")]


def _legend(parts: Sequence[tuple[str, str]], look: Look) -> list[Piece]:
    pieces: list[Piece] = []
    for at, (name, value) in enumerate(parts):
        pieces += [("  " if at else "", "text"), (texture(name, look), name)]
        pieces.append((f" {_WORDS.get(name, name)} {value}", "quiet"))
    return pieces


def _marked(bar: Sequence[Piece], marks: dict[int, Piece]) -> list[Piece]:
    """A bar with single cells drawn over."""
    cells = [(character, role) for text, role in bar for character in text]
    for at, mark in marks.items():
        if 0 <= at < len(cells):
            cells[at] = mark
    return cells
