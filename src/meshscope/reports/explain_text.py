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
_NAMES, _LEAST = 20, 20


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
    """What can be explained, by group, a line each."""
    lines: list[str] = []
    longest = min(max((len(number.name) for _, numbers in found for number in numbers), default=0), _NAMES)
    for group, numbers in found:
        lines += ["", group.title]
        for number in numbers:
            lines.append(_listed(number, longest))
    lines += ["", *textwrap.wrap(f"Ask of one of them: meshscope explain PATH NAME. Runs: {', '.join(runs)}.", room())]
    return _shown(lines, encoding)


def _listed(number: Number, width: int) -> str:
    """A name that finds no room is cut: it can be asked for as it stands here."""
    name = printable(number.name)
    if len(name) > room() - _LEAST:
        return "  " + (name if len(name) <= room() - 2 else name[: room() - 2 - len(CUT)] + CUT)
    head = f"  {name:<{width}}  "
    return head + textwrap.shorten(printable(number.definition), room() - len(head), placeholder=" …")


def _wrapped(said: Said) -> list[str]:
    indent = _INDENT * said.depth
    return textwrap.wrap(
        said.text, room(), initial_indent=indent, subsequent_indent=indent + ("  " if said.depth else "")
    ) or [""]


def _shown(lines: Sequence[str], encoding: str | None) -> str:
    text = "\n".join(printable(line) for line in lines).strip("\n")
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")
