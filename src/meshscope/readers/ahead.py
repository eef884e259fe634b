"""Blocks made ahead in a thread: unpacking lets go of the interpreter, and so does the compiled scanner."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import TypeVar

Block = TypeVar("Block")

_DEPTH = 2
_PATIENCE_S = 0.1


def ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks, a few of them made before they are asked for.

    What making them raises is raised here. The thread ends when this iterator does, or is let go of.
    """
    made: queue.Queue[Block | _End] = queue.Queue(_DEPTH)
    is_over = threading.Event()
    # The context goes along, since whoever counts what is read looks for its counter there.
    thread = threading.Thread(target=copy_context().run, args=(_make, blocks, made, is_over), daemon=True)
    thread.start()
    try:
        while not isinstance(block := made.get(), _End):
            yield block
        if block.error is not None:
            raise block.error
    finally:
        is_over.set()
        thread.join()


class _End:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def _make(blocks: Iterator[Block], made: queue.Queue[Block | _End], is_over: threading.Event) -> None:
    try:
        for block in blocks:
            _put(block, made, is_over)
            if is_over.is_set():
                return
        _put(_End(), made, is_over)
    except BaseException as error:  # noqa: BLE001  # raised again where the blocks are asked for
        _put(_End(error), made, is_over)


def _put(item: Block | _End, made: queue.Queue[Block | _End], is_over: threading.Event) -> None:
    while not is_over.is_set():
        with contextlib.suppress(queue.Full):
            made.put(item, timeout=_PATIENCE_S)
            return
