"""Every colour and texture, by what it means; nothing else in the screens names a colour.

Blue, orange and the greys between them stay apart in every common colour blindness; teal and violet differ from
them in lightness too. Each meaning of time has a texture of its own, so a screenshot in black and white still reads.
All colours are members of the xterm 256 cube: a terminal with 256 colours shows exactly what one with 16 million does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rich.style import Style
from textual.theme import Theme

from meshscope.ui.look import Depth, Look


class Ink(NamedTuple):
    """One role: its colour on dark, on light and among 16, and its attributes (which are all that NO_COLOR leaves)."""

    dark: str
    light: str
    ansi: str = ""
    is_bold: bool = False
    is_dim: bool = False
    is_reverse: bool = False


GROUND = Ink(dark="#121212", light="#ffffff")
RAISED = Ink(dark="#1c1c1c", light="#eeeeee")

INKS: dict[str, Ink] = {
    "text": Ink("#d0d0d0", "#303030"),
    "strong": Ink("#eeeeee", "#121212", is_bold=True),
    "quiet": Ink("#8a8a8a", "#6c6c6c", is_dim=True),
    "faint": Ink("#585858", "#a8a8a8", is_dim=True),
    "accent": Ink("#5fafff", "#005faf", "cyan", is_bold=True),
    "key": Ink("#afd7ff", "#005f87", "cyan", is_bold=True),
    "good": Ink("#5fd7af", "#00875f", "green"),
    "warn": Ink("#ffd75f", "#875f00", "yellow", is_bold=True),
    "bad": Ink("#ff875f", "#af0000", "red", is_bold=True),
    "chosen": Ink("#eeeeee", "#121212", is_bold=True),
    # Time: one colour and one texture per meaning, the same everywhere.
    "compute": Ink("#5fafff", "#0087d7", "blue"),
    "hidden": Ink("#5fafaf", "#008787", "cyan"),
    "exposed": Ink("#ff8700", "#d75f00", "red", is_bold=True),
    "copy": Ink("#d787d7", "#af5faf", "magenta"),
    "wait": Ink("#d7af5f", "#af8700", "yellow"),
    "idle": Ink("#585858", "#a8a8a8", is_dim=True),
    # Memory: one hue from full to faint, which none of the times has.
    "parameters": Ink("#d7afff", "#5f5fd7", "magenta", is_bold=True),
    "gradients": Ink("#af87d7", "#8787d7", "magenta"),
    "optimizer": Ink("#af87d7", "#8787d7", "magenta"),
    "activations": Ink("#d7afff", "#5f5fd7", "magenta"),
    "temporaries": Ink("#8787af", "#8787af", "magenta"),
    "gauge": Ink("#87afaf", "#5f8787", "cyan"),
    "profiled": Ink("#d7af5f", "#af8700", "yellow"),
}

TEXTURES: dict[str, tuple[str, str]] = {
    "compute": ("█", "#"),
    "hidden": ("▒", "="),
    "exposed": ("░", "x"),
    "copy": ("▚", "%"),
    "wait": ("╱", "/"),
    "idle": ("·", "."),
    "parameters": ("█", "#"),
    "gradients": ("▓", "%"),
    "optimizer": ("▒", "="),
    "activations": ("░", "-"),
    "temporaries": ("·", "."),
}

TIMES = ("compute", "hidden", "exposed", "copy", "wait", "idle")


def texture(meaning: str, look: Look) -> str:
    """The character that fills a bar of this meaning."""
    blocks, plain = TEXTURES[meaning]
    return plain if look.is_ascii else blocks


@lru_cache(maxsize=512)
def style(role: str, look: Look) -> Style | None:
    """How text of a role is written; None where it is plain text of the terminal's own."""
    ink = INKS[role]
    if look.is_painted:
        colour, ground = (ink.dark, GROUND.dark) if look.is_dark else (ink.light, GROUND.light)
        return Style(color=colour, bgcolor=ground, bold=ink.is_bold or None, reverse=ink.is_reverse or None)
    colour = ink.ansi if look.depth is Depth.ANSI16 and ink.ansi else ""
    found = Style(
        color=colour or None,
        bold=ink.is_bold or None,
        dim=ink.is_dim or None,
        reverse=ink.is_reverse or None,
    )
    return found or None


def theme(look: Look) -> Theme:
    """What Textual's own widgets (the command palette) wear beside ours."""
    if not look.is_painted:
        return Theme(
            name="meshscope-plain", ansi=True, dark=look.is_dark, primary="ansi_cyan", secondary="ansi_default",
            warning="ansi_yellow", error="ansi_red", success="ansi_green", accent="ansi_cyan",
            foreground="ansi_default", background="ansi_default", surface="ansi_default", panel="ansi_default",
            boost="ansi_default",
        )  # fmt: skip
    side = "dark" if look.is_dark else "light"
    return Theme(
        name=f"meshscope-{side}",
        dark=look.is_dark,
        primary=getattr(INKS["accent"], side),
        secondary=getattr(INKS["hidden"], side),
        warning=getattr(INKS["warn"], side),
        error=getattr(INKS["bad"], side),
        success=getattr(INKS["good"], side),
        accent=getattr(INKS["key"], side),
        foreground=getattr(INKS["text"], side),
        background=getattr(GROUND, side),
        surface=getattr(GROUND, side),
        panel=getattr(RAISED, side),
    )
