"""Why an xplane file whose host ran programs on CPU tells nothing of them, in words."""

from __future__ import annotations

from meshscope.readers.xplane_space import Space

_HOST = "/host:CPU"
_SEVERAL = "several planes are of the host's CPU: profiles of several hosts or runs lie in this file"
_NO_DEVICE = (
    "JAX ran on CPU, and its profiler wrote no device beside the operations, as before JAX 0.7: whose each is cannot "
    "be told; profile with JAX 0.7 or newer"
)
_NO_OPERATIONS = (
    "JAX ran on CPU, and its profiler wrote none of the operations, as some releases before JAX 0.7 do not; profile "
    "with JAX 0.7 or newer"
)


_CUT = (
    "the file was cut, and what is left of it holds no operation that can be named, since a plane's names come after "
    "its events: copy the file again, or trace again"
)


def has_several_hosts(space: Space) -> bool:
    """Whether two planes are of a host's CPU: XLA writes one, so two files lie behind each other."""
    return sum(plane.name == _HOST for plane in space.planes) > 1


def cpu_why(space: Space) -> str:
    """Why nothing is told of what ran on CPU, or of a file that was cut; "" where nothing ran."""
    if has_several_hosts(space):
        return _SEVERAL
    for plane in space.planes:
        if plane.name == _HOST and any("CpuExecutable::Execute" in name for name in plane.event_names.values()):
            is_without_device = "hlo_op" in plane.stat_ids and "device_ordinal" not in plane.stat_ids
            return _NO_DEVICE if is_without_device else _NO_OPERATIONS if "hlo_op" not in plane.stat_ids else ""
    return "" if space.is_complete else _CUT
