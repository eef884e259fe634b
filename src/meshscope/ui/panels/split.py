"""Where a step of each rank goes: compute, communication hidden and exposed, copy, idle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual.strip import Strip

from meshscope.analysis.breakdown import Breakdown, RankBreakdown, breakdown, mean
from meshscope.analysis.progress import progress
from meshscope.analysis.step_split import each_step
from meshscope.analysis.steps import steps
from meshscope.ui.about import split as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, aired, clip, left, longest, right, strips
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.figures import in_line, pieces
from meshscope.ui.palette import texture
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.profiled import suits
from meshscope.ui.scene import Scene, version
from meshscope.ui.words import steps_of
from meshscope.units import UNKNOWN, counted, duration, milliseconds, percent, printable, ratio, reach

_FIGURE, _WIDE_FIGURE, _TALL = 8, 10, 6
# Time under the profiler is no step time: its column must not be taken for one.
_STEPPED, _WHOLE = "ms profiled", "ms traced"
_NUMBERS = {
    _STEPPED: "span", _WHOLE: "span", "computing": "compute", "(hidden)": "hidden", "exp %": "share.exposed"
}  # fmt: skip
"""By which name each column can be explained."""
_ALONE = "compute alone"
_FEWEST_BY_STEP = 5
"""Lines that it takes to tell of single steps."""


@dataclass(frozen=True)
class Split:
    """``ranks`` over all their profiled steps; ``next_window_steps`` and ``cannot_say`` explain an empty panel.

    ``steps`` are the profiled ones by number, each the mean over ranks.
    """

    ranks: tuple[RankBreakdown, ...] = ()
    fresh: Fresh = UNSTATED
    next_window_steps: int | None = None
    cannot_say: tuple[str, ...] = ()
    has_ended: bool = False
    is_live: bool = False
    steps: tuple[tuple[int, Breakdown], ...] = ()


def question(scene: Scene) -> Split:
    """The split of every rank of the run that is looked at."""
    run = scene.run
    if run is None:
        return Split()
    ranks = breakdown(run)
    newest = max((window.end_ns for window in run.windows), default=None)
    fresh = Fresh(
        of=steps_of(ranks[0].steps) if ranks else "",
        at_unix_ns=None if newest is None or not scene.is_recorded else newest + run.experiment.t0_unix_ns,
        cost_frac=steps(run).profiler_cost_frac if ranks else None,
    )
    reasons = dict.fromkeys(why for window in run.windows for what, why in window.cannot_say if what != "wait_ns")
    return Split(
        ranks,
        fresh,
        progress(run).next_window_steps,
        tuple(reasons),
        run.ended is not None,
        scene.stance.is_live,
        each_step(run),
    )


def shares(part: Breakdown) -> list[tuple[str, float]]:
    """Fractions of the span, compute being what hides no collective, so that they add up to 1."""
    alone = part.busy_ns - part.collective_ns - _copy_alone(part)
    whole = {"compute": alone, "hidden": part.hidden_ns, "exposed": part.exposed_ns, "copy": _copy_alone(part)}
    return [
        *((name, ratio(ns, part.span_ns)) for name, ns in whole.items()),
        ("idle", ratio(part.idle_ns, part.span_ns)),
    ]


def _copy_alone(part: Breakdown) -> int:
    """Copies beside neither compute nor a collective: what busy time those two cannot account for."""
    return max(part.busy_ns - part.compute_ns - part.exposed_ns, 0)


def draw(split: Split, frame: Frame) -> list[Strip]:
    whole, found = _found(split)
    if not found:
        return note(_empty(split), frame)
    drawn = [part for _, part in found if part is not None]
    has_legend = len(found) + 2 <= frame.height or frame.height >= _TALL
    room = max(frame.height - (2 if has_legend else 1), 1)
    shown = found if len(found) <= room else _held_least(found)[: max(room - 2, 1)]
    rest = [part for _, part in _held_least(found)[len(shown) :] if part is not None] if len(shown) < len(found) else []
    others = f"+{len(found) - len(shown)}"
    scale = _Scale(
        whole, max(part.span_ns for part in drawn), max(len(str(found[-1][0].rank)), len(others) * bool(rest))
    )
    given = [(str(rank.rank), part, rank.rank) for rank, part in shown]
    if rest and room > 1:
        given.append((others, mean(rest), -1))
    texts = _lined([part for _, part, _ in given], whole, frame)
    rows: list[Line] = [
        _rank(name, part, scale, text, frame, rank=rank) for (name, part, rank), text in zip(given, texts, strict=True)
    ]
    reading: list[Line] = [[(" " + _reading(found, whole, frame), "text")]] if len(found) + 4 <= frame.height else []
    lines: list[Line] = [*reading, _heading(whole, frame), *aired(rows, room - 1 - len(reading))]
    if len(shown) < len(found):
        lines.append([(" " + _rest(others, rest, frame), "quiet")])
    if not has_legend:
        return strips(lines, frame.width, frame.height, frame.look)
    lines += _by_step(split, whole, scale, frame, frame.height - len(lines) - 1)
    if lines[-1] and len(lines) < frame.height - 1:
        lines.append([])
    lines.append(_legend(frame, {name for part in drawn for name, share in shares(part) if share > 0}))
    return strips(lines, frame.width, frame.height, frame.look)


def _by_step(split: Split, whole: str, scale: _Scale, frame: Frame, room: int) -> list[Line]:
    """The profiled steps one by one, to the scale of the ranks' bars; the newest where not all find room."""
    found = split.steps
    if whole != _STEPPED or len(found) < 2 or room < _FEWEST_BY_STEP:
        return []
    most = room - 2
    shown = found if len(found) <= most else found[-(most - 1) :]
    longest_ns = max(scale.longest_ns, *(part.span_ns for _, part in shown))
    own = ", to a scale of their own" if longest_ns > scale.longest_ns else ""
    scale = replace(scale, longest_ns=longest_ns, name=max(scale.name, len(str(shown[-1][0]))))
    texts = _lined([part for _, part in shown], whole, frame)
    title = f"step by step, means over ranks{own}"
    lines: list[Line] = [[], [(" " + clip(title, frame.width - 1), "quiet")]]
    if len(shown) < len(found):
        lines.append([(f" … {len(found) - len(shown)} earlier", "quiet")])
    each = zip(shown, texts, strict=True)
    return [*lines, *(_rank(str(step), part, scale, text, frame) for (step, part), text in each)]


