"""Where the Python threads of a rank's process are: read from faulthandler's text, and kept in the recording."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from meshscope.recording.entries import StacksTaken
from meshscope.recording.journal import Journal
from meshscope.recording.layout import LOGS, STACKS, write_whole

Stack = tuple[str, ...]

MOST_THREADS = 16
MOST_FRAMES = 24
_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-f]{1,16})\b.*most recent call first", re.IGNORECASE)
_FRAME = re.compile(r'^  File "([^"]{1,1000})", line (\d{1,9}|\?\?\?) in (.{1,200})$')
_RESTING = ("threading.py", "queue.py", "selectors.py", "concurrent/futures/thread.py", "workers/stalls.py")
"""Where threads are that wait for work, or that take the stacks."""

_WAITS = re.compile(r"may be stuck|join the rendezvous|Termination timeout for|Timed out waiting", re.IGNORECASE)
_TAIL_BYTES = 65_536
_LINE_LENGTH = 500
_MOST_LINES = 6


def parsed(text: str) -> tuple[Stack, ...]:
    """The threads of one dump of faulthandler, the main one first; of several dumps in a text the last.

    A frame is ``path:line function``, the innermost first.
    """
    dump: dict[str, list[str]] = {}
    thread: list[str] = []
    for line in text.splitlines():
        if head := _THREAD.match(line):
            # The next dump begins where one of its threads comes again; a thread that has ended is not in it.
            dump = {} if head[1] in dump else dump
            thread = dump.setdefault(head[1], [])
        elif frame := _FRAME.match(line):
            thread.append(f"{frame[1]}:{frame[2]} {frame[3]}")
    threads = list(dump.values())
    # faulthandler goes from the newest thread to the oldest.
    return tuple(tuple(thread[:MOST_FRAMES]) for thread in reversed(threads) if thread)


def busy(threads: Iterable[Stack]) -> tuple[Stack, ...]:
    """The main thread and those that do not just wait for work, at most MOST_THREADS."""
    found = list(threads)
    others = (thread for thread in found[1:] if not _rests(thread))
    return (*found[:1], *others)[:MOST_THREADS]


def _rests(thread: Stack) -> bool:
    return bool(thread) and thread[0].partition(":")[0].endswith(_RESTING)


def said(log: Path) -> tuple[str, ...]:
    """The last lines of a log in which a library says that it waits; none where there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(line.strip()[:_LINE_LENGTH] for line in lines if _WAITS.search(line))[-_MOST_LINES:]


def keep(text: str, recording: Path, journal: Journal, *, rank: int, name: str) -> bool:
    """Write a dump into the recording and tell of it; False, and nothing, where it holds no thread."""
    threads = busy(parsed(text))
    if not threads:
        return False
    path = f"{STACKS}/{name}-rank{rank}.txt"
    write_whole(recording / path, text.encode())
    journal.append(
        StacksTaken(
            t_ns=journal.now_ns(),
            rank=rank,
            path=path,
            threads=threads,
            said=said(recording / LOGS / f"rank{rank}.txt"),
        )
    )
    return True
