"""Device sensors and training steps as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampleTable:
    """n readings: ``value[i]`` of ``fields[field[i]]`` on ``devices[device[i]]`` at ``time_ns[i]``.

    A field that failed is absent; its reason is in the journal's ``SensorFailed`` entries.
    """

    time_ns: Ints
    device: npt.NDArray[np.int32]
    field: npt.NDArray[np.int32]
    value: Floats
    devices: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    def series(self, device: str, field: str) -> tuple[Ints, Floats]:
        """Times and values of one field of one device, each of shape (k,), in time order."""
        if device not in self.devices or field not in self.fields:
            return np.empty(0, dtype=np.int64), np.empty(0)
        keep = (self.device == self.devices.index(device)) & (self.field == self.fields.index(field))
        order = np.argsort(self.time_ns[keep], kind="stable")
        return self.time_ns[keep][order], self.value[keep][order]


@dataclass(frozen=True, eq=False)
class StepTable:
    """n steps of all ranks, shape (n,), sorted by (rank, step). NaN and −1 mean not recorded.

    ``is_profiled`` is true when any profiler activity (warm-up, active, stopping) fell inside the step;
    ``data_wait_ns`` is the time the step waited for its batch, ``cpu_ns`` what the process computed on its cores in the
    step without that (−1 where it drives several ranks).
    """

    rank: npt.NDArray[np.int32]
    step: npt.NDArray[np.int32]
    start_ns: Ints
    end_ns: Ints
    tokens: Ints
    samples: Ints
    loss: Floats
    data_wait_ns: Ints
    allocated_bytes: Ints
    reserved_bytes: Ints
    peak_bytes: Ints
    cpu_ns: Ints
    is_profiled: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rank)

    def where(self, keep: npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]]) -> StepTable:
        """The rows that a mask keeps, or the rows of some numbers in their order."""
        return StepTable(**{name: getattr(self, name)[keep] for name in STEP_COLUMNS})


STEP_COLUMNS = tuple(StepTable.__dataclass_fields__)
