"""The cache of read traces: their columns, outside the recording, mapped into memory when a trace is opened again.

A trace is known by its **content** (BLAKE2b of the file's bytes): one that was copied or moved is found again, one
that was changed is not. Hashing a gigabyte takes a second, so beside the entries stands, for every path, the digest
that it had with its size, its times of change and its inode; a file that was written while or just before it was
hashed is hashed again next time, since its times might not tell a later change. With the content an entry is keyed by
all else that the windows depend on: the name of the file (a rank may be told by it), the kind of device, the rules of
classification and the readers themselves (their source), so neither can be forgotten.

An entry is written under another name, by a writer that holds a lock on it, and renamed when it is whole; what a
killed writer leaves is told by its lock and removed. An entry that fails any check (:mod:`meshscope.readers.packing`)
or belongs to another user is removed and made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from meshscope import __version__, kinds
from meshscope.errors import InputError
from meshscope.readers.packing import Damaged, pack, unpack
from meshscope.spans import Window

WORTH_BYTES = 4_000_000
"""A smaller file is read again as fast as it is looked up, hashed and checked."""

_ENTRIES, _SEEN = "entries", "seen"
_ENDING, _PART = ".columns", ".part"
_MOST_BYTES, _MOST_FRAC = 10_000_000_000, 0.1
_MOST_SEEN = 4096
_BLOCK_BYTES = 1 << 20
# File systems keep times to as little as two seconds (FAT), mostly to a tick of 4 ms.
_COARSE_NS = 2_000_000_000
# Nothing else is ever removed, whatever folder somebody has named.
_OWN = re.compile(r"(\d+-[0-9a-f]{40}\.columns|[0-9a-f]{40})(\.[0-9a-f]{16}\.part)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kMGT]?)i?B?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def place(environ: Mapping[str, str]) -> Path | None:
    """The cache's folder: ``MESHSCOPE_CACHE``, else a folder of the platform's; None where it says ``off``."""
    named = environ.get("MESHSCOPE_CACHE", "")
    if named.lower() == "off":
        return None
    if named:
        return Path(named).expanduser()
    base = environ.get("XDG_CACHE_HOME", "")
    # A relative one is to be ignored, says the XDG base directory specification.
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "meshscope"


def limit(environ: Mapping[str, str], folder: Path) -> int:
    """The most bytes to keep: ``MESHSCOPE_CACHE_LIMIT`` (``2GB``), else a tenth of the disk, 10 GB at most.

    Raises InputError where the variable is no size.
    """
    named = environ.get("MESHSCOPE_CACHE_LIMIT", "").strip()
    said = _SIZE.fullmatch(named)
    if said is not None:
        return int(float(said[1]) * _FACTORS[said[2].lower()])
    if named:
        raise InputError(f"MESHSCOPE_CACHE_LIMIT is {named!r}, which is no size.", hint="Write it such as 2GB.")
    existing = next((known for known in (folder, *folder.parents) if known.exists()), Path("/"))
    return min(_MOST_BYTES, int(shutil.disk_usage(existing).total * _MOST_FRAC))


@cache
def version() -> str:
    """A digest of the readers' source and of what they classify by: it changes whenever an answer might."""
    digest = hashlib.blake2b(__version__.encode(), digest_size=20)
    here = Path(__file__).parent
    for source in sorted((*here.rglob("*.py"), *here.parent.glob("*.py"), *here.parent.glob("fast/**/*.py"))):
        digest.update(str(source.relative_to(here.parent)).encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Stat:
    """What a file's directory entry tells: different for any change that its content has seen since."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stat:
        """Raises OSError."""
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


class Hashing:
    """The digest of a file, made beside its first reading: hashing leaves the interpreter to whoever reads.

    ``digest`` waits for it; None when the file could not be read or was written meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest: str | None = None
        self.is_settled = False
        self._thread = threading.Thread(target=self._run, name="meshscope-digest", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            began_ns, before = time.time_ns(), Stat.of(self._path)
            digest = digest_of(self._path)
            self._digest = digest if Stat.of(self._path) == before else None
            self.is_settled = began_ns - max(before.mtime_ns, before.ctime_ns) > _COARSE_NS

    def digest(self) -> str | None:
        self._thread.join()
        return self._digest


def digest_of(path: Path) -> str:
    """BLAKE2b of a file's bytes. Raises OSError."""
    digest = hashlib.blake2b(digest_size=20)
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """Entries in ``folder``, ``limit_bytes`` at most. Several processes may use it at once."""

    folder: Path
    limit_bytes: int

    def key(self, path: Path, digest: str, device_kind: str) -> str:
        """What an entry is called: all that its windows depend on."""
        told = json.dumps([digest, path.name, device_kind, version(), kinds.rules_digest()])
        return hashlib.blake2b(told.encode(), digest_size=20).hexdigest()

    def find(self, path: Path, device_kind: str = "") -> tuple[Window, ...] | None:
        """The windows of a file that was read before; None when it must be read."""
        try:
            stat = Stat.of(path)
            digest = self._seen(path, stat) or self._hashed(path, stat)
        except OSError:
            return None
        return None if digest is None else self._entry(self.key(path, digest, device_kind), stat.size)

    def store(
        self, path: Path, windows: tuple[Window, ...], digest: str, device_kind: str, *, is_settled: bool
    ) -> IO[bytes]:
        """Keep the windows of a file; the entry, open for reading. Raises OSError where nothing can be written.

        ``is_settled`` says that the file's times would tell of any later change.
        """
        stat = Stat.of(path)
        key = self.key(path, digest, device_kind)
        entries = self._made(_ENTRIES)
        entry = self._written(entries / self._name(key, stat.size), lambda file: pack(file, windows, key))
        if is_settled:
            self._remember(path, stat, digest)
        self.shrink(keep=self._name(key, stat.size))
        return entry

    @property
    def size_bytes(self) -> int:
        """What the entries take."""
        return sum(size for _, size, _ in self._listed())

    @property
    def count(self) -> int:
        return len(self._listed())

    def clear(self) -> int:
        """Remove every entry and whatever else is the cache's; the bytes that were freed. Raises OSError."""
        freed = self.size_bytes
        for name in (_ENTRIES, _SEEN):
            for path in _children(self.folder / name):
                path.unlink(missing_ok=True)
        return freed

    def shrink(self, keep: str = "") -> None:
        """Remove what killed writers left, then the entries that were not used for longest, down to the limit."""
        for name in (_ENTRIES, _SEEN):
            _remove_parts(self.folder / name)
        listed = sorted(self._listed())
        total = sum(size for _, size, _ in listed)
        for _, size, path in listed:
            if total <= self.limit_bytes:
                break
            if path.name != keep or size > self.limit_bytes:
                path.unlink(missing_ok=True)
                total -= size
        seen = sorted(_children(self.folder / _SEEN), key=_used_ns)
        for path in seen[:-_MOST_SEEN]:
            path.unlink(missing_ok=True)

    # Entries

    def _name(self, key: str, size: int) -> str:
        return f"{size}-{key}{_ENDING}"

    def _listed(self) -> list[tuple[int, int, Path]]:
        """(last used, size, path) of every entry."""
        found = []
        for path in _children(self.folder / _ENTRIES):
            with contextlib.suppress(OSError):
                if path.name.endswith(_ENDING):
                    stat = path.stat()
                    found.append((stat.st_mtime_ns, stat.st_size, path))
        return found

    def _entry(self, key: str, size: int) -> tuple[Window, ...] | None:
        path = self.folder / _ENTRIES / self._name(key, size)
        try:
            # A name that leads elsewhere is nothing that this cache has written.
            file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except OSError:
            return None
        with file:
            try:
                if os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                windows = unpack(file, key)
            except (Damaged, OSError):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return windows

    def _written(self, path: Path, write: Callable[[IO[bytes]], None]) -> IO[bytes]:
        """A file that is there once it is whole; open for reading."""
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{_PART}")
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write(file)
            file.flush()
            part.rename(path)
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise
        return file

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    # Which content a path had

    def _seen_at(self, path: Path) -> Path:
        name = hashlib.blake2b(os.fsencode(path.resolve()), digest_size=20).hexdigest()
        return self.folder / _SEEN / name

    def _seen(self, path: Path, stat: Stat) -> str | None:
        at = self._seen_at(path)
        try:
            if at.lstat().st_uid != os.geteuid():
                return None
            text = at.read_bytes()
        except OSError:
            return None
        digest = text.rpartition(b" ")[2].decode("ascii", "replace")
        if text != self._line(stat, digest):
            return None
        with contextlib.suppress(OSError):
            os.utime(at)
        return digest

    def _remember(self, path: Path, stat: Stat, digest: str) -> None:
        self._made(_SEEN)
        line = self._line(stat, digest)
        self._written(self._seen_at(path), lambda file: _write(file, line)).close()

    def _line(self, stat: Stat, digest: str) -> bytes:
        told = f"{stat.size} {stat.mtime_ns} {stat.ctime_ns} {stat.inode} {digest}"
        check = hashlib.blake2b(told.encode(), digest_size=8).hexdigest()
        return f"{check} {told}".encode()

    def _hashed(self, path: Path, stat: Stat) -> str | None:
        """The digest of a file that this path was not seen with, where an entry of its size gives reason to ask."""
        if not any(child.name.startswith(f"{stat.size}-") for child in _children(self.folder / _ENTRIES)):
            return None
        hashing = Hashing(path)
        digest = hashing.digest()
        if digest is not None and hashing.is_settled:
            with contextlib.suppress(OSError):
                self._remember(path, stat, digest)
        return digest


def _children(folder: Path) -> Iterator[Path]:
    """What the cache itself has put into one of its folders."""
    try:
        yield from (child for child in folder.iterdir() if _OWN.fullmatch(child.name))
    except OSError:
        return


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)


def _used_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _remove_parts(folder: Path) -> None:
    """Remove unfinished files whose writer is gone: a living one holds a lock."""
    for path in _children(folder):
        if path.name.endswith(_PART):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
