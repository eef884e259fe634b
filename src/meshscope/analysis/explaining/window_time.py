"""Explains what was traced in all: the classes of time over whole windows."""

from __future__ import annotations

from meshscope.analysis.explaining.number import Group
from meshscope.analysis.explaining.rank_time import whole_numbers

GROUP = Group("whole windows of each rank", 9, whole_numbers)
