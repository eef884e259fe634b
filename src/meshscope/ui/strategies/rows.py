"""One strategy in lines: its figures with their spreads, and its bars on the scale that all share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from meshscope.analysis.contenders import Contender
from meshscope.analysis.gap import Delta
from meshscope.ui.look import Look
from meshscope.ui.marks import figures
from meshscope.ui.marks.cells import Line, Piece, cells, cut, left, right
from meshscope.ui.marks.cited import Cited
from meshscope.ui.palette import texture
from meshscope.ui.scene import so_far
from meshscope.ui.strategies.answer import Answer
from meshscope.ui.strategies.placing import BEFORE_NAME, BESIDE, Form, Place, Placing
from meshscope.ui.strategies.state import State, chosen
from meshscope.ui.words import RUNNING, doing_briefly, glyph, times
from meshscope.units import NS_PER_MS, milliseconds, printable, rate, size_unit, time_unit

MEANINGS = {"waiting": "wait", "transfer": "exposed"}
"""The texture of a part, where it is called otherwise."""

PART = "mean_step"
"""What the names of the parts of a step begin with, by which they can be explained."""

_FAILED = ("failed", "lost")
_INDENT = " " * BEFORE_NAME


@dataclass(frozen=True)
class Block:
    """The lines of one strategy. ``name`` is "" for the axis and for a heading, which ``leads`` to what is below it."""

    name: str
    lines: tuple[Line, ...]
    leads: bool = False


def at_places(pieces: dict[str, list[Piece]], placed: Placing) -> list[Piece]:
    """One line with the pieces of each column at its place; names at the left, figures at the right."""
    line: list[Piece] = []
    at = 0
    for place in placed.places:
        some = cut(pieces.get(place.key.name, []), place.width)
        before = place.start - at + (0 if place.key.name == "name" else place.width - cells(some))
        line += [(" " * before, "text"), *some]
        at += before + cells(some)
    return line


def ranked(one: Contender, answer: Answer, state: State, placed: Placing, look: Look) -> Block:
    """Its figures, and its bars below them."""
    bars = _bars(one, _doing(one, answer), placed, look)
    return Block(one.name, (_figures(one, answer, state, placed), bars))


def apart(one: Contender, answer: Answer, state: State, placed: Placing) -> Block:
    """One that is not ranked: its figures, and why."""
    progress = one.row.progress
    who = f"rank {progress.rank}: " if progress.rank >= 0 and not progress.why.lower().startswith("rank") else ""
    reasons = [one.why, *([f"{who}{progress.why}"] if progress.why else [])]
    why: Piece = (printable(": ".join(reasons)), "bad" if progress.state in _FAILED else "quiet")
    return Block(one.name, (_figures(one, answer, state, placed), [(_INDENT, "text"), why]))


def waiting(name: str, answer: Answer, state: State, placed: Placing) -> Block:
    """One that is planned and has not started."""
    pieces: dict[str, list[Piece]] = {"name": _name(name, "waiting", answer, state), "step": [("waiting", "quiet")]}
    return Block(name, (at_places(pieces, placed),))


def _name(name: str, how: str, answer: Answer, state: State) -> list[Piece]:
    is_chosen = name == chosen(answer, state)
    a, b = state.marks
    mark = "A" if a and name == a else "B" if b and name == b else " "
    sign, role = glyph(how)
    words = "strong" if is_chosen else "good" if name == answer.winning.fastest else "text"
    return [
        ("▸" if is_chosen else " ", "accent"),
        (mark, "picked" if mark != " " else "text"),
        (" ", "text"),
        (f"{sign} ", role),
        (printable(name), words),
    ]


def _figures(one: Contender, answer: Answer, state: State, placed: Placing) -> list[Piece]:
    role = "strong" if one.name == chosen(answer, state) else "text"
    how = one.row.progress.state if not one.is_traced else "launching" if one.name in answer.partial else "done"
    at = answer.contenders.index(one)
    pieces: dict[str, list[Piece]] = {"name": _name(one.name, how, answer, state)}
    for place in placed.places:
        name = place.key.name
        if name == "name":
            continue
        text, blanks = _below_one_another(answer, place, placed.form)[at]
        cited = Cited("quiet" if name == "span" else role, _number(place, one), run=one.name)
        half = _half(one, name)
        drawn = figures.pieces(text, cited) if half is None else mean(text, half, placed.form, cited)
        pieces[name] = [*drawn, (blanks, "text")]
    return at_places(pieces, placed)


def _number(place: Place, one: Contender) -> str:
    """By which name a figure can be explained."""
    name = place.key.name
    if place.has_bar or name == "span" or (name == "step" and one.is_traced):
        return f"{PART}.{'span' if name == 'step' else name}"
    return {"step": "step_time", "rate": "throughput", "peak": "memory.peak"}.get(name, name)


def _below_one_another(answer: Answer, place: Place, form: Form) -> list[tuple[str, str]]:
    """A column's figures of all contenders, and the blanks behind each and its spread: in one unit, their points in
    line."""
    name, values = place.key.name, [place.key.value(one) for one in answer.contenders]
    if name in ("peak", "compile"):
        unit = size_unit(values) if name == "peak" else time_unit(values)
        write: Callable[[float], str] = figures.alike(values, unit, place.width)
    else:
        write = {"rate": rate, "speedup": times}.get(name, milliseconds)
    texts = [write(value) for value in values]
    halves = [_half(one, name) for one in answer.contenders]
    if form.is_apart or None in halves:
        room = place.width - (form.spread if None not in halves else 0)
        return [(text, "") for text in figures.in_line(texts, room)]
    joined = [text + _joined(text, half) for text, half in zip(texts, halves, strict=True)]
    lined = figures.in_line(joined, place.width)
    return [(text, " " * (len(line) - len(one))) for text, line, one in zip(texts, lined, joined, strict=True)]


def _joined(figure: str, half: float | None) -> str:
    """A spread with as many decimals as its mean, "" where it is not known."""
    if half is None or math.isnan(half):
        return ""
    return f"±{half:.{len(figure.strip().partition('.')[2])}f}"


def _half(one: Contender, name: str) -> float | None:
    """The spread beside a mean, in the unit of its column; None for what has none."""
    if name == "step":
        return one.step_spread_ns / NS_PER_MS
    if name == "rate":
        return one.row.samples_per_s_spread
    if name in ("peak", "speedup", "compile"):
        return None
    return one.split.spread_ns[name] / NS_PER_MS if one.split is not None else math.nan


def mean(figure: str, half: float, form: Form, role: str) -> list[Piece]:
    """A mean and its spread with as many decimals, blank where that is not known."""
    beside = _joined(figure, half)
    if form.is_apart:
        beside = left(f" {beside.replace('±', '± ')}" if beside else "", BESIDE)
    return [*figures.pieces(figure, role), (beside, "quiet")]


def _doing(one: Contender, answer: Answer) -> Piece:
    """What stands below a name: what it is doing, or what it is made with."""
    share = answer.partial.get(one.name)
    if share is not None:
        return so_far(share), "warn"
    if not one.is_traced and one.row.progress.state in RUNNING:
        return doing_briefly(one.row.progress), "accent"
    return printable(one.row.framework), "faint"


def _bars(one: Contender, below: Piece, placed: Placing, look: Look) -> list[Piece]:
    pieces: dict[str, list[Piece]] = {"name": [(_INDENT, "text"), below]}
    for place in placed.bars:
        pieces[place.key.name] = bar(place.key.name, place.key.value(one), place.width, placed.ns_per_cell, look)
    return at_places(pieces, placed)


def bar(name: str, ns: float, width: int, ns_per_cell: float, look: Look) -> list[Piece]:
    """Exactly ``width`` cells. What is above zero shows at least one mark, and what goes on beyond says so."""
    if math.isnan(ns) or ns <= 0 or math.isnan(ns_per_cell):
        return [(" " * width, "text")]
    meaning = MEANINGS.get(name, name)
    long = max(math.floor(ns / ns_per_cell + 0.5), 1)
    if long > width:
        return [(texture(meaning, look) * (width - 1), meaning), ("▶", "strong")]
    return [(texture(meaning, look) * long, meaning), (" " * (width - long), "text")]


def differences(label: str, found: dict[str, Delta], placed: Placing) -> list[Piece]:
    """A line of what the second of two has more; what is within both spreads stands in brackets."""
    pieces: dict[str, list[Piece]] = {}
    for place in placed.places:
        delta = found.get(place.key.name)
        if delta is not None:
            pieces[place.key.name] = _difference(delta, placed.form.spread)
    line = at_places(pieces, placed)
    first = next((at for at, (text, _) in enumerate(line) if text.strip()), len(line))
    # The label may reach as far as the first figure.
    room = cells(line[:first]) - len(_INDENT)
    return [(_INDENT, "text"), (left(label, room - 1) + " ", "quiet"), *line[first:]]


def _difference(delta: Delta, beside: int) -> list[Piece]:
    figure = signed(delta.ns)
    if delta.is_clear is False:
        return [(f"({figure})", "quiet"), (" " * max(beside - 1, 0), "text")]
    role = "text" if delta.is_clear is None else "bad" if delta.ns > 0 else "good"
    return [(figure, role), (" " * beside, "text")]


def signed(ns: int) -> str:
    """In ms, with its sign: ``+26.0``, ``−0.30``."""
    return f"{'−' if ns < 0 else '+'}{milliseconds(abs(ns))}"


def heading(text: str, place: Place, placed: Placing) -> str:
    """Over a column: its end above the last digits of the means, where that leaves it whole."""
    if place.key.name == "name":
        return left(_INDENT + text, place.width)
    has_spread = place.key.name in ("step", "span", "rate") or place.has_bar
    room = place.width - (placed.form.spread if has_spread else 0)
    return left(right(text, room), place.width) if len(text) <= room else right(text, place.width)
