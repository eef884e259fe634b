"""What ``analyze --json`` says of causes: each part by its own file, put together here."""

from __future__ import annotations

import math
from typing import Any

from meshscope.reports.compilation_json import compilation_json
from meshscope.reports.idle_json import idle_json
from meshscope.reports.operations_json import operations_json
from meshscope.reports.path_json import path_json
from meshscope.reports.strategy_json import strategy_json
from meshscope.run import Run

_PARTS = (idle_json, operations_json, strategy_json, path_json, compilation_json)


def why_json(run: Run) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The keys of all parts, and (what, why) of what they cannot say."""
    said: dict[str, Any] = {}
    doubts: list[tuple[str, str]] = []
    for part in _PARTS:
        more, whys = part(run)
        said |= _known(more)
        doubts += whys
    return said, doubts


def _known(said: Any) -> Any:
    """Without what is not known: a share of nothing is no number."""
    if isinstance(said, dict):
        return {name: _known(value) for name, value in said.items() if not _is_unknown(value)}
    return [_known(value) for value in said] if isinstance(said, list | tuple) else said


def _is_unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
