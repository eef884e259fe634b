"""Bandwidths of a collective as nccl-tests defines them (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).

The algorithm bandwidth is the size over the time; the bus bandwidth corrects it for what each link has to carry, so
that it can be compared with the hardware's. A size is that of the whole buffer: all that an all-gather leaves on a
rank, all that a reduce-scatter takes from it, all that a rank sends in an all-to-all. Where ranks move different
amounts in one all-to-all, a rank's is the larger of what it sends and receives, and there is no bus bandwidth: how much
of it stays where it is is not told.

Traces tell sizes so: NCCL's kernels by the larger of ``In msg nelems`` and ``Out msg nelems``, which is the whole
buffer for every kind; annotations of older ones by their input, which is the whole for all but an all-gather; gloo's
spans by the largest argument of the call that they carry out (where a call takes a tensor per rank, of which one is
told, times the ranks of its group); XLA's programs by the result of an all-gather and the
operands of every other collective.
"""

from __future__ import annotations

from meshscope.units import NS_PER_S

_SHARED = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
_ONCE = frozenset({"broadcast", "reduce", "send", "recv", "send_recv", "permute"})


def bus_factor(collective: str, ranks: int) -> float | None:
    """Bus over algorithm bandwidth among n ranks; None for what nccl-tests has no definition of, or without peers."""
    if ranks < 2:
        return None
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if collective in _SHARED:
        return (ranks - 1) / ranks
    return 1.0 if collective in _ONCE else None


def algorithm_bytes_per_s(size_bytes: int, transfer_ns: int) -> float | None:
    """None where nothing was moved or no time was taken."""
    return size_bytes / transfer_ns * NS_PER_S if size_bytes > 0 and transfer_ns > 0 else None
