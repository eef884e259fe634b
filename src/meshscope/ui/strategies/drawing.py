"""The screen of strategies in lines: who wins and why, everybody's bars under one axis, and what two differ by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from meshscope.analysis.simulation import SIMULATED
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, cells, cut, ends, named, wrapped
from meshscope.ui.strategies import differing, rows, scaling
from meshscope.ui.strategies.answer import Answer
from meshscope.ui.strategies.columns import is_downward, ordered
from meshscope.ui.strategies.placing import Place, Placing, placing, tick
from meshscope.ui.strategies.rows import Block, heading
from meshscope.ui.strategies.state import State, chosen
from meshscope.units import printable

MARGIN = 1
_PROFILED, _UNPROFILED = "profiled step, ms", "unprofiled"
_NOT_PROFILED = "Where a step goes: bars appear here with the first profiled steps."
_KEYS = (
    ("↑↓", "choose", 3), ("←→", "sort by", 1), ("r", "reverse", 2), ("space", "mark A, B", 0),
    ("enter", "compare A, B", 0), ("e", "explain", 2), ("?", "help", 0), ("esc", "back", 0),
)  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """As many ``lines`` as the screen has. ``names`` says who is drawn on which, ``headings`` which column is where."""

    lines: tuple[Line, ...]
    names: dict[int, str]
    headings: tuple[Place, ...]
    heading_lines: tuple[int, ...]


def drawn(
    answer: Answer, state: State, size: tuple[int, int], look: Look, *, badge: Sequence[Piece] = (), said: str = ""
) -> Drawing:
    """Everything, in exactly ``size`` cells; what is short of room scrolls, and notes give way first."""
    width, height = size
    inside = max(width - 2 * MARGIN, 1)
    placed = placing(answer, inside)
    above: list[Line] = [
        _title(answer, badge, inside),
        *_verdict(answer, inside),
        [],
        *_headings(answer, state, placed),
    ]
    blocks = _blocks(answer, state, placed, look)
    free = height - 2 - len(above)
    differs, notes = differing.lines(answer, state, placed, inside), _notes(answer, inside)
    notes = [*scaling.lines(answer, inside), *notes]
    while len(differs) > 2 and len(differs) + _height(blocks) > free:
        differs.pop()
    if _height(aired := _aired(blocks, answer)) + len(differs) + sum(map(len, notes)) + 1 <= free:
        blocks = aired
    body, names = _scrolled(blocks, chosen(answer, state), max(free - len(differs), 1), inside)
    lines = [*above, *body, *differs, []]
    lines += _fitting(notes, height - 2 - len(lines))
    lines = [[(" " * MARGIN, "text"), *line] for line in lines[: max(height - 2, 0)]]
    lines += [[]] * (height - 2 - len(lines))
    lines += [[(" " * MARGIN, "text"), (said, "warn")], footer(width, look)]
    return Drawing(
        lines=tuple(lines[-height:]),
        names={len(above) + at: name for at, name in names.items()},
        headings=placed.places,
        heading_lines=(len(above) - 2, len(above) - 1),
    )


def _title(answer: Answer, badge: Sequence[Piece], width: int) -> list[Piece]:
    mark: list[Piece] = [(answer.mark, "warn"), (" · ", "quiet")] if answer.mark else []
    what: list[Piece] = [("meshscope  strategies", "accent"), ("   ", "text"), *mark]
    what.append((printable(answer.subject), "quiet"))
    return ends(what, list(badge), width)


def _verdict(answer: Answer, width: int) -> list[Line]:
    so_far = "So far: " if answer.partial else ""
    drawn = "Simulated, not measured: " if answer.mark == SIMULATED else ""
    text = printable(so_far + drawn + answer.winning.sentence)
    return [[(line, "strong")] for line in wrapped(text, width, 4)]


def _headings(answer: Answer, state: State, placed: Placing) -> list[Line]:
    """What several columns have in common, and below it their names, the one that sorts with the way it does."""
    line: list[Piece] = []
    for place in placed.places:
        is_it = place.key.name == state.sorting.column
        mark = ("▾" if is_downward(answer, state.sorting) else "▴") if is_it else ""
        text = heading(place.key.heading + mark, place, placed)
        line += [(" " * (place.start - cells(line)), "text"), (text, "accent" if is_it else "quiet")]
    return [_groups(answer, placed), line]


def _groups(answer: Answer, placed: Placing) -> list[Piece]:
    step, bars = placed.of("step"), placed.bars
    found: list[tuple[int, str]] = []
    if step is not None and not answer.is_traced:
        found.append((max(step.end - placed.form.spread - len(_UNPROFILED), 0), _UNPROFILED))
    if bars:
        found.append((step.start if step is not None and answer.is_traced else bars[0].start, _PROFILED))
    both = [place for place in bars if place.key.name in ("waiting", "transfer")]
    if both:
        wide = both[-1].end - both[0].start
        found.append((both[0].start, f"exposed {'─' * wide}"[:wide]))
    line: list[Piece] = []
    for number, (start, text) in enumerate(found):
        end = found[number + 1][0] - 1 if number + 1 < len(found) else start + len(text)
        line += [(" " * (start - cells(line)), "text"), (text[: max(end - start, 0)], "faint")]
    return line


def _blocks(answer: Answer, state: State, placed: Placing, look: Look) -> list[Block]:
    found = ordered(answer, state.sorting)
    blocks = [rows.ranked(one, answer, state, placed, look) for one in found if one.is_ranked]
    if blocks and placed.bars:
        blocks.append(Block("", tuple(_axis(placed))))
    elif blocks:
        blocks.append(Block("", ([], [(_NOT_PROFILED, "quiet")], [])))
    others = [one for one in found if not one.is_ranked]
    if others:
        over: Line = [("not ranked", "faint")]
        blocks.append(Block("", ([], over) if blocks else (over,), leads=True))
    blocks += [rows.apart(one, answer, state, placed) for one in others]
    return blocks + [rows.waiting(name, answer, state, placed) for name in answer.waiting]


def _height(blocks: Sequence[Block]) -> int:
    return sum(len(block.lines) for block in blocks)


def _aired(blocks: Sequence[Block], answer: Answer) -> list[Block]:
    """With a blank line between any two that are ranked."""
    ranked = {one.name for one in answer.contenders if one.is_ranked}
    return [
        replace(block, lines=([], *block.lines)) if at and block.name in ranked else block
        for at, block in enumerate(blocks)
    ]


def _scrolled(blocks: Sequence[Block], name: str, room: int, width: int) -> tuple[list[Line], dict[int, str]]:
    """In ``room`` lines as many as find room, the one that is chosen among them, and whose each line is."""
    is_all = _height(blocks) <= room
    inside, first = room if is_all else max(room - 1, 1), 0
    shown = _whole(blocks, inside)
    while first < len(blocks) - 1 and name not in [block.name for block in shown]:
        first += 1
        shown = _whole(blocks[first:], inside)
    lines = [(block.name, line) for block in shown for line in block.lines][:inside]
    names = {at: owner for at, (owner, _) in enumerate(lines) if owner}
    body: list[Line] = [cut(line, width) for _, line in lines]
    if is_all:
        return body, names
    hidden = len({block.name for block in blocks if block.name} - set(names.values()))
    body += [[]] * (inside - len(body))
    return [*body, [(f"     {hidden} more ↑↓", "warn")]][:room], names


def _whole(blocks: Sequence[Block], room: int) -> list[Block]:
    """As many from the first on as find room whole, at least that one."""
    shown: list[Block] = []
    for block in blocks:
        if shown and _height([*shown, block]) > room:
            break
        shown.append(block)
    return shown[:-1] if len(shown) > 1 and shown[-1].leads else shown


def _axis(placed: Placing) -> list[Line]:
    """A line with a tick at round numbers below the bars, and the numbers; the same scale in every column."""
    if math.isnan(placed.ns_per_cell):
        return []
    line: list[Piece] = [("     axis", "faint")]
    numbers: list[Piece] = [("     ms", "faint")]
    for place in placed.bars:
        ticks, labels = _ticks(place.width, placed)
        line += [(" " * (place.start - cells(line)), "text"), (ticks, "faint")]
        numbers += [(" " * (place.start - cells(numbers)), "text"), (labels, "faint")]
    return [line, numbers]


def _ticks(width: int, placed: Placing) -> tuple[str, str]:
    ticks, labels = ["─"] * width, [" "] * width
    number = 0
    while (at := round(number * placed.tick_ns / placed.ns_per_cell)) < width:
        ticks[at] = "┴" if number else "└"
        text = tick(number * placed.tick_ns)
        if at + len(text) <= width:
            labels[at : at + len(text)] = text
        number += 1
    return "".join(ticks), "".join(labels)


def _notes(answer: Answer, width: int) -> list[list[Line]]:
    return [
        [[(f"{' ' if at else '–'} {text}", "quiet")] for at, text in enumerate(wrapped(printable(note), width - 2, 3))]
        for note in answer.notes
    ]


def _fitting(notes: Sequence[list[Line]], room: int) -> list[Line]:
    """The first notes that find room whole."""
    lines: list[Line] = []
    for note in notes:
        if len(lines) + len(note) > room:
            break
        lines += note
    return lines


def footer(width: int, look: Look) -> list[Piece]:
    """The keys, the less needed ones left out where they find no room."""
    keys = list(_KEYS)
    while sum(len(named(key, look)) + len(word) + 3 for key, word, _ in keys) > width - 1 and max(r for *_, r in keys):
        keys.remove(max(keys, key=lambda entry: entry[2]))
    pieces: list[Piece] = [(" ", "text")]
    for key, word, _ in keys:
        pieces += [(named(key, look), "key"), (f" {word}  ", "quiet")]
    return cut(pieces, width)
