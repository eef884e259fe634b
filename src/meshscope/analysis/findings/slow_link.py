"""Slow link: collectives move their bytes more slowly than any network that machines for training are sold with.

The bus bandwidth (as nccl-tests defines it) of each process group is taken over its calls of a megabyte or more, from
the moment at which the last rank of a call had come: waiting for a late rank is no transfer, and a call of few bytes
tells of latency. Calls that run side by side share the time on the wall. Other work may hold up a window, so the
fastest one counts. Fires below 1 Gbit/s from six calls on, where what is exposed beyond the time at 1 Gbit/s takes a
twentieth of the traced step. Gloo over the loopback of two busy cores moves five times that.

Not for CPU ranks that outnumber their cores, which transfer when they get their turn, nor for JAX on CPUs, whose
devices are in one process. No rank is named: each of a ring waits for the slowest link, and a trace does not tell whose
that is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.bandwidth import bus_factor
from meshscope.analysis.calls import SYNCHRONIZING
from meshscope.analysis.findings.rule import Finding, Rule, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.parts import per_windows
from meshscope.analysis.standing import device_kind
from meshscope.analysis.waiting import WindowWaits, waiting
from meshscope.analysis.wall_time import moved
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import NS_PER_S, counted, duration, percent, ratio, size

SLOWEST_BYTES_PER_S = 125e6
LEAST_BYTES = 1 << 20
FEWEST_CALLS = 6
LEAST_FRAC = 0.05


@dataclass(frozen=True)
class _Moved:
    """The large calls of one group in one window: what each link carried, and the time of transfer and of waiting."""

    calls: int
    carried_bytes: float
    transfer_ns: float
    exposed_ns: float
    wait_ns: int

    @property
    def bytes_per_s(self) -> float:
        return ratio(self.carried_bytes, self.transfer_ns) * NS_PER_S


def slow_link(run: Run) -> tuple[Finding, ...]:
    if why_not(run):
        return ()
    found = (_finding(group, parts, run) for group, parts in _groups(run).items())
    return tuple(one for one in found if one is not None)


def why_not(run: Run) -> str:
    """Why a slow link could not be told; "" where it can."""
    if is_in_one_process(run):
        return "the devices are in one process, without a link"
    if device_kind(run) == "cpu" and run.experiment.cores < run.experiment.ranks:
        return "CPU ranks outnumber the cores that are known, and transfer when it is their turn"
    most = max((sum(one.calls for one in parts) for parts in _groups(run).values()), default=0)
    return "" if most >= FEWEST_CALLS else f"fewer than {FEWEST_CALLS} matched calls of a megabyte or more"


def is_in_one_process(run: Run) -> bool:
    here = run.experiment
    return here.framework == "jax" and device_kind(run) == "cpu" and here.nodes < 2 and len(here.hosts) < 2


@per_windows
def _groups(run: Run) -> dict[str, list[_Moved]]:
    """By process group, its large calls in each window in which some met those of all its ranks."""
    waits = waiting(run).windows
    groups: dict[str, list[_Moved]] = defaultdict(list)
    for window in run.windows:
        if window in waits:
            for group, one in _moved(window, waits[window]).items():
                groups[group].append(one)
    return groups


def _moved(window: Window, waits: WindowWaits) -> dict[str, _Moved]:
    spans, row = window.spans, waits.row
    factor = np.array(
        [_factor(window, one, ranks) for one, ranks in zip(row.tolist(), waits.ranks.tolist(), strict=True)],
        dtype=np.float64,
    )
    is_mine = (spans.kind[row] == Kind.COLLECTIVE) & (spans.size_bytes[row] >= LEAST_BYTES) & (factor > 0)
    found = {}
    for number in np.unique(spans.group[row[is_mine]]).tolist():
        of_group = is_mine & (spans.group[row] == number)
        one = moved(window, row[of_group], waits)
        # The same calls, whichever order they come back in.
        carried = float((spans.size_bytes[row[of_group]] * factor[of_group]).sum())
        found[spans.groups[number] if number >= 0 else ""] = _Moved(
            calls=len(one.row),
            carried_bytes=carried,
            transfer_ns=float(one.wall_ns.sum()),
            exposed_ns=float(one.exposed_ns.sum()),
            wait_ns=waits.waiting(of_group).total_ns,
        )
    return found


def _factor(window: Window, row: int, ranks: int) -> float:
    """0 where a collective has no bus bandwidth, and where no rank waits for all others before its bytes move."""
    kind = int(window.spans.collective[row])
    name = window.spans.collectives[kind] if kind >= 0 else ""
    return (bus_factor(name, ranks) or 0.0) if name in SYNCHRONIZING else 0.0


def _finding(group: str, parts: list[_Moved], run: Run) -> Finding | None:
    calls = sum(one.calls for one in parts)
    fastest = max(one.bytes_per_s for one in parts)
    if calls < FEWEST_CALLS or not 0 < fastest < SLOWEST_BYTES_PER_S:
        return None
    transfer_ns = sum(one.transfer_ns for one in parts)
    at_least_ns = sum(one.carried_bytes for one in parts) / SLOWEST_BYTES_PER_S * NS_PER_S
    beyond_frac = 1 - at_least_ns / transfer_ns
    periods = sum(max(len(window.steps), 1) for window in run.windows)
    cost = part(sum(one.exposed_ns for one in parts) * beyond_frac / periods, traced_step(run))
    if not cost.cost_frac >= LEAST_FRAC:
        return None
    wait_ns = sum(one.wait_ns for one in parts)
    of = f" of group {group}" if group else ""
    mean = ratio(sum(one.carried_bytes for one in parts), transfer_ns) * NS_PER_S
    return Finding(
        code=FINDING.code,
        title="slow link",
        **vars(cost),
        evidence=(
            f"{counted(calls, 'call')}{of} of a megabyte or more move {size(round(mean))}/s over each link in the "
            f"mean (bus bandwidth), {size(round(fastest))}/s where they were fastest; 1 Gbit/s is "
            f"{size(round(SLOWEST_BYTES_PER_S))}/s",
            f"it is transfer, not lateness: of {duration(transfer_ns + wait_ns)} in them, added up over ranks, "
            f"{percent(ratio(transfer_ns, transfer_ns + wait_ns))} came after the last rank had come",
            "each rank waits for the slowest link, so the traces do not tell which one it is",
        ),
        advice="See which network the ranks talk over: a management port, a limit of the container's or the cloud's, "
        "or a cable that fell back. Measure each pair of machines by itself.",
        fix="export NCCL_DEBUG=INFO          # names the interface that is used\n"
        "export NCCL_SOCKET_IFNAME=...   # or GLOO_SOCKET_IFNAME for gloo",
    )


FINDING = Rule("slow-link", slow_link)
