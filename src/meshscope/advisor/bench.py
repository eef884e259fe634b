"""What this machine was measured to reach, asked of a process of its own, and as the file that describes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

import msgspec

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.hardware import GIB, device
from meshscope.analysis import peaks
from meshscope.analysis.bandwidth import bus_factor
from meshscope.capture import frameworks, machine
from meshscope.capture.probing import told
from meshscope.errors import InputError, LaunchError

_START_S = 120.0
"""What importing a framework and starting ranks may take beside what is measured."""
_SLOWEST = 8.0
"""Times the seconds asked for: each figure is measured three times at least, however long that takes."""


class Product(msgspec.Struct, frozen=True):
    """Seconds of ``m × k`` times ``k × n``."""

    compute: str
    m: int
    n: int
    k: int
    seconds: float

    @property
    def flops_per_s(self) -> float:
        return 2.0 * self.m * self.n * self.k / self.seconds


class Attention(msgspec.Struct, frozen=True):
    """Seconds of causal attention forward."""

    compute: str
    samples: int
    heads: int
    tokens: int
    width: int
    seconds: float

    @property
    def flops_per_s(self) -> float:
        """Of what the causal mask leaves: half."""
        return 2.0 * self.samples * self.heads * self.tokens**2 * self.width / self.seconds


class Copy(msgspec.Struct, frozen=True):
    """``moved_bytes`` are read and written."""

    moved_bytes: int
    seconds: float


class Collective(msgspec.Struct, frozen=True):
    """``size_bytes`` of the whole tensor."""

    kind: str
    ranks: int
    size_bytes: int
    seconds: float

    @property
    def bus_bytes_per_s(self) -> float:
        return (bus_factor(self.kind, self.ranks) or 1.0) * self.size_bytes / self.seconds


class Bench(msgspec.Struct, frozen=True):
    """Medians on the slowest rank. ``platform`` is ``cpu`` or ``gpu``; ``device`` is empty on a CPU."""

    platform: str
    device: str
    memory_bytes: float
    version: str
    ranks: int
    threads: int
    launch_s: float
    matmul: tuple[Product, ...]
    copy: tuple[Copy, ...]
    attention: tuple[Attention, ...]
    collective: tuple[Collective, ...]


def bench(framework: str, ranks: int, seconds: float) -> Bench:
    """Measures with torch or JAX for about so long. MissingPackageError: it is not there; LaunchError: it failed."""
    frameworks.require(framework)
    threads = machine.threads_per_rank(ranks)
    worker = f"meshscope.advisor.workers.bench_{framework}"
    line = [sys.executable, "-P", "-m", worker, str(ranks), str(threads), str(seconds)]
    environ = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "OMP_NUM_THREADS": str(threads)}
    try:
        found = told(line, environ, Bench, patience_s=_START_S + _SLOWEST * seconds)
    except subprocess.TimeoutExpired as error:
        raise LaunchError(
            f"{framework} did not finish measuring within {error.timeout:.0f} s.",
            hint="Is the machine busy? Measure fewer ranks (--ranks), or when it is idle.",
        ) from None
    if isinstance(found, str):
        raise LaunchError(f"{framework} could not measure: {found}", hint="Run: meshscope doctor")
    return found


def best(products: Iterable[Product]) -> dict[str, Product]:
    """The fastest product of each compute type."""
    found: dict[str, Product] = {}
    for one in products:
        if one.compute not in found or one.flops_per_s > found[one.compute].flops_per_s:
            found[one.compute] = one
    return found


def known(measured: Bench) -> DeviceSpec | None:
    """The product as it is described already; None where nobody did."""
    try:
        return device("cpu" if measured.platform == "cpu" else measured.device)
    except InputError:
        return None


def described(measured: Bench, name: str, when: str) -> str:
    """The TOML file that describes it, every figure measured; what was not (the network between machines) is as it is
    known of the product, or assumed."""
    said = f"meshscope calibrate, {when}, {measured.version}"
    shown = measured.device or machine.cpu_name()
    lines = [f"# {_plain(shown)}, as `meshscope calibrate` measured it: {when}.", "", "[[device]]"]
    lines += [f"name = {_text(name)}", f"names = [{_text(name)}]", *_product(measured)]
    link = f"links of {name}"
    lines += [f"inside = {_text(link if measured.collective else _inside(measured))}", 'between = "Ethernet 10"']
    lines += _rates(measured, said)
    if measured.collective:
        lines += ["", "[[link]]", f"name = {_text(link)}", *_link(measured, said)]
    return "\n".join(lines) + "\n"


def _product(measured: Bench) -> list[str]:
    listed, spec = peaks.device(measured.device) if measured.device else None, known(measured)
    lines = [f"family = {_text(spec.family if spec else '')}"]
    lines += [f"peaks = {_text(listed.name)}"] if listed is not None else []
    # Ranks of a CPU are processes; of accelerators there are no more in a node than were found.
    return [*lines, f"per_node = {4096 if measured.platform == 'cpu' else measured.ranks}"]


def _inside(measured: Bench) -> str:
    """What joins devices where none was measured."""
    return "loopback" if measured.platform == "cpu" else "PCIe 4"


def _rates(measured: Bench, said: str) -> list[str]:
    lines = []
    if measured.memory_bytes:
        lines.append(_figure("memory_gib", measured.memory_bytes / GIB, said))
    copied = max(measured.copy, key=lambda one: one.moved_bytes)
    where = f"{said}: a copy of {copied.moved_bytes // 2} bytes"
    names = ("memory_bytes_per_s", "measured_memory_bytes_per_s")
    lines += [_figure(name, copied.moved_bytes / copied.seconds, where) for name in names]
    lines.append(_figure("attention_flops_per_s", max(one.flops_per_s for one in measured.attention), said))
    lines.append(_figure("launch_s", measured.launch_s, said))
    is_listed = bool(measured.device) and peaks.device(measured.device) is not None
    for compute, one in best(measured.matmul).items():
        where = f"{said}: {one.m} x {one.n} x {one.k}"
        lines.append(_figure(f"measured_flops_per_s.{compute}", one.flops_per_s, where))
        if not is_listed:  # no datasheet: the most that is known is what was measured
            lines.append(_figure(f"peak_flops_per_s.{compute}", one.flops_per_s, where))
    return lines


def _link(measured: Bench, said: str) -> list[str]:
    """The bandwidth of the largest messages by kind; the latency is what the smallest take, per hop."""
    kinds = dict.fromkeys(one.kind for one in measured.collective)
    largest = [max(_of(measured, kind), key=lambda one: one.size_bytes) for kind in kinds]
    most = max(largest, key=lambda one: one.bus_bytes_per_s)
    smallest = min(_of(measured, largest[0].kind), key=lambda one: one.size_bytes)
    hops = max(1, (2 if smallest.kind == "all_reduce" else 1) * (smallest.ranks - 1))
    lines = [
        _figure("bytes_per_s", most.bus_bytes_per_s, f"{said}: {most.kind} of {most.size_bytes} bytes"),
        _figure("latency_s", smallest.seconds / hops, f"{said}: {smallest.kind} of {smallest.size_bytes} bytes"),
    ]
    return lines + [
        _figure(f"bus.{one.kind}", one.bus_bytes_per_s, f"{said}: {one.size_bytes} bytes, {one.ranks} ranks")
        for one in largest
    ]


def _of(measured: Bench, kind: str) -> list[Collective]:
    return [one for one in measured.collective if one.kind == kind]


def _figure(key: str, value: float, where: str) -> str:
    return f'{key} = {{ value = {value:.6g}, how = "measured", where = {_text(where)} }}'


def _text(text: str) -> str:
    """A TOML string."""
    return '"' + _plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable())
