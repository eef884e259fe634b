"""Runs drawn as pictures, as in the tests of the analysis, and a timeline over one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "analysis" / "support"))
sys.path.insert(0, str(Path(__file__).parent / "support"))
