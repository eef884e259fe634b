"""Questions that only a process of its own may answer, since answering imports torch, JAX or a user's code."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

Told = TypeVar("Told")


def told(line: Sequence[str], environ: Mapping[str, str], kind: type[Told], *, patience_s: float) -> Told | str:
    """What the last line of ``line``'s output says, as ``kind``; else why there is none, in one line.

    Raises subprocess.TimeoutExpired after ``patience_s``.
    """
    done = subprocess.run(
        line, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False
    )
    lines = done.stdout.splitlines()
    try:
        return msgspec.json.decode(lines[-1] if lines else b"", type=kind)
    except msgspec.MsgspecError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return last[0]
