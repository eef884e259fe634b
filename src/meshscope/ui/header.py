"""The lines above everything: what runs, how the clock stands, and the verdict in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from meshscope.analysis.progress import Progress
from meshscope.ui.keybar import LOOSE, Grip, keybar
from meshscope.ui.look import USUAL, Look
from meshscope.ui.marks.cells import Line, Piece, cells, clip, ends, named, wrapped
from meshscope.ui.panels.comparison import Standing
from meshscope.ui.scene import Scene, Stance, Stretch, running
from meshscope.ui.words import RUNNING, clock_time, doing, found_word
from meshscope.units import counted, printable


def height(width: int) -> int:
    """Always the same for a width, so that nothing below moves: a title, the verdict, and the rail or a blank."""
    return 3 if width >= 160 else 4


def lines(scene: Scene, standing: Standing | None, stretches: Sequence[Stretch], width: int) -> list[Line]:
    """``height(width)`` lines."""
    inside = width - 2
    what = _title(scene)
    title = ends(what, _status(scene, standing, inside - min(cells(what), inside // 2)), inside)
    said = _said(scene, standing, inside, height(width) - 2)
    return [[(" ", "text"), *title], *said, [(" ", "text"), *rail(scene.stance, stretches, inside)]]


def _said(scene: Scene, standing: Standing | None, width: int, room: int) -> list[Line]:
    """The verdict, and what it stands on first of all, where that finds room beside or below it."""
    verdict = wrapped(printable(_verdict(scene, standing)), width, room)
    lines: list[Line] = [[(" ", "text"), (line, "strong")] for line in verdict]
    note = printable(standing.comparison.footnotes[0]) if standing and standing.comparison.footnotes else ""
    if len(lines) < room:
        lines.append([(" ", "text"), (clip(note, width), "quiet")])
    elif cell_len(verdict[-1]) + 3 + cell_len(note) <= width:
        lines[-1] = [*lines[-1], ("   " + note, "quiet")]
    return lines + [[]] * (room - len(lines))


def _title(scene: Scene) -> list[Piece]:
    mark: list[Piece] = [(scene.overall_mark, "warn"), (" · ", "quiet")] if scene.overall_mark else []
    return [("meshscope", "accent"), ("   ", "text"), *mark, (printable(subject(scene)), "quiet")]


def subject(scene: Scene) -> str:
    """``tiny · 4 CPU ranks · batch 32 × 128``; of a sweep ``tiny · 1, 2, 4 CPU ranks · batch 8, 16 × 128``."""
    heads = [run.experiment for run in scene.runs]
    if not heads and scene.plan is None:
        return ""
    parallel = [head for head in heads if not head.is_baseline] or heads
    kinds = (
        {head.device_kind for head in parallel} or {run.device_kind for run in scene.plan.runs}
        if scene.plan
        else {head.device_kind for head in parallel}
    )
    # How many ranks a JAX process has that was attached to, only its traces tell.
    ranks = (scene.plan.ranks if scene.plan else 0) or max((head.ranks for head in parallel), default=0)
    kind = next(iter(kinds)).upper() + " " if len(kinds) == 1 else ""
    many = f"{_each(_swept(scene)) or ranks} {kind}rank{'s' if ranks != 1 else ''}" if ranks else ""
    words = [scene.plan.model if scene.plan else heads[0].model, many]
    words[1:1] = [head.title for head in heads if head.strategy and not head.model]
    if parallel and parallel[0].global_batch:
        length = f" × {parallel[0].sequence_length}" if parallel[0].sequence_length else ""
        words.append(f"batch {_each({head.global_batch for head in parallel})}{length}")
    faults = dict.fromkeys(fault for head in heads for fault in head.faults)
    if faults:
        words.append(f"injected {' and '.join(faults)}")
    return " · ".join(word for word in words if word)


def _swept(scene: Scene) -> set[int]:
    """The numbers of ranks of a sweep; none where all strategies were asked for the same one."""
    planned = scene.plan.runs if scene.plan else []
    return {run.ranks for run in planned if run.workload and " ranks " in run.strategy}


def _each(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _verdict(scene: Scene, standing: Standing | None) -> str:
    if standing is not None and standing.comparison.verdict:
        return standing.comparison.verdict
    if scene.runs:
        return "No verdict yet: it takes a few steps past warm-up."
    return "Waiting for the first rank to start."


def badge(stance: Stance) -> Piece:
    """How the clock stands, in two words and a sign."""
    if stance.is_at_end:
        return "■ ended", "quiet"
    if stance.is_paused:
        return "‖ paused", "warn"
    if stance.is_live:
        return "● live", "good"
    return f"▶ ×{stance.speed:g}", "accent"


def _status(scene: Scene, standing: Standing | None, width: int) -> list[Piece]:
    stance = scene.stance
    so_far = clock_time(stance.now_unix_ns - stance.start_unix_ns)
    whole = clock_time(stance.last_unix_ns - stance.start_unix_ns)
    # Live, the wall may have passed an end that is not known yet, and the clock would run back to it.
    at = whole if stance.is_live or stance.is_at_end else f"{so_far} of {whole}"
    parts: list[list[Piece]] = [[badge(stance)], [(at, "text")]]
    name = running(scene)
    row = standing.of(name) if standing and name else None
    if row is not None and row.progress.state in RUNNING and not stance.is_at_end:
        parts.append([(printable(name), "text"), (" " + doing(row.progress), "text")])
        parts += [[(words, "quiet")] for words in _next_trace(row.progress)]
    while len(parts) > 1 and sum(cells(part) + 3 for part in parts) > width:
        parts.pop()
    return [piece for index, part in enumerate(parts) for piece in ([("   ", "text")] if index else []) + part]


def _next_trace(progress: Progress) -> list[str]:
    if progress.next_window_steps is None or progress.state != "training":
        return []
    return [f"trace in {counted(progress.next_window_steps, 'step')}" if progress.next_window_steps else "trace now"]


def rail(stance: Stance, stretches: Sequence[Stretch], width: int) -> list[Piece]:
    """Where the clock stands in the whole recording, strategy by strategy; blank when it stands at the newest."""
    span = stance.last_unix_ns - stance.start_unix_ns
    if stance.is_live or stance.is_at_end or span <= 0 or width < 20:
        return []

    def column(unix_ns: int) -> int:
        return min(max((unix_ns - stance.start_unix_ns) * width // span, 0), width - 1)

    here = column(stance.now_unix_ns)
    text = ["─"] * width
    for stretch in stretches:
        _write(text, column(stretch.start_unix_ns), column(stretch.newest_unix_ns), printable(stretch.strategy))
    text[here] = "●"
    return [("".join(text[:here]), "accent"), ("●", "strong"), ("".join(text[here + 1 :]), "faint")]


def _write(text: list[str], start: int, end: int, name: str) -> None:
    """A name at the start of its stretch, as far as it has room."""
    word = f"{clip(name, end - start - 2)} " if end - start > 4 else ""
    if word.isascii():
        text[start : start + len(word)] = word


def footer(
    stance: Stance, width: int, look: Look = USUAL, *, is_running: bool, is_small: bool, grip: Grip = LOOSE
) -> list[Piece]:
    """The keys, the less needed ones left out where they find no room; how many findings there are stays."""
    play = "play" if stance.is_paused else "again" if stance.is_at_end else "pause"
    keys = [
        *grip.choosing("strategy", 3),
        ("tab", "panel", 1),
        grip.entering(4),
        ("e", "explain", 2),
        ("f", found_word(grip.findings), 0 if grip.findings else 5),
        ("t", "timeline", 2),
        ("c", "compare", 4),
        ("space", play, 1),
        (named("←→", look), "seek", 4),
        ("<>", "speed", 6),
        ("end", "newest", 7),
        ("y", "copy", 8),
        ("x", "export", 9),
        ("s", "save", 10),
        ("?", "help", 0),
        ("q", "quit", 0),
    ]
    if is_running:
        keys.insert(keys.index(("<>", "speed", 6)), ("p", "profile now", 1))
    if is_small:
        keys.append(("", "80 × 24 shows more", 1))
    return keybar(keys, width)
