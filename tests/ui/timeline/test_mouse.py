"""What the mouse does on a timeline."""

from __future__ import annotations

from staged_timeline import Stage, linked, shown
from textual.events import MouseDown, MouseMove, MouseScrollUp, MouseUp

GUTTER = 22
COLLECTIVES = 4


def column_of(stage: Stage, at_ns: int) -> int:
    return stage.state.view.column(at_ns) + GUTTER


async def test_it_looks_without_moving_the_cursor() -> None:
    async with shown(linked()) as stage:
        before = stage.state
        await stage.pilot.hover("#timeline", offset=(column_of(stage, 70), COLLECTIVES))
        await stage.pilot.pause()
        assert "◦ nccl:all_reduce" in stage.text()
        assert stage.state == before
        await stage.pilot.hover("#timeline", offset=(column_of(stage, 70), 25))
        await stage.pilot.pause()
        assert "◦" not in stage.text()


async def test_a_click_puts_the_cursor_and_a_second_shows_the_span() -> None:
    async with shown(linked()) as stage:
        at = (column_of(stage, 70), COLLECTIVES)
        await stage.pilot.click("#timeline", offset=at)
        await stage.pilot.pause()
        assert stage.where[:2] == (0, "collectives")
        assert stage.state.view.column(stage.state.at_ns) + GUTTER == at[0]
        await stage.pilot.click("#timeline", offset=at, times=2)
        await stage.pilot.pause()
        assert stage.where == (0, "collectives", 60)
        await stage.press("backspace")
        assert stage.state.view.column(stage.state.at_ns) + GUTTER == at[0]


async def test_a_click_on_a_name_chooses_the_lane_at_the_same_time() -> None:
    async with shown(linked()) as stage:
        await stage.press("s")
        before = stage.state.at_ns
        await stage.pilot.click("#timeline", offset=(6, COLLECTIVES))
        await stage.pilot.pause()
        assert stage.where == (0, "collectives", before)


async def test_dragging_pans_and_leaves_the_cursor() -> None:
    async with shown(linked()) as stage:
        await stage.press("plus", "plus")
        before = stage.state
        await stage.pilot._post_mouse_events([MouseDown], "#timeline", offset=(80, COLLECTIVES), button=1)
        await stage.pilot._post_mouse_events([MouseMove], "#timeline", offset=(60, COLLECTIVES), button=1)
        await stage.pilot._post_mouse_events([MouseUp], "#timeline", offset=(60, COLLECTIVES), button=1)
        await stage.pilot.pause()
        after = stage.state
        moved_ns = after.view.start_ns - before.view.start_ns
        assert moved_ns == 20 * before.view.span_ns // before.view.columns
        assert (after.at_ns, after.role) == (before.at_ns, before.role)
        await stage.press("backspace")
        assert stage.state.view == before.view


async def test_the_wheel_zooms_pans_and_goes_through_lanes() -> None:
    async with shown(linked()) as stage:
        before = stage.state.view
        at = column_of(stage, 70)
        await stage.pilot._post_mouse_events([MouseScrollUp], "#timeline", offset=(at, COLLECTIVES))
        await stage.pilot.pause()
        after = stage.state.view
        assert after.span_ns < before.span_ns
        assert abs(after.column(70) + GUTTER - at) <= 1
        await stage.pilot._post_mouse_events([MouseScrollUp], "#timeline", offset=(at, COLLECTIVES), shift=True)
        await stage.pilot.pause()
        assert stage.state.view.start_ns < after.start_ns
        await stage.press("down", "down")
        await stage.pilot._post_mouse_events([MouseScrollUp], "#timeline", offset=(3, COLLECTIVES))
        await stage.pilot.pause()
        assert stage.where[1] == "collectives"
