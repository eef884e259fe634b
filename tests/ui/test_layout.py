"""Every size of terminal gets a layout in which nothing overlaps and the focused panel is seen."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.ui.layout import Arrangement, Rect, arrangement

NAMES = ("comparison", "split", "overlap", "steptime", "memory", "devices", "log")


def arranged(
    width: int, height: int, focused: str = "split", *, table: int = 8, is_maximised: bool = False
) -> Arrangement:
    return arrangement(width, height, header=3, table=table, names=NAMES, focused=focused, is_maximised=is_maximised)


def _overlap(a: Rect, b: Rect) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


@given(st.integers(20, 300), st.integers(8, 100), st.sampled_from(NAMES), st.integers(3, 14), st.booleans())
def test_nothing_overlaps_or_leaves_the_screen(width: int, height: int, focused: str, table: int, is_big: bool) -> None:
    found = arranged(width, height, focused, table=table, is_maximised=is_big)
    rects = [found.header, found.footer, *found.panels.values()]
    for rect in rects:
        assert rect.x >= 0
        assert rect.y >= 0
        assert rect.x + rect.width <= width
        assert rect.y + rect.height <= height
    assert not any(_overlap(a, b) for a, b in combinations([r for r in rects if r.width and r.height], 2))


@given(st.integers(80, 300), st.integers(24, 100), st.sampled_from(NAMES))
def test_the_focused_panel_is_always_seen(width: int, height: int, focused: str) -> None:
    assert focused in arranged(width, height, focused).panels


@pytest.mark.parametrize(("size", "seen"), [((80, 24), 3), ((120, 40), 7), ((220, 60), 7)])
def test_larger_terminals_show_more_at_once(size: tuple[int, int], seen: int) -> None:
    assert len(arranged(*size).panels) == seen


def test_panels_that_find_no_room_take_turns() -> None:
    first, last = arranged(80, 24, "split"), arranged(80, 24, "log")
    assert (first.page, last.page, first.pages) == (0, 2, 3)
    assert set(last.panels) == {"comparison", "devices", "log"}


def test_a_maximised_panel_has_everything_between_header_and_footer() -> None:
    found = arranged(120, 40, "memory", is_maximised=True)
    assert found.panels == {"memory": Rect(1, 3, 118, 36)}


MANY = (*NAMES, "waiting", "findings", "kernels", "path", "idle")


def pages(width: int, height: int, names: tuple[str, ...] = MANY, *, table: int = 8) -> list[set[str]]:
    """What is seen on each page, in their order."""
    found: dict[int, set[str]] = {}
    for name in names[1:]:
        one = arrangement(width, height, header=3, table=table, names=names, focused=name, strip="findings")
        assert name in one.panels
        found.setdefault(one.page, set(one.panels) - {names[0]})
        assert found[one.page] == set(one.panels) - {names[0]}
    assert sorted(found) == list(range(one.pages))
    return [found[page] for page in sorted(found)]


@given(st.integers(80, 300), st.integers(24, 120), st.integers(3, 14))
def test_every_panel_is_on_one_page_and_pages_have_nothing_in_common(width: int, height: int, table: int) -> None:
    shown = pages(width, height, table=table)
    assert sum(len(page) for page in shown) == len(MANY) - 1
    assert set().union(*shown) == set(MANY[1:])


@pytest.mark.parametrize(
    ("size", "behind"),
    [
        ((80, 24), [{"kernels"}, {"path"}, {"idle"}]),
        ((120, 40), [{"kernels", "path", "idle"}]),
        ((220, 60), [{"kernels", "path", "idle"}]),
    ],
)
def test_what_comes_after_the_strip_has_wide_seats_on_pages_of_its_own(
    size: tuple[int, int], behind: list[set[str]]
) -> None:
    assert pages(*size)[-len(behind) :] == behind
    for name in ("kernels", "path", "idle"):
        found = arrangement(*size, header=3, table=8, names=MANY, focused=name, strip="findings")
        assert found.panels[name].width >= 56


def test_what_comes_before_the_strip_is_as_if_nothing_came_after() -> None:
    front = MANY[: MANY.index("findings") + 1]
    for size in ((80, 24), (120, 40), (160, 50), (220, 60)):
        assert pages(*size)[: len(pages(*size, front))] == pages(*size, front)
