"""Collectives among devices that one link joins: a node, an NVLink domain, a TPU slice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from meshscope.advisor.cluster import Link
from meshscope.advisor.costs import bus
from meshscope.advisor.costs.sweeps import Sweep, mean_s, sweeps
from meshscope.advisor.figures import Source
from meshscope.advisor.tables import table


@dataclass(frozen=True)
class Parts:
    """``begun_s`` whatever the size, ``moved_s`` for the bytes; ``off`` says how far off nine in ten are at most."""

    begun_s: float
    moved_s: float
    off: float
    source: Source
    where: str


def within(link: Link, kind: str, size_bytes: float, ranks: int, slice_devices: int = 0) -> Parts:
    """Of ``ranks`` devices that ``link`` joins; of a torus, among ``slice_devices`` chips.

    Timed if somebody did, else a ring's arithmetic over what was timed on this link, else the curve
    ``alpha + f S / B (1 + (S0 / S)^p)``.
    """
    if link.kind == "torus":
        return _torus(link, kind, size_bytes, ranks, max(slice_devices, ranks))
    timed = _timed(link.name, link.multicast_from, kind, size_bytes, ranks)
    if timed is not None:
        return timed
    return curve(link, kind, size_bytes, ranks)


@lru_cache(maxsize=65536)
def _timed(link: str, multicast_from: int, kind: str, size_bytes: float, ranks: int) -> Parts | None:
    if kind == "reduce_scatter" and not sweeps(link, kind) and sweeps(link, "all_gather"):
        # A ring's mirror image: nccl-tests hardly tell them apart.
        like = _timed(link, 0, "all_gather", size_bytes, ranks)
        return replace(like, source="interpolated", where=f"as an all-gather: {like.where}") if like else None
    if by_ranks := sweeps(link, kind):
        return _among(by_ranks, kind, size_bytes, ranks, multicast_from if kind == "all_reduce" else 0)
    constants = table("collectives")
    if kind in ("all_gather", "reduce_scatter") and (ring := sweeps(link, "all_reduce")):
        whole = _among(ring, "all_reduce", size_bytes, ranks, 0)
        steps_s = constants["steps"]["ring_s"] * (ranks - 1)
        base_s = constants["steps"]["ring_base_s"]
        share = (base_s + steps_s) / (base_s + 2 * steps_s)
        off = constants["off"]["half_ring"]
        return Parts(whole.begun_s * share, whole.moved_s / 2, off, "interpolated", f"half of {whole.where}")
    if kind in ("all_to_all", "broadcast") and (like := _timed(link, 0, "all_gather", size_bytes, ranks)):
        more = ranks / (ranks - 1) if kind == "broadcast" else constants["ratios"]["all_to_all"]
        off = constants["off"]["half_ring"]
        return Parts(like.begun_s, like.moved_s * more, off, "interpolated", f"{like.where}, times {more:.2f}")
    return None


def _among(by_ranks: dict[int, tuple[Sweep, ...]], kind: str, size_bytes: float, ranks: int, multicast: int) -> Parts:
    """Timed with these ranks, or scaled from the nearest below and above that used the same algorithm."""
    off = table("collectives")["off"]
    if ranks in by_ranks:
        is_small = size_bytes < off["small_mib"] * 2**20
        one = _one(by_ranks[ranks], size_bytes, 1.0, off["small_sweep" if is_small else "sweep"])
        return Parts(one.begun_s, one.moved_s, one.off, "measured", one.where)
    # Switches that reduce take a tensor once, however many ranks there are; a ring's share of it grows with them.
    is_multicast = 0 < multicast <= ranks
    alike = [n for n in by_ranks if (0 < multicast <= n) == is_multicast] or list(by_ranks)
    low = max((n for n in alike if n < ranks), default=None)
    high = min((n for n in alike if n > ranks), default=None)
    ends = [
        _one(
            by_ranks[n],
            size_bytes,
            1.0 if is_multicast else bus.factor(kind, ranks) / bus.factor(kind, n),
            off["between"],
        )
        for n in (low, high)
        if n is not None
    ]
    if low is None or high is None:
        return ends[0]
    part = math.log(ranks / low) / math.log(high / low)
    begun_s, moved_s = (
        math.exp((1 - part) * math.log(a) + part * math.log(b))
        for a, b in ((ends[0].begun_s, ends[1].begun_s), (ends[0].moved_s, ends[1].moved_s))
    )
    return Parts(begun_s, moved_s, off["between"], "interpolated", f"{ends[0].where} and with {high} ranks")


def _one(several: tuple[Sweep, ...], size_bytes: float, scale: float, off: float) -> Parts:
    begun_s = math.exp(math.fsum(math.log(sweep.begun_s) for sweep in several) / len(several))
    moved_s = max(mean_s(several, size_bytes) - begun_s, 1e-9)
    where = several[0].where if len(several) == 1 else f"{several[0].where}, and {len(several) - 1} more"
    return Parts(begun_s, moved_s * scale, off, "interpolated", where)


def curve(link: Link, kind: str, size_bytes: float, ranks: int) -> Parts:
    """``alpha + f S / B (1 + (S0 / S)^p)``, for a link on which nobody timed this."""
    constants = table("collectives")
    rate, has_rate = _rate(link, kind, ranks)
    half = link.half_bytes or constants["curve"]["half_s"] * rate
    power = link.power if link.half_bytes else constants["curve"]["power"]
    moved_s = bus.factor(kind, ranks) * size_bytes / rate * (1 + (half / size_bytes) ** power)
    begun_s = bus.begun_s(kind, ranks, 1, link.latency_s, link.latency_s)
    said = link.sources.get("bus.all_reduce") or link.sources.get("bytes_per_s", "")
    is_assumed = said.startswith("assumed")
    off = constants["off"]["assumed" if is_assumed else "curve"]
    source: Source = "assumed" if is_assumed else "interpolated" if has_rate else "datasheet"
    return Parts(begun_s, moved_s, off, source, f"curve for {link.name}")


def _rate(link: Link, kind: str, ranks: int) -> tuple[float, bool]:
    """Bus bandwidth of large messages, and whether anybody measured it (or another kind's)."""
    ratios = table("collectives")["ratios"]
    known = link.measured_bus_bytes_per_s
    if kind == "send" and "send" in known:
        return known["send"] * ratios["send"], True
    whole = known.get(kind) or known.get("ring") or known.get("all_reduce", 0.0)
    if kind == "all_to_all" and kind not in known:
        whole /= ratios["all_to_all"]
    rate = whole or 0.75 * link.bytes_per_s
    if link.kind == "mesh" and "send" in known:  # each pair has a wire of its own: few ranks use few wires
        rate = min(rate, known["send"] * max(ranks - 1, 1))
    return rate, bool(whole)


def _torus(link: Link, kind: str, size_bytes: float, ranks: int, slice_devices: int) -> Parts:
    """Rings along the axes that the group fills, both ways; half the rate where an axis does not close.

    Source: jax-ml/scaling-book, "Sharded matrices": an all-gather takes V / W whatever the length of the axis, an
    all-reduce twice that, an all-to-all over one axis of n a quarter of n shards.
    """
    side = max(slice_devices ** (1 / link.axes), 2.0)
    axes = min(link.axes, max(1, round(math.log(ranks) / math.log(side))))
    length = ranks ** (1 / axes)
    is_closed = length >= link.ring and abs(length / link.ring - round(length / link.ring)) < 0.01
    constants = table("collectives")
    rate = link.bytes_per_s * axes / link.axes * (1.0 if is_closed else 0.5) * constants["torus"]["efficiency"]
    if kind == "send":
        rate = link.bytes_per_s / (2 * link.axes) * constants["torus"]["efficiency"]
    share = length / 4 if kind == "all_to_all" else bus.factor(kind, ranks)
    hops = axes * length / 2 * (2 if kind == "all_reduce" else 1)
    off = constants["off"]["torus"]
    begun_s = link.latency_s * (1.0 if kind == "send" else max(hops, 1.0))
    return Parts(begun_s, share * size_bytes / rate, off, "datasheet", f"{link.name}, {axes} of {link.axes} axes")
