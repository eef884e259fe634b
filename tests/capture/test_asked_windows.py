"""A window as one rank comes upon it."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshscope.capture.workers.asked_windows import AskedWindows
from meshscope.capture.workers.batch_shape import batch_shape
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording import control
from meshscope.recording.control import Ask
from meshscope.recording.entries import Log, Phase
from meshscope.recording.journal import Tail


def _windows(folder: Path, *, has_warmup: bool = True) -> AskedWindows:
    return AskedWindows(folder, RankJournal(folder, 3, t0_unix_ns=0), has_warmup=has_warmup)


def _ask(folder: Path, first: int, end: int) -> None:
    control.ask(folder, Ask(what="window", first_step=first, end_step=end, warmup=1))


def test_a_window_begins_with_its_warm_up(tmp_path: Path) -> None:
    windows = _windows(tmp_path)
    _ask(tmp_path, 5, 7)
    assert [step for step in range(9) if windows.at(step)] == [4]


def test_a_profiler_without_warm_up_begins_with_the_first_step(tmp_path: Path) -> None:
    windows = _windows(tmp_path, has_warmup=False)
    _ask(tmp_path, 5, 7)
    assert [step for step in range(9) if windows.at(step)] == [5]


def test_a_window_read_too_late_is_skipped_as_a_whole_and_said_so(tmp_path: Path) -> None:
    windows = _windows(tmp_path)
    assert windows.at(4) is None
    _ask(tmp_path, 5, 9)
    assert [step for step in range(5, 9) if windows.at(step)] == []
    (log,) = Tail(tmp_path / "journal" / "rank3.jsonl").read()
    assert isinstance(log, Log)
    assert (log.rank, log.level) == (3, "warning")
    assert "5–8" in log.text


def test_several_windows_wait_their_turn(tmp_path: Path) -> None:
    windows = _windows(tmp_path)
    _ask(tmp_path, 20, 22)
    _ask(tmp_path, 5, 7)
    assert [step for step in range(30) if windows.at(step)] == [4, 19]


def test_a_long_phase_is_repeated_and_then_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr("meshscope.capture.workers.rank_journal._HEARTBEAT_S", 0.02)
    journal = RankJournal(tmp_path, 0, t0_unix_ns=0)
    with journal.beating("stopping profiler", after="training"):
        threading.Event().wait(0.2)
    phases = [e.phase for e in Tail(tmp_path / "journal" / "rank0.jsonl").read() if isinstance(e, Phase)]
    assert phases[-1] == "training"
    assert phases.count("stopping profiler") >= 3


class _Array:
    shape = (2, 8)


@pytest.mark.parametrize(
    ("batch", "shape"),
    [(_Array(), (2, 8)), ((_Array(), 3), (2, 8)), ({"x": [7, _Array()]}, (2, 8)), (5, ()), ((), ())],
)
def test_the_shape_of_a_batch_is_that_of_its_first_array(batch: object, shape: tuple[int, ...]) -> None:
    assert batch_shape(batch) == shape
