"""The devices and what joins them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DeviceSpec:
    """One product, as a framework sees it. Rates are per second; NaN-free: 0 where nobody published one.

    ``peak_flops_per_s`` maps a compute type (``bf16``, ``fp8``, …) to the datasheet's dense figure;
    ``measured_flops_per_s`` to the most that anybody measured with plain matrix products. ``is_measured`` is of the
    machine at hand, by ``meshscope calibrate``. ``usable_bytes`` is what a process can have of ``memory_bytes``.
    ``family`` are the devices whose matrix products behave alike; ``dies``: how many devices a framework may see in it.
    ``sources`` has how each figure was come by, ``HOW: WHERE`` with HOW a `figures.Source`, by field.
    """

    name: str
    memory_bytes: float
    peak_flops_per_s: dict[str, float]
    memory_bytes_per_s: float
    measured_flops_per_s: dict[str, float] = field(default_factory=dict)
    measured_memory_bytes_per_s: float = 0.0
    attention_flops_per_s: float = 0.0
    usable_bytes: float = 0.0
    launch_s: float = 5e-6
    sources: dict[str, str] = field(default_factory=dict)
    family: str = ""
    dies: int = 1


@dataclass(frozen=True)
class Link:
    """What joins devices. ``bytes_per_s`` is one way per device by the datasheet; ``measured_bus_bytes_per_s`` maps a
    collective to the bus bandwidth (nccl-tests' definition) that large messages reached; ``latency_s`` is per hop.

    ``kind`` is ``switch`` (any pair at the full rate), ``mesh`` (a pair has its own wire: the rate is of all of them),
    ``torus`` (``axes`` of them, closed into rings in multiples of ``ring``) or ``network`` (between nodes; messages
    reach ``efficiency`` of the rate). Switches that reduce (``has_multicast``) do so from ``multicast_from`` ranks on.
    A message of ``half_bytes`` takes twice the time that the rate alone would ask for; how fast that fades with size is
    ``power``: see `costs.within`. ``step_s`` is a step within a node on a ring over this network; over more than
    ``tree_nodes`` nodes (0: any) all is sent around the ring.
    """

    name: str
    bytes_per_s: float
    latency_s: float
    measured_bus_bytes_per_s: dict[str, float] = field(default_factory=dict)
    has_multicast: bool = False
    sources: dict[str, str] = field(default_factory=dict)
    kind: str = "switch"
    axes: int = 0
    ring: int = 0
    efficiency: float = 1.0
    multicast_from: int = 0
    half_bytes: float = 0.0
    power: float = 1.0
    step_s: float = 0.0
    tree_nodes: int = 0


@dataclass(frozen=True)
class Cluster:
    """``devices`` of one kind, ``per_node`` (a node, an NVLink domain or a TPU slice) joined by ``inside``, nodes
    joined by ``between``. ``is_between_assumed``: nobody said what the network is."""

    device: DeviceSpec
    devices: int
    per_node: int
    inside: Link
    between: Link
    is_between_assumed: bool = False
    cores_per_rank: float = 0.0

    @property
    def nodes(self) -> int:
        return -(-self.devices // self.per_node)
