"""``ddp``, ``fsdp`` and ``xla`` in ``analyze --json``: what the strategy's own machinery did."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshscope.analysis import ddp as of_ddp
from meshscope.analysis import fsdp as of_fsdp
from meshscope.analysis import xla_checks as of_xla
from meshscope.run import Run

_TOTAL, _CALL = "all ranks and windows", "one call"
_STEP, _PASS = "mean complete step of a rank", "mean backward pass of a rank"

OVER = {
    "ddp": {
        **dict.fromkeys(("passes", "alike", "unmatched", "covered_ns", "optimizer_steps", "repeats", "repeated",
                         "repeated_ns", "searches", "search_ns", "buffers", "buffers_ns", "tail_frac"), _TOTAL),
        **dict.fromkeys(("buckets", "computed_ns", "tail_ns", "waited_ns"), _PASS),
        **dict.fromkeys(("device_step_ns", "passes_per_step"), _STEP),
    },
    "fsdp": {
        **dict.fromkeys(("gathers", "hidden", "hidden_frac", "exposed_ns", "covered_ns", "exposed_frac", "root_again",
                         "root_again_ns"), _TOTAL),
        **{f"modules.{name}": _TOTAL for name in ("count", "busy_ns", "hidden_ns", "exposed_ns", "hidden", "ahead")},
        "modules.per_step": _STEP,
        "modules.size_bytes": _CALL,
    },
    "xla": {
        **dict.fromkeys(("commands", "works", "in_commands"), _TOTAL),
        **{f"collectives.{name}": _TOTAL for name in (
            "count", "asynchronous", "synchronous", "untold", "combined", "in_commands", "busy_ns", "exposed_ns",
            "sized", "small", "sized_bytes", "longest.count", "longest.exposed_ns")},
        "collectives.per_step": _STEP,
        "collectives.median_ns": _CALL,
        "collectives.longest.size_bytes": _CALL,
    },
}  # fmt: skip
"""What each number is of: totals stand beside means of a step or of a pass."""


def strategy_json(run: Run) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """A key for each that the traces show, with what its numbers are ``over``, and what cannot be said."""
    found = {"ddp": of_ddp.ddp(run), "fsdp": of_fsdp.fsdp(run), "xla": of_xla.xla(run)}
    said = {name: asdict(one) | {"over": OVER[name]} for name, one in found.items() if one is not None}
    return said, (*of_ddp.doubts(run), *of_fsdp.doubts(run), *of_xla.doubts(run))
