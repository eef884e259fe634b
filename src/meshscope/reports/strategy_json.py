"""``ddp``, ``fsdp`` and ``xla`` in ``analyze --json``: what the strategy's own machinery did."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from meshscope.analysis import ddp as of_ddp
from meshscope.analysis import fsdp as of_fsdp
from meshscope.analysis import xla_checks as of_xla
from meshscope.run import Run


def strategy_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """A key for each that the traces show, and what cannot be said."""
    found = {"ddp": of_ddp.ddp(run), "fsdp": of_fsdp.fsdp(run), "xla": of_xla.xla(run)}
    said = {name: _known(asdict(one)) for name, one in found.items() if one is not None}
    return said, (*of_ddp.doubts(run), *of_fsdp.doubts(run), *of_xla.doubts(run))


def _known(said: Any) -> Any:
    """Without what is not known."""
    if isinstance(said, dict):
        return {name: _known(value) for name, value in said.items() if not _is_unknown(value)}
    return [_known(value) for value in said] if isinstance(said, list | tuple) else said


def _is_unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
