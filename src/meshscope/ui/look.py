"""What this terminal can show: its characters, its colours, and whether its background is dark.

256 colours come first, because OpenSSH does not forward COLORTERM; truecolor only when announced. Nothing is ever
told by colour alone, so every look carries the same meanings, down to ASCII without a colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from meshscope.errors import InputError


class Depth(IntEnum):
    """How many colours a terminal shows."""

    NONE = 0
    ANSI16 = 4
    ANSI256 = 8
    TRUECOLOR = 24


THEMES = ("auto", "dark", "light")
COLOURS = {"none": Depth.NONE, "16": Depth.ANSI16, "256": Depth.ANSI256, "truecolor": Depth.TRUECOLOR}

_RICH_TERMS = ("256color", "kitty", "alacritty", "foot", "wezterm", "ghostty", "iterm", "direct")
_POOR_FONTS = ("linux", "vt100", "vt102", "vt220", "ansi", "cons25", "dumb")


@dataclass(frozen=True)
class Look:
    """How marks are drawn: in ASCII or block characters, in how many colours, on which background."""

    is_ascii: bool = False
    depth: Depth = Depth.ANSI256
    is_dark: bool = True

    @property
    def is_painted(self) -> bool:
        """Whether the background is ours; with few colours the terminal's own is left as it is."""
        return self.depth >= Depth.ANSI256


USUAL = Look()


def look(
    environ: Mapping[str, str],
    *,
    encoding: str = "utf-8",
    is_ascii: bool | None = None,
    colours: str | None = None,
    theme: str = "auto",
) -> Look:
    """The look for a terminal described by its environment and output encoding; options overrule both.

    ``colours`` is a key of COLOURS and ``theme`` one of THEMES. Raises InputError for any other.
    """
    if colours is not None and colours not in COLOURS:
        raise InputError(f"There is no colour mode {colours!r}.", hint=f"Choose one of: {', '.join(COLOURS)}.")
    if theme not in THEMES:
        raise InputError(f"There is no theme {theme!r}.", hint=f"Choose one of: {', '.join(THEMES)}.")
    return Look(
        is_ascii=_needs_ascii(environ, encoding) if is_ascii is None else is_ascii,
        depth=COLOURS[colours] if colours is not None else _depth(environ),
        is_dark=_is_dark(environ) if theme == "auto" else theme == "dark",
    )


def without_colour(given: Look) -> Look:
    """The same characters in the terminal's own two colours."""
    return replace(given, depth=Depth.NONE)


def is_served(environ: Mapping[str, str]) -> bool:
    """Whether a browser shows the screen (``textual serve``): no stream is a terminal then, and yet somebody looks."""
    return "web_driver" in environ.get("TEXTUAL_DRIVER", "")


def _needs_ascii(environ: Mapping[str, str], encoding: str) -> bool:
    """True where block characters would come out as boxes or question marks.

    A locale that is set and is not UTF-8 says so; one that is not set at all says nothing (containers), and then
    only a terminal with a poor font (the Linux console has no eighth blocks) asks for ASCII. A browser never does.
    """
    if is_served(environ):
        return False
    if encoding.lower().replace("-", "").replace("_", "") not in ("utf8", "utf16", "utf32"):
        return True
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    if locale and "utf8" not in locale.lower().replace("-", ""):
        return True
    return environ.get("TERM", "").lower() in _POOR_FONTS


def _depth(environ: Mapping[str, str]) -> Depth:
    if environ.get("NO_COLOR"):
        return Depth.NONE
    if is_served(environ):
        return Depth.TRUECOLOR
    term = environ.get("TERM", "").lower()
    if term == "dumb":
        return Depth.NONE
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Depth.TRUECOLOR
    return Depth.ANSI256 if any(name in term for name in _RICH_TERMS) else Depth.ANSI16


def _is_dark(environ: Mapping[str, str]) -> bool:
    """From COLORFGBG ("15;0"), which rxvt, Konsole and others set; dark where nothing is said."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background not in ("7", "9", "10", "11", "12", "13", "14", "15")
