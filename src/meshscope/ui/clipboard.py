"""Text to the clipboard of the terminal, by OSC 52: it works over SSH, and nothing tells whether it was taken.

tmux takes it from a program only with ``set-clipboard on``, else passes it on only with ``allow-passthrough on``; it is
sent both ways there. https://github.com/tmux/tmux/wiki/Clipboard
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence

from meshscope.units import counted

MOST_BYTES = 74_000
"""What xterm and hterm take in one sequence: 100 000 characters of base64 with room for the rest."""

TMUX = "in tmux: set -g set-clipboard on"


def fitting(text: str) -> str:
    """As many whole lines as the clipboard of a terminal takes; the first is cut where it alone is too much."""
    content = text.encode("utf-8", "replace")
    if len(content) > MOST_BYTES:
        content = content[:MOST_BYTES]
        content = content[: content.rfind(b"\n")] if b"\n" in content else content
    return content.decode("utf-8", "ignore")


def left_out(lines: Sequence[str]) -> str:
    """``; the first 74 of 100 lines, …``, to go on after the words that say what was copied; "" where all of it was."""
    kept = fitting("\n".join(lines)).count("\n") + 1
    if kept >= len(lines):
        return ""
    return f"; the first {kept} of {counted(len(lines), 'line')}, more than a terminal takes"


def passed_through(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The sequence that tmux hands to the terminal around it; "" outside tmux."""
    if not environ.get("TMUX"):
        return ""
    return f"\x1bPtmux;\x1b\x1b]52;c;{base64.b64encode(text.encode()).decode('ascii')}\a\x1b\\"
