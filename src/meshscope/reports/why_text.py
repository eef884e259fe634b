"""What the text report says of causes: each part by its own file, put together here."""

from __future__ import annotations

from meshscope.reports.compilation_text import compilation_lines
from meshscope.reports.idle_text import idle_lines
from meshscope.reports.operations_text import operations_lines
from meshscope.reports.path_text import path_lines
from meshscope.reports.strategy_text import strategy_lines
from meshscope.run import Run

_PARTS = (idle_lines, operations_lines, strategy_lines, path_lines, compilation_lines)


def why_lines(run: Run) -> list[str]:
    return [line for part in _PARTS for line in part(run)]
