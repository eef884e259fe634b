"""What a rank tells when it is asked while it stands still: where its Python threads are, and what else it is given.

A rank that hangs sits in C++, where Python runs no signal handler; so a thread of its own waits for the signal, which
every other thread blocks. It needs the interpreter: where that is held too, faulthandler's text in the log tells.
"""

from __future__ import annotations

import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from meshscope.capture.processes import FLIGHT as ASKED
from meshscope.capture.stacks import MOST_FRAMES, Stack, busy, said
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import StacksTaken
from meshscope.recording.frames import is_own
from meshscope.recording.layout import LOGS, STACKS, write_whole

Dump = Callable[[Path, RankJournal], None]

_PLAIN = (bool, int, float, str)
_MOST_ARGUMENTS = 4
_LONGEST = 40


def listen(recording: Path, journal: RankJournal, *dumps: Dump) -> None:
    """Call from the main thread before any other is started: threads inherit what it blocks."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {ASKED})
    threading.Thread(target=_serve, args=(recording, journal, dumps), daemon=True, name="stalls").start()


def _serve(recording: Path, journal: RankJournal, dumps: tuple[Dump, ...]) -> None:
    number = 0
    while True:
        signal.sigwait({ASKED})
        number += 1
        tell(recording, journal, number)
        for dump in dumps:
            dump(recording, journal)


def tell(recording: Path, journal: RankJournal, number: int, *, has_arguments: bool = True) -> None:
    """Write where every Python thread is, and tell of it; ``has_arguments``: with those of the program's own code."""
    threads = _threads(has_arguments=has_arguments)
    text = "\n\n".join("\n".join((name, *(f"  {frame}" for frame in stack))) for name, stack in threads)
    path = f"{STACKS}/rank{journal.rank}-{number}.txt"
    write_whole(recording / path, f"{text}\n".encode(errors="replace"))
    log = recording / LOGS / f"rank{journal.rank}.txt"
    journal.append(
        StacksTaken(
            t_ns=journal.now_ns(),
            rank=journal.rank,
            path=path,
            threads=busy([stack for _, stack in threads]),
            said=said(log),
        )
    )


def _threads(*, has_arguments: bool) -> list[tuple[str, Stack]]:
    """Name and stack of each, the main thread first; this one is left out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main = threading.main_thread().ident
    frames = sys._current_frames()
    order = sorted(frames, key=lambda ident: (ident != main, ident))
    return [
        (f"thread {names.get(ident, 'of no Python name')}", tuple(_stack(frames[ident], has_arguments=has_arguments)))
        for ident in order
        if ident != threading.get_ident()
    ]


def _stack(frame: FrameType | None, *, has_arguments: bool) -> Iterator[str]:
    """The innermost frame first, each as ``path:line function``, with plain arguments in the program's own code."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        code = frame.f_code
        arguments = f"({_arguments(frame)})" if has_arguments and is_own(code.co_filename) else ""
        yield f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}{arguments}"
        frame = frame.f_back


def _arguments(frame: FrameType) -> str:
    """Those whose text can be had without asking a device for it."""
    code = frame.f_code
    found = inspect.getargs(code).args
    values = frame.f_locals
    told = [f"{name}={text}" for name in found if (text := _plain(values.get(name))) is not None]
    return ", ".join(told[:_MOST_ARGUMENTS])


def _plain(value: Any) -> str | None:
    """A number or a short text; an array of one number by that number, if it is NumPy's own."""
    if type(value).__module__ == "numpy" and getattr(value, "size", 0) == 1:
        value = value.item()
    if not isinstance(value, _PLAIN):
        return None
    return repr(value) if len(repr(value)) <= _LONGEST else None
