"""Every key of the timeline: what it is called in the help, what it does, and which moves it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, cells, named


@dataclass(frozen=True)
class Row:
    """A line of the help. ``bindings`` pairs keys as Textual names them with an action."""

    keys: str
    words: str
    bindings: tuple[tuple[str, str], ...]


def _go(keys: str, words: str, *moves: tuple[str, str]) -> Row:
    return Row(keys, words, tuple((names, f"go('{where}')") for names, where in moves))


GROUPS: tuple[tuple[str, tuple[Row, ...]], ...] = (
    ("move", (
        _go("← →  h l", "the cursor", ("left,h", "left"), ("right,l", "right")),
        _go("H L", "half a screen", ("shift+left,H", "far left"), ("shift+right,L", "far right")),
        _go("↑ ↓  k j", "another lane", ("up,k", "up"), ("down,j", "down"), ("pageup", "page up"),
            ("pagedown", "page down")),
        _go("+ −", "zoom in and out", ("plus,equals_sign,i", "in"), ("minus,underscore", "out")),
        _go("z 0", "zoom to the span; to all", ("z", "span"), ("0", "all")),
        _go("home end", "beginning; newest step", ("home", "first"), ("end", "newest")),
        _go("backspace", "back where you were", ("backspace", "back")),
    )),
    ("jump (capital: the one before)", (
        _go("w b", "next span, previous", ("w", "next span"), ("b", "previous span")),
        _go("n N", "collective", ("n", "next collective"), ("N", "previous collective")),
        _go("x X", "exposed communication", ("x", "next exposed"), ("X", "previous exposed")),
        _go("s S", "step", ("s", "next step"), ("S", "previous step")),
        Row("g", "a step by its number", (("g", "type('step')"),)),
        _go("K J", "longest span; next longest", ("K", "longest"), ("J", "longer")),
        _go("f", "launch to work, and back", ("f", "follow")),
        _go("o O", "the same on the next rank", ("o", "next rank"), ("O", "previous rank")),
    )),
    ("find and measure", (
        Row("/", "search names", (("slash", "type('search')"),)),
        _go("] [", "next match, previous", ("right_square_bracket", "next match"),
            ("left_square_bracket", "previous match")),
        _go("m M", "mark A, then B; clear", ("m", "mark"), ("M", "no marks")),
        _go("B '", "bookmark; the next one", ("B", "bookmark"), ("apostrophe", "next bookmark")),
        Row("e", "explain the span", (("e", "explain"),)),
        Row("y", "copy what is said of it", (("y", "copy"),)),
    )),
    ("lanes", (
        _go("enter", "by streams or threads", ("enter", "open")),
        _go("c C", "fold the rank; all ranks", ("c", "fold"), ("C", "fold all")),
        _go("v V", "sort ranks; the same again", ("v", "sort"), ("V", "sort again")),
        Row("r", "only some ranks: 0,4-7", (("r", "type('ranks')"),)),
        Row("? T", "these keys; light or dark", (("question_mark,f1", "help"), ("T", "app.turn_light"))),
        Row("esc q t", "leave", (("escape,q,t", "leave"),)),
    )),
)  # fmt: skip

_FOOT = (
    ("←→", "move"), ("+−", "zoom"), ("n", "collective"), ("x", "exposed"), ("s", "step"), ("/", "search"),
    ("e", "explain"), ("enter", "streams"), ("m", "mark"), ("backspace", "back to before"), ("?", "help"),
    ("esc", "leave"),
)  # fmt: skip
_ALWAYS = 2
"""Help and the way out stay, whatever the width."""

_KEYS_WIDE, _BETWEEN = 10, 3
_MOUSE = "mouse: move looks, click puts the cursor, drag pans, wheel zooms"


def named_actions() -> Iterator[tuple[str, str, str, str]]:
    """Everything that a key does here: (name, explanation, action, key). What the application does is left out."""
    for _, rows in GROUPS:
        for row in rows:
            for names, action in row.bindings:
                if action.startswith("go("):
                    yield action[4:-2].capitalize(), row.words, action, names.partition(",")[0]
                elif not action.startswith("app."):
                    words = row.words.partition(";")[0]
                    yield words.capitalize(), words, action, names.partition(",")[0]


def foot(width: int, look: Look) -> list[Piece]:
    """The keys that find room."""
    pairs = [[(named(key, look), "key"), (f" {what}  ", "quiet")] for key, what in _FOOT]
    while len(pairs) > _ALWAYS and 1 + sum(map(cells, pairs)) > width:
        del pairs[-_ALWAYS - 1]
    return [(" ", "text"), *(piece for pair in pairs for piece in pair)]


def help_lines(width: int, look: Look, *, has_mouse: bool) -> list[Line]:
    """All keys by groups: two groups beside each other where both find room, else one below the other."""
    blocks = [_block(title, rows, look) for title, rows in GROUPS]
    half = max(cells(line) for block in blocks for line in block)
    found: list[Line] = []
    if width >= 2 * half + _BETWEEN:
        for one, other in zip(blocks[::2], blocks[1::2], strict=True):
            found += [*_beside(one, other, half), ()]
    else:
        for block in blocks:
            found += [*block, ()]
    return [*found, [(_MOUSE, "quiet")]] if has_mouse and width >= cells([(_MOUSE, "quiet")]) else found[:-1]


def _block(title: str, rows: tuple[Row, ...], look: Look) -> list[Line]:
    lines: list[Line] = [[(title, "accent")]]
    wide = max(_KEYS_WIDE, *(cells([(named(row.keys, look), "key")]) + 1 for row in rows))
    return lines + [[(f"{named(row.keys, look):<{wide}}", "key"), (row.words, "text")] for row in rows]


def _beside(one: list[Line], other: list[Line], half: int) -> list[Line]:
    count = max(len(one), len(other))
    blank: list[Line] = [()]
    pairs = zip(one + blank * (count - len(one)), other + blank * (count - len(other)), strict=True)
    return [[*first, (" " * (half + _BETWEEN - cells(first)), "text"), *second] for first, second in pairs]
