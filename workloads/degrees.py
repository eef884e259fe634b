"""How ranks share one model: which of them train on the same samples, and what does not divide among them.

Standard library only, as ``options`` is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refusals import OptionError

if TYPE_CHECKING:
    from options import Options


def data_ranks(options: Options, ranks: int) -> int:
    """Slices of the batch: ranks that share each layer or sequence, or are stages of a pipeline, have one together.

    These are consecutive: with two to a layer they are 0 and 1, 2 and 3, and so on.
    """
    return max(1, ranks // (options.tensor * options.context * options.stages))


def settled(options: Options, ranks: int, *, spec: str = "", schedule: str = "") -> Options:
    """The options once it is known how many ranks there are; ``spec`` is that of a script which leaves no choice, and
    ``schedule`` that of a pipeline which was asked for none.

    With the spec ``tp`` all ranks share each layer, with ``cp`` each sequence, and all are stages of a pipeline. With
    one that splits neither, every rank has samples of its own whatever is asked of the strategies beside it.
    OptionError: a degree that cannot be had.
    """
    if schedule and options.schedule == "none":
        options = replace(options, schedule=schedule)
    spec = spec or options.spec
    if spec == "tp" and options.tensor not in (1, ranks):
        raise OptionError(
            f"tp splits every layer over all {ranks} ranks, not over {options.tensor} of them.",
            "Leave --tensor out, or use fsdp-tp, which shards over groups of such ranks.",
        )
    if spec == "fsdp-tp" and (options.tensor < 2 or ranks % options.tensor or ranks == options.tensor):
        least = max(options.tensor, 2)
        raise OptionError(
            f"{ranks} ranks are not several groups of {options.tensor} that share each layer.",
            f"Use --tensor 2 or more, and --ranks {2 * least} or a larger multiple of {least}.",
        )
    tensor = {"tp": ranks, "fsdp-tp": options.tensor}.get(spec, 1)
    stages = 1 if options.schedule == "none" else ranks if options.stages == 1 else options.stages
    return replace(options, spec=spec, tensor=tensor, context=ranks if spec == "cp" else 1, stages=stages)


def check_degrees(options: Options, ranks: int) -> None:
    """OptionError for ranks, layers or sequences that do not divide."""
    together = options.tensor * options.context
    if ranks % together:
        raise OptionError(f"{ranks} ranks are not groups of {together}.", f"Ask for a multiple of {together} ranks.")
    for flag, value in (("heads", options.heads), ("vocab", options.vocab), ("seq", options.seq)):
        if value % options.tensor:
            raise OptionError(
                f"--{flag} {value} does not divide among {options.tensor} ranks that share each layer.",
                f"Choose --{flag} as a multiple of {options.tensor}, or let fewer ranks share a layer.",
            )
    # Under a causal mask late tokens look at more than early ones: each rank takes a piece from either end.
    pieces = 2 * options.context if options.context > 1 else 1
    if options.seq % pieces:
        raise OptionError(
            f"--seq {options.seq} does not divide into {pieces} pieces, two for each rank.",
            f"Choose --seq as a multiple of {pieces}, or fewer ranks.",
        )
