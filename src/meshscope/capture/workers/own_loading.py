"""How long a torch script waits for its DataLoaders."""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import Any

_MODULE, _ITERATOR = "torch.utils.data.dataloader", "_BaseDataLoaderIter"


class LoaderWaits:
    """The time that the training thread spends in ``next`` of DataLoaders, also where it loads the batch itself."""

    def __init__(self) -> None:
        self._wait_ns = 0
        self._has_any = False
        self._depth = 0
        self._thread = threading.get_ident()

    def listen(self) -> None:
        """From now on; a script without DataLoaders, or a torch that has others, tells nothing."""
        iterator: Any = getattr(sys.modules.get(_MODULE), _ITERATOR, None)
        if iterator is None or not hasattr(iterator, "__next__"):
            return
        self._thread = threading.get_ident()
        inner = iterator.__next__

        @functools.wraps(inner)
        def __next__(loader: Any) -> Any:  # noqa: N807  # it takes this method's place
            if threading.get_ident() != self._thread or self._depth:
                return inner(loader)
            self._depth, start_ns = 1, time.perf_counter_ns()
            try:
                return inner(loader)
            finally:
                self._depth, self._has_any = 0, True
                self._wait_ns += time.perf_counter_ns() - start_ns

        iterator.__next__ = __next__

    def take(self) -> int:
        """Since it was last taken, in ns; −1 while no DataLoader has been asked at all."""
        waited_ns, self._wait_ns = self._wait_ns, 0
        return waited_ns if self._has_any else -1
