"""Requests are files; each is seen once, by whoever looks."""

from __future__ import annotations

from pathlib import Path

from meshscope.recording.control import Ask, Asked, ask


def test_each_request_is_returned_once_to_each_who_looks(tmp_path: Path) -> None:
    one, two = Asked(tmp_path), Asked(tmp_path)
    assert one.new() == []
    ask(tmp_path, Ask(what="window", first_step=5, end_step=7))
    assert one.new() == [Ask(what="window", first_step=5, end_step=7)]
    assert one.new() == []
    ask(tmp_path, Ask(what="stop"))
    assert [a.what for a in one.new()] == ["stop"]
    assert [a.what for a in two.new()] == ["window", "stop"]


def test_a_request_that_is_being_written_is_not_seen(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    (tmp_path / "control").mkdir()
    (tmp_path / "control" / ".123-stop.json.part").write_bytes(b"{")
    assert asked.new() == []
