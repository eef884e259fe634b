"""Makes ``support/`` importable: runs that are drawn in text, or folded from a few entries; and the made traces."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "readers" / "support"))
