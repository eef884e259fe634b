"""The shape of whatever a script calls a batch."""

from __future__ import annotations

from typing import Any


def batch_shape(batch: Any) -> tuple[int, ...]:
    """That of the first array found in it; () where there is none."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return tuple(int(size) for size in shape)
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, list | tuple) else ()
    return next((found for part in parts if (found := batch_shape(part))), ())
