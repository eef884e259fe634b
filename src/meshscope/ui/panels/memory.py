"""Memory by category on every rank, its peak, and how each figure was come by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from textual.strip import Strip

from meshscope.analysis.allocations import Holdings, holdings
from meshscope.analysis.headroom import Headroom, headroom
from meshscope.analysis.memory import CATEGORIES, Category, RankMemory, held_bytes, memory
from meshscope.analysis.peak_place import PeakPlace, peak_places
from meshscope.run import Run
from meshscope.ui.about import memory as about
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, aired, cells, left, longest, right, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.dots import dotted
from meshscope.ui.marks.figures import alike, in_line, pieces
from meshscope.ui.marks.holdings import alive
from meshscope.ui.marks.sparkline import stretched
from meshscope.ui.palette import TEXTURES, texture
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.units import duration, percent, printable, ratio, reach, size, size_unit

_FIGURE = 10
_SLICES = 240
_TALLEST, _FEW = 6, 8


@dataclass(frozen=True)
class Memories:
    ranks: tuple[RankMemory, ...] = ()
    fresh: Fresh = UNSTATED
    has_ended: bool = False
    held: tuple[float, ...] = ()
    alive: Holdings | None = None
    headroom: Headroom | None = None
    place: PeakPlace | None = None


def question(scene: Scene) -> Memories:
    """The newest measurement of every rank of the run that is looked at."""
    run = scene.run
    if run is None:
        return Memories()
    ranks = memory(run)
    newest = max((entry.t_ns for entry in run.memory), default=None)
    fresh = Fresh(
        of=_of(ranks),
        at_unix_ns=None if newest is None else newest + run.experiment.t0_unix_ns,
    )
    if not ranks:
        return Memories(fresh=fresh, has_ended=run.ended is not None)
    fullest = _fullest(ranks)
    history = fullest.record
    return Memories(
        ranks,
        fresh,
        run.ended is not None,
        held=() if history is None else tuple(held_bytes(history, _SLICES).tolist()),
        alive=None if history is None or history.alive is None else holdings(history.alive),
        headroom=next((one for one in headroom(run) if fullest.rank in one.ranks), None),
        place=None if history is not None else _place(run, fullest.rank),
    )


def _place(run: Run, rank: int) -> PeakPlace | None:
    return next((place for place in peak_places(run) if place.rank == rank), None)


def _of(ranks: tuple[RankMemory, ...]) -> str:
    """The newest step that was measured; what kind of file told it where none was."""
    if not ranks:
        return ""
    newest = max(rank.step for rank in ranks)
    return f"step {newest}" if newest >= 0 else ranks[0].source


def draw(answer: Memories, frame: Frame) -> list[Strip]:
    if not answer.ranks:
        return note(_empty(answer), frame)
    fullest = _fullest(answer.ranks)
    detail = [*_over_time(answer, fullest, frame), *_detail(fullest, frame)]
    detail = [*detail, *_alive(answer, len(detail), frame)]
    ranks = _ranks(answer.ranks, fullest, max(frame.height - len(detail) - 3, 1), frame)
    gap: list[Line] = [[]] if ranks[-1] and len(ranks) + len(detail) < frame.height else []
    return strips([*ranks, *gap, *detail, *_beside(answer, fullest, frame)], frame.width, frame.height, frame.look)


def _alive(answer: Memories, taken: int, frame: Frame) -> list[Line]:
    """Who asked for what was alive, in the lines that ranks and the words beside them leave."""
    if answer.alive is None:
        return []
    return alive(answer.alive, frame.width, frame.height - taken - min(len(answer.ranks), 3) - 4)


def _fullest(ranks: tuple[RankMemory, ...]) -> RankMemory:
    return max(ranks, key=lambda rank: (_extent(rank), -rank.rank))


def _over_time(answer: Memories, rank: RankMemory, frame: Frame) -> list[Line]:
    """What an allocator's own history says was held, from zero up to its peak, where there is room."""
    room = frame.height - min(len(answer.ranks), _FEW) - len(_detail(rank, frame)) - 5
    # Who asked for what is alive tells more than how it came to be; both where there is room for both.
    height = min(room if answer.alive is None else (room - 2) // 3, _TALLEST)
    record = rank.record
    if record is None or len(answer.held) < 2 or height < (1 if answer.alive is None else 2):
        return []
    width = max(frame.width - 2, 4)
    bars = dotted(stretched(answer.held, 2 * width), width, frame.look, low=0.0, high=max(answer.held), height=height)
    over = duration(record.end_ns - record.start_ns)
    heading: Line = [(f" rank {rank.rank} over {over}, of {size(max(answer.held))}", "quiet")]
    return [heading, *([(" ", "text"), *bar] for bar in bars), []]


def _extent(rank: RankMemory) -> int:
    """The length of a rank's bar: its peak, or the sum of what is known where that is more."""
    return max(rank.peak_bytes or 0, sum(category.size_bytes for category in rank.categories))


def _ranks(ranks: tuple[RankMemory, ...], fullest: RankMemory, room: int, frame: Frame) -> list[Line]:
    """A bar for each; where they do not fit the fullest first, and where the others' peaks lie in a line."""
    most = _extent(fullest)
    gutter = max(len(str(rank.rank)) for rank in ranks) + 2
    width = max(frame.width - gutter - _FIGURE - 6, 4)
    shown, rest = ranks, ranks[:0]
    if len(ranks) > room + 2:
        ordered = tuple(sorted(ranks, key=lambda rank: (-_extent(rank), rank.rank)))
        shown, rest = ordered[: max(room - 1, 1)], ordered[max(room - 1, 1) :]
    lines: list[Line] = []
    for rank, peak in zip(shown, _sizes([rank.peak_bytes for rank in shown]), strict=True):
        parts = [(category.name, ratio(category.size_bytes, most)) for category in _ordered(rank)]
        line: list[Piece] = [(right(str(rank.rank), gutter - 1) + " ", "quiet"), *stacked(parts, width, frame.look)]
        lines.append([*line, *_figure(peak, Cited("text", "memory.peak", rank=rank.rank)), (" peak", "quiet")])
    if rest:
        lines.append([(_more(rest, frame), "quiet")])
    return aired(lines, room)


def _sizes(values_bytes: Sequence[int | None]) -> list[str]:
    """Sizes that stand below one another: in one unit, their points in one line."""
    known = [math.nan if value is None else float(value) for value in values_bytes]
    write = alike(known, size_unit(known), _FIGURE)
    return in_line([write(value) for value in known], _FIGURE)


def _figure(text: str, role: str) -> list[Piece]:
    return [(" " * (_FIGURE - cells([(text, role)])), "text"), *pieces(text, role)]


def _more(rest: tuple[RankMemory, ...], frame: Frame) -> str:
    """How many there are besides, and from where to where their peaks go."""
    peaks = sorted(rank.peak_bytes for rank in rest if rank.peak_bytes is not None)
    more = f"  … {len(rest)} more ranks"
    if not peaks:
        return more
    low, high = size(peaks[0]), size(peaks[-1])
    if low == high:
        return longest((f"{more} with peaks of {low} each", f"  … {len(rest)} more: {low} each"), frame.width)
    middle = f", median {size(peaks[(len(peaks) - 1) // 2])}"
    brief = f"  … {len(rest)} more: {reach(low, high)}"
    return longest((f"{more} with peaks of {reach(low, high)}{middle}", f"{brief}{middle}", brief), frame.width)


def _ordered(rank: RankMemory) -> list[Category]:
    known = {name: index for index, name in enumerate(CATEGORIES)}
    return sorted((c for c in rank.categories if c.name in TEXTURES), key=lambda c: known.get(c.name, len(known)))


def _others(rank: RankMemory) -> list[Category]:
    """What has no texture of its own (inputs, autograd detail, a program's own words), the largest first."""
    return sorted((c for c in rank.categories if c.name not in TEXTURES), key=lambda c: -c.size_bytes)


def _detail(rank: RankMemory, frame: Frame) -> list[Line]:
    """The categories of one rank in numbers, with how each is known."""
    lines: list[Line] = []
    total = _extent(rank)
    ordered = _ordered(rank)
    for category, held in zip(ordered, _sizes([category.size_bytes for category in ordered]), strict=True):
        share = f"{ratio(category.size_bytes, total) * 100:.0f} %" if total and frame.width >= 44 else ""
        lines.append([
            (" ", "text"),
            (texture(category.name, frame.look), category.name),
            (" ", "text"),
            (left(category.name, 12), "text"),
            *_figure(held, Cited("text", f"memory.{category.name}", rank=rank.rank)),
            (right(share, 8) if share else "", "quiet"),
            ("  " + printable(category.how), "quiet"),
        ])  # fmt: skip
    return [*lines, *_rest(rank, total, frame)]


def _rest(rank: RankMemory, total: int, frame: Frame) -> list[Line]:
    """Further categories in one line."""
    if not _others(rank):
        return []
    words = ", ".join(f"{c.name} {size(c.size_bytes)}" for c in _others(rank))
    share = f" ({ratio(sum(c.size_bytes for c in _others(rank)), total) * 100:.0f} %)" if total else ""
    return [[(" " + line, "quiet")] for line in wrapped(printable(f"beside these{share}: {words}"), frame.width - 1, 2)]


def _beside(answer: Memories, rank: RankMemory, frame: Frame) -> list[Line]:
    words = []
    left = answer.headroom
    if left is not None:
        words.append(f"headroom {size(left.free_bytes)}, {percent(left.frac)} of {left.of}")
    record = rank.record
    if record is not None and record.preexisting_bytes is not None:
        words.append(f"{size(record.preexisting_bytes)} held at the start")
    if record is not None and record.end_bytes is not None and rank.pool_bytes is None:
        words.append(f"{size(record.end_bytes)} at the end")
    if rank.pool_bytes is not None:
        in_use = "" if rank.in_use_bytes is None else f", {size(rank.in_use_bytes)} of it in use"
        most = "" if rank.limit_bytes is None else f" and may take {size(rank.limit_bytes)}"
        words.append(f"the allocator holds {size(rank.pool_bytes)}{in_use}{most}")
    if rank.peak_how:
        where = "" if answer.place is None else f" in step {answer.place.step}"
        phase = f", {answer.place.phase}" if answer.place is not None and answer.place.phase else ""
        words.append(f"peak: {rank.peak_how}{where}{phase}")
    elif rank.peak_bytes is None:
        words.append("peak: not known here")
    text = f"rank {rank.rank}; " + "; ".join(words)
    return [[(" " + line, "faint")] for line in wrapped(printable(text), frame.width - 1, 2)]


def _empty(answer: Memories) -> str:
    if answer.has_ended:
        return "No memory was measured in this run."
    return "Fills once the model and its optimizer exist: parameters, gradients, optimizer state, activations."


def _depends(run: Run | None) -> tuple[object, ...]:
    """Sensors are read twice a second: the headroom follows them after some hundreds of values."""
    if run is None:
        return ()
    return len(run.memory), len(run.windows), len(run.records), run.ended, len(run.samples.time_ns) // 400


PANEL = Panel(
    name="memory",
    title="memory by category, per rank",
    number=5,
    promise="Parameters, gradients, optimizer state, activations and temporaries of every rank, and the peak.",
    question=question,
    draw=draw,
    fresh=lambda answer: answer.fresh,
    of=("recording", "traces"),
    # A trace opened by itself has this panel where it tells anything of memory.
    suits=lambda scene: scene.is_recorded or (scene.run is not None and bool(memory(scene.run))),
    depends=lambda scene: _depends(scene.run),
    help=about.HELP,
    data=lambda answer: about.ranks(answer.ranks, answer.headroom),
)
