"""What a training script tells whoever watches it.

A script calls a watch at the moments that matter and prints nothing itself. This one prints a line per step;
meshscope hands in one that records. Nothing here starts a collective: watching does not change what is watched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Watch:
    """Prints a line per step on one rank, ``speaker`` (−1 for the last); nothing else."""

    def __init__(self, speaker: int = 0) -> None:
        ranks = int(os.environ.get("WORLD_SIZE", "1"))
        self._speaks = int(os.environ.get("RANK", "0")) == speaker % ranks
        self._loss = float("nan")

    def started(
        self, *, parameters: Callable[[], Any], optimizer: Callable[[], Any], compiled: Any = None, key: Any = None
    ) -> None:
        """The model and its optimizer exist and step 0 comes next. Called once.

        torch: ``parameters()`` is the wrapped module, ``optimizer()`` the optimizer. JAX: the trees of parameters and
        optimizer state as they are now (a step's donated inputs are gone), ``compiled`` the compiled step, and
        ``key`` the random keys of the devices where each draws from its own; None where the program draws once for
        the whole batch.
        """

    def step(self, number: int) -> AbstractContextManager[None]:
        """Around one training step, its batch included; ``number`` counts from 0."""
        return self._step(number)

    def batch(self, fetch: Callable[[], T]) -> T:
        """Inside a step: what ``fetch`` returns; the step waits for data while it runs."""
        return fetch()

    def loss(self, value: Any) -> float:
        """Inside a step, last: the loss as a number, which waits until the device has computed it.

        A torch rank reports the mean over its own slice of the global batch. Slices are of equal size (but under the
        fault ``ragged-batch``), so the mean over ranks is the loss of the global batch. A JAX process reports the loss
        of the global batch itself. A rank that computes no loss, as a stage of a pipeline before the last, reports
        None and is told NaN.
        """
        self._loss = float("nan") if value is None else float(value)
        return self._loss

    def compiling(self, what: str) -> AbstractContextManager[None]:
        """Around a compilation asked for by the script: JAX's ahead of time, or the first call under torch.compile."""
        return self._timed(f"compiling {what}")

    def finished(self) -> None:
        """The last step is done; the ranks part after this."""

    @contextmanager
    def _step(self, number: int) -> Iterator[None]:
        with self._timed(f"step {number}", lambda: f"loss {self._loss:.4f}, "):
            yield

    @contextmanager
    def _timed(self, title: str, result: Callable[[], str] = str) -> Iterator[None]:
        start_s = time.perf_counter()
        yield
        if self._speaks:
            print(f"{title}: {result()}{(time.perf_counter() - start_s) * 1000:.1f} ms", flush=True)
