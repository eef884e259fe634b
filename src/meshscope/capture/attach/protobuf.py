"""The two messages that are sent to JAX's profiler server, in protobuf's wire format.

Source: ``profiler_service.proto`` and ``profiler_options.proto`` of XLA (tsl/profiler/protobuf).
"""

from __future__ import annotations

_VARINT, _LENGTH = 0, 2
_HOST_LEVEL = 2


def profile_request(*, duration_ms: int, root: str, session: str, host: str) -> bytes:
    """``ProfileRequest``: trace for so long, and write ``root/session/host.xplane.pb``.

    Python's calls are not traced: they would be most of the trace and most of its cost.
    """
    options = b"".join(
        (
            number(5, 1),  # version: from 1 on a zero means zero, and not a default
            number(1, 0),  # include_dataset_ops
            number(2, _HOST_LEVEL),
            number(3, 1),  # device_tracer_level
            number(4, 0),  # python_tracer_level
            number(7, 1),  # enable_hlo_proto
            number(9, duration_ms),
        )
    )
    return b"".join(
        (number(1, duration_ms), nested(4, options), text(5, root), text(6, session), text(7, host)),
    )


def terminate_request(session: str) -> bytes:
    """``TerminateRequest``: end a session; of one that there is not, it ends nothing."""
    return text(1, session)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value)


def text(field: int, value: str) -> bytes:
    return nested(field, value.encode())


def nested(field: int, content: bytes) -> bytes:
    return varint(field << 3 | _LENGTH) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Seven bits at a time, the lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
