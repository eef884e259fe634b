"""Columns: what gives way when room is short."""

from __future__ import annotations

from meshscope.ui.marks.table import Column, placed


def test_a_picture_shrinks_before_a_number_is_cut() -> None:
    columns = (
        Column("name", "name", 10, is_text=True),
        Column("bar", "bar", 13, is_text=True, grows=True, most=40, least=6),
        Column("peak", "peak", 9),
    )
    found = placed(columns, 30)
    assert [place.column.name for place in found] == ["name", "bar", "peak"]
    assert found[-1].start + found[-1].width <= 30
    assert found[-1].width == 9
