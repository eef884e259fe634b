"""The journal's entries. One JSON object per line, told apart by ``type``; unknown types are skipped.

``t_ns`` is when the entry was written, ns since the recording's ``t0_unix_ns``. A replay at time t sees the
entries with ``t_ns <= t`` and nothing else.
"""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    t_ns: int


class Phase(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="phase"):
    """What a rank (or the supervisor, rank −1) is doing now.

    ``phase``: ``launching``, ``importing``, ``compiling``, ``training``, ``warming profiler``, ``profiling``,
    ``stopping profiler`` or ``ending``. The last entry of a writer wins; a long stop repeats it as a heartbeat.
    """

    rank: int
    phase: str
    detail: str = ""


class RankStarted(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="rank_started"):
    """A rank's process is up. A JAX process announces one entry for each of its devices."""

    rank: int
    device: int
    device_name: str
    device_kind: str
    pid: int
    global_device_id: int = -1
    device_uuid: str = ""


class Recognized(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="recognized"):
    """What a user's own script turned out to be, said by each of its ranks at its first step.

    The head of such a recording is written before anything is known of the script; these take the place of its fields
    of the same name. ``seen`` is the strategy that the script's objects show (ddp, fsdp, …), ``title`` the same for a
    person, ``ranks`` the world's size, ``versions`` those of the packages that the script has loaded.
    """

    rank: int
    framework: str
    ranks: int
    device_kind: str
    seen: str = ""
    title: str = ""
    parameters: int = 0
    versions: dict[str, str] = {}


class StepDone(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="step"):
    """One training step of one rank; bytes are −1 where the allocator does not tell.

    ``cpu_ns`` is what the rank's process computed on its cores meanwhile, all threads together, its batch left out: a
    rank that waits for another uses none. −1 where one process drives several ranks.
    ``is_profiled`` is true when any profiler activity fell inside the step; ``is_compiling`` when a compile did.
    In a JAX process rank is that of its first device: the step is one program over all of them.
    """

    rank: int
    step: int
    start_ns: int
    end_ns: int
    tokens: int = -1
    samples: int = -1
    loss: float | None = None
    data_wait_ns: int = -1
    allocated_bytes: int = -1
    reserved_bytes: int = -1
    peak_bytes: int = -1
    cpu_ns: int = -1
    is_profiled: bool = False
    is_compiling: bool = False


class WindowAsked(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="window_asked"):
    """The supervisor asked every rank to profile steps [first_step, end_step). ``reason``: cycle, key, slow step."""

    first_step: int
    end_step: int
    reason: str


class TraceWritten(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="trace"):
    """A native trace was renamed into place at ``path`` (relative to the recording).

    Steps [first_step, end_step) are wholly inside; both are 0 for a job that was attached to: nobody counts its steps.
    ``stop_ns`` is how long stopping and writing held the rank; that lies between two steps, in neither's time, and
    makes the next step of its peers wait (it counts as profiled). ``format``: ``kineto`` or ``xplane``.
    """

    rank: int
    path: str
    format: str
    first_step: int
    end_step: int
    size_bytes: int
    start_cost_ns: int = 0
    stop_ns: int = 0
    has_memory: bool = False


class Compiled(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="compiled"):
    """A compilation: ``stage`` is ``trace``, ``lower`` or ``compile``; ``reason`` says why, in the framework's words.

    ``changed`` names each input that is not as it was in an earlier compilation of this function, from and to:
    ``tokens int32[8,128] → int32[7,128]``; () where nobody told. ``is_from_cache``: the program was read from JAX's
    persistent cache, and ``duration_ns`` is what that took.
    """

    rank: int
    name: str
    stage: str
    duration_ns: int
    step: int = -1
    is_recompilation: bool = False
    reason: str = ""
    changed: tuple[str, ...] = ()
    is_from_cache: bool = False

    @property
    def function(self) -> str:
        """What was compiled: tracing is reported of a function, and compiling of the program made from it."""
        return function_of(self.name)


