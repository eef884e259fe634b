"""``ddp``, ``fsdp`` and ``xla`` in ``analyze --json``: what the strategy's own machinery did."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis import ddp as of_ddp
from meshscope.analysis import fsdp as of_fsdp
from meshscope.analysis import xla_checks as of_xla
from meshscope.run import Run


def strategy_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """A key for each that the traces show, and what cannot be said."""
    found = {"ddp": of_ddp.ddp(run), "fsdp": of_fsdp.fsdp(run), "xla": of_xla.xla(run)}
    said = {name: asdict(one) for name, one in found.items() if one is not None}
    return said, (*of_ddp.doubts(run), *of_fsdp.doubts(run), *of_xla.doubts(run))
