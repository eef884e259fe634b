"""What was read: file by file, which rank it is and why, what was dropped or mended, and what cannot be said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.strip import Strip

from meshscope.analysis.doubts import doubt_words, doubts
from meshscope.analysis.lateness import lateness, pattern
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.traced_memory import traced_memory, traced_memory_words
from meshscope.analysis.waiting import waiting
from meshscope.analysis.waiting_words import pattern_words, straggler_words, waiting_words
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.ui.about import files as about
from meshscope.ui.marks.cells import Line, Piece, left, right, strips, wrapped
from meshscope.ui.panel import UNSTATED, Frame, Fresh, Panel, note
from meshscope.ui.scene import Scene, version
from meshscope.ui.words import grouped
from meshscope.units import counted, printable, ranges


@dataclass(frozen=True)
class Told:
    """``role`` is how a line is drawn: what is quiet below another, a note, a doubt, or a refusal."""

    role: str
    text: str


@dataclass(frozen=True)
class Read:
    """One file of the run that is looked at; ``rank`` in words."""

    rank: str
    name: str
    events: int


@dataclass(frozen=True)
class Files:
    """``before`` stands above the files and ``after`` below."""

    before: tuple[Told, ...] = ()
    files: tuple[Read, ...] = ()
    after: tuple[Told, ...] = ()
    fresh: Fresh = UNSTATED


_RANK_FROM = {
    "file name": "the names of their files",
    "folder name": "the names of their folders",
    "order": "their order alone",
}


def question(scene: Scene) -> Files:
    """What was refused first, since it costs most; then the files of the run that is looked at."""
    run = scene.run
    by_file: dict[str, list[Window]] = {}
    for window in run.windows if run else ():
        by_file.setdefault(window.source, []).append(window)
    files = tuple(_read(source, windows) for source, windows in by_file.items())
    parts = [counted(len(files), "file")] if files else []
    parts += [f"{len(scene.refused)} refused"] if scene.refused else []
    before = (*_refused(scene.refused), *(Told("note", note) for note in scene.notes))
    return Files(
        before,
        files,
        tuple(_after(run, by_file, is_whole=run.name not in scene.partial)) if run else (),
        Fresh(of=", ".join(parts)),
    )


def _refused(refused: Sequence[tuple[str, str, str]]) -> Iterator[Told]:
    """Each reason once, with the files it is true of and what to do about it."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for path, why, hint in refused:
        name = Path(path).name
        reasons.setdefault((why.replace(name, "This file"), hint), []).append(name)
    for (why, hint), names in reasons.items():
        who = names[0] if len(names) == 1 else f"{len(names)} files ({_some(names)})"
        yield Told("bad", f"{who}: {why}")
        if hint:
            yield Told("hint", hint)


def _some(names: list[str]) -> str:
    """The first few different ones."""
    different = list(dict.fromkeys(names))
    return ", ".join(different[:_NAMED]) + (", …" if len(different) > _NAMED else "")


def _read(source: str, windows: list[Window]) -> Read:
    """Several ranks in a file are those of one process, which share its counts."""
    return Read(ranges([window.rank for window in windows], most=2), Path(source).name, windows[0].counts.read)


def _after(run: Run, by_file: dict[str, list[Window]], *, is_whole: bool) -> Iterator[Told]:
    device = sum(window.counts.device for window in run.windows)
    yield Told("text", f"{grouped(device)} events of device work")
    if not is_whole:
        yield Told("text", "the rest is being read; what was dropped, and what cannot be said, is told then")
        return
    for told_by, words in _RANK_FROM.items():
        ranks = [window.rank for window in run.windows if window.rank_from == told_by]
        if ranks and len(by_file) > 1:
            yield Told("doubt", f"ranks {ranges(ranks)} are told by {words}")
    for verb, name in (("dropped", "dropped"), ("mended", "repaired")):
        total: Counter[str] = Counter()
        for windows in by_file.values():
            total.update(getattr(windows[0].counts, name))
        yield from (Told("doubt", f"{verb} {grouped(count)}: {reason}") for reason, count in sorted(total.items()))
    yield from _waiting(run)
    yield from (Told("text", f"memory: {traced_memory_words(rank)}") for rank in traced_memory(run)[:_NAMED])
    yield from (Told("text", doubt_words(run, doubt)) for doubt in doubts(run))


