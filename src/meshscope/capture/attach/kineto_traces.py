"""What a process is told to trace through Kineto's socket, and the file that it then writes."""

from __future__ import annotations

from pathlib import Path

WARMUP_S = 2
"""What a GPU's tracing needs before its first event; a CPU's needs nothing."""

_TAIL_BYTES = 4096
_LAST_KEY = b'"traceName"'
_END = b"}"


def configuration(log: Path, *, start_unix_ns: int, duration_ns: int, warmup_s: int) -> str:
    """The text of an on-demand configuration; libkineto puts the process id into the name of ``log``.

    All ranks begin at one time: collectives between them are then seen whole. Keys: libkineto's ``Config.cpp``.
    """
    return "\n".join(
        (
            f"ACTIVITIES_LOG_FILE={log}",
            f"PROFILE_START_TIME={start_unix_ns // 1_000_000}",
            f"ACTIVITIES_WARMUP_PERIOD_SECS={warmup_s}",
            f"ACTIVITIES_DURATION_MSECS={max(1, duration_ns // 1_000_000)}",
            "PROFILE_REPORT_INPUT_SHAPES=true",
        )
    )


def written(log: Path, pid: int) -> Path:
    """The file that process ``pid`` writes when told ``log``."""
    return log.with_name(f"{log.stem}_{pid}{log.suffix}")


def is_whole(path: Path) -> bool:
    """Whether a trace is there up to its closing bracket, right after its last key.

    libkineto writes to a file beside it and renames that; before it did, it appended for as long as it wrote.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read()
    except OSError:
        return False
    return _LAST_KEY in tail and tail.rstrip().endswith(_END)
