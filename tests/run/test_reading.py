"""A recording as a Run at any time: incremental, backwards too, and its traces read once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from made_recordings import T0, S, append, done, recording, written
from made_records import entry, write_flight
from made_traces import kernel, span, step, write_kineto

from meshscope import readers
from meshscope.analysis.flight import flight
from meshscope.analysis.steps import steps
from meshscope.errors import RecordingError
from meshscope.recording.entries import Ended, FlightWritten, Log, RankStarted
from meshscope.run import SILENCE_NS, RunReader
from meshscope.spans import Kind, Window


class Counting:
    """Reads traces and counts how often."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: Path, **how: Any) -> tuple[Window, ...]:
        self.paths.append(path.name)
        return readers.read(path, **how)


def trace(folder: Path, name: str = "a.json", *, first: int = 4, rank: int | None = 0) -> str:
    """A CPU rank's trace of two steps, one second after the recording's start."""
    marks = [step(first, 1e6, 50), step(first + 1, 1e6 + 50, 50)]
    work = [span("aten::mm", 1e6 + 10, 20), span("gloo:all_reduce", 1e6 + 20, 20, cat="user_annotation", tid=8)]
    write_kineto(folder / "traces" / name, [*marks, *work], rank=rank)
    return f"traces/{name}"


def test_a_time_shows_what_was_written_by_then(tmp_path: Path) -> None:
    folder = recording(
        tmp_path / "r", {"rank0": [done(0, 0, t_s=1), done(1, 0, t_s=2)], "rank1": [done(0, 1, t_s=1.5)]}
    )
    reader = RunReader(folder)
    assert [len(reader.at(T0 + round(t_s * S)).steps) for t_s in (0.5, 1, 1.5, 2, 1.2, 0)] == [0, 1, 2, 3, 1, 0]


def test_what_is_appended_is_seen_at_the_next_look(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1)]})
    reader = RunReader(folder)
    assert len(reader.at(T0 + 9 * S).steps) == 1
    append(folder, "rank0", [done(1, 0, t_s=2)])
    append(folder, "rank1", [done(0, 1, t_s=1)])
    assert len(reader.at(T0 + 9 * S).steps) == 3


def test_looking_again_when_nothing_is_new_folds_nothing(tmp_path: Path) -> None:
    reader = RunReader(recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1)]}))
    first, second = reader.at(T0 + 2 * S), reader.at(T0 + 3 * S)
    assert second.steps is first.steps
    assert (first.now_ns, second.now_ns) == (2 * S, 3 * S)


def test_a_run_that_has_ended_is_the_same_one_each_time_and_both_sides_of_its_end_are_kept(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1), done(1, 0, t_s=2)]})
    append(folder, "supervisor", [Ended(t_ns=5 * S, outcome="done")])
    reader = RunReader(folder)
    whole, before = reader.at(T0 + 9 * S), reader.at(T0 + 3 * S)
    assert (whole.now_ns, before.now_ns) == (5 * S, 3 * S)
    assert reader.at(T0 + 20 * S) is whole
    assert reader.at(T0 + 3 * S) is before
    assert reader.at(T0 + 4 * S).steps is before.steps
    append(folder, "rank0", [done(2, 0, t_s=4)])
    assert len(reader.at(T0 + 9 * S).steps) == 3, "who wrote late is heard"


