"""Several devices driven by one process, which is one rank: where the time of each device goes.

A rank's own numbers are unions over its devices. So one device's idle time is hidden behind another's work there, and
what one computes seems to hide what another transfers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meshscope.analysis.breakdown import Breakdown, Part, combine, measure
from meshscope.analysis.parts import per_window
from meshscope.run import Run
from meshscope.spans import Kind, Window

WORK = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)


@dataclass(frozen=True)
class DeviceBreakdown:
    """One device of a rank, over whole windows: its span is from its own first event to its own last."""

    rank: int
    device: int
    total: Breakdown


def several_devices(run: Run) -> tuple[DeviceBreakdown, ...]:
    """By rank and device; nothing of ranks that drive one device alone."""
    parts: dict[tuple[int, int], list[Part]] = {}
    for window in run.windows:
        for device, part in device_parts(window):
            parts.setdefault((window.rank, device), []).append(part)
    return tuple(DeviceBreakdown(rank, device, combine(parts[rank, device]).total) for rank, device in sorted(parts))


@per_window
def device_parts(window: Window) -> tuple[tuple[int, Part], ...]:
    """What each device of a window by itself has; nothing of a window of one device."""
    if window.framework != "torch" or window.device_kind != "gpu" or _is_one(window.spans.device):
        return ()
    work = window.spans.of_kind(*WORK)
    devices = np.unique(work.device).tolist()
    return tuple((device, _part(window, device)) for device in devices) if len(devices) > 1 else ()


def _is_one(device: np.ndarray[tuple[int], np.dtype[np.int32]]) -> bool:
    return not len(device) or bool((device == device[0]).all())


def _part(window: Window, device: int) -> Part:
    spans = window.spans.of_kind(*WORK)
    spans = spans.where(spans.device == device)
    # Waiting is not told apart here, and steps are the process's.
    alone = replace(
        window,
        spans=spans,
        start_ns=int(spans.start_ns.min()),
        end_ns=int(spans.end_ns.max()),
        steps=(),
        step_ns=window.step_ns[:0],
        cannot_say=(("wait_ns", ""),),
    )
    return measure(alone)
