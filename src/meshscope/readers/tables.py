"""Names as numbers."""

from __future__ import annotations

from collections.abc import Iterable
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
