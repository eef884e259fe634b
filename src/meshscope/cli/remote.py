"""Recordings and traces behind a URL (``s3://``, ``sftp://``, …): copied while the command runs, never written.

A copy shows what stood there when the command began. Reading in place would ask for every journal over the network
again, several times a second.
"""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from meshscope.errors import InputError, MissingPackageError
from meshscope.units import counted, printable, size

_URL = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_url(text: str) -> bool:
    return _URL.match(text) is not None


def fetched(url: str) -> Path:
    """A copy of the file or folder, which is gone when this process ends.

    Raises MissingPackageError without fsspec or what it needs for this kind of URL, InputError for what is not there,
    cannot be reached, or would lead out of the copy's folder.
    """
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingPackageError(
            f"{printable(url)} needs the package fsspec, which is not installed.",
            hint="Install it: pip install 'meshscope[remote]'",
        ) from error
    try:
        system, root = fsspec.core.url_to_fs(url)
        return _copied(system, root, url)
    except ImportError as error:
        raise MissingPackageError(
            f"fsspec needs another package for {printable(url)}: {printable(str(error))}",
            hint="Install the one that it names with pip.",
        ) from error
    except FileNotFoundError as error:
        raise InputError(
            f"There is nothing at {printable(url)}.", hint="Check the name and the permissions."
        ) from error
    except InputError:
        raise
    except Exception as error:  # fsspec's file systems each raise errors of their own libraries
        raise InputError(
            f"{printable(url)} cannot be read: {printable(str(error)) or type(error).__name__}",
            hint="Check the address and the credentials, or copy it here yourself.",
        ) from error


def _copied(system: Any, root: str, url: str) -> Path:
    found = system.find(root, detail=True)
    if not found:
        raise FileNotFoundError(url)
    target = Path(tempfile.mkdtemp(prefix="meshscope-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    home = target / (PurePosixPath(root).name or "remote")
    total = sum(int(about.get("size") or 0) for about in found.values())
    told = f"{counted(len(found), 'file')}, {size(total)}"
    sys.stderr.write(f"note: copying {told} from {printable(url)}\n")
    for name in sorted(found):
        place = home / _inside(name, root)
        place.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(name, str(place))
    return home


def _inside(name: str, root: str) -> PurePosixPath:
    """Where a file lies below the root. Names come from elsewhere: none may lead out of the copy."""
    path, base = PurePosixPath(name.strip("/")), PurePosixPath(root.strip("/"))
    inside = path.relative_to(base) if path.is_relative_to(base) else path
    if inside.is_absolute() or ".." in inside.parts or "\0" in name:
        raise InputError(f"{printable(name)} would lie outside of the copy.", hint="Copy what you trust yourself.")
    return inside
