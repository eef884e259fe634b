"""What files that hold no spans tell of a rank or a device: its allocator, its sensors, the collectives it called.

A record is to these files what a :class:`meshscope.spans.Window` is to a trace. Times are int64 ns as in a window: unix
ns where the file knows when it was made, else from 0 on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from meshscope.samples import SampleTable
from meshscope.spans import Allocations, Counts

Doubt = tuple[str, str]
Sizes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """One file's account of one rank (or of one machine's devices).

    ``kind`` says in words what the file is. ``rank`` is −1 where neither the content nor the name tells it, and
    ``rank_from`` says which did (``trace``, ``file name`` or ``order``). ``is_complete`` is false where the end of the
    file is missing.
    """

    kind: str
    source: str
    rank: int = -1
    rank_from: str = "order"
    start_ns: int = 0
    end_ns: int = 0
    has_unix_time: bool = False
    counts: Counts = field(default_factory=Counts)
    cannot_say: tuple[Doubt, ...] = ()
    is_complete: bool = True

    def shifted(self, by_ns: int) -> Record:
        """The same record, ``by_ns`` later."""
        return replace(self, start_ns=self.start_ns + by_ns, end_ns=self.end_ns + by_ns)


STEP_PARTS = ("optimizer", "backward", "forward", "elsewhere")


@dataclass(frozen=True, eq=False)
class Alive:
    """Allocations that were alive at one moment, shape (n,) each, the largest first.

    ``moment`` is ``peak``, ``end`` or ``failure``. ``size_bytes`` is as asked for, and ``rounding_bytes`` what all
    blocks together have beyond that. ``site`` numbers ``sites`` (``file:line function``) and ``note`` numbers ``notes``
    (the program's own words for it); −1 where none was recorded. ``part`` numbers :data:`STEP_PARTS`, by who called in
    the recorded stack; −1 without one. ``is_older``: made before the history began.
    """

    moment: str
    time_ns: int
    size_bytes: npt.NDArray[np.int64]
    site: npt.NDArray[np.int32]
    note: npt.NDArray[np.int32]
    part: npt.NDArray[np.int8]
    is_older: npt.NDArray[np.bool_]
    sites: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rounding_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """With what blocks are rounded up by."""
        return int(self.size_bytes.sum()) + self.rounding_bytes


@dataclass(frozen=True, eq=False)
class Failure:
    """The last allocation that failed for want of memory, and what the allocator held then.

    ``times`` is how many failed in the history. ``device_free_bytes`` is what the driver said was free;
    ``pool_free_bytes`` what was reserved and in no use, exact where ``is_newest`` (nothing was allocated or freed since
    the failure), else at most that. ``largest_free_bytes`` is known only where it is exact. None where not told.
    """

    time_ns: int
    times: int
    asked_bytes: int
    device_free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    pool_free_bytes: int | None = None
    largest_free_bytes: int | None = None
    is_newest: bool = False
    is_expandable: bool = False
    alive: Alive | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryRecord(Record):
    """What an allocator held on one device.

    ``device`` is −1 where the file does not tell it. ``peak_bytes`` is the most within the record's own time, come by
    as ``peak_how`` says; ``preexisting_bytes`` is what was held when it began, ``end_bytes`` when it ended; None where
    the file does not tell. ``categories`` are bytes by name at the peak. ``figures`` are further counts by name (each
    with its unit as suffix), ``history`` what the recorded calls add up to, ``actions`` how many there are of each.
    ``alive`` is what was alive at the peak (at the end, for a file without a history), ``failure`` the last time that
    memory ran out. ``category_bytes`` are bytes by name at the times of ``allocations``, shape (n,) each.
    """

    device: int = 0
    device_kind: str = "gpu"
    peak_bytes: int | None = None
    peak_how: str = ""
    end_bytes: int | None = None
    reserved_bytes: int | None = None
    preexisting_bytes: int | None = None
    categories: dict[str, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    history: dict[str, int] = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)
    allocations: Allocations | None = None
    alive: Alive | None = None
    failure: Failure | None = None
    category_bytes: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def shifted(self, by_ns: int) -> MemoryRecord:
        traced = self.allocations and replace(self.allocations, time_ns=self.allocations.time_ns + by_ns)
        alive = self.alive and replace(self.alive, time_ns=self.alive.time_ns + by_ns)
        failure = self.failure and replace(self.failure, time_ns=self.failure.time_ns + by_ns)
        return replace(self, start_ns=self.start_ns + by_ns, end_ns=self.end_ns + by_ns, allocations=traced,
                       alive=alive, failure=failure)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class SensorRecord(Record):
    """Readings of one machine's devices; ``failed`` lists (device, field, why) of what could not be read."""

    samples: SampleTable
    failed: tuple[tuple[str, str, str], ...] = ()
    device_names: tuple[str, ...] = ()

    def shifted(self, by_ns: int) -> SensorRecord:
        samples = replace(self.samples, time_ns=self.samples.time_ns + by_ns)
        return replace(self, start_ns=self.start_ns + by_ns, end_ns=self.end_ns + by_ns, samples=samples)


@dataclass(frozen=True)
class Call:
    """One collective or point-to-point operation that a rank called, as its flight recorder kept it.

    ``sequence`` counts the collectives of the process group (or, for ``is_p2p``, its point-to-point operations).
    ``collective`` is canonical (``all_reduce``), ``name`` as recorded (``nccl:all_reduce``); ``peers`` tells the two
    group ranks of a point-to-point operation. ``is_done`` is true once it has completed; ``state`` is the recorder's
    own word (``scheduled``, ``started``, ``completed``). Times are unix ns, 0 where not told. ``where`` is the
    innermost recorded frame of the program.
    """

    number: int
    group: str
    sequence: int
    is_p2p: bool
    collective: str
    name: str
    peers: str
    input_sizes: Sizes
    output_sizes: Sizes
    input_dtypes: tuple[str, ...]
    output_dtypes: tuple[str, ...]
    state: str
    is_done: bool
    created_ns: int
    started_ns: int
    completed_ns: int
    timeout_ns: int
    where: str


@dataclass(frozen=True)
class Group:
    """A process group: its ranks (empty where not told) and the last collective that was enqueued, started, completed.

    −1 where the recorder does not tell.
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    enqueued: int = -1
    started: int = -1
    completed: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class FlightRecord(Record):
    """One rank's flight recorder: its newest calls, oldest first, and its process groups by name."""

    version: str
    calls: tuple[Call, ...]
    groups: dict[str, Group]
