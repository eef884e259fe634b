"""Names as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


class Table(dict[Any, int]):
    """Numbers what it meets, from 0, in order."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]

    def codes(self, keys: Iterable[Any]) -> npt.NDArray[np.int32]:
        """The numbers of some keys, new ones included."""
        return np.fromiter(map(self.__getitem__, keys), dtype=np.int32)


class Flags:
    """Which keys of a table a test finds, asked once for each."""

    def __init__(self, table: Table, test: Callable[[Any], bool]) -> None:
        self._table, self._test = table, test
        self._found: list[bool] = []

    def of(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """For each number of the table whether its key is one of those."""
        if len(self._found) < len(self._table):
            self._found += map(self._test, list(self._table)[len(self._found) :])
            self._flags = np.array(self._found, dtype=np.bool_)
        return self._flags[numbers] if self._found else np.zeros(len(numbers), dtype=np.bool_)
