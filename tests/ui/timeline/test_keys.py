"""What every key does, pressed on a running timeline; and that the help tells of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from staged_timeline import Stage, linked, shown

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import cells
from meshscope.ui.picture import text
from meshscope.ui.screens.scrolled import Paragraphs
from meshscope.ui.screens.timeline import Keys
from meshscope.ui.timeline import keys
from meshscope.ui.timeline.listing import visible
from meshscope.ui.timeline.state import State

Check = Callable[[State, State, Stage], object]


def at(rank: int, role: str, at_ns: int) -> Check:
    return lambda _before, after, _stage: (after.rank, after.role, after.at_ns) == (rank, role, at_ns)


def column(by: int) -> Check:
    return lambda before, after, _: after.view.column(after.at_ns) == before.view.column(before.at_ns) + by


def longer(factor: float) -> Check:
    return lambda before, after, _: abs(after.view.span_ns - factor * before.view.span_ns) <= 2


def shifted(sign: int) -> Check:
    return lambda before, after, _: sign * (after.view.start_ns - before.view.start_ns) > 0


def has(words: str) -> Check:
    return lambda _before, _after, stage: words in stage.text()


# From 65 ns on rank 0's lane of compute, in the kernel that is there from 60 to 100, beside an all-reduce.
EVERY: dict[str, Check] = {
    "left": column(-1), "h": column(-1), "right": column(1), "l": column(1),
    "shift+left": shifted(-1), "H": shifted(-1), "shift+right": shifted(1), "L": shifted(1),
    "up": at(0, "compute", 65), "k": at(0, "compute", 65),  # it is the first
    "down": at(0, "collectives", 65), "j": at(0, "collectives", 65),
    "pageup": at(0, "compute", 65), "pagedown": at(1, "waits", 65),
    "plus": longer(0.5), "equals_sign": longer(0.5), "i": longer(0.5),
    "minus": lambda before, after, _: after.view.span_ns > before.view.span_ns,
    "underscore": lambda before, after, _: after.view.span_ns > before.view.span_ns,
    "z": lambda _before, after, _stage: (after.view.start_ns, after.view.stop_ns, after.at_ns) == (48, 112, 60)
    or after.view.span_ns == after.view.columns,
    "0": lambda _before, after, _stage: after.view.start_ns <= 0 and after.view.stop_ns >= 300,
    "home": at(0, "compute", 0), "end": at(0, "compute", 150),
    "backspace": has("There is no place to go back to."),
    "w": at(0, "compute", 200), "b": at(0, "compute", 60),
    "n": at(0, "collectives", 250), "N": at(0, "collectives", 60),
    "x": at(0, "collectives", 100), "X": has("No communication of this rank is exposed earlier."),
    "s": at(0, "compute", 150), "S": at(0, "compute", 0),
    "g": has("step: █"), "K": at(0, "compute", 200), "J": at(0, "compute", 200),
    "f": has("The trace links this span to no launch and to no work."),
    "o": has("This is no collective: o and O go to the same collective on another rank."),
    "O": has("This is no collective: o and O go to the same collective on another rank."),
    "slash": has("search: █"),
    "right_square_bracket": has("No match later."), "left_square_bracket": has("No match earlier."),
    "m": lambda _before, after, _stage: after.marks == (65,),
    "M": lambda _before, after, _stage: after.marks == (),
    "B": lambda _before, after, _stage: after.bookmarks == (20, 65),
    "apostrophe": at(0, "compute", 20),
    "e": lambda _before, _after, stage: isinstance(stage.app.screen, Paragraphs),
    "y": lambda _before, _after, stage: stage.app.clipboard.startswith("gemm\n40 ns · begins 60 ns in"),
    "enter": lambda _before, after, stage: [lane.branch for lane in visible(stage.lanes, after)][:3]
    == ["", "stream 7", "stream 9"],
    "c": lambda _before, after, _stage: after.folded == {0}, "C": lambda _before, after, _stage: after.folded == {0, 1},
    "v": lambda _before, after, _stage: (after.sort, after.shown) == ("late", (1, 0)),
    "V": lambda _before, after, _stage: (after.sort, after.shown) == ("rank", (0, 1)),
    "r": has("ranks: █"),
    "question_mark": lambda _before, _after, stage: isinstance(stage.app.screen, Keys),
    "f1": lambda _before, _after, stage: isinstance(stage.app.screen, Keys),
}  # fmt: skip


async def test_every_key_does_what_the_help_says_of_it() -> None:
    named = [key for _, rows in keys.GROUPS for row in rows for names, _ in row.bindings for key in names.split(",")]
    assert len(named) == len(set(named))
    assert set(named) == {*EVERY, "escape", "q", "t", "T"}
    async with shown(linked(), (80, 24)) as stage:
        begun = replace(stage.state, view=stage.state.view.showing(0, 300))
        for key, does in EVERY.items():
            marks = (10,) if key == "M" else ()
            before = replace(begun, at_ns=65, rank=0, role="compute", marks=marks, bookmarks=(20,))
            stage.put(before)
            await stage.press(key)
            assert does(before, stage.state, stage), f"{key}: {stage.state}\n{stage.text()}"
            if stage.app.screen is not stage.screen or stage.screen.typing is not None:
                await stage.press("escape")
        await _from_a_collective(stage, begun)
        await stage.press("escape")
        assert stage.app.screen_stack[-1] is not stage.app.screen_stack[0] or not stage.app.screen_stack[1:]


async def _from_a_collective(stage: Stage, begun: State) -> None:
    """What has nowhere to go from compute: to other ranks, to the launch and back, and back where one came from."""
    stage.put(replace(begun, rank=0, role="collectives", at_ns=70))
    await stage.press("o")
    assert stage.where == (1, "collectives", 100)
    await stage.press("O")
    assert stage.where == (0, "collectives", 60)
    await stage.press("f")
    assert stage.where == (0, "host", 50)
    await stage.press("f")
    assert stage.where == (0, "collectives", 60)
    await stage.press("X")
    assert "exposed earlier" in stage.text()
    for place in ((0, "host", 50), (0, "collectives", 60), (1, "collectives", 100), (0, "collectives", 70)):
        await stage.press("backspace")
        assert stage.where == place


async def test_keys_are_letters_while_something_is_typed() -> None:
    async with shown(linked()) as stage:
        await stage.press("slash", *"ALL_REDUCE", "enter")
        assert stage.where == (0, "collectives", 60)
        assert "“ALL_REDUCE”: 2 spans of rank 0 collectives, 4 in all" in stage.text()
        await stage.press("right_square_bracket")
        assert stage.where == (1, "collectives", 100)
        await stage.press("slash", *"nothing", "enter")
        assert "No name on these lanes holds “nothing”" in stage.text()
        await stage.press("slash", "enter")
        assert stage.state.search is None
        await stage.press("r", *"7", "enter")
        assert "No rank of this run is among '7'. Write them like 0,4-7." in stage.text()
        await stage.press("r", *"1x", "backspace", "enter")
        assert stage.state.shown == (1,)
        assert "1 of 2 ranks" in stage.text()
        await stage.press("r", "ctrl+u", *"1,9", "enter")
        assert stage.state.shown == (1,)
        assert "Not among the ranks of this run: 9." in stage.text()
        await stage.press("n", "o")
        assert "No other rank is shown." in stage.text()
        await stage.press("r", "ctrl+u", "enter")
        assert stage.state.shown == (0, 1)
        await stage.press("g", *"9", "enter")
        assert "Step 9 was not profiled; steps 0–1 were." in stage.text()
        await stage.press("g", *"1", "enter")
        assert stage.state.at_ns == 150


async def test_zooming_several_times_is_one_step_of_the_way_back() -> None:
    async with shown(linked()) as stage:
        before = stage.state.view
        await stage.press("plus", "plus", "shift+right", "backspace")
        assert stage.state.view == before


@pytest.mark.parametrize("width", [36, 76, 96, 196])
def test_the_help_holds_every_key_at_every_width(width: int) -> None:
    lines = keys.help_lines(width, Look(), has_mouse=True)
    shown_text = "\n".join("".join(word for word, _ in line) for line in lines)
    for title, rows in keys.GROUPS:
        assert title in shown_text
        for row in rows:
            assert row.words in shown_text
            assert row.keys in shown_text
    assert max(cells(line) for line in lines) <= max(width, 76 if width >= 76 else 50)


def test_the_help_speaks_of_the_mouse_only_where_there_is_one() -> None:
    for has_mouse in (True, False):
        words = str(keys.help_lines(76, Look(), has_mouse=has_mouse))
        assert ("mouse" in words) == has_mouse


@pytest.mark.parametrize("look", [Look(), Look(is_ascii=True)])
def test_the_foot_fits_and_keeps_help_and_the_way_out(look: Look) -> None:
    for width in (20, 40, 80, 120, 220):
        line = keys.foot(width, look)
        words = "".join(word for word, _ in line)
        assert "?" in words
        assert "leave" in words
        assert cells(line) <= max(width, 20)


async def test_the_help_and_an_explanation_scroll_where_they_find_no_room(snapshot: Callable[[str, str], None]) -> None:
    async with shown(linked(), (80, 24)) as stage:
        await stage.press("question_mark")
        snapshot("timeline_help_80x24", text(stage.app))
        await stage.press("pagedown")
        assert "leave" in text(stage.app)
        await stage.press("escape", "n", "e")
        seen = text(stage.app)
        snapshot("timeline_explain_80x24", seen)
        await stage.pilot.resize_terminal(120, 40)
        await stage.pilot.pause()
        snapshot("timeline_explain_120x40", text(stage.app))
