"""Transfers that run beside a backward pass on the same cores: both go on, and each takes longer for the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Beside:
    """Seconds: the pass with what slowed it, how long transfers ran beside it, and how long after its end."""

    compute_s: float
    hidden_s: float
    exposed_s: float


def beside(pieces: Iterable[tuple[float, float]], contention: float) -> Beside:
    """``pieces`` of the pass in order: how long each takes alone, and the seconds of the transfer that its end sets
    off (0 for none). Transfers follow one another; beside compute both take ``contention`` times as long."""
    now_s = hidden_s = waiting_s = 0.0
    for piece_s, transfer_s in pieces:
        together_s = contention * min(piece_s, waiting_s)
        waiting_s -= together_s / contention
        now_s += together_s + (piece_s - together_s / contention)
        hidden_s += together_s
        waiting_s += transfer_s
    return Beside(now_s, hidden_s, waiting_s)


def bucketed(sizes_bytes: Iterable[float], bucket_bytes: float) -> list[float]:
    """Gradients of some bytes, in the order in which they are ready, as DDP sends them: of each place the bytes of the
    bucket that it fills (0 where it fills none). What is left over goes with the last one."""
    sent: list[float] = []
    held = 0.0
    for size_bytes in sizes_bytes:
        held += size_bytes
        sent.append(held if held >= bucket_bytes else 0.0)
        held = 0.0 if held >= bucket_bytes else held
    if sent and held:
        sent[-1] += held
    return sent
