"""What was read: file by file, which rank it is and why, what was dropped or mended, and what cannot be said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textual.strip import Strip

from meshscope.run import Run
from meshscope.spans import Window
from meshscope.ui.marks.cells import Line, Piece, clip, strips, wrapped
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel
from meshscope.ui.scene import Scene, version
from meshscope.units import counted, printable, rate

_RANK_FROM = {
    "trace": "",
    "device": "",
    "file name": " by its name",
    "order": " by order alone",
}


@dataclass(frozen=True)
class Told:
    """``role`` is how a line is drawn: a head, what is quiet beside it, a warning, or a refusal."""

    role: str
    text: str


@dataclass(frozen=True)
class Files:
    lines: tuple[Told, ...] = ()
    fresh: Fresh = UNSTATED


def question(scene: Scene) -> Files:
    """What was refused first, since it costs most; then the files of the run that is looked at."""
    refused = [told for path, why, hint in scene.refused for told in _refused(path, why, hint)]
    run = scene.run
    files = len({window.source for window in run.windows}) if run else 0
    lines = (*refused, *(Told("warn", note) for note in scene.notes), *(_of(run) if run else ()))
    parts = [counted(files, "file")] if files else []
    parts += [f"{len(scene.refused)} refused"] if scene.refused else []
    return Files(lines, Fresh(of=", ".join(parts)))


def _refused(path: str, why: str, hint: str) -> list[Told]:
    name = Path(path).name
    return [Told("bad", why if name in why else f"{name}: {why}"), *([Told("hint", hint)] if hint else [])]


def _of(run: Run) -> list[Told]:
    lines: list[Told] = []
    by_file: dict[str, list[Window]] = {}
    for window in run.windows:
        by_file.setdefault(window.source, []).append(window)
    for source, windows in by_file.items():
        lines += _file(source, windows)
    doubts: dict[tuple[str, str], None] = dict.fromkeys(doubt for window in run.windows for doubt in window.cannot_say)
    return lines + [Told("doubt", f"cannot say {what}: {why}") for what, why in doubts]


def _file(source: str, windows: list[Window]) -> list[Told]:
    """One file; several ranks in it are those of one process, which share its counts."""
    counts = windows[0].counts
    ranks = sorted({window.rank for window in windows})
    who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}–{ranks[-1]}"
    device = sum(window.counts.device for window in windows)
    head = f"{Path(source).name}: {who}{_RANK_FROM.get(windows[0].rank_from, '')}"
    lines = [Told("text", head), Told("hint", f"{rate(counts.read)} events read, {rate(device)} of device work")]
    for verb, reasons in (("dropped", counts.dropped), ("mended", counts.repaired)):
        lines += [Told("doubt", f"{verb} {count}: {reason}") for reason, count in sorted(reasons.items())]
    return lines


_ROLES = {"text": "text", "hint": "quiet", "doubt": "warn", "warn": "warn", "bad": "bad"}
_SIGNS = {"text": " ", "hint": "   ", "doubt": "   ", "warn": "! ", "bad": "✗ "}


def draw(files: Files, frame: Frame) -> list[Strip]:
    lines: list[Line] = []
    for told in files.lines:
        lines += _line(told, frame)
    scrolled = min(frame.scroll, max(len(lines) - frame.height, 0))
    shown = lines[scrolled : scrolled + frame.height]
    if len(lines) - scrolled > frame.height:
        rest: list[Piece] = [(f" … {len(lines) - scrolled - frame.height + 1} more lines, pgdn", "quiet")]
        shown = [*shown[:-1], rest]
    return strips(shown, frame.width, frame.height, frame.look)


def _line(told: Told, frame: Frame) -> list[Line]:
    sign, role = _SIGNS[told.role], _ROLES[told.role]
    if told.role == "text":
        return [[(sign + clip(printable(told.text), frame.width - len(sign)), role)]]
    text = wrapped(printable(told.text), max(frame.width - len(sign), 8), 4)
    return [[((sign if not at else " " * len(sign)) + line, role)] for at, line in enumerate(text)]


PANEL = Panel(
    name="files",
    title="what was read",
    number=4,
    promise="File by file: which rank it is, what was dropped or mended, and what cannot be said.",
    question=question,
    draw=draw,
    fresh=lambda files: files.fresh,
    depends=lambda scene: (version(scene.run), len(scene.refused), len(scene.notes)),
    of=("traces",),
    scrolls=True,
)
