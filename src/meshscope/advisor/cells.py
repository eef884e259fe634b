"""What stands in a cell of a table that somebody else wrote."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_NUMBER = re.compile(r"[-+]?\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?")


def text(row: Mapping[str, str], column: str) -> str:
    """Without blanks around it; "" where the column or the value is missing."""
    return str(row.get(column) or "").strip()


def number(row: Mapping[str, str], column: str) -> float:
    """The first number in the cell; 0 where there is none that makes sense."""
    found = _NUMBER.search(text(row, column).replace(",", ""))
    value = float(found[0].replace("_", "")) if found else 0.0
    return value if math.isfinite(value) and 0 < value < 1e18 else 0.0


def whole(row: Mapping[str, str], column: str) -> int:
    """As `number`, rounded."""
    return round(number(row, column))


def flag(row: Mapping[str, str], column: str, *, default: bool) -> bool:
    """Yes or no; ``default`` where neither is said."""
    said = text(row, column).lower()
    if said in {"1", "1.0", "true", "yes", "y"}:
        return True
    return False if said in {"0", "0.0", "false", "no", "n"} else default
