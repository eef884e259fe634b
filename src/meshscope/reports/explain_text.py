"""Explanations, and the list of what can be explained, as text."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

from meshscope.analysis.explaining import CUT
from meshscope.analysis.explaining.number import Explanation, Group, Number
from meshscope.analysis.explaining.words import Said, paragraphs
from meshscope.reports.columns import encodable, room
from meshscope.units import printable

_INDENT = "    "
_WIDEST = 160
"""A list of names and what they are is read across, and uses more of a wide terminal than sentences do."""

_NAMES_FRAC = 0.4
"""Names take at most so much of a line; a longer one stands above what it means."""


def explain_report(found: Sequence[Explanation], *, encoding: str | None = None) -> str:
    """Each run's answer, a blank line between cases."""
    lines: list[str] = []
    for explanation in found:
        for said in paragraphs(explanation):
            lines += [""] if said.role in ("head", "value") else []
            lines += _wrapped(said)
    return _shown(lines, encoding)


def numbers_report(
    found: Sequence[tuple[Group, Sequence[Number]]], runs: Sequence[str], *, encoding: str | None = None
) -> str:
    """What can be explained, by group: names to the left, what they mean to the right."""
    lines: list[str] = []
    most = int(room(_WIDEST) * _NAMES_FRAC)
    for group, numbers in found:
        width = max((len(name) for number in numbers if len(name := printable(number.name)) <= most), default=0)
        lines += ["", group.title, *(line for number in numbers for line in _listed(number, width or most // 2))]
    lines += ["", *textwrap.wrap(f"Ask of one of them: meshscope explain PATH NAME. Runs: {', '.join(runs)}.", room())]
    return _shown(lines, encoding)


def _listed(number: Number, width: int) -> list[str]:
    """A name that finds no room is cut: it can be asked for as it stands here."""
    name, across = printable(number.name), room(_WIDEST)
    name = name if len(name) <= across - 2 else name[: across - 2 - len(CUT)] + CUT
    indent = " " * (width + 4)
    said = textwrap.wrap(
        printable(number.definition), max(across, width + 24), initial_indent=indent, subsequent_indent=indent
    )
    if len(name) > width:
        return [f"  {name}", *said]
    first, *others = said or [""]
    return [f"  {name:<{width}}  {first.strip()}".rstrip(), *others]


def _wrapped(said: Said) -> list[str]:
    indent = _INDENT * said.depth
    return textwrap.wrap(
        said.text, room(), initial_indent=indent, subsequent_indent=indent + ("  " if said.depth else "")
    ) or [""]


def _shown(lines: Sequence[str], encoding: str | None) -> str:
    text = "\n".join(printable(line) for line in lines).strip("\n")
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")
