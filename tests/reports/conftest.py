"""Makes drawn runs importable, and keeps golden answers."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis" / "support"))

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the one kept under a name; ``--update`` keeps the new one instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        kept = path.read_text() if path.is_file() else ""
        diff = "\n".join(difflib.unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", lineterm=""))
        assert not diff, f"{name} changed; if that is right, run pytest --update and review it:\n{diff}"

    return compare
