"""Text to the clipboard of the terminal, by OSC 52: it works over SSH, and nothing tells whether it was taken.

tmux takes it from a program only with ``set-clipboard on``, else passes it on only with ``allow-passthrough on``; it is
sent both ways there. https://github.com/tmux/tmux/wiki/Clipboard
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

from textual.app import App

from meshscope.units import counted

MOST_BYTES = 74_000
"""What xterm and hterm take in one sequence: 100 000 characters of base64 with room for the rest."""

TMUX = "in tmux: set -g set-clipboard on"


def fitting(lines: Sequence[str]) -> list[str]:
    """As many whole lines as the clipboard of a terminal takes; the first is cut where it alone is too much."""
    kept: list[str] = []
    room = MOST_BYTES
    for line in lines:
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept and lines:
        return [lines[0].encode("utf-8", "replace")[: MOST_BYTES - 4].decode("utf-8", "ignore")]
    return kept


def copy(app: App[Any], lines: Sequence[str], environ: Mapping[str, str] = os.environ) -> str:
    """Send lines to the clipboard. What is to be added to the words that say so: what was left out, and tmux's part."""
    kept = fitting(lines)
    text = "\n".join(kept).encode("utf-8", "replace").decode()
    app.copy_to_clipboard(text)
    notes = []
    if len(kept) < len(lines):
        notes.append(f"the first {len(kept)} of {counted(len(lines), 'line')}, more than a terminal takes")
    if environ.get("TMUX"):
        _through_tmux(app, text)
        notes.append(TMUX)
    return "".join(f"; {note}" for note in notes)


def _through_tmux(app: App[Any], text: str) -> None:
    driver = app._driver  # Textual writes OSC 52 by the same way
    if driver is not None:
        encoded = base64.b64encode(text.encode()).decode("ascii")
        driver.write(f"\x1bPtmux;\x1b\x1b]52;c;{encoded}\a\x1b\\")
