"""A screen as an SVG picture, and as the plain text of its cells.

Rich's own SVG export leaves it to the viewer's font to join block characters, which shows as stripes, and to keep
leading spaces, which some viewers drop. Here every word has its own place, and blocks are rectangles.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.app import App

from meshscope.ui.palette import GROUND, INKS

_WIDE, _HIGH, _FONT, _BASE = 8.4, 18, 14, 13.5
_ANSI = [(18, 18, 18), (215, 95, 95), (95, 175, 95), (215, 175, 95), (95, 175, 255), (215, 135, 215), (95, 175, 175),
         (208, 208, 208)]  # fmt: skip
_LOWER, _LEFT = "▁▂▃▄▅▆▇█", "▏▎▍▌▋▊▉"
_SHADES = {"░": 1, "▒": 2, "▓": 3}
_RULES = {"─": 1.0, "━": 2.4}
_BLOCKS = frozenset("▚│" + _LOWER + _LEFT + "".join(_SHADES) + "".join(_RULES))
_WORDS = re.compile(r"\S+(?: \S+)*")


def cells(app: App[Any]) -> list[list[Segment]]:
    """What every line of the screen shows now, dialogs included."""
    console = _console(*app.size)
    lines = Segment.split_lines(console.render(_update(app), console.options))
    return [list(Segment.simplify(part for part in line if not part.control)) for line in lines]


def text(app: App[Any]) -> str:
    """The characters of the screen, without spaces at the ends of lines."""
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in cells(app)) + "\n"


def picture(app: App[Any], *, title: str = "meshscope") -> str:
    """The screen as SVG, on the background that its look paints (or that its theme assumes)."""
    return svg(cells(app), app.size.width, title=title, is_dark=app.current_theme.dark)


def svg(lines: list[list[Segment]], width: int, *, title: str, is_dark: bool = True) -> str:
    """Lines of ``width`` cells as one SVG document with rounded corners and a title for those who cannot see it."""
    sheet = _Sheet(_theme("dark" if is_dark else "light"))
    body = "\n".join(shape for y, line in enumerate(lines) for shape in sheet.line(line, y))
    wide, high = width * _WIDE + 2 * _WIDE, len(lines) * _HIGH + _HIGH
    ground = GROUND.dark if is_dark else GROUND.light
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>text{{font:{_FONT}px 'DejaVu Sans Mono','Fira Code',Menlo,Consolas,monospace;white-space:pre}}"
        ".b{font-weight:bold}</style>\n"
        f"<defs>{''.join(sheet.patterns.values())}</defs>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{ground}"/>\n'
        f'<g transform="translate({_WIDE:g} {_HIGH / 2:g})">\n{body}\n</g>\n</svg>\n'
    )


@dataclass
class _Sheet:
    """Shapes of lines, and the patterns that they have needed so far."""

    theme: TerminalTheme
    patterns: dict[tuple[str, str], str] = field(default_factory=dict)

    def line(self, line: list[Segment], y: int) -> Iterator[str]:
        at = 0
        for segment in line:
            size = cell_len(segment.text)
            style = segment.style or Style()
            ink, paper = self._colours(style)
            if paper is not None:
                yield _box(at, y, size, paper)
            yield from self._run(segment.text, at, y, ink, is_bold=bool(style.bold))
            at += size

    def _colours(self, style: Style) -> tuple[str, str | None]:
        ink = style.color.get_truecolor(self.theme) if style.color else self.theme.foreground_color
        ground = self.theme.background_color
        paper = style.bgcolor.get_truecolor(self.theme, foreground=False) if style.bgcolor else ground
        if style.reverse:
            ink, paper = paper, ink
        if style.dim:
            ink = type(ink)(*((a + b) // 2 for a, b in zip(ink, paper, strict=True)))
        return "#{:02x}{:02x}{:02x}".format(*ink), None if paper == ground else "#{:02x}{:02x}{:02x}".format(*paper)

    def _run(self, words: str, at: int, y: int, ink: str, *, is_bold: bool) -> Iterator[str]:
        for is_block, group in groupby(words, key=_is_block):
            part = "".join(group)
            if is_block:
                yield from self._blocks(part, at, y, ink)
            else:
                yield from _texts(part, at, y, ink, is_bold=is_bold)
            at += cell_len(part)

    def _blocks(self, part: str, at: int, y: int, ink: str) -> Iterator[str]:
        for character, group in groupby(part):
            count = len(list(group))
            if character in _LOWER:
                yield _box(at, y, count, ink, top=1 - (_LOWER.index(character) + 1) / 8)
            elif character in _LEFT:
                wide = (_LEFT.index(character) + 1) / 8
                yield from (_box(at + column, y, wide, ink) for column in range(count))
            elif character in _RULES:
                thick = _RULES[character] / _HIGH
                yield _box(at, y, count, ink, top=0.5 - thick / 2, bottom=0.5 + thick / 2)
            elif character == "│":
                yield from (_box(at + 0.5 + column - 0.06, y, 0.12, ink) for column in range(count))
            else:
                yield _box(at, y, count, self._pattern(character, ink))
            at += count

    def _pattern(self, character: str, ink: str) -> str:
        """A fill of dots, as dense as the shade, or of a checker for ``▚``."""
        name = f"p{ord(character):x}{ink[1:]}"
        if character == "▚":
            w, h = _WIDE, float(_HIGH)
            tile = f'<path d="M0 0h{w / 2}v{h / 2}h-{w / 2}zM{w / 2} {h / 2}h{w / 2}v{h / 2}h-{w / 2}z"'
        else:
            w, h = _WIDE / 4, 3.0
            radius = {1: 0.55, 2: 0.85, 3: 1.15}[_SHADES[character]]
            tile = f'<circle cx="{w / 2}" cy="{h / 2}" r="{radius}"'
        self.patterns[character, ink] = (
            f'<pattern id="{name}" width="{w:g}" height="{h:g}" patternUnits="userSpaceOnUse">'
            f'{tile} fill="{ink}"/></pattern>'
        )
        return f"url(#{name})"


def _is_block(character: str) -> bool:
    return character in _BLOCKS


def _texts(part: str, at: int, y: int, ink: str, *, is_bold: bool) -> Iterator[str]:
    """Words with single spaces between them stay together; each group knows its place and its width."""
    for match in _WORDS.finditer(part):
        words = match.group()
        x = (at + cell_len(part[: match.start()])) * _WIDE
        weight = ' class="b"' if is_bold else ""
        yield (
            f'<text x="{x:.1f}" y="{y * _HIGH + _BASE:g}" fill="{ink}"{weight} '
            f'textLength="{cell_len(words) * _WIDE:.1f}" lengthAdjust="spacingAndGlyphs">{escape(words)}</text>'
        )


def _box(at: float, y: int, size: float, fill: str, *, top: float = 0.0, bottom: float = 1.0) -> str:
    return (
        f'<rect x="{at * _WIDE:.1f}" y="{(y + top) * _HIGH:.2f}" width="{size * _WIDE:.1f}" '
        f'height="{(bottom - top) * _HIGH:.2f}" fill="{fill}"/>'
    )


def _update(app: App[Any]) -> Any:
    # As App.export_screenshot does; there is no public way to the cells of a screen.
    return app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)


def _console(width: int, height: int) -> Console:
    return Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system="truecolor")


def _theme(side: str) -> TerminalTheme:
    return TerminalTheme(_rgb(getattr(GROUND, side)), _rgb(getattr(INKS["text"], side)), _ANSI, _ANSI)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