_Ranked = tuple[RankBreakdown, Breakdown | None]


def _found(split: Split) -> tuple[str, list[_Ranked]]:
    """What the whole of a bar is called, and every rank with its own: the mean of its complete profiled steps.

    None for a rank that has no such step. Where no rank has one, it is what was traced in all; the two do not stand
    beside each other. Empty where no rank has either.
    """
    for whole, parts in (
        (_STEPPED, [rank.per_step for rank in split.ranks]),
        (_WHOLE, [rank.total for rank in split.ranks]),
    ):
        known = [part if part is not None and part.span_ns > 0 else None for part in parts]
        if any(part is not None for part in known):
            return whole, list(zip(split.ranks, known, strict=True))
    return _WHOLE, []


def _reading(found: list[_Ranked], whole: str, frame: Frame) -> str:
    """How much of what is exposed in the mean, and where least: the others wait for that rank."""
    known = [(rank, part) for rank, part in found if part is not None]
    middle = mean([part for _, part in known])
    span = milliseconds(middle.span_ns)
    exposed = (
        f"exposed: {milliseconds(middle.exposed_ns)} of {span} ms ({percent(ratio(middle.exposed_ns, middle.span_ns))})"
    )
    if len(known) < 2 or not middle.exposed_ns:
        return longest((f"{exposed} {'in a step' if whole == _STEPPED else 'traced'}", exposed), frame.width - 1)
    least, part = min(known, key=lambda ranked: ranked[1].exposed_ns)
    of = f"{exposed}, mean of {len(known)} ranks"
    held = f"least rank {least.rank}, {milliseconds(part.exposed_ns)} ms"
    return longest((f"{of}; {held}", f"{exposed}; {held}", exposed), frame.width - 1)


def _held_least(found: list[_Ranked]) -> list[_Ranked]:
    """First the ranks that exposed communication holds back least: those that the others wait for."""

    def key(ranked: _Ranked) -> tuple[int, int]:
        rank, part = ranked
        return (0 if part is None else part.exposed_ns - part.span_ns, rank.rank)

    return sorted(found, key=key)


def _rest(others: str, rest: list[Breakdown], frame: Frame) -> str:
    """What the row of the ranks that find no room is, with the shortest and the longest of them that are known."""
    known = [part.span_ns for part in rest]
    if not known:
        return f"… {others[1:]} more"
    said = f"{others}: the mean of more, {reach(duration(min(known)), duration(max(known)))}"
    return longest(
        (f"{said}; above who waits least for others", f"{said}; above who waits least", said), frame.width - 1
    )


@dataclass(frozen=True)
class _Scale:
    """What the whole of a bar is called, the longest whole, and the cells of the longest name."""

    whole: str
    longest_ns: int
    name: int


