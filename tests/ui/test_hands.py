"""Questions are worked out by threads that are there already; what is slow holds up nothing behind it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from meshscope.ui.errands import Errands
from meshscope.ui.hands import Hands


async def test_quick_work_is_done_in_order_by_one_thread_however_much_comes() -> None:
    hands, seen = Hands(), []
    threads = set()

    def work(number: int) -> int:
        threads.add(threading.get_ident())
        seen.append(number)
        return number

    found = await asyncio.gather(*(hands.do(lambda number=number: work(number)) for number in range(50)))  # type: ignore[misc]
    assert found == seen == list(range(50))
    assert hands.started == len(threads) == 1


async def test_what_waits_behind_something_slow_gets_another_thread_and_one_of_them_stays() -> None:
    hands, gate = Hands(), threading.Event()
    slow = asyncio.create_task(hands.do(lambda: gate.wait(20)))
    async with asyncio.timeout(10):
        assert await hands.do(lambda: 1) == 1
        assert await hands.do(lambda: 2) == 2
    assert not slow.done()
    started = hands.started
    gate.set()
    assert await slow
    for number in range(20):
        assert await hands.do(lambda number=number: number) == number  # type: ignore[misc]
    assert hands.started == started, "one of them waits for the next"


async def test_what_is_raised_reaches_the_one_who_waits_and_the_thread_goes_on() -> None:
    hands = Hands()

    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await hands.do(broken)
    assert await hands.do(lambda: 3) == 3
    assert hands.started == 1


async def test_threads_end_once_nothing_more_is_to_come() -> None:
    hands = Hands("meshscope-test-of-ending")
    await hands.do(lambda: None)
    hands.close()
    async with asyncio.timeout(10):
        while any(thread.name == "meshscope-test-of-ending" for thread in threading.enumerate()):
            await asyncio.sleep(0.01)


async def test_what_an_errand_raises_is_told_and_what_is_cancelled_is_not() -> None:
    told: list[BaseException] = []
    errands = Errands(told.append)

    async def broken() -> None:
        raise ZeroDivisionError

    errands.start(broken())
    errands.start(asyncio.sleep(60))
    await asyncio.sleep(0.01)
    assert [type(error) for error in told] == [ZeroDivisionError]
    errands.cancel()
    await asyncio.sleep(0.01)
    assert len(told) == 1
