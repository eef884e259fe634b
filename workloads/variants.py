"""Variants of DDP: which of them cannot be had together or on CPU ranks, and what they change.

Standard library only, as ``options`` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refusals import OptionError

if TYPE_CHECKING:
    from options import Options

_SENT = {
    "fp16": "as fp16, in half the bytes",
    "bf16": "as bf16, in half the bytes",
    "powersgd": "as two thin matrices for each wide one",
}
_NOT_OVER_GLOO = {
    "bf16": "gloo, which connects CPU ranks, cannot add bf16 gradients.",
    # It asks for the next call where the one before ends, and each rank's threads end them in an order of their own.
    "powersgd": "Over gloo, which connects CPU ranks, PowerSGD's calls come in another order on each rank.",
}


def check_variant(options: Options) -> None:
    """OptionError for options of DDP that exclude one another."""
    if options.static_graph and options.accumulate > 1 and not options.sync_every_micro_batch:
        raise OptionError(
            "DDP cannot leave out averaging (no_sync) where it was told that the graph is static.",
            "Add --sync-every-micro-batch, or leave out --static-graph or --accumulate.",
        )


def check_kind(options: Options, kind: str) -> None:
    """Refuses what ranks on one kind of device (``cpu``, ``gpu``, …) cannot do. OptionError says what can be done."""
    if kind == "cpu" and options.compress in _NOT_OVER_GLOO:
        raise OptionError(_NOT_OVER_GLOO[options.compress], "Use --compress fp16 there, or GPUs.")


def notes(options: Options, strategy: str) -> list[str]:
    """What the options make a strategy do that sets it apart from the others, as clauses."""
    if strategy != "ddp" or options.compress not in _SENT:
        return []
    return [f"gradients are sent {_SENT[options.compress]}, so that its losses are no longer those of one device"]