def _figures(whole: str, frame: Frame) -> tuple[str, ...]:
    """Which numbers stand beside a bar."""
    if frame.width >= 90:
        return (whole, "computing", "(hidden)", "exposed", "idle", "exp %")
    return (whole, "exposed", "exp %") if frame.width >= 60 else (whole, "exp %")


def _figure(frame: Frame) -> int:
    return _WIDE_FIGURE if frame.width >= 90 else _FIGURE


def _heading(whole: str, frame: Frame) -> list[Piece]:
    first, *rest = _figures(whole, frame)
    # The first may reach over the bars.
    figures = first + "".join(right(name, _figure(frame)) for name in rest)
    return [(right(figures, frame.width), "quiet")]


def _lined(parts: Sequence[Breakdown | None], whole: str, frame: Frame) -> list[dict[str, str]]:
    """The numbers beside each bar; in every column their points are in one line."""
    columns = {name: [_known(part, name) for part in parts] for name in _figures(whole, frame)}
    lined = {name: in_line(texts, _figure(frame) - 1) for name, texts in columns.items()}
    return [{name: texts[at] for name, texts in lined.items()} for at in range(len(parts))]


def _known(part: Breakdown | None, name: str) -> str:
    if part is None:
        return UNKNOWN
    if name == "exp %":
        return percent(ratio(part.exposed_ns, part.span_ns))
    ns = {"computing": part.compute_ns, "(hidden)": part.hidden_ns, "exposed": part.exposed_ns, "idle": part.idle_ns}
    return milliseconds(ns.get(name, part.span_ns))


def _rank(
    name: str, part: Breakdown | None, scale: _Scale, texts: dict[str, str], frame: Frame, *, rank: int = -1
) -> list[Piece]:
    """A rank, or (−1) several as one, of whose figures none can be asked about."""
    figure = _figure(frame)
    width = frame.width - scale.name - 2 - figure * len(texts)
    label = right(name, scale.name + 1) + " "
    figures = [piece for what, text in texts.items() for piece in _cited(right(text, figure), what, rank)]
    if part is None:
        words = left("no whole step" if scale.whole == _STEPPED else "", width)
        return [(label, "quiet"), (words, "faint"), *figures]
    share = part.span_ns / scale.longest_ns
    bar = stacked([(what, of * share) for what, of in shares(part)], width, frame.look)
    return [(label, "quiet"), *bar, *figures]


def _cited(figure: str, name: str, rank: int) -> list[Piece]:
    if rank < 0:
        return [(figure, "quiet")]
    before = len(figure) - len(figure.lstrip())
    number = _NUMBERS.get(name, name)
    return [(figure[:before], "text"), *pieces(figure[before:], Cited("text", number, rank=rank))]


def _legend(frame: Frame, drawn: set[str]) -> list[Piece]:
    names = [name for name in ("compute", "hidden", "exposed", "copy", "idle") if name != "copy" or name in drawn]
    if sum(len(name) + 3 for name in names) > frame.width:
        names = [name for name in names if name in drawn]
    gap = "  " if sum(len(name) + 4 for name in names) <= frame.width else " "
    pieces: list[Piece] = [(" ", "text")]
    has_room = sum(len(name) + 4 for name in names) + len(_ALONE) - len("compute") <= frame.width
    for name in names:
        word = _ALONE if name == "compute" and has_room else name
        pieces += [(texture(name, frame.look), name), (f" {word}{gap}", "quiet")]
    return pieces


def _empty(split: Split) -> str:
    if split.cannot_say:
        return "Cannot say: " + "; ".join(printable(why) for why in split.cannot_say)
    if split.has_ended:
        return "Nothing was profiled in this run, so where a step went is not known."
    if not split.is_live:
        return "Fills with the first profiled steps: a bar for each rank."
    if split.next_window_steps:
        return f"Fills with the first profiled steps, in {counted(split.next_window_steps, 'step')}. p profiles now."
    return "Fills with the first profiled steps: a bar for each rank. p profiles now."


def depends(scene: Scene) -> tuple[object, ...]:
    """An empty panel of a live run offers a key that does nothing in a recording."""
    return (version(scene.run), scene.stance.is_live)


PANEL = Panel(
    name="split",
    title="where a step goes, by rank",
    number=2,
    promise="A bar for each rank: compute, communication hidden under it and exposed, idle.",
    question=question,
    draw=draw,
    fresh=lambda split: split.fresh,
    depends=depends,
    of=("recording", "traces"),
    suits=suits,
    help=about.HELP,
    data=lambda split: about.ranks(split.ranks),
)
