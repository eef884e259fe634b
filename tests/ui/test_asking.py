"""One question in flight per panel; what is answered is drawn, and the newest is asked about next."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from meshscope.errors import TraceError
from meshscope.ui.asking import Answered, Asking, in_thread
from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene, Stance


def panel(question: Any) -> Panel:
    return Panel(
        name="p", title="p", number=1, promise="p.", question=question, draw=lambda *_: [], depends=lambda s: s.selected
    )


def scene(selected: str, **stance: Any) -> Scene:
    return Scene(None, (), Stance(**stance), selected)


async def test_a_question_that_was_answered_is_not_asked_again() -> None:
    asked: list[str] = []
    asking = Asking(panel(lambda s: asked.append(s.selected)))
    drawn: list[Answered] = []
    assert asking.want(scene("a"))
    await asking.ask(drawn.append)
    assert not asking.want(scene("a"))
    assert asking.want(scene("b"))
    await asking.ask(drawn.append)
    assert asked == ["a", "b"]
    assert [answered.strategy for answered in drawn] == ["a", "b"]


async def test_what_was_answered_a_little_ago_is_recalled_and_not_asked_again() -> None:
    asked: list[int] = []

    def question(given: Scene) -> int:
        asked.append(given.stance.now_unix_ns)
        return given.stance.now_unix_ns

    asking = Asking(panel(question))
    for now in (*range(1, 9), 7, 8):
        given = scene("a", now_unix_ns=now, is_at_end=True)
        asking.recall(given)
        if asking.want(given):
            await asking.ask(lambda _: None)
        assert asking.answers["a"].answer == now
    assert asked == list(range(1, 9))
    first = scene("a", now_unix_ns=1, is_at_end=True)
    asking.recall(first)
    assert asking.want(first), "only the last few are kept"


async def test_while_one_is_in_flight_only_the_newest_waits() -> None:
    gate = threading.Event()
    asked: list[str] = []

    def question(given: Scene) -> None:
        asked.append(given.selected)
        gate.wait(5)

    asking = Asking(panel(question))
    assert asking.want(scene("a"))
    task = asyncio.create_task(asking.ask(lambda _: None))
    await asyncio.sleep(0.05)
    assert not asking.want(scene("b"))
    assert not asking.want(scene("c"))
    assert not asking.is_at_rest
    gate.set()
    await task
    assert asked == ["a", "c"]
    assert asking.is_at_rest


async def test_every_answer_is_drawn_so_that_a_slow_panel_is_not_starved() -> None:
    gate = threading.Event()
    asking = Asking(panel(lambda s: gate.wait(5)))
    drawn: list[str] = []
    asking.want(scene("a"))
    task = asyncio.create_task(asking.ask(lambda answered: drawn.append(answered.strategy)))
    await asyncio.sleep(0.02)
    asking.want(scene("b"))
    gate.set()
    await task
    assert drawn == ["a", "b"]


async def test_an_error_for_people_is_an_answer() -> None:
    def question(_: Scene) -> None:
        raise TraceError("broken", hint="mend it")

    asking = Asking(panel(question))
    drawn: list[Answered] = []
    asking.want(scene("a"))
    await asking.ask(drawn.append)
    assert drawn[0].error is not None
    assert drawn[0].error.hint == "mend it"


async def test_a_bug_is_no_answer_and_looks_like_a_bug() -> None:
    asking = Asking(panel(lambda _: {}["nothing"]))
    asking.want(scene("a"))
    with pytest.raises(KeyError):
        await asking.ask(lambda _: None)
    assert asking.is_at_rest


async def test_at_the_end_the_time_itself_is_a_reason_to_ask_again() -> None:
    asking = Asking(panel(lambda _: None))
    asking.want(scene("a", now_unix_ns=1))
    await asking.ask(lambda _: None)
    assert not asking.want(scene("a", now_unix_ns=2))
    assert asking.want(scene("a", now_unix_ns=3, is_at_end=True))


async def test_what_a_thread_raises_reaches_the_one_who_waits() -> None:
    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await in_thread(work)
    assert await in_thread(lambda: 3) == 3
