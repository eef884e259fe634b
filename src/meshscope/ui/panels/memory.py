"""Memory by category on every rank, its peak, and how each figure was come by."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from meshscope.analysis.memory import CATEGORIES, Category, RankMemory, held_bytes, memory
from meshscope.ui.marks.bars import stacked
from meshscope.ui.marks.cells import Line, Piece, aired, left, right, strips, wrapped
from meshscope.ui.marks.cited import Cited
from meshscope.ui.marks.sparkline import sparkline
from meshscope.ui.palette import TEXTURES, texture
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene
from meshscope.units import UNKNOWN, duration, printable, ratio, size

_FIGURE = 9
_SLICES = 240
_TALLEST = 6


@dataclass(frozen=True)
class Memories:
    ranks: tuple[RankMemory, ...] = ()
    fresh: Fresh = UNSTATED
    has_ended: bool = False
    held: tuple[float, ...] = ()


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
    history = _fullest(ranks).record if ranks else None
    held = tuple(held_bytes(history, _SLICES).tolist()) if history is not None else ()
    return Memories(ranks, fresh, run.ended is not None, held)


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
    ranks = _ranks(answer.ranks, fullest, max(frame.height - len(detail) - 3, 1), frame)
    gap: list[Line] = [[]] if ranks[-1] and len(ranks) + len(detail) < frame.height else []
    return strips([*ranks, *gap, *detail, *_beside(fullest, frame)], frame.width, frame.height, frame.look)


def _fullest(ranks: tuple[RankMemory, ...]) -> RankMemory:
    return max(ranks, key=lambda rank: (_extent(rank), -rank.rank))


def _over_time(answer: Memories, rank: RankMemory, frame: Frame) -> list[Line]:
    """What an allocator's own history says was held, from zero up to its peak, where there is room."""
    height = min(frame.height - len(answer.ranks) - len(_detail(rank, frame)) - 5, _TALLEST)
    record = rank.record
    if record is None or len(answer.held) < 2 or height < 1:
        return []
    bars = sparkline(answer.held, max(frame.width - 2, 4), frame.look, low=0.0, high=max(answer.held), height=height)
    over = duration(record.end_ns - record.start_ns)
    heading: Line = [(f" rank {rank.rank} over {over}, of {size(max(answer.held))}", "quiet")]
    return [heading, *([(" ", "text"), *bar] for bar in bars), []]


def _extent(rank: RankMemory) -> int:
    """The length of a rank's bar: its peak, or the sum of what is known where that is more."""
    return max(rank.peak_bytes or 0, sum(category.size_bytes for category in rank.categories))


def _ranks(ranks: tuple[RankMemory, ...], fullest: RankMemory, room: int, frame: Frame) -> list[Line]:
    longest = _extent(fullest)
    gutter = max(len(str(rank.rank)) for rank in ranks) + 2
    width = max(frame.width - gutter - _FIGURE - 6, 4)
    shown = ranks if len(ranks) <= room + 2 else ranks[: max(room - 1, 1)]
    lines: list[Line] = []
    for rank in shown:
        parts = [(category.name, ratio(category.size_bytes, longest)) for category in _ordered(rank)]
        peak = UNKNOWN if rank.peak_bytes is None else size(rank.peak_bytes)
        line: list[Piece] = [(right(str(rank.rank), gutter - 1) + " ", "quiet"), *stacked(parts, width, frame.look)]
        lines.append([*line, (right(peak, _FIGURE), Cited("text", "memory.peak", rank=rank.rank)), (" peak", "quiet")])
    if len(shown) < len(ranks):
        lines.append([(f"  … {len(ranks) - len(shown)} more ranks", "quiet")])
    return aired(lines, room)


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
    for category in _ordered(rank):
        share = f"{ratio(category.size_bytes, total) * 100:.0f} %" if total and frame.width >= 44 else ""
        lines.append([
            (" ", "text"),
            (texture(category.name, frame.look), category.name),
            (" ", "text"),
            (left(category.name, 12), "text"),
            (right(size(category.size_bytes), _FIGURE), Cited("text", f"memory.{category.name}", rank=rank.rank)),
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


def _beside(rank: RankMemory, frame: Frame) -> list[Line]:
    words = []
    record = rank.record
    if record is not None and record.preexisting_bytes is not None:
        words.append(f"{size(record.preexisting_bytes)} held at the start")
    if record is not None and record.end_bytes is not None and rank.pool_bytes is None:
        words.append(f"{size(record.end_bytes)} at the end")
    if rank.pool_bytes is not None:
        in_use = "" if rank.in_use_bytes is None else f", {size(rank.in_use_bytes)} of it in use"
        words.append(f"the allocator holds {size(rank.pool_bytes)}{in_use}")
    if rank.peak_how:
        words.append(f"peak: {rank.peak_how}")
    elif rank.peak_bytes is None:
        words.append("peak: not known here")
    text = f"rank {rank.rank}; " + "; ".join(words)
    return [[(" " + line, "faint")] for line in wrapped(printable(text), frame.width - 1, 2)]


def _empty(answer: Memories) -> str:
    if answer.has_ended:
        return "No memory was measured in this run."
    return "Fills once the model and its optimizer exist: parameters, gradients, optimizer state, activations."


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
    depends=lambda scene: (len(r.memory), len(r.windows), len(r.records), r.ended) if (r := scene.run) else (),
)