def _waiting(run: Run) -> Iterator[Told]:
    """Who the others wait for, which only the files together tell."""
    said = waiting_words(waiting(run))
    if said:
        yield Told("text", said)
    seen, late = pattern(lateness(run)), stragglers(run)
    if seen.kind == "node" and any(one.rank in seen.ranks for one in late):
        yield Told("doubt", pattern_words(seen))
        late = tuple(one for one in late if one.rank not in seen.ranks)
    yield from (Told("doubt", straggler_words(one)) for one in late[:_NAMED])


_ROLES = {"text": "quiet", "hint": "quiet", "doubt": "warn", "note": "warn", "bad": "bad"}
_SIGNS = {"text": " ", "hint": "   ", "doubt": " ", "note": "! ", "bad": "✗ "}
_RANK, _EVENTS = 5, 11
_NAMED = 3
_LINES, _FEW = 8, 8


def draw(files: Files, frame: Frame) -> list[Strip]:
    if not (files.before or files.files or files.after):
        return note(PANEL.promise, frame)
    before = [line for told in files.before for line in _line(told, frame)]
    after = [line for told in files.after for line in _line(told, frame)]
    gap: list[Line] = [[]] if before and files.files else []
    fits = len(before) + len(gap) + 1 + len(files.files) + len(after) <= frame.height
    if fits or len(files.files) <= _FEW:
        lines = [*before, *gap, *_table(files.files, "file", frame), *after]
    else:
        # What is to be known of all of them would be below hundreds of lines.
        fewest = sorted(files.files, key=lambda read: read.events)
        said = Told("text", _summary(fewest))
        lines = [*before, *gap, *_line(said, frame), *after, [], *_table(fewest, "file, fewest events first", frame)]
    scrolled = min(frame.scroll, max(len(lines) - frame.height, 0))
    shown = lines[scrolled : scrolled + frame.height]
    if len(lines) - scrolled > frame.height:
        rest: list[Piece] = [(f" … {len(lines) - scrolled - frame.height + 1} more lines, pgdn", "quiet")]
        shown = [*shown[:-1], rest]
    return strips(shown, frame.width, frame.height, frame.look)


def _summary(fewest: Sequence[Read]) -> str:
    """How many files there are, and from how few events to how many."""
    least, most = fewest[0], fewest[-1]
    middle = fewest[(len(fewest) - 1) // 2].events
    if least.events == most.events:
        return f"{len(fewest)} files of {grouped(middle)} events each"
    reach = f"{grouped(least.events)} (rank {least.rank}) to {grouped(most.events)} (rank {most.rank})"
    return f"{len(fewest)} files of {reach} events, median {grouped(middle)}"


def _table(files: Sequence[Read], heading: str, frame: Frame) -> list[Line]:
    if not files:
        return []
    name = max(frame.width - _RANK - _EVENTS - 1, 8)
    title = right("rank", _RANK) + " " + left(heading, name) + right("events", _EVENTS)
    return [[(title, "quiet")], *(_file(read, name) for read in files)]


def _file(read: Read, name: int) -> list[Piece]:
    return [
        (right(read.rank, _RANK) + " ", "quiet"),
        (left(printable(read.name), name), "text"),
        (right(grouped(read.events), _EVENTS), "text"),
    ]


def _line(told: Told, frame: Frame) -> list[Line]:
    sign, role = _SIGNS[told.role], _ROLES[told.role]
    text = wrapped(printable(told.text), max(frame.width - len(sign), 8), _LINES)
    return [[((sign if not at else " " * len(sign)) + line, role)] for at, line in enumerate(text)]


PANEL = Panel(
    name="files",
    title="what was read",
    number=4,
    promise="File by file: which rank it is, what was dropped or mended, and what cannot be said.",
    question=question,
    draw=draw,
    fresh=lambda files: files.fresh,
    depends=lambda scene: (version(scene.run), scene.selected in scene.partial, len(scene.refused), len(scene.notes)),
    of=("traces",),
    scrolls=True,
    help=about.HELP,
    data=lambda files: about.files(
        ((read.rank, read.name, read.events) for read in files.files),
        ((told.role, told.text) for told in (*files.before, *files.after)),
    ),
)
