"""Writing and reading one writer's journal file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec

from meshscope.recording.entries import Entry
from meshscope.recording.layout import JOURNAL
from meshscope.recording.numbers import decoded, encoded

_LEAST_READ = 1 << 16


class Journal:
    """Appends entries to ``journal/<writer>.jsonl``; threads of the writer's process may share one.

    Every entry is one ``write`` of a whole line, unbuffered, so a kill loses no entry that was appended.
    """

    def __init__(self, folder: Path, writer: str, *, t0_unix_ns: int) -> None:
        self._t0_unix_ns = t0_unix_ns
        self._lock = threading.Lock()
        path = folder / JOURNAL / f"{writer}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("ab", buffering=0)

    def now_ns(self) -> int:
        """Now, in the recording's time."""
        return time.time_ns() - self._t0_unix_ns

    def append(self, entry: Entry) -> None:
        self.append_all((entry,))

    def append_all(self, entries: Iterable[Entry]) -> None:
        """Several entries in one ``write``."""
        lines = b"".join(encoded(entry) + b"\n" for entry in entries)
        with self._lock:
            self._file.write(lines)

    def close(self) -> None:
        self._file.close()


class Tail:
    """Reads what was appended to one journal file since the last call; a half-written line waits."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._size = 0
        self.skipped = 0

    def read(self, size: int | None = None) -> list[Entry]:
        """New whole entries. ``size`` is that of the file now, which is asked for where it is not given.

        Lines that are damaged or of an unknown type are counted in ``skipped``, and what cannot be opened at all (a
        folder of that name, a file without permission) as one.
        """
        if size == self._size:
            return []
        try:
            chunk = self._appended(self.path.stat().st_size if size is None else size)
        except OSError:
            self.skipped = max(self.skipped, 1)
            return []
        whole = chunk.rfind(b"\n") + 1
        self._offset += whole
        entries: list[Entry] = []
        for line in chunk[:whole].splitlines():
            try:
                entries.append(decoded(line))
            except msgspec.MsgspecError:
                self.skipped += 1
        return entries

    def _appended(self, size: int) -> bytes:
        """From the last whole line on; raises OSError."""
        if size == self._size:
            return b""
        # By its descriptor: a buffered file costs three times as much, and a thousand are read at a time.
        file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            os.lseek(file, self._offset, os.SEEK_SET)
            chunks = []
            while chunk := os.read(file, max(size - self._offset, _LEAST_READ)):
                chunks.append(chunk)
        finally:
            os.close(file)
        self._size = size
        return b"".join(chunks)


def read_tails(folder: Path, tails: dict[str, Tail]) -> list[Entry]:
    """What was appended to the journals in a folder, by writer; ``tails`` is what is known of each by its file's name.

    A thousand writers are looked at several times a second: one reading of the folder, and their sizes.
    """
    found: list[Entry] = []
    try:
        files = [file for file in os.scandir(folder) if file.name.endswith(".jsonl")]
    except OSError:
        return found
    for file in sorted(files, key=lambda file: file.name):
        tail = tails.get(file.name)
        if tail is None:
            tail = tails[file.name] = Tail(folder / file.name)
        found += tail.read(_size(file))
    return found


def _size(file: os.DirEntry[str]) -> int | None:
    """None where it is to be found out on opening."""
    try:
        return file.stat().st_size
    except OSError:
        return None