def test_a_trace_is_read_once_and_from_its_announcement_on(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    append(folder, "rank0", [written(trace(folder), t_s=3)])
    read = Counting()
    reader = RunReader(folder, read=read)
    assert reader.at(T0 + 2 * S).windows == ()
    assert read.paths == []
    windows = [reader.at(T0 + t_s * S).windows for t_s in (3, 9, 2, 3)]
    assert [len(found) for found in windows] == [1, 1, 0, 1]
    assert windows[0][0] is windows[3][0]
    assert read.paths == ["a.json"]


def test_windows_are_in_the_recordings_time_with_its_step_numbers(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    append(folder, "rank0", [written(trace(folder), t_s=3)])
    (window,) = RunReader(folder).at(T0 + 9 * S).windows
    assert (window.rank, window.rank_from, window.device_kind, window.source) == (0, "trace", "cpu", "traces/a.json")
    assert window.steps == (4, 5)
    assert window.step_ns.tolist() == [[S, S + 50_000], [S + 50_000, S + 100_000]]


def test_a_profiler_that_counts_from_its_own_start_is_told_the_runs_numbers(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    append(folder, "rank0", [written(trace(folder, first=0), t_s=3, first=40, end=42)])
    (window,) = RunReader(folder).at(T0 + 9 * S).windows
    assert window.steps == (40, 41)
    assert window.spans.of_kind(Kind.COMPUTE).step.tolist() == [40]


def test_without_marks_the_journal_tells_when_the_steps_were(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    write_kineto(folder / "traces/a.json", [kernel("a", 1.6e6, 1000), kernel("b", 2.2e6, 1000)], rank=None)
    entries = [done(4, 0, t_s=2), done(5, 0, t_s=2.5), written("traces/a.json", t_s=3)]
    append(folder, "rank0", entries)
    (window,) = RunReader(folder).at(T0 + 9 * S).windows
    assert (window.rank, window.rank_from) == (0, "journal")
    assert window.step_ns.tolist() == [[round(1.5 * S), 2 * S], [2 * S, round(2.5 * S)]]
    assert window.spans.step.tolist() == [4, 5]


def test_only_steps_wholly_inside_count(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    append(folder, "rank0", [written(trace(folder), t_s=3, first=5, end=6)])
    (window,) = RunReader(folder).at(T0 + 9 * S).windows
    assert window.steps == (5,)


def test_the_device_is_the_one_the_rank_announced(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    started = RankStarted(t_ns=0, rank=0, device=3, device_name="x", device_kind="cpu", pid=1)
    append(folder, "rank0", [started, written(trace(folder), t_s=3)])
    (window,) = RunReader(folder).at(T0 + 9 * S).windows
    assert window.device == 3


def test_a_missing_trace_is_refused_until_it_is_there(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [written("traces/a.json", t_s=1)]})
    reader = RunReader(folder)
    ((path, why, hint),) = reader.at(T0 + 2 * S).refused
    assert (path, why) == ("traces/a.json", "The trace was announced but is not there.")
    assert hint
    trace(folder)
    run = reader.at(T0 + 2 * S)
    assert (len(run.windows), run.refused) == (1, ())


def test_a_damaged_trace_is_refused_and_the_others_stay(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    append(folder, "rank0", [written(trace(folder), t_s=1), written("traces/bad.json", t_s=2, first=8, end=9)])
    (folder / "traces/bad.json").write_text('{"no": "events"}')
    run = RunReader(folder).at(T0 + 9 * S)
    assert len(run.windows) == 1
    assert [path for path, _, _ in run.refused] == ["traces/bad.json"]


def test_a_trace_that_was_cut_has_no_whole_step_and_says_so_once(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {})
    append(folder, "rank0", [done(4, 0, t_s=1), done(5, 0, t_s=2), written(trace(folder), t_s=3)])
    path = folder / "traces/a.json"
    path.write_bytes(path.read_bytes()[:-20])
    reader = RunReader(folder)
    (window,) = reader.at(T0 + 9 * S).windows
    assert not window.is_complete
    assert (window.steps, window.step_ns.shape, set(window.spans.step.tolist())) == ((), (0, 2), {-1})
    ((_, why),) = [doubt for doubt in window.cannot_say if doubt[0] == "per_step"]
    assert why == "rank 0: traces/a.json was cut short, so none of its steps is known to be whole"
    assert not any("before the window" in why for _, why in window.cannot_say)
    append(folder, "rank0", [Log(t_ns=4 * S, level="info", text="x")])
    assert reader.at(T0 + 9 * S).windows[0] is window


def test_a_line_that_cannot_be_does_not_blank_the_run(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1), done(0, 99, t_s=1)]})
    reader = RunReader(folder)
    run = reader.at(T0 + 9 * S)
    assert (len(run.steps), run.skipped_lines, steps(run).count) == (1, 1, 1)
    with (folder / "journal/rank0.jsonl").open("ab") as file:
        file.write(b"rubbish\n")
    assert reader.at(T0 + 9 * S).skipped_lines == 2


def test_a_half_written_line_waits(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1)]})
    path = folder / "journal/rank0.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"step","t_ns":5')
    reader = RunReader(folder)
    assert len(reader.at(T0 + 9 * S).steps) == 1
    with path.open("ab") as file:
        file.write(b',"rank":0,"step":1,"start_ns":1,"end_ns":2}\n')
    assert len(reader.at(T0 + 9 * S).steps) == 2


