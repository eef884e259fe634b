"""Memory by category and rank, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.headroom import Headroom
from meshscope.analysis.memory import RankMemory
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet

HELP = Help(
    "One bar per rank to one scale, and the categories of the fullest rank in numbers.",
    columns=(
        ("peak", "most that the rank held at once; how that is known is said below"),
        ("parameters", "the model's weights"),
        ("gradients", "one per parameter that trains"),
        ("optimizer", "its state: two numbers per parameter for Adam"),
        ("activations", "kept by forward for backward, at their most"),
        ("temporaries", "what is left of the peak: workspaces, buffers"),
        ("%", "share of the rank's peak, or of the sum of what is known where that is more"),
        ("exact", "read from the framework's own tensors; measured: from its allocator; derived: from others by "
         "subtraction; compiler: as XLA planned it"),
        ("headroom", "capacity left at the fullest moment, as a share of what it says"),
    ),
    states=(
        ("peak: not known", "nothing here measured it: no number is made up"),
        ("No memory was measured", "neither the run nor its traces told of memory"),
    ),
    keys=(("e", "explain: how a number was come by"),),
)  # fmt: skip

_COLUMNS = ("rank", "device", "step", "what", "size_bytes", "how", "source")


def ranks(found: Sequence[RankMemory], headroom: Headroom | None) -> Sheet:
    """Several rows per rank: each category, then the peak, what the allocator holds and what it may hold."""
    rows: list[list[object]] = []
    for rank in found:
        head: list[object] = [
            rank.rank,
            rank.device if rank.device >= 0 else None,
            rank.step if rank.step >= 0 else None,
        ]
        rows += [[*head, one.name, one.size_bytes, one.how, rank.source] for one in rank.categories]
        rows += [[*head, what, size, how, rank.source] for what, size, how in _figures(rank) if size is not None]
    left = {} if headroom is None else {"headroom_bytes": headroom.free_bytes, "headroom_frac": headroom.frac}
    return sheet(_COLUMNS, rows, about=left)


def _figures(rank: RankMemory) -> tuple[tuple[str, int | None, str | None], ...]:
    return (
        ("peak", rank.peak_bytes, rank.peak_how or None),
        ("reserved", rank.pool_bytes, None),
        ("in use", rank.in_use_bytes, None),
        ("limit", rank.limit_bytes, None),
        ("largest free", rank.largest_free_bytes, None),
        ("capacity", rank.capacity_bytes, None),
    )
