"""What the operations of a layer cost on a cluster, as pieces of work for the replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.constants import ATTENTION, Speed
from meshscope.advisor.costs.attention import attention
from meshscope.advisor.costs.collective import collective
from meshscope.advisor.costs.matmul import matmul
from meshscope.advisor.costs.memory_bound import bytes_moved
from meshscope.advisor.figures import Figure
from meshscope.advisor.multipliers import Multipliers
from meshscope.advisor.operations import Operation
from meshscope.advisor.replay import COMPUTE, Piece

NARROW = ("fp8", "fp4")
COMPUTED = ("matmul", "attention", "memory")


@dataclass(frozen=True)
class Prices:
    """Costs on ``cluster`` of what is multiplied in ``compute``, by a stack's ``speed`` and a machine's own factors."""

    cluster: Cluster
    compute: str
    speed: Speed
    multipliers: Multipliers
    is_rowwise: bool = False
    kernel: str = "flash2"

    def seconds(self, each: Operation) -> float:
        """Of one operation, all its ``times``."""
        if each.kind not in COMPUTED:
            return self.collective_s(each.kind, each.size_bytes, each.ranks, each.stride)
        return self._bare(each).value * self._slow(each)

    def figure(self, each: Operation) -> Figure:
        """As `seconds`, with the interval of the cost table."""
        bare, slow = self._bare(each), self._slow(each)
        return Figure(bare.value * slow, bare.low * slow, bare.high * slow, bare.source, bare.where)

    def compute_of(self, each: Operation) -> str:
        """What a product is multiplied in: attention's own and the head stay wide where linear layers go narrow."""
        is_wide = self.compute in NARROW and each.name.startswith(("head", "score", "router"))
        return "bf16" if is_wide else self.compute

    def _bare(self, each: Operation) -> Figure:
        device = self.cluster.device
        if each.kind == "matmul":
            return matmul(device, each.m, each.n, each.k, self.compute_of(each), each.times)
        if each.kind == "attention":
            return attention(device, each.batch, each.n, each.m, each.k, self.compute, is_causal=each.is_causal,
                             is_backward=each.is_backward)  # fmt: skip
        if each.kind == "memory":
            return bytes_moved(device, each.size_bytes)
        return collective(self.cluster, each.kind, each.size_bytes, each.ranks, each.stride)

    def _slow(self, each: Operation) -> float:
        speed, own = self.speed, self.multipliers
        if each.kind == "matmul":
            return self._product_slow(each) * own.matmul
        if each.kind == "attention":
            kernel = ATTENTION.get((self.kernel, self.cluster.device.family), 1.0)
            return speed.attention * own.attention * kernel * (speed.ring if each.name.startswith("ring") else 1.0)
        if each.kind == "memory":
            mixture = speed.mixture if each.name == "sorting by expert" else 1.0
            return speed.memory_bound * own.memory_bound * mixture
        return speed.collective * own.collective_bandwidth

    def _product_slow(self, each: Operation) -> float:
        speed = self.speed
        is_narrow = self.compute_of(each) in NARROW
        slow = speed.narrow * (speed.rowwise if self.is_rowwise else 1.0) if is_narrow else speed.matmul
        return slow * (speed.mixture if each.name.startswith("experts") else 1.0)

    def collective_s(self, kind: str, size_bytes: float, ranks: int, stride: int) -> float:
        """The part that grows with the size, and the part that does not, each by its own factor."""
        if ranks < 2 or size_bytes <= 0:
            return 0.0
        whole_s = collective(self.cluster, kind, size_bytes, ranks, stride).value
        slow = self.speed.collective * self.multipliers.collective_bandwidth
        if self.multipliers.collective_latency == self.multipliers.collective_bandwidth:
            return whole_s * slow
        least_s = min(whole_s, collective(self.cluster, kind, 1024.0, ranks, stride).value)
        return (whole_s - least_s) * slow + least_s * self.speed.collective * self.multipliers.collective_latency

    def memory_s(self, size_bytes: float) -> float:
        took_s = bytes_moved(self.cluster.device, size_bytes).value
        return took_s * self.speed.memory_bound * self.multipliers.memory_bound

    def host_s(self, launches: float) -> float:
        return launches * self.speed.launch_s * self.multipliers.launch

    def pieces(self, operations: Iterable[Operation], phase: str, *, is_whole: bool) -> list[Piece]:
        """In order; adjacent compute is one piece, which without ``is_whole`` tells the operations in it."""
        pieces: list[Piece] = []
        waits: tuple[tuple[str, int], ...] = ()
        later: tuple[tuple[str, int], ...] = ()
        seconds = host_s = 0.0
        parts: tuple[tuple[str, float], ...] = ()
        for each in operations:
            took_s = self.seconds(each)
            if each.kind in COMPUTED:
                parts = parts if is_whole else (*parts, (each.name, took_s))
                seconds, host_s = seconds + took_s, host_s + self.host_s(each.launches * (each.times > 0))
                if not later:
                    continue
                pieces.append(Piece(COMPUTE, seconds, each.kind, phase, each.kind, waits, COMPUTE, host_s, parts=parts))
                seconds, host_s, parts = 0.0, 0.0, ()
                waits, later = later, ()
                continue
            if seconds or host_s:
                pieces.append(Piece(COMPUTE, seconds, "compute", phase, "compute", waits, COMPUTE, host_s, parts=parts))
                seconds, host_s, parts = 0.0, 0.0, ()
                waits = later
            shown_s = took_s * (1.0 - each.hidden_frac)
            pieces.append(
                Piece(each.name, shown_s, each.kind, phase, "collective", ((COMPUTE, 0),), each.name,
                      size_bytes=each.size_bytes, group=each.name)
            )  # fmt: skip
            if each.beside:
                later = ((each.name, 0),)
            else:
                waits, later = ((each.name, 0),), ()
        if seconds or host_s or waits or later:
            waits = (*waits, *later)
            pieces.append(Piece(COMPUTE, seconds, "compute", phase, "compute", waits, COMPUTE, host_s, parts=parts))
        return pieces
