"""An entry exists once its line is whole; nothing else is needed to read a recording while it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.errors import RecordingError
from meshscope.experiment import Experiment
from meshscope.recording import layout
from meshscope.recording.entries import (
    Compiled,
    Ended,
    Entry,
    Log,
    MemoryMeasured,
    Phase,
    RankEnded,
    Sampled,
    StepDone,
    TraceWritten,
)
from meshscope.recording.feed import Feed
from meshscope.recording.journal import Journal, Tail

T0 = 1_000_000_000_000

HEAD = Experiment(
    t0_unix_ns=T0, strategy="ddp", title="DDP", framework="torch", ranks=2, device_kind="cpu", model="tiny"
)


def test_what_is_appended_is_read_back_once_by_writer(tmp_path: Path) -> None:
    layout.create(tmp_path, HEAD)
    first, second = (Journal(tmp_path, name, t0_unix_ns=T0) for name in ("rank0", "rank1"))
    first.append(Log(t_ns=30, level="info", text="c"))
    second.append(Log(t_ns=20, level="info", text="b"))
    first.append(Ended(t_ns=40, outcome="done"))
    second.append(Log(t_ns=10, level="info", text="a"))
    feed = Feed(tmp_path)
    assert [e.t_ns for e in feed.poll()] == [30, 40, 20, 10]
    assert feed.poll() == []
    second.append(Log(t_ns=50, level="info", text="d"))
    assert [e.t_ns for e in feed.poll()] == [50]


def test_a_half_written_line_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(b'{"type":"log","t_ns":1,"level":"info","text":"a"}\n{"type":"log","t_ns":2,"lev')
    tail = Tail(path)
    assert [e.t_ns for e in tail.read()] == [1]
    with path.open("ab") as file:
        file.write(b'el":"info","text":"b"}\n')
    assert [e.t_ns for e in tail.read()] == [2]
    assert tail.read() == []


def test_damaged_and_unknown_lines_are_counted_and_cost_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(b'\xff\xfe\n{"type":"from the future","t_ns":1}\n{"type":"ended","t_ns":3,"outcome":"done"}\n')
    tail = Tail(path)
    assert [e.t_ns for e in tail.read()] == [3]
    assert tail.skipped == 2


@given(st.dictionaries(st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False)))
def test_samples_survive_the_journal(tmp_path_factory: pytest.TempPathFactory, values: dict[str, float]) -> None:
    folder = tmp_path_factory.mktemp("j")
    journal = Journal(folder, "sensors", t0_unix_ns=T0)
    journal.append(Sampled(t_ns=5, device="gpu 0", values=values))
    (entry,) = Tail(folder / "journal" / "sensors.jsonl").read()
    assert isinstance(entry, Sampled)
    assert entry.values == values


def test_a_step_without_a_loss_stays_without_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "rank0", t0_unix_ns=T0)
    journal.append(StepDone(t_ns=9, rank=0, step=0, start_ns=1, end_ns=9))
    (entry,) = Tail(tmp_path / "journal" / "rank0.jsonl").read()
    assert isinstance(entry, StepDone)
    assert entry.loss is None
    assert entry.peak_bytes == -1


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    layout.create(tmp_path, HEAD)
    with pytest.raises(RecordingError, match="recording already"):
        layout.create(tmp_path, HEAD)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no meshscope recording"), (b"{", "damaged"), (b'{"format": 99}', "format 99"), (b"[]", "damaged")],
)
def test_a_folder_that_is_no_recording_says_so(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "experiment.json").write_bytes(content)
    with pytest.raises(RecordingError, match=said) as caught:
        Feed(tmp_path)
    assert caught.value.hint


def test_recordings_of_a_folder_come_in_order_of_their_start(tmp_path: Path) -> None:
    import msgspec

    for name, t0 in (("late", T0 + 5), ("early", T0)):
        layout.create(tmp_path / name, msgspec.structs.replace(HEAD, t0_unix_ns=t0))
    assert [p.name for p in layout.recordings(tmp_path)] == ["early", "late"]
    assert layout.recordings(tmp_path / "late") == (tmp_path / "late",)


def test_a_folder_in_the_place_of_a_journal_file_costs_one_line(tmp_path: Path) -> None:
    layout.create(tmp_path, HEAD)
    (tmp_path / "journal/rank0.jsonl").mkdir()
    Journal(tmp_path, "rank1", t0_unix_ns=T0).append(Log(t_ns=1, level="info", text="a"))
    feed = Feed(tmp_path)
    assert [entry.t_ns for entry in feed.poll()] == [1]
    assert feed.poll() == []
    assert feed.skipped == 1


def step(**about: int) -> StepDone:
    return StepDone(**({"t_ns": 5, "rank": 1, "step": 3, "start_ns": 1, "end_ns": 4} | about))


def trace(first_step: int, end_step: int) -> TraceWritten:
    return TraceWritten(
        t_ns=1, rank=0, path="a", format="kineto", first_step=first_step, end_step=end_step, size_bytes=1
    )


@pytest.mark.parametrize(
    "entry",
    [
        step(step=-1), step(step=2**31), step(rank=-1), step(rank=2), step(start_ns=5), step(tokens=2**63),
        trace(-1, 2), trace(5, 4), trace(0, 2**31 - 1), RankEnded(t_ns=1, rank=2, exit_code=0),
        Compiled(t_ns=1, rank=0, name="f", stage="compile", duration_ns=-1),
        MemoryMeasured(t_ns=1, rank=0, device=0, step=1, source="s", categories={"parameters": -1}, how={}),
    ],
    ids=lambda entry: str(entry)[:60],
)  # fmt: skip
def test_an_entry_that_cannot_be_is_counted_and_not_told(tmp_path: Path, entry: Entry) -> None:
    layout.create(tmp_path, HEAD)
    journal = Journal(tmp_path, "rank0", t0_unix_ns=T0)
    for written in (step(), entry, Phase(t_ns=7, rank=-1, phase="launching"), trace(3, 3)):
        journal.append(written)
    feed = Feed(tmp_path)
    assert [type(found) for found in feed.poll()] == [StepDone, Phase, TraceWritten]
    assert feed.skipped == 1
