"""Every colour and texture, by what it means; nothing else in the screens names a colour.

Blue, orange and the greys between them stay apart in every common colour blindness; teal and violet differ from
them in lightness too. Each meaning of time has a texture of its own, so a screenshot in black and white still reads.
All colours are members of the xterm 256 cube: a terminal with 256 colours shows what one with 16 million does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

from meshscope.ui.look import Depth, Look


class Ink(NamedTuple):
    """One role: its colour on dark, on light and among 16, and its attributes (which are all that NO_COLOR leaves).

    ``dark_ground`` and ``light_ground`` lie under a texture, so that a sparse one is as plain to see as a dense one.
    """

    dark: str
    light: str
    ansi: str = ""
    is_bold: bool = False
    is_dim: bool = False
    dark_ground: str = ""
    light_ground: str = ""


GROUND = Ink(dark="#121212", light="#ffffff")
RAISED = Ink(dark="#1c1c1c", light="#eeeeee")

INKS: dict[str, Ink] = {
    "text": Ink("#d0d0d0", "#303030"),
    "strong": Ink("#eeeeee", "#121212", is_bold=True),
    "quiet": Ink("#8a8a8a", "#6c6c6c", is_dim=True),
    "faint": Ink("#767676", "#808080", is_dim=True),
    "accent": Ink("#5fafff", "#005faf", "cyan", is_bold=True),
    "key": Ink("#afd7ff", "#005f87", "cyan", is_bold=True),
    "good": Ink("#5fd7af", "#00875f", "green"),
    "warn": Ink("#ffd75f", "#875f00", "yellow"),
    "bad": Ink("#ff875f", "#af0000", "red", is_bold=True),
    "chosen": Ink("#eeeeee", "#121212", is_bold=True),
    # Time: one colour and one texture per meaning, the same everywhere.
    "compute": Ink("#5f87d7", "#5f87d7", "blue"),
    "hidden": Ink("#87d7d7", "#5fafaf", "cyan", dark_ground="#005f5f", light_ground="#d7ffff"),
    "exposed": Ink("#ffd787", "#af5f00", "red", is_bold=True, dark_ground="#d75f00", light_ground="#ffaf00"),
    "copy": Ink("#d787d7", "#af5faf", "magenta", dark_ground="#5f005f", light_ground="#ffd7ff"),
    "wait": Ink("#d7af5f", "#af8700", "yellow", dark_ground="#5f5f00", light_ground="#ffffd7"),
    "idle": Ink("#6c6c6c", "#8a8a8a", is_dim=True),
    "host": Ink("#8a8a8a", "#8a8a8a"),
    "launch": Ink("#87afaf", "#5f8787", "cyan"),
    "mixed": Ink("#ffaf5f", "#af5f00", "red"),
    "late": Ink("#ff875f", "#d75f00", "red"),
    "data": Ink("#d7af87", "#af8787", "yellow"),
    "match": Ink("#121212", "#121212", "green", is_bold=True, dark_ground="#5fd7af", light_ground="#5fd7af"),
    "picked": Ink("#ffffff", "#005f87", "cyan", is_bold=True, dark_ground="#005f87", light_ground="#afd7ff"),
    # Memory: one hue from full to faint, which none of the times has.
    "parameters": Ink("#d7afd7", "#875f87", "magenta", is_bold=True),
    "gradients": Ink("#d7afd7", "#875f87", "magenta", dark_ground="#875f87", light_ground="#d7afd7"),
    "optimizer": Ink("#af87af", "#af87af", "magenta", dark_ground="#5f5f5f", light_ground="#ffd7ff"),
    "activations": Ink("#d7afd7", "#af87af", "magenta", dark_ground="#5f5f87", light_ground="#ffd7ff"),
    "temporaries": Ink("#af87af", "#875f87", "magenta"),
    "logits": Ink("#d7afd7", "#875f87", "magenta", dark_ground="#5f0087", light_ground="#ffd7ff"),
    "communication": Ink("#d7afd7", "#875f87", "magenta"),
    "outside": Ink("#9e9e9e", "#6c6c6c"),
    "gauge": Ink("#87afaf", "#5f8787", "cyan"),
    "profiled": Ink("#d7af5f", "#af8700", "yellow"),
    # How late: the darker the cell the later, in one hue; the characters alone tell it too.
    "heat0": Ink("#6c6c6c", "#8a8a8a", is_dim=True),
    "heat1": Ink("#d7af87", "#af8787", "yellow"),
    "heat2": Ink("#ffaf5f", "#af5f00", "yellow"),
    "heat3": Ink("#ff875f", "#d75f00", "red"),
    "heat4": Ink("#ff5f5f", "#af0000", "red", is_bold=True),
}

# A mark that fills its cell in part only.
INKS |= {
    f"{meaning} bare": INKS[meaning]._replace(dark_ground="", light_ground="")
    for meaning in ("compute", "hidden", "wait", "exposed", "copy", "host")
}

TEXTURES: dict[str, tuple[str, str]] = {
    "compute": ("█", "#"),
    "hidden": ("▒", "="),
    "exposed": ("░", "x"),
    "copy": ("▚", "%"),
    "wait": ("╱", "/"),
    "idle": ("·", "."),
    "host": ("▃", "-"),
    "launch": ("┊", ":"),
    "mixed": ("╳", "X"),
    "late": ("╲", "\\"),
    "data": ("▔", "^"),
    # None of these is a texture of time, and none is as sparse as idle: bytes are never nothing.
    "parameters": ("▓", "@"),
    "gradients": ("╬", "&"),
    "optimizer": ("≡", "+"),
    "activations": ("▄", "o"),
    "temporaries": ("▌", "*"),
    "logits": ("▞", "$"),
    "communication": ("┼", "~"),
    "outside": ("▗", "_"),
}

HEAT: tuple[tuple[str, str], ...] = (("·", "."), ("░", ":"), ("▒", "+"), ("▓", "*"), ("█", "#"))
"""From nothing to most; what is not known is blank."""

TIMES = ("compute", "hidden", "exposed", "copy", "wait", "idle")
BESIDE = ("host", "launch", "mixed", "late", "data")
"""Time too, but not of a device at work: of another queue, of a path over ranks, of what an idle device waits for."""

BYTES = ("parameters", "gradients", "optimizer", "activations", "logits", "communication", "temporaries", "outside")
"""``outside`` of what is allocated: slack, context, communication's own buffers. A forecast alone tells apart logits,
communication (buckets, gathered parameters) and it."""


def texture(meaning: str, look: Look) -> str:
    """The character that fills a bar of this meaning."""
    blocks, plain = TEXTURES[meaning]
    return plain if look.is_ascii else blocks


def heat(level: int, look: Look) -> str:
    """The character of a level, 0 to 4."""
    return HEAT[level][look.is_ascii]


@lru_cache(maxsize=16)
def styles(look: Look) -> dict[str, Style | None]:
    """How text of each role is written; None where it is plain text of the terminal's own."""
    return {role: _style(ink, look) for role, ink in INKS.items()}


def _style(ink: Ink, look: Look) -> Style | None:
    if look.is_painted:
        colour = ink.dark if look.is_dark else ink.light
        ground = (ink.dark_ground or GROUND.dark) if look.is_dark else (ink.light_ground or GROUND.light)
        return Style(color=colour, bgcolor=ground, bold=ink.is_bold or None)
    colour = ink.ansi if look.depth is Depth.ANSI16 and ink.ansi else ""
    return Style(color=colour or None, bold=ink.is_bold or None, dim=ink.is_dim or None) or None


def theme(look: Look) -> Theme:
    """What Textual's own widgets (the command palette) wear beside ours."""
    if not look.is_painted:
        return BUILTIN_THEMES["ansi-dark" if look.is_dark else "ansi-light"]
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
