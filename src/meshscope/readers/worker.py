"""A process that reads traces for another: ``python -m meshscope.readers.worker SOCKET SETTINGS``.

The numbers are those of descriptors that it was given. It is asked over a socket of whole messages (JSON), says several
times a second how far it has come, and hands over what it has read as a file of columns
(:mod:`meshscope.readers.packing`) whose descriptor travels with the message: the entry of the cache where it could be
kept, else memory without a name. It reads by the settings that are in force where it is asked from, and ends when the
other end is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from meshscope import config, fast, readers
from meshscope.errors import TraceError
from meshscope.readers.column_cache import Cache, Hashing
from meshscope.readers.meter import Meter, metered
from meshscope.readers.packing import pack
from meshscope.spans import Window

HANDED_OVER = "handed over"
"""The key of columns that are no entry of the cache."""

LONGEST_MESSAGE_BYTES = 1 << 16
_LONGEST_TEXT = 2000
_TELL_EVERY_S = 0.1
_BLOCK_BYTES = 1 << 20


class Asked(msgspec.Struct, kw_only=True):
    """Read ``path`` (as ``os.fsencode`` has it, in Latin-1), or only its first ``prefix_bytes`` where that is not 0.

    ``cache`` is the folder to keep it in, "" for none; ``scratch`` is one for links, which whoever asks clears away.
    """

    path: str
    device_kind: str = ""
    prefix_bytes: int = 0
    scratch: str = ""
    cache: str = ""
    cache_limit_bytes: int = 0


class Told(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far it is; ``is_done`` with the last one of a file. ``is_compiling``: it is held up by making machine code.

    ``key`` is that of the columns whose descriptor comes along; without one, ``why`` and ``hint`` tell why the file
    cannot be read. ``unkept`` says why it was not kept in the cache.
    """

    read_bytes: int = 0
    events: int = 0
    is_compiling: bool = False
    is_done: bool = False
    key: str = ""
    why: str = ""
    hint: str = ""
    unkept: str = ""


def main(number: int) -> None:
    """Answer until the other end is closed."""
    # Ctrl-C in the terminal reaches the whole group: the one who asked decides what becomes of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=number) as line:
        while request := line.recv(LONGEST_MESSAGE_BYTES):
            answer(line, msgspec.json.decode(request, type=Asked))


def answer(line: socket.socket, asked: Asked) -> None:
    """Read one file, telling how far it is, and hand it over."""
    meter = Meter()
    with telling(line, meter):
        told, file = read(asked, meter)
    descriptors = [] if file is None else [file.fileno()]
    socket.send_fds(line, [msgspec.json.encode(told)], descriptors)
    if file is not None:
        file.close()


def read(asked: Asked, meter: Meter) -> tuple[Told, IO[bytes] | None]:
    """What came of one file, and its columns."""
    path = Path(os.fsdecode(asked.path.encode("latin-1")))
    try:
        windows, hashing = _read(path, asked, meter)
    except TraceError as error:
        why, hint = error.message[:_LONGEST_TEXT], error.hint[:_LONGEST_TEXT]
        return Told(read_bytes=meter.read_bytes, events=meter.events, is_done=True, why=why, hint=hint), None
    told = Told(read_bytes=meter.read_bytes, events=meter.events, is_done=True, key=HANDED_OVER)
    digest = hashing.digest() if hashing is not None else None
    if hashing is not None and digest is not None:
        keeping = Cache(Path(asked.cache), asked.cache_limit_bytes)
        try:
            file = keeping.store(path, windows, digest, asked.device_kind, is_settled=hashing.is_settled)
        except OSError as error:
            told.unkept = (error.strerror or str(error))[:_LONGEST_TEXT]
        else:
            told.key = keeping.key(path, digest, asked.device_kind)
            return told, file
    return told, nameless(windows)


def _read(path: Path, asked: Asked, meter: Meter) -> tuple[tuple[Window, ...], Hashing | None]:
    with metered(meter):
        if asked.prefix_bytes:
            with prefix(path, asked.prefix_bytes, asked.scratch) as beginning:
                return readers.read(beginning, device_kind=asked.device_kind), None
        hashing = Hashing(path) if asked.cache else None  # a thread has a context of its own, so it is not metered
        return readers.read(path, device_kind=asked.device_kind), hashing


def nameless(windows: tuple[Window, ...]) -> IO[bytes]:
    """Columns in memory that no path leads to: gone with the last who maps them."""
    file = os.fdopen(os.memfd_create("meshscope-columns"), "w+b")
    pack(file, windows, HANDED_OVER)
    file.flush()
    return file


@contextlib.contextmanager
def prefix(path: Path, size_bytes: int, scratch: str) -> Iterator[Path]:
    """A file of the same name with the beginning of the content, as a file that is cut short would have it.

    The content has no name of its own, so that nothing of it is left by a process that is killed.
    """
    try:
        with path.open("rb") as whole, tempfile.TemporaryFile() as part:
            left = size_bytes
            while left > 0 and (block := whole.read(min(left, _BLOCK_BYTES))):
                part.write(block)
                left -= len(block)
            part.flush()
            link = Path(tempfile.mkdtemp(dir=scratch)) / path.name
            link.symlink_to(f"/proc/{os.getpid()}/fd/{part.fileno()}")
            yield link
    except OSError as error:
        raise TraceError(f"The beginning of {path.name} cannot be looked at: {error.strerror}.") from error


@contextlib.contextmanager
def telling(line: socket.socket, meter: Meter) -> Iterator[None]:
    """Say how far it is every tenth of a second; end this process once nobody listens any more."""
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(_TELL_EVERY_S):
            told = Told(read_bytes=meter.read_bytes, events=meter.events, is_compiling=fast.is_compiling())
            try:
                line.send(msgspec.json.encode(told))
            except OSError:
                os._exit(1)

    teller = threading.Thread(target=tell, name="meshscope-telling", daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[2]), "rb") as settings:
        config.use(msgspec.json.decode(settings.read(), type=config.Settings))
    with contextlib.suppress(OSError):
        main(int(sys.argv[1]))
