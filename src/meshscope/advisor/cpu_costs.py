"""What a piece of work and a transfer cost a CPU rank, from its device, its share of the cores and the multipliers."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.cpu_work import Work
from meshscope.advisor.multipliers import Multipliers

_ATTENTION_FRAC = 0.2
"""Of the rate of matrix products: what the flash kernel for CPUs reaches on short sequences (traces of the bundled
transformer: 1.3 ms for 67 MFLOP, where products reach 8e10 a second)."""
_TRANSFER_CORES = 0.8
"""Of a core, while a transfer is under way: gloo's threads copy through the loopback device, and add."""
_STEPS = {"all_reduce": 2.0, "reduce_scatter": 2.0}
_MOVED = {"all_reduce": 2.0, "reduce_scatter": 2.0, "all_gather": 1.3, "broadcast": 1.0, "send": 1.0}
"""Times (n − 1) / n of the tensor that a rank sends. gloo reduces and scatters by an all-reduce of the whole
(torch/csrc/distributed/c10d/ProcessGroupGloo.cpp; its spans are named so). An all-gather sends half as much as an
all-reduce and takes two thirds as long (2.0 of 2.9 ms for 3.1 MB between two ranks of one machine)."""

PARTS = ("matmul", "attention", "memory_bound", "stream", "launch")


@dataclass(frozen=True)
class CpuCosts:
    """Rates of one rank alone on its cores. ``slowdown`` is how much longer everything takes where ranks outnumber
    cores, ``contention`` how much longer compute and transfer take beside each other."""

    flop_per_s: float
    bytes_per_s: float
    link_bytes_per_s: float
    latency_s: float
    launch_s: float
    slowdown: float
    contention: float
    ranks: int
    multipliers: Multipliers

    def parts(self, work: Work) -> dict[str, float]:
        """Seconds by what bounds them."""
        m, slow = self.multipliers, self.slowdown
        weights_s = m.step_tail * work.weight_bytes / self.bytes_per_s
        return {
            "matmul": slow * (m.matmul * work.flop / self.flop_per_s + weights_s),
            "attention": slow * m.attention * work.attention_flop / (_ATTENTION_FRAC * self.flop_per_s),
            "memory_bound": slow * m.memory_bound * work.moved_bytes / self.bytes_per_s,
            "stream": slow * m.step_tail * work.streamed_bytes / self.bytes_per_s,
            "launch": slow * m.launch * work.calls * self.launch_s,
        }

    def seconds(self, work: Work) -> float:
        return sum(self.parts(work).values())

    def transfer_s(self, kind: str, size_bytes: float, ranks: int = 0) -> float:
        """Of a collective beside no compute, over all ranks or some; ``send`` has two."""
        among = 2 if kind == "send" else ranks or self.ranks
        if among < 2:
            return 0.0
        m, share = self.multipliers, 1.0 if kind in ("send", "broadcast") else (among - 1) / among
        hops = _STEPS.get(kind, 1.0) * (1 if kind in ("send", "broadcast") else among - 1)
        moved_s = _MOVED[kind] * share * size_bytes / self.link_bytes_per_s
        return m.collective_latency * hops * self.latency_s + m.collective_bandwidth * moved_s


def cpu_costs(cluster: Cluster, compute: str, multipliers: Multipliers) -> CpuCosts:
    """A rank uses whole cores: its share of them, or one that it shares."""
    device, link = cluster.device, cluster.inside
    cores = cluster.cores_per_rank or 1.0
    threads = max(1, int(cores))
    known = device.measured_flops_per_s or device.peak_flops_per_s
    rate = known.get(compute) or known.get("fp32") or max(known.values())
    spare = max(0.0, cores - threads)
    crowd = 1.0 + max(0.0, _TRANSFER_CORES - spare) / threads
    return CpuCosts(
        flop_per_s=rate * threads,
        bytes_per_s=device.measured_memory_bytes_per_s or device.memory_bytes_per_s,
        link_bytes_per_s=link.measured_bus_bytes_per_s.get("all_reduce", link.bytes_per_s),
        latency_s=link.latency_s,
        launch_s=device.launch_s,
        slowdown=max(1.0, 1.0 / cores),
        contention=max(1.0, crowd * multipliers.contention) if cluster.devices > 1 else 1.0,
        ranks=cluster.devices,
        multipliers=multipliers,
    )
