"""Whether two readings of a trace are the same in everything."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


def assert_same(a: Any, b: Any, where: str = "") -> None:
    """Every column equal in type and value, every name table and every count."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, tuple) and a and dataclasses.is_dataclass(a[0]):
        assert len(a) == len(b), where
        for number, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{number}]")
    else:
        assert a == b, where
