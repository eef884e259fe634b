"""Planes of an xplane file that do not decode as a whole: what of them counts, and what a file is refused for.

A file cut short by a kill still gives every plane that was written whole. Of a damaged plane each part counts that
decodes by itself; one that the end of the file cuts off counts as far as every event has its name, which come last.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from meshscope.errors import TraceError
from meshscope.readers.xplane_content import Content
from meshscope.readers.xplane_messages import message

NOT_A_PLANE = "a plane that is not protobuf"
NOT_A_PART = "a part of a plane that is not protobuf"

_REPLACED = b"\xef\xbf\xbd"


def merged(kind: str, parts: list[bytes]) -> tuple[Any, int]:
    """A message from its fields, those that decode, and how many do not."""
    try:
        return message(kind).FromString(b"".join(parts)), 0
    except DecodeError:
        pass
    found = message(kind)()
    losses = 0
    for part in parts:
        try:
            found.MergeFrom(message(kind).FromString(part))
        except DecodeError:
            losses += 1
    return found, losses


def unreadable(content: Content) -> TraceError:
    """Why a file without any plane is refused."""
    if content.read(0, 1 << 20).count(_REPLACED) > 100:
        return TraceError(
            "The protobuf was destroyed: it was converted as if it were UTF-8 text.",
            hint="Copy the original .xplane.pb again, in binary mode.",
        )
    return TraceError("This is no xplane protobuf.", hint="Give the .xplane.pb under plugins/profile/<run>/.")
