"""A folder of recordings as of any time."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_recordings import T0, S, append, done, planned, recording

from meshscope.errors import RecordingError
from meshscope.recording.entries import Ended, Entry, Log
from meshscope.run import SILENCE_NS, Gallery


def part(folder: Path, name: str, *, start_s: int, end_s: int | None) -> None:
    """A recording of a plan that began and ended at some seconds of the plan's time."""
    entries: list[Entry] = [done(0, 0, t_s=1)]
    if end_s is not None:
        entries.append(Ended(t_ns=(end_s - start_s) * S, outcome="done"))
    recording(folder / name, {"rank0": entries}, strategy=name, t0_unix_ns=T0 + start_s * S)


def wall(t_s: float) -> object:
    return lambda: T0 + round(t_s * S)


def test_runs_appear_when_they_begin_in_the_plans_order(tmp_path: Path) -> None:
    plan = planned(tmp_path, ["ddp", "fsdp"])
    gallery = Gallery(tmp_path)
    assert gallery.at(T0) == (plan, ())
    part(tmp_path, "fsdp", start_s=30, end_s=50)
    part(tmp_path, "ddp", start_s=0, end_s=20)
    names = [[run.experiment.strategy for run in gallery.at(T0 + t_s * S)[1]] for t_s in (-1, 10, 40)]
    assert names == [[], ["ddp"], ["ddp", "fsdp"]]


def test_a_plan_has_ended_when_its_supervisor_says_so(tmp_path: Path) -> None:
    planned(tmp_path, ["ddp", "fsdp"])
    part(tmp_path, "ddp", start_s=0, end_s=20)
    gallery = Gallery(tmp_path, wall=wall(21))  # type: ignore[arg-type]
    assert gallery.start_unix_ns == T0
    assert gallery.end_unix_ns is None
    append(tmp_path, "supervisor", [Ended(t_ns=22 * S, outcome="stopped")])
    assert gallery.end_unix_ns == T0 + 22 * S


def test_a_plan_whose_supervisor_was_killed_ends_too(tmp_path: Path) -> None:
    planned(tmp_path, ["ddp", "fsdp"])
    part(tmp_path, "ddp", start_s=0, end_s=20)
    part(tmp_path, "fsdp", start_s=30, end_s=None)
    assert Gallery(tmp_path, wall=wall(35)).end_unix_ns is None  # type: ignore[arg-type]
    end = Gallery(tmp_path, wall=wall(1000)).end_unix_ns  # type: ignore[arg-type]
    assert end is not None
    assert end >= T0 + 31 * S + SILENCE_NS
    _, runs = Gallery(tmp_path, wall=wall(1000)).at(end)  # type: ignore[arg-type]
    assert [run.is_lost for run in runs] == [False, True]


