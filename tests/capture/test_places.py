"""A run is written to a folder that is free and can be made, or a person is told before anything starts."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from meshscope.capture import launch, places
from meshscope.errors import InputError, LaunchError, MeshscopeError
from meshscope.experiment import Plan

PLAN = Plan(t0_unix_ns=0, runs=[], ranks=1, model="tiny")


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen", refuse)
    monkeypatch.chdir(tmp_path)


def test_runs_started_in_the_same_second_get_a_folder_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda *_: "20260102-030405")
    folders = []
    for _ in range(3):
        folders.append(places.default_folder("tiny"))
        places.made(folders[-1], PLAN).close()
    assert [f.name for f in folders] == [f"20260102-030405-tiny{end}" for end in ("", "-2", "-3")]
    assert folders[0].is_absolute()


def test_of_runs_that_start_at_the_same_moment_one_gets_the_folder(tmp_path: Path) -> None:
    def make(_: int) -> bool:
        try:
            places.made(tmp_path / "run", PLAN).close()
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(32))) == 1


@pytest.mark.parametrize("place", ["/proc/foo", "/proc/foo/bar", "file/below", "file"])
def test_a_folder_that_cannot_be_made_is_told_before_anything_starts(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeshscopeError) as refused:
        launch.start(tmp_path / place, PLAN)
    assert isinstance(refused.value, LaunchError)
    assert place in refused.value.message
    assert "--out" in refused.value.hint


@pytest.mark.parametrize("place", ["a\udcff", "a\0b", "~no-such-user/runs", "x" * 300])
def test_a_name_that_no_folder_can_have_is_refused(place: str) -> None:
    with pytest.raises(InputError) as refused:
        places.free(place)
    assert "--out" in refused.value.hint
    refused.value.message.encode()


def test_a_current_folder_whose_name_is_not_utf_8_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a\udcff").mkdir()
    monkeypatch.chdir(tmp_path / "a\udcff")
    with pytest.raises(InputError, match="not valid UTF-8"):
        places.default_folder("tiny")
