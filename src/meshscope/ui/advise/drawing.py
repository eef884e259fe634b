"""The advise screen in lines: what is asked at the left, the candidates, and below them the one that is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from meshscope.advisor.ranking import Ranked
from meshscope.advisor.sensitivity import Sensitivity
from meshscope.errors import MeshscopeError
from meshscope.ui import fitting
from meshscope.ui.advise import bars, fields, views
from meshscope.ui.advise.answer import Answer, fits, name, told_settings
from meshscope.ui.advise.fields import MARGIN
from meshscope.ui.advise.form import Form
from meshscope.ui.advise.pareto import plot
from meshscope.ui.advise.placing import Places, places
from meshscope.ui.advise.rows import table
from meshscope.ui.advise.state import FLIPS, PARETO, RULES, VIEWS, State
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, cells, clip, cut, ends, filled, wrapped
from meshscope.units import NS_PER_S, milliseconds, printable, reach, size

_FIGURES = 46
_KEYS: tuple[fitting.Key, ...] = (
    ("↑↓", "choose", 1), ("←→", "view", 2), ("tab", "question", 0), ("space", "mark", 5),
    ("o", "open simulated", 1), ("e", "arithmetic", 3), ("pgdn", "scroll", 6), ("?", "help", 0), ("q", "leave", 0),
)  # fmt: skip
_FORM_KEYS: tuple[fitting.Key, ...] = (
    ("↑↓", "field", 1), ("←→", "usual choices", 2), ("enter", "ask", 0), ("ctrl+u", "clear", 3),
    ("tab", "candidates", 1), ("F1", "help", 0), ("esc", "back", 2),
)  # fmt: skip


@dataclass(frozen=True)
class Status:
    """What goes on: ``asking_s`` is how long the question has been out, None where none is; ``flips`` are None until
    they were asked for. ``said`` is a line that goes by itself."""

    asking_s: float | None = None
    error: MeshscopeError | None = None
    flips: tuple[Sensitivity, ...] | None = None
    flipping_s: float | None = None
    said: str = ""


@dataclass(frozen=True)
class Drawing:
    """As many ``lines`` as the screen has. ``rows`` says which candidate is on which line from cell ``rows_from`` on,
    ``fields`` which field is where (line, first cell, end), ``view_lines`` and ``view_room`` how much of the view there
    is and is seen."""

    lines: tuple[Line, ...]
    rows: dict[int, int] = field(default_factory=dict)
    rows_from: int = 0
    fields: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    tabs: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    view_lines: int = 0
    view_room: int = 0


def drawn(
    form: Form, answer: Answer | None, state: State, status: Status, extent: tuple[int, int], look: Look
) -> Drawing:
    """Everything, in exactly ``extent`` cells."""
    width, height = extent
    inside = max(width - 2 * MARGIN, 1)
    placed = places(inside, height, len(answer.rows) if answer is not None else 0)
    lines: list[Line] = [_head(form, answer, inside), _state_line(form, answer, status, inside)]
    typing: dict[str, tuple[int, int, int]] = {}
    if not placed.side:
        typing = fields.above_places(inside, len(lines))
        lines += fields.above(form, inside, look)
    first = len(lines)
    room = inside - (placed.side + 2 if placed.side else 0)
    body, rows = _candidates(answer, state, status, room, placed, look)
    if placed.side:
        typing = fields.beside_places(placed.side, first)
        body = _beside(fields.beside(form, placed.side, len(body), look), body, placed.side)
    lines += [*body, []]
    lines += _detail(answer, state, inside, placed, look)
    tabs = _tab_places(state, len(lines))
    shown = _view(answer, state, status, inside, placed.view, look)
    lines += [_tabs(state, inside), *shown[state.scroll : state.scroll + placed.view]]
    lines = lines[: height - 1] + [[]] * max(height - 1 - len(lines), 0)
    lines = [[(" " * MARGIN, "text"), *line] for line in lines]
    return Drawing(
        lines=(*lines, _footer(form, status, width, look)),
        rows={first + 1 + line: row for line, row in rows.items()},
        rows_from=MARGIN + placed.side,
        fields=typing,
        tabs=tabs,
        view_lines=len(shown),
        view_room=placed.view,
    )


# The head


def _head(form: Form, answer: Answer | None, width: int) -> Line:
    what: list[Piece] = [("meshscope  advise", "accent"), ("   ", "text")]
    if answer is not None:
        asked = answer.advice.question
        on = asked.cluster
        words = [
            asked.architecture.name,
            f"{on.devices:,} × {on.device.name}",
            on.inside.name + (f", {on.between.name}" if on.nodes > 1 else ""),
            f"batch {asked.global_batch:,} × {asked.seq_len:,}",
        ]
        what.append((printable(" · ".join(words)), "quiet"))
    return ends(what, [("predicted, not measured", "warn")], width)


def _state_line(form: Form, answer: Answer | None, status: Status, width: int) -> Line:
    """What goes on, or the choice in a sentence."""
    if status.asking_s is not None:
        return [(clip(f"Computing every layout that is legal… {status.asking_s:.0f} s", width), "accent")]
    if status.error is not None:
        words = f"{status.error.message} {status.error.hint}"
        return [(clip(printable(words), width), "bad")]
    if answer is None:
        return [(clip("Nothing was asked yet: enter asks.", width), "quiet")]
    if answer.asked != form.asked:
        return [
            (clip("The question was changed: enter asks it. Below is the answer to the one before.", width), "warn")
        ]
    return [(clip(printable(answer.why[0]), width), "strong")]


# The candidates


def _candidates(
    answer: Answer | None, state: State, status: Status, width: int, placed: Places, look: Look
) -> tuple[list[Line], dict[int, int]]:
    """The headings and ``placed.rows`` lines, and which row is on which of them."""
    if answer is None or not answer.rows:
        return _no_candidates(answer, status, width, placed.rows + 1), {}
    heading, found = table(answer, state, width, look)
    first = min(max(state.chosen - placed.rows // 2, 0), max(len(found) - placed.rows, 0))
    shown = fitting.seen(found, state.chosen, placed.rows, width)
    lines = [heading, *shown]
    return lines + [[]] * (placed.rows + 1 - len(lines)), {at: first + at for at in range(len(shown))}


def _no_candidates(answer: Answer | None, status: Status, width: int, height: int) -> list[Line]:
    if answer is None:
        texts = ["Candidates appear here: every layout that is legal, those that fit first, the fastest on top."]
        if status.error is not None:
            texts = [status.error.message, status.error.hint]
    else:
        texts = [answer.why[0], *answer.notes]
    lines: list[Line] = [[(line, "quiet")] for text in texts for line in wrapped(printable(text), width, 4)]
    return [*lines, *([[]] * height)][:height]


def _beside(one: Sequence[Line], other: Sequence[Line], width: int) -> list[Line]:
    return [[*filled(a, width), ("  ", "text"), *b] for a, b in zip(one, other, strict=True)]


# The candidate that is looked at


def _detail(answer: Answer | None, state: State, width: int, placed: Places, look: Look) -> list[Line]:
    height = 7 if placed.is_roomy else 4
    row = answer.rows[state.chosen] if answer is not None and state.chosen < len(answer.rows) else None
    if row is None:
        return [[]] * height
    bar = max(width - _FIGURES - 8, 10) if width >= 76 else max(width - 8, 10)
    title: Line = [
        (printable(name(row)), "strong"),
        (f"   {printable(told_settings(row))}, {row.candidate.numerics.name}", "quiet"),
    ]
    lines = [cut(title, width), *_memory(row, bar, width, placed, look), *_time(row, bar, width, placed, look)]
    return [*lines, *([[]] * height)][:height]


def _memory(row: Ranked, bar: int, width: int, placed: Places, look: Look) -> list[Line]:
    held = row.memory
    scale = bars.memory_scale([held], bar)
    _, role = fits(row)
    told = f" {size(held.used.value)} of {size(held.limit_bytes)}: "
    figures: list[Piece] = [(told, "text"), (held.fit.value, role)]
    figures.append((f" ({size(held.used.low)} … {size(held.used.high)})", "quiet"))
    lines: list[Line] = [cut([("memory  ", "quiet"), *bars.memory_bar(held, scale, look), *figures], width)]
    if placed.is_roomy:
        lines.append([("        ", "text"), *bars.interval(held.used, scale, look)])
        lines.append(cut([("        ", "text"), *bars.memory_legend(held, look)], width))
    return lines


def _time(row: Ranked, bar: int, width: int, placed: Places, look: Look) -> list[Line]:
    time = row.time
    if time is None:
        why = "; ".join(row.forecast.cannot_say) or "it was not computed, since it does not fit"
        return [[("time    ", "quiet"), (clip(f"cannot say: {printable(why)}", width - 8), "warn")]]
    step = time.step_s
    scale = bars.Scale(step.high, bar)
    within = reach(milliseconds(step.low * NS_PER_S), milliseconds(step.high * NS_PER_S)).replace(" to ", " … ")
    figures: list[Piece] = [(f" {milliseconds(step.value * NS_PER_S)} ms a step", "text"), (f" ({within})", "quiet")]
    lines: list[Line] = [cut([("time    ", "quiet"), *bars.time_bar(time, scale, look), *figures], width)]
    if placed.is_roomy:
        lines.append([("        ", "text"), *bars.interval(step, scale, look)])
    return [*lines, cut([("        ", "text"), *bars.time_legend(time, look)], width)]


# What is said below


def _tabs(state: State, width: int) -> Line:
    pieces: list[Piece] = []
    for view in VIEWS:
        is_here = view == state.view
        pieces += [(f"[{view}]" if is_here else f" {view} ", "accent" if is_here else "quiet"), ("  ", "text")]
    rule = max(width - cells(pieces), 0)
    return [*pieces, ("─" * rule, "faint")]


def _tab_places(state: State, line: int) -> dict[str, tuple[int, int, int]]:
    del state
    found, at = {}, MARGIN
    for view in VIEWS:
        found[view] = (line, at, at + len(view) + 2)
        at += len(view) + 4
    return found


def _view(answer: Answer | None, state: State, status: Status, width: int, height: int, look: Look) -> list[Line]:
    if answer is None:
        return []
    if state.view == PARETO:
        return plot(answer, state, width, height, look)
    if state.view == RULES:
        return views.rules(answer.rules, width)
    if state.view == FLIPS:
        return views.flips(status.flips, width, seconds=status.flipping_s)
    return views.why(answer, state, width)


def _footer(form: Form, status: Status, width: int, look: Look) -> Line:
    if status.said:
        return [(" " * MARGIN + clip(printable(status.said), width - 2), "warn")]
    return fitting.keys(_FORM_KEYS if form.at else _KEYS, width - 2, look)
