"""Settings that last: what is kept, what is not believed, and that nothing is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from meshscope.ui.remembered import FILE, Memory, Remembered, usual


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "meshscope" / FILE


def test_what_is_kept_is_there_the_next_time(path: Path) -> None:
    assert Memory(path).keep(theme="light", fps=8.0) == ""
    assert Memory(path).keep(strategies=["ddp"], model="125m", ranks="4") == ""
    assert Memory(path).remembered == Remembered(theme="light", fps=8.0, strategies=["ddp"], model="125m", ranks="4")


def test_nothing_is_written_before_something_was_chosen(path: Path) -> None:
    assert Memory(path).remembered == Remembered()
    assert not path.parent.exists()


def test_without_a_path_nothing_lasts_and_nothing_fails() -> None:
    memory = Memory()
    assert memory.keep(theme="dark") == ""
    assert memory.remembered.theme == "dark"
    assert "Nothing is remembered" in memory.forget()


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff\xfe", b"[]", b'{"theme": "pink"}', b'{"fps": 1e9}', b'{"ranks": "4; rm"}', b'{"strategies": 3}',
     b"[" * 100_000],
    ids=["half", "no text", "list", "theme", "fps", "ranks", "strategies", "deep"],
)  # fmt: skip
def test_a_damaged_file_is_not_believed_but_kept_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    memory = Memory(path)
    assert memory.remembered == Remembered()
    assert "damaged" in memory.notice
    assert "\n" not in memory.notice
    assert path.with_name(f"{FILE}.damaged").read_bytes() == content
    assert memory.keep(theme="light") == ""
    assert Memory(path).remembered.theme == "light"


def test_a_second_damaged_file_does_not_take_the_place_of_the_first(path: Path) -> None:
    path.parent.mkdir(parents=True)
    for content in (b"{1", b"{2"):
        path.write_bytes(content)
        Memory(path)
    assert sorted(one.read_bytes() for one in path.parent.iterdir()) == [b"{1", b"{2"]


def test_a_file_damaged_meanwhile_is_kept_aside_too(path: Path) -> None:
    memory = Memory(path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{")
    memory.keep(theme="dark")
    assert path.with_name(f"{FILE}.damaged").read_bytes() == b"{"
    assert Memory(path).remembered.theme == "dark"


def test_what_a_newer_version_knows_stays_in_the_file(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text('{"zoom": 3, "theme": "dark"}')
    Memory(path).keep(theme="light")
    assert json.loads(path.read_text()) == {"zoom": 3, "theme": "light"}


def test_what_another_process_has_changed_stays(path: Path) -> None:
    one, other = Memory(path), Memory(path)
    one.keep(theme="light")
    other.keep(fps=8.0)
    assert Memory(path).remembered == Remembered(theme="light", fps=8.0)


def _write_often(path: Path, name: str) -> None:
    for number in range(40):
        Memory(path).keep(strategies=[name, str(number) * 200])


def test_two_processes_that_write_at_once_leave_a_whole_file(path: Path) -> None:
    writers = [multiprocessing.get_context("fork").Process(target=_write_often, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            json.loads(path.read_text())  # at any time
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert Memory(path).notice == ""
    assert [one.name for one in path.parent.iterdir()] == [FILE]


def test_forgetting_takes_the_file_away_and_writes_no_other_in_this_session(path: Path) -> None:
    memory = Memory(path)
    memory.keep(theme="light")
    assert "Forgotten" in memory.forget()
    assert not path.exists()
    memory.keep(model="125m")
    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_said_once_asked_for(tmp_path: Path) -> None:
    (tmp_path / "meshscope").write_text("a file where the folder would be")
    memory = Memory(tmp_path / "meshscope" / FILE)
    assert memory.keep(theme="light").startswith("Not remembered (")
    assert memory.remembered.theme == "light"


@pytest.mark.parametrize(
    ("environ", "where"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, f"/x/meshscope/{FILE}"),
        ({"HOME": "/h"}, f"/h/.config/meshscope/{FILE}"),
        ({"HOME": "/h", "MESHSCOPE_SETTINGS": "/s/mine.json"}, "/s/mine.json"),
        ({"HOME": "/h", "MESHSCOPE_SETTINGS": "off"}, None),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, None),
        ({"HOME": "relative"}, None),
    ],
)
def test_where_it_is_kept(environ: dict[str, str], where: str | None) -> None:
    found = usual(environ).path
    assert (os.fspath(found) if found else None) == where
