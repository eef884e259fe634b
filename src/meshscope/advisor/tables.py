"""Tables that come with the package: TOML, read once in a process."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """What ``data/NAME.toml`` holds. Not to be changed by who is given it: everybody gets the same one."""
    return tomllib.loads((files("meshscope.advisor") / "data" / f"{name}.toml").read_text(encoding="utf-8"))
