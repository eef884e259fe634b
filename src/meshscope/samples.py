"""Device sensors and training steps as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
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
        rows = self._rows.get((device, field), np.empty(0, dtype=np.int64))
        return self.time_ns[rows], self.value[rows]

    def each(self) -> Iterator[tuple[str, str]]:
        """Every (device, field) that was read, by device, then field, in the order of their names here."""
        return iter(self._rows)

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Ints]:
        """The rows of each series: found in one pass, since there may be thousands of devices."""
        key = self.device.astype(np.int64) * len(self.fields) + self.field
        is_in_order = bool((self.time_ns[1:] >= self.time_ns[:-1]).all())
        order = np.argsort(key, kind="stable") if is_in_order else np.lexsort((self.time_ns, key))
        key = key[order]
        bounds = [0, *(np.flatnonzero(np.diff(key)) + 1).tolist(), len(key)] if len(key) else []
        places = ((divmod(int(key[start]), len(self.fields)), order[start:end]) for start, end in pairwise(bounds))
        return {(self.devices[device], self.fields[field]): rows for (device, field), rows in places}


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

    def of(self, rank: int) -> StepTable:
        """The rows of one rank, as views."""
        number = np.int32(rank)  # any other type has the whole column turned into it
        start, end = (int(np.searchsorted(self.rank, number, side)) for side in ("left", "right"))
        return StepTable(**{name: getattr(self, name)[start:end] for name in STEP_COLUMNS})

    def where(self, keep: npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]]) -> StepTable:
        """The rows that a mask keeps, or the rows of some numbers in their order."""
        return StepTable(**{name: getattr(self, name)[keep] for name in STEP_COLUMNS})


@dataclass(frozen=True)
class LostLoss:
    """A rank whose loss is no finite number from ``step`` to the newest that it has told; ``value`` names what it was
    there: NaN, inf or -inf."""

    rank: int
    step: int
    value: str


STEP_COLUMNS = tuple(StepTable.__dataclass_fields__)