def test_a_damaged_line_is_counted(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1)]})
    with (folder / "journal/rank0.jsonl").open("ab") as file:
        file.write(b"not json\n")
    assert RunReader(folder).at(T0 + 9 * S).skipped_lines == 1


def test_the_end_is_the_last_entry_once_it_says_so(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1)]})
    reader = RunReader(folder, wall=lambda: T0 + 2 * S)
    assert reader.end_unix_ns() is None
    append(folder, "supervisor", [Ended(t_ns=5 * S, outcome="done")])
    assert reader.end_unix_ns() == T0 + 5 * S


def test_a_recording_that_fell_silent_ends_when_its_silence_says_so(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", {"rank0": [Log(t_ns=2 * S, level="info", text="x")]})
    assert RunReader(folder, wall=lambda: T0 + 2 * S + SILENCE_NS - 1).end_unix_ns() is None
    reader = RunReader(folder, wall=lambda: T0 + 100 * S)
    end = reader.end_unix_ns()
    assert end == T0 + 2 * S + SILENCE_NS
    assert reader.at(end).is_lost
    assert not reader.at(end - 1).is_lost


def test_what_is_no_recording_is_told_to_a_person(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        RunReader(tmp_path)


@pytest.mark.slow
def test_a_live_screen_over_many_ranks_is_cheap(tmp_path: Path) -> None:
    """128 ranks × 1 000 steps: looking while nothing is new is next to free; no time is asserted, a ratio is."""
    writers = {f"rank{r}": [done(n, r, t_s=n + r / 1000) for n in range(1000)] for r in range(128)}
    reader = RunReader(recording(tmp_path / "r", writers, ranks=128))  # type: ignore[arg-type]
    start = time.process_time()
    assert len(reader.at(T0 + 2000 * S).steps) == 128_000
    first = time.process_time() - start
    start = time.process_time()
    for tick in range(20):
        reader.at(T0 + (2000 + tick) * S)
    assert (time.process_time() - start) / 20 < first / 20


def hung(folder: Path) -> Path:
    """Two ranks, of which the second lacks the last collective; their flight recorders came 9 s after the start."""
    dumps = {0: [entry(1), entry(2, state="started")], 1: [entry(1)]}
    written_by = {
        f"rank{rank}": [done(0, rank, t_s=1), FlightWritten(t_ns=9 * S, rank=rank, path=f"flight/{rank}.json")]
        for rank in dumps
    }
    made = recording(folder, written_by)
    (made / "flight").mkdir()
    for rank, calls in dumps.items():
        write_flight(made / "flight" / f"{rank}.json", calls, ranks="[0, 1]")
    return made


def test_flight_recorders_are_part_of_the_run_once_they_were_written(tmp_path: Path) -> None:
    reader = RunReader(hung(tmp_path / "r"))
    assert reader.at(T0 + 8 * S).records == ()
    run = reader.at(T0 + 9 * S)
    assert [(record.rank, record.rank_from, record.source) for record in run.records] == [
        (0, "journal", "flight/0.json"),
        (1, "journal", "flight/1.json"),
    ]
    found = flight(run)
    assert found is not None
    assert [(one.sequence, one.waiting, one.absent) for one in found.unfinished] == [(2, (0,), (1,))]


def test_a_flight_recorder_that_is_gone_or_damaged_is_refused_and_the_other_read(tmp_path: Path) -> None:
    folder = hung(tmp_path / "r")
    (folder / "flight" / "0.json").write_text("{")
    run = RunReader(folder).at(T0 + 9 * S)
    assert [record.rank for record in run.records] == [1]
    assert [path for path, _, _ in run.refused] == ["flight/0.json"]
    (folder / "flight" / "1.json").unlink()
    assert [path for path, _, _ in RunReader(folder).at(T0 + 9 * S).refused] == ["flight/0.json", "flight/1.json"]
