"""Makes ``support/`` importable: recordings written through the real recording classes."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
sys.path.insert(0, str(Path(__file__).parent.parent / "readers" / "support"))
