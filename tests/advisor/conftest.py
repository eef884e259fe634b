"""Makes ``support/`` importable: candidates and predictions made by hand, and measured runs drawn in text."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in (Path(__file__).parent / "support", Path(__file__).parents[1] / "analysis" / "support"):
    sys.path.insert(0, str(folder))
