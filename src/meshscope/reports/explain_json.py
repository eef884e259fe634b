"""Explanations, and the list of what can be explained, as one JSON object (format 1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from meshscope.analysis.explaining.figure import Figure
from meshscope.analysis.explaining.number import Case, Explanation, Group, Number
from meshscope.units import printable

FORMAT = 1

Refusals = Iterable[tuple[str, str, str]]


def explain_json(found: Sequence[Explanation], refused: Refusals = ()) -> str:
    """``explanations``: one for each run, a case for each value, each with its tree of figures."""
    return _encoded({"explanations": [_explanation(one) for one in found]}, refused)


def numbers_json(found: Sequence[tuple[Group, Sequence[Number]]], refused: Refusals = ()) -> str:
    """``numbers``: what can be explained, with every name it goes by."""
    told = [
        {"name": number.name, "group": group.title, "unit": number.unit, "definition": number.definition,
         "also": list(number.also), "by": list(number.by)}
        for group, numbers in found
        for number in numbers
    ]  # fmt: skip
    return _encoded({"explanations": [], "numbers": told}, refused)


def _encoded(said: dict[str, Any], refused: Refusals) -> str:
    listed = [{"path": path, "why": why, "hint": hint} for path, why, hint in refused]
    whole = _encodable({"format": FORMAT} | said | {"refused": listed})
    return msgspec.json.format(msgspec.json.encode(whole), indent=1).decode()


def _encodable(said: Any) -> Any:
    """Names of files may hold bytes that are no text: JSON has no way to say them."""
    if isinstance(said, dict):
        return {_encodable(name): _encodable(value) for name, value in said.items()}
    if isinstance(said, list):
        return [_encodable(value) for value in said]
    return printable(said) if isinstance(said, str) and not said.isascii() else said


def _explanation(found: Explanation) -> dict[str, Any]:
    number = found.number
    return {
        "number": number.name,
        "group": found.group,
        "run": found.run or None,
        "path": found.path,
        "definition": number.definition,
        "excludes": number.excludes,
        "unit": number.unit,
        "cases": [_case(case) for case in found.cases],
    }


def _case(case: Case) -> dict[str, Any]:
    """A value that cannot be said is absent, and ``why`` says why."""
    said: dict[str, Any] = {"of": case.of} | ({"rank": case.rank} if case.rank is not None else {})
    if case.figure is None:
        said["why"] = case.why
    else:
        said |= {"value": case.figure.value, "unit": case.figure.unit, "formula": _figure(case.figure)}
    if case.json:
        said["json"] = case.json
    said["windows"] = [_plain(asdict(place)) for place in case.places]
    if case.evidence is not None:
        said["spans"] = _plain(asdict(case.evidence))
    if case.events is not None:
        said["events"] = asdict(case.events)
    return said | {"notes": list(case.notes)}


def _plain(said: dict[str, Any]) -> dict[str, Any]:
    return {name: _listed(value) if isinstance(value, tuple) else value for name, value in said.items()}


def _listed(values: tuple[Any, ...]) -> list[Any]:
    return [_plain(one) if isinstance(one, dict) else one for one in values]


def _figure(figure: Figure) -> dict[str, Any]:
    said: dict[str, Any] = {"name": figure.name, "unit": figure.unit}
    if math.isfinite(figure.value):
        said["value"] = figure.value
    return said | ({"how": figure.how, "of": [_figure(part) for part in figure.of]} if figure.how else {})
