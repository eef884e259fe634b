"""Time against memory: the candidates that none other beats in both."""

from __future__ import annotations

from collections.abc import Iterable

from meshscope.advisor.ranking import Ranked


def front(found: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """From the fastest to the one that needs least memory; each needs less than all that are faster."""
    kept: list[Ranked] = []
    for each in sorted(found, key=lambda one: (one.step_s, one.memory.used.value)):
        if each.time is not None and (not kept or each.memory.used.value < kept[-1].memory.used.value):
            kept.append(each)
    return tuple(kept)
