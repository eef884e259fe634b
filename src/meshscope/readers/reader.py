"""What a format's module offers: one constant ``READER``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from meshscope.spans import Window


class Read(Protocol):
    """Reads a file into one Window per rank.

    Times are ns since ``t0_unix_ns``; with None they are unix ns, or start at 0 where the file does not say when it
    was made. ``device_kind`` is what the recording knows of the rank (``"cpu"``, ``"gpu"``, ``"tpu"``; "" unknown): a
    CPU process without collectives cannot be told from a GPU process whose device was not traced.
    Raises TraceError when nothing can be read.
    """

    def __call__(self, path: Path, *, t0_unix_ns: int | None, device_kind: str) -> tuple[Window, ...]: ...


@dataclass(frozen=True)
class Reader:
    """``suffixes`` name the files worth trying in a folder; ``sniff`` decides from the first 4 kB, unpacked."""

    format: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Read
