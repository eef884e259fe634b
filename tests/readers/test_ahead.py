"""Blocks that a thread makes ahead are the same blocks, and the thread does not outlive its use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from meshscope.errors import TraceError
from meshscope.readers.ahead import ahead

COUNTED: ContextVar[list[int]] = ContextVar("counted")


def test_all_blocks_in_their_order() -> None:
    assert list(ahead(iter(range(100)))) == list(range(100))
    assert list(ahead(iter([]))) == []


def test_what_making_a_block_raises_is_raised_where_it_is_asked_for() -> None:
    def blocks() -> Iterator[int]:
        yield 1
        raise TraceError("cannot be read", hint="try again")

    found = ahead(blocks())
    assert next(found) == 1
    with pytest.raises(TraceError, match="cannot be read"):
        next(found)


def test_a_thread_ends_with_the_iterator_that_is_let_go_of() -> None:
    before = threading.active_count()
    found = ahead(iter(range(1000)))
    assert next(found) == 0
    assert threading.active_count() == before + 1
    found.close()  # type: ignore[attr-defined]  # a generator
    assert threading.active_count() == before


def test_blocks_are_made_in_the_context_that_asks_for_them() -> None:
    def blocks() -> Iterator[int]:
        for number in range(5):
            COUNTED.get().append(number)
            yield number

    counted: list[int] = []
    token = COUNTED.set(counted)
    assert sum(ahead(blocks())) == 10
    assert counted == list(range(5))
    COUNTED.reset(token)
