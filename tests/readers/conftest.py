"""Makes ``support/`` importable: small native traces, made by hand; and the fuzz run beside it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "support"), str(Path(__file__).parent)]