def test_the_supervisors_own_words_are_kept_in_order(tmp_path: Path) -> None:
    planned(tmp_path, ["ddp"])
    append(tmp_path, "supervisor", [Log(t_ns=at * S, level="info", text=str(at)) for at in (1, 3)])
    gallery = Gallery(tmp_path)
    assert [entry.t_ns // S for entry in gallery.supervisor_at(T0 + 2 * S)] == [1]
    assert [entry.t_ns // S for entry in gallery.supervisor_at(T0 + 9 * S)] == [1, 3]


def test_one_recording_is_a_gallery_of_one(tmp_path: Path) -> None:
    recording(tmp_path / "r", {"rank0": [done(0, 0, t_s=1), Ended(t_ns=3 * S, outcome="done")]})
    gallery = Gallery(tmp_path / "r")
    plan, runs = gallery.at(T0 + 9 * S)
    assert plan is None
    assert [len(run.steps) for run in runs] == [1]
    assert (gallery.start_unix_ns, gallery.end_unix_ns) == (T0, T0 + 3 * S)
    assert gallery.supervisor_at(T0 + 9 * S) == ()


@pytest.mark.parametrize("has_plan", [True, False])
def test_a_damaged_recording_is_refused_and_the_others_open(tmp_path: Path, has_plan: bool) -> None:
    if has_plan:
        planned(tmp_path, ["ddp", "fsdp", "pmap"])
    for name, start_s in (("ddp", 0), ("fsdp", 10), ("pmap", 20)):
        part(tmp_path, name, start_s=start_s, end_s=start_s + 5)
    (tmp_path / "fsdp/experiment.json").write_text("{")
    gallery = Gallery(tmp_path)
    for _ in range(2):
        assert [run.experiment.strategy for run in gallery.at(T0 + 99 * S)[1]] == ["ddp", "pmap"]
    ((path, why, hint),) = gallery.refused
    assert path == str(tmp_path / "fsdp")
    assert "experiment.json is damaged" in why
    assert f"meshscope analyze {tmp_path / 'fsdp' / 'traces'}" in hint
    assert gallery.end_unix_ns is not None


def test_a_damaged_plan_costs_only_the_order(tmp_path: Path) -> None:
    planned(tmp_path, ["fsdp", "ddp"])
    part(tmp_path, "fsdp", start_s=10, end_s=15)
    part(tmp_path, "ddp", start_s=0, end_s=5)
    (tmp_path / "plan.json").write_text("[]")
    gallery = Gallery(tmp_path)
    assert [run.experiment.strategy for run in gallery.at(T0 + 99 * S)[1]] == ["ddp", "fsdp"]
    assert [path for path, _, _ in gallery.refused] == [str(tmp_path / "plan.json")]


@pytest.mark.parametrize("has_plan", [True, False])
def test_where_nothing_can_be_read_the_reason_is_raised(tmp_path: Path, has_plan: bool) -> None:
    if has_plan:
        planned(tmp_path, ["ddp"])
    part(tmp_path, "ddp", start_s=0, end_s=5)
    (tmp_path / "ddp/experiment.json").write_text("{")
    with pytest.raises(RecordingError, match=r"experiment.json is damaged"):
        Gallery(tmp_path)


def test_a_comparison_whose_only_recording_turns_out_damaged_says_so_when_it_is_asked(tmp_path: Path) -> None:
    planned(tmp_path, ["ddp"])
    gallery = Gallery(tmp_path)
    assert gallery.at(T0)[1] == ()
    part(tmp_path, "ddp", start_s=0, end_s=5)
    (tmp_path / "ddp/experiment.json").write_text("{")
    with pytest.raises(RecordingError, match=r"experiment.json is damaged"):
        gallery.at(T0)


def test_recordings_without_a_plan_stand_in_order_of_their_start(tmp_path: Path) -> None:
    part(tmp_path, "b", start_s=0, end_s=5)
    part(tmp_path, "a", start_s=10, end_s=15)
    gallery = Gallery(tmp_path)
    assert [run.experiment.strategy for run in gallery.at(T0 + 99 * S)[1]] == ["b", "a"]
    assert gallery.stretches == (("b", T0, T0 + 5 * S), ("a", T0 + 10 * S, T0 + 15 * S))


def test_a_folder_without_recordings_is_told_to_a_person(tmp_path: Path) -> None:
    with pytest.raises(RecordingError) as told:
        Gallery(tmp_path)
    assert "analyze" in told.value.hint


def test_damaged_lines_of_the_supervisors_journal_are_told(tmp_path: Path) -> None:
    planned(tmp_path, ["ddp"])
    part(tmp_path, "ddp", start_s=0, end_s=20)
    append(tmp_path, "supervisor", [Ended(t_ns=22 * S, outcome="stopped")])
    gallery = Gallery(tmp_path)
    assert gallery.end_unix_ns == T0 + 22 * S
    assert gallery.refused == ()
    with (tmp_path / "journal" / "supervisor.jsonl").open("ab") as file:
        file.write(b"{garbled\n")
    assert gallery.end_unix_ns == T0 + 22 * S
    assert [(Path(path).name, why) for path, why, _ in gallery.refused] == [
        ("supervisor.jsonl", "1 line of the supervisor's journal could not be read.")
    ]
