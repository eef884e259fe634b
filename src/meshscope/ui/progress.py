"""The lines above opened traces: what they are, what they say, and how far their reading is."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.traced import Traced, sentence
from meshscope.run import COMPILING, Seen, SoFar
from meshscope.ui.keybar import LOOSE, Grip, Key, keybar
from meshscope.ui.look import USUAL, Look
from meshscope.ui.marks.cells import Line, Piece, ends, wrapped
from meshscope.ui.panels.traces import Table, subject
from meshscope.ui.scene import Scene
from meshscope.ui.words import age, found_word, grouped
from meshscope.units import NS_PER_S, counted, percent, printable, size

_BAR = 40


def lines(scene: Scene, table: Table | None, seen: Seen, width: int, height: int) -> list[Line]:
    """``height`` lines: a title, the sentence about the run that is looked at, and the progress while there is any."""
    inside, so_far = width - 2, seen.so_far
    what: list[Piece] = [("meshscope", "accent"), ("   ", "text"), (subject(table, so_far.files), "quiet")]
    found = table.of(scene.selected) if table is not None else None
    said = wrapped(printable(_said(scene, found, seen)), inside, height - 2)
    body: list[Line] = [[(" ", "text"), (line, "strong")] for line in said]
    body += [[]] * (height - 2 - len(body))
    return [[(" ", "text"), *ends(what, _status(scene, so_far), inside)], *body, [(" ", "text"), *bar(so_far, inside)]]


def _said(scene: Scene, found: Traced | None, seen: Seen) -> str:
    if found is not None:
        if not scene.caveat:
            return sentence(found)
        ago = f" {age(seen.age_ns)}" if seen.age_ns >= 2 * NS_PER_S else ""
        return f"{scene.caveat[0].upper()}{scene.caveat[1:]}{ago}: {sentence(found)}"
    if not seen.so_far.is_done:
        return "Reading: the first numbers appear as soon as a file, or the beginning of a big one, is read."
    return "None of the files could be read." if scene.refused else "Reading what was read…"


def _status(scene: Scene, so_far: SoFar) -> list[Piece]:
    refused: list[Piece] = [(f"{len(scene.refused)} refused", "bad"), ("   ", "text")] if scene.refused else []
    if so_far.is_done:
        done = so_far.files - len(scene.refused)
        return [*refused, ("✓ ", "good"), (f"{counted(done, 'file')} read", "quiet")]
    return [
        *refused,
        ("◐ ", "accent"),
        (f"reading, {so_far.files_done} of {counted(so_far.files, 'file')} done", "text"),
    ]


def bar(so_far: SoFar, width: int) -> list[Piece]:
    """How far, in bytes, events and time left; nothing once all is read."""
    if so_far.is_done or not so_far.files:
        return []
    words = [f"{percent(so_far.frac)} of {size(so_far.total_bytes)}"]
    if so_far.is_compiling:
        words.append(COMPILING)
    elif so_far.events:
        words.append(f"{grouped(so_far.events)} events")
    if so_far.left_ns is not None and not so_far.is_compiling:
        words.append(left(so_far.left_ns))
    text = "  " + " · ".join(words)
    room = max(min(width - len(text), max(_BAR, width // 3)), 0)
    done = min(int(so_far.frac * room), room)
    return [("━" * done, "accent"), ("─" * (room - done), "faint"), (text, "quiet")]


def left(left_ns: int) -> str:
    """``about 12 s left``, coarse enough not to flicker."""
    seconds = max(round(left_ns / NS_PER_S), 1)
    if seconds < 90:
        return f"about {seconds} s left"
    return f"about {round(seconds / 60)} min left"


def footer(width: int, look: Look = USUAL, *, runs: int, is_small: bool, grip: Grip = LOOSE) -> list[Piece]:
    """The keys, the less needed ones left out where they find no room."""
    del look
    keys: Sequence[Key] = (
        *grip.choosing("run" if runs > 1 else "", 2),
        ("tab", "panel", 1),
        grip.entering(3),
        ("e", "explain", 3),
        ("f", found_word(grip.findings), 0 if grip.findings else 3),
        ("t", "timeline", 2),
        *((("c", "compare", 2),) if runs > 1 else ()),
        ("pgup pgdn", "scroll", 4),
        ("y", "copy", 5),
        ("x", "export", 6),
        ("s", "save", 7),
        ("?", "help", 0),
        ("q", "quit", 0),
        *((("", "80 × 24 shows more", 1),) if is_small else ()),
    )
    return keybar(keys, width)
