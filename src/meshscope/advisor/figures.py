"""A predicted number: its value, how far off it may be, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["measured", "interpolated", "datasheet", "analytic", "framework", "compiler", "assumed"]
"""``measured``: somebody ran this very thing; ``interpolated``: between or beyond measurements; ``datasheet``: from a
maker's peak and a shape-dependent share of it; ``analytic``: counted from the model's shape; ``framework``: what torch
itself allocates on fake tensors; ``compiler``: what XLA says ahead of time; ``assumed``: neither measured nor stated.
"""


@dataclass(frozen=True)
class Figure:
    """``low`` and ``high`` bound 90 % of outcomes. ``where`` names the table, fit or formula in a few words."""

    value: float
    low: float
    high: float
    source: Source
    where: str = ""
