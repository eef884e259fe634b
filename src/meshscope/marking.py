"""Marks of a training script for ``meshscope run -- COMMAND``, for scripts whose steps nothing else tells.

Standard library only, and next to nothing: a script imports this whether or not it is watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Marked(Protocol):
    """What hears the marks: the watch that ``meshscope run --`` has put into this process."""

    def begin(self) -> None: ...

    def turn(self, *, loss: float | None, samples: int, tokens: int) -> None: ...

    def finish(self) -> None: ...


_watch: Marked | None = None


def hear(watch: Marked | None) -> None:
    """From now on marks go to ``watch``; to nobody when None."""
    global _watch  # noqa: PLW0603  # one process, one watch
    _watch = watch


def step(*, loss: float | None = None, samples: int = -1, tokens: int = -1) -> None:
    """Say that one training step has ended and the next begins.

    Call it once per step, on every rank, as the last line of the loop. A step lasts from one call to the next; the
    first has no beginning (unless :func:`record` gave it one) and is counted without a time. From the first call on
    steps are counted by these calls alone, no longer by the optimizer's.

    ``loss``, ``samples`` and ``tokens`` are of this rank's step, where the script has them at hand: a loss that is
    still on its device would have to be waited for. −1 and None leave them unknown.

    Under ``meshscope run -- COMMAND`` the step is recorded; anywhere else this does nothing (some 50 ns).
    """
    if _watch is not None:
        _watch.turn(loss=loss, samples=samples, tokens=tokens)


@contextmanager
def record() -> Iterator[None]:
    """Around the training loop: its steps are those between here and the end of the block.

    Entering it is the beginning of step 0; leaving it ends what is profiled. It takes no folder and starts no
    recording: ``meshscope run -- COMMAND`` does, and anywhere else this does nothing.

    ::

        with meshscope.record():
            for batch in loader:
                train(batch)
                meshscope.step()
    """
    watch = _watch
    if watch is None:
        yield
        return
    watch.begin()
    try:
        yield
    finally:
        watch.finish()