class MemoryMeasured(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="memory"):
    """Bytes by category on one device.

    ``categories`` maps parameters, gradients, optimizer, activations, temporaries to bytes and ``how`` maps
    each to ``exact`` (summed over the framework's own trees), ``measured`` (allocator or profiler), ``derived``
    (by arithmetic on those) or ``compiler`` (XLA's plan). ``pool_bytes`` is what the allocator has taken,
    ``limit_bytes`` what it may take at most, ``largest_free_bytes`` the largest block that it could hand out without
    taking more, ``capacity_bytes`` the device's whole memory. Counts are −1 where unknown.
    """

    rank: int
    device: int
    step: int
    source: str
    categories: dict[str, int]
    how: dict[str, str]
    peak_bytes: int = -1
    peak_how: str = ""
    pool_bytes: int = -1
    in_use_bytes: int = -1
    limit_bytes: int = -1
    largest_free_bytes: int = -1
    capacity_bytes: int = -1


class Checked(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="checked"):
    """Cheap fingerprints every k steps, to tell ranks apart that should agree (and keys that should not).

    ``parameters`` and ``gradients`` are sums over the rank's own shards; gradients are None where they never leave the
    compiled step (JAX). ``rng`` is a hash of the random generators (torch) or of the device's key (JAX).

    ``replicas`` is the sum of those parameters of which several ranks are known to hold the same, by these ranks
    (``"0,1"``), and ``gradient_replicas`` that of their gradients: on a mesh of ranks some parameters are sharded and
    others not.
    """

    rank: int
    step: int
    parameters: float
    gradients: float | None = None
    replicas: dict[str, float] = {}
    gradient_replicas: dict[str, float] = {}
    rng: str = ""
    batch_shape: tuple[int, ...] = ()


class FlightWritten(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="flight"):
    """A rank that was asked while it hung has left its flight recorder's dump at ``path``.

    ``newest`` maps each process group to the number of the last collective that this rank has called in it. A rank
    that lacks one which its peers have called is the one that they wait for. ``waits_in`` names the oldest collective
    that is not done, with its number and group; "" where all are.
    """

    rank: int
    path: str
    newest: dict[str, int] = {}
    waits_in: str = ""


class StacksTaken(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="stacks"):
    """Where the Python threads of a rank's process were when it was asked; the text of it is at ``path``.

    ``threads`` has the main thread first, then those that do more than wait for work; of each its frames, the innermost
    first, as ``path:line function``, with the plain arguments of the program's own functions where they could be seen.
    ``said`` are the last lines in which a library has written into the rank's log that it waits (XLA does).
    """

    rank: int
    path: str
    threads: tuple[tuple[str, ...], ...] = ()
    said: tuple[str, ...] = ()


class Sampled(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="sample"):
    """One reading of one device's sensors, field name (with its unit as suffix) → value."""

    device: str
    values: dict[str, float]


class SensorFailed(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="sensor_failed"):
    """A field of a device cannot be read (from now on), and why."""

    device: str
    field: str
    why: str


class Log(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="log"):
    """A line worth a person's eye. ``level``: info, warning or error."""

    level: str
    text: str
    rank: int = -1


class Settled(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="settled"):
    """A run until its step time is stable ends after ``steps`` steps, or would not have become so.

    ``interval_frac`` is how wide the 95 % interval of the median was, as a share of it, over ``counted`` unprofiled
    steps past warm-up; None where these are too few to tell. ``is_reached``: it was narrow enough.
    """

    steps: int
    counted: int
    interval_frac: float | None
    is_reached: bool


class RankEnded(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="rank_ended"):
    """A rank is gone; ``exit_code`` is negative for a signal, ``why`` the exception or the signal's name."""

    rank: int
    exit_code: int
    why: str = ""
    log_lines: tuple[str, ...] = ()


class Ended(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="ended"):
    """The last entry of a recording. ``outcome``: done, failed or stopped.

    ``exit_code`` is that of a user's own command, negative for a signal; None for a bundled workload.
    """

    outcome: str
    why: str = ""
    rank: int = -1
    exit_code: int | None = None


AnyEntry = (
    Phase | RankStarted | Recognized | StepDone | WindowAsked | TraceWritten | Compiled | MemoryMeasured | Checked
    | FlightWritten | StacksTaken | Sampled | SensorFailed | Log | Settled | RankEnded | Ended
)  # fmt: skip


def function_of(program: str) -> str:
    """``step`` of ``jit(step)``, as JAX names programs; any other name as it is."""
    api, bracket, inside = program.partition("(")
    return inside[:-1] if bracket and api.isidentifier() and inside.endswith(")") else program
