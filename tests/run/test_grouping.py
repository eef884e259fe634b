"""Which files are one run, and which rank each is: ranks are joined by what the files say, and never by accident."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import UNIX_NS, kernel, span, step, write_kineto

from meshscope.errors import InputError
from meshscope.readers import read
from meshscope.run import Run, open_traces
from meshscope.run.grouping import Filed, together
from meshscope.spans import Window

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def trace(path: Path, *, rank: int | None = 0, at_us: float = 0, world: int | None = 2, **how: Any) -> Path:
    """One kernel of 1 ms and an all-reduce, from ``at_us`` on. ``rank`` None: no distributedInfo but the world."""
    about = {key: value for key, value in (("rank", rank), ("world_size", world)) if value is not None}
    events = how.pop("events", [kernel("gemm", at_us, 1000), kernel(ALL_REDUCE, at_us + 1000, 500)])
    return write_kineto(path, events, rank=None, **({"distributedInfo": about} if about else {}), **how)


def ranks(*paths: Path) -> list[list[int]]:
    return sorted([window.rank for window in run.windows] for run in open_traces(paths).runs)


def said(run: Run, what: str) -> list[str]:
    return [why for window in run.windows for about, why in window.cannot_say if about == what]


def test_files_given_one_by_one_are_one_run_as_their_folder_would_be(tmp_path: Path) -> None:
    paths = [trace(tmp_path / f"rank{rank}.json", rank=rank, at_us=rank) for rank in range(2)]
    assert ranks(*paths) == ranks(tmp_path) == ranks(tmp_path, *paths) == [[0, 1]]


def test_folders_of_one_run_are_joined_and_of_two_runs_are_not(tmp_path: Path) -> None:
    for rank in range(4):
        trace(tmp_path / "one" / f"host{rank // 2}" / f"rank{rank}.json", rank=rank, world=4, at_us=rank)
    for rank in range(4):
        trace(tmp_path / "two" / f"host{rank // 2}" / f"rank{rank}.json", rank=rank, world=4, at_us=rank + 50)
    assert ranks(tmp_path / "one") == [[0, 1, 2, 3]]
    assert ranks(tmp_path) == [[0, 1, 2, 3], [0, 1, 2, 3]]
    (_, one), (_, two) = sorted((run.path, run) for run in open_traces([tmp_path]).runs)
    assert [Path(run.path).name for run in (one, two)] == ["one", "two"]


def test_two_runs_at_once_in_one_folder_are_told_apart_by_their_names(tmp_path: Path) -> None:
    for run in ("a", "b"):
        for rank in range(2):
            trace(tmp_path / f"{run}_rank{rank}.json", rank=rank, at_us=rank * 5 + (run == "b"))
    runs = open_traces([tmp_path]).runs
    assert sorted(sorted(Path(w.source).name for w in run.windows) for run in runs) == [
        ["a_rank0.json", "a_rank1.json"], ["b_rank0.json", "b_rank1.json"],
    ]  # fmt: skip


def test_two_runs_at_once_are_told_apart_by_time_where_that_is_clear(tmp_path: Path) -> None:
    for pid, (rank, at_us) in enumerate([(0, 0), (1, 2), (0, 400), (1, 401)]):
        trace(tmp_path / f"host_{pid}.{pid + 7}.json", rank=rank, at_us=at_us)
    runs = open_traces([tmp_path]).runs
    assert [[Path(w.source).name for w in run.windows] for run in runs] == [
        ["host_0.7.json", "host_1.8.json"], ["host_2.9.json", "host_3.10.json"],
    ]  # fmt: skip
    assert not any(said(run, "ranks") for run in runs)


def test_what_could_be_of_two_runs_is_kept_apart_and_said(tmp_path: Path) -> None:
    for pid, (rank, at_us) in enumerate([(0, 0), (1, 200), (0, 300), (1, 450)]):
        trace(tmp_path / f"host_{pid}.{pid + 7}.json", rank=rank, at_us=at_us)
    runs = open_traces([tmp_path]).runs
    assert sorted(window.rank for run in runs for window in run.windows) == [0, 0, 1, 1]
    assert all(len({w.rank for w in run.windows}) == len(run.windows) for run in runs)
    assert any("kept apart" in why for run in runs for why in said(run, "ranks"))


def test_a_process_profiled_twice_is_two_recordings(tmp_path: Path) -> None:
    for window in range(2):
        for rank in range(2):
            events = [step(window, window * 1e6, 2000), kernel("gemm", window * 1e6 + rank, 1000)]
            trace(tmp_path / f"rank{rank}_step{window}.json", rank=rank, events=events)
    runs = open_traces([tmp_path]).runs
    assert [([w.rank for w in run.windows], run.windows[0].steps) for run in runs] == [([0, 1], (0,)), ([0, 1], (1,))]


def test_a_copy_of_a_rank_spoils_nothing_and_is_named(tmp_path: Path) -> None:
    for rank in range(2):
        trace(tmp_path / f"rank{rank}.json", rank=rank, at_us=rank)
    (tmp_path / "saved_rank0.json").write_bytes((tmp_path / "rank0.json").read_bytes())
    copy, whole = sorted(open_traces([tmp_path]).runs, key=lambda run: len(run.windows))
    assert [window.rank for window in whole.windows] == [0, 1]
    assert [window.rank for window in copy.windows] == [0]
    assert "the same trace as" in said(copy, "ranks")[0]
    assert not said(whole, "ranks")


@pytest.mark.parametrize(
    ("here", "world", "words"),
    [
        ([0, 1, 3, 4], 8, "ranks 2, 5–7 of 8 are not here"),
        ([0, 1, 2], 4, "rank 3 of 4 is not here"),
        ([5], 6, "ranks 0–4 of 6 are not here"),
        ([0, 1], 10**9, "999999998 of the 1000000000 ranks that a file tells of are not here"),
        ([0, 1], 2, None),
        ([0, 1], None, None),
    ],
)
def test_ranks_of_the_world_that_are_missing_are_named(
    tmp_path: Path, here: list[int], world: int | None, words: str | None
) -> None:
    for rank in here:
        trace(tmp_path / f"rank{rank}.json", rank=rank, world=world, at_us=rank)
    (run,) = open_traces([tmp_path]).runs
    assert said(run, "ranks") == ([words] if words else [])


def test_worlds_that_contradict_are_two_runs_and_an_unknown_one_contradicts_none(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", rank=0, world=2)
    trace(tmp_path / "rank1.json", rank=1, world=8)
    assert ranks(tmp_path) == [[0], [1]]
    trace(tmp_path / "rank1.json", rank=1, world=None)
    assert ranks(tmp_path) == [[0, 1]]
    trace(tmp_path / "rank1.json", rank=3, world=None)
    assert ranks(tmp_path) == [[0], [3]]


def test_a_rank_beyond_its_world_is_said(tmp_path: Path) -> None:
    (run,) = open_traces([trace(tmp_path / "a.json", rank=5, world=4)]).runs
    assert "rank 5 of 4, which cannot be" in said(run, "ranks")[0]


def test_the_name_tells_the_rank_where_the_file_does_not(tmp_path: Path) -> None:
    trace(tmp_path / "rank-0.json", rank=None, world=None)
    trace(tmp_path / "rank-1.json", rank=None, world=None, at_us=1)
    (run,) = open_traces([tmp_path]).runs
    assert [(window.rank, window.rank_from) for window in run.windows] == [(0, "file name"), (1, "file name")]


def test_the_file_tells_the_rank_whatever_its_name_says(tmp_path: Path) -> None:
    (run,) = open_traces([trace(tmp_path / "rank7.json", rank=1)]).runs
    assert (run.windows[0].rank, run.windows[0].rank_from) == (1, "trace")


@pytest.mark.parametrize(
    ("names", "rank_from"),
    [(["trace_1.json", "trace_0.json"], "file name"), (["host_11.5.json", "host_12.6.json"], "order")],
)
def test_files_without_ranks_that_ran_together_are_ranks_in_order_and_said_so(
    tmp_path: Path, names: list[str], rank_from: str
) -> None:
    for at_us, name in enumerate(names):
        trace(tmp_path / name, rank=None, world=None, at_us=at_us)
    (run,) = open_traces([tmp_path]).runs
    assert [(w.rank, w.rank_from, Path(w.source).name) for w in run.windows] == [
        (rank, rank_from, name) for rank, name in enumerate(sorted(names))
    ]
    assert "no file says its rank" in said(run, "rank order")[0]
    assert [set(window.spans.rank.tolist()) for window in run.windows] == [{0}, {1}]


def test_files_without_ranks_stay_apart_where_nothing_says_that_they_are_one_run(tmp_path: Path) -> None:
    alone = [kernel("gemm", 0, 1000)]
    trace(tmp_path / "no collective" / "a.json", rank=None, world=None, events=alone)
    trace(tmp_path / "no collective" / "b.json", rank=None, world=None, events=[*alone, span("aten::add", 5, 2)])
    trace(tmp_path / "other times" / "a.json", rank=None, world=None)
    trace(tmp_path / "other times" / "b.json", rank=None, world=None, at_us=5e6)
    trace(tmp_path / "no time" / "a.json", rank=None, world=None, base_ns=None)
    trace(tmp_path / "no time" / "b.json", rank=None, world=None, base_ns=None, at_us=3)
    trace(tmp_path / "other collectives" / "a.json", rank=None, world=None)
    events = [kernel("ncclDevKernel_Broadcast", 0, 1000)]
    trace(tmp_path / "other collectives" / "b.json", rank=None, world=None, events=events)
    for folder in tmp_path.iterdir():
        assert ranks(folder) == [[0], [0]], folder


def test_a_thousand_ranks_are_one_run(tmp_path: Path) -> None:
    (window,) = read(trace(tmp_path / "rank0.json", rank=0, world=1024))
    files = [Filed(tmp_path / f"h{n // 8}" / f"rank{n}.json", (replace(window, rank=n),)) for n in range(1024)]
    (group,) = together(files)
    assert [file.first.rank for file in group.files] == list(range(1024))
    assert group.cannot_say == ()


def test_a_folder_that_links_to_itself_ends_and_links_to_other_folders_are_followed(tmp_path: Path) -> None:
    trace(tmp_path / "runs" / "rank0.json", rank=0)
    trace(tmp_path / "elsewhere" / "rank1.json", rank=1, at_us=1)
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs", target_is_directory=True)
    (tmp_path / "runs" / "host1").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "runs" / "lost.json").symlink_to(tmp_path / "nowhere")
    assert ranks(tmp_path / "runs") == [[0, 1]]


def test_when_each_of_two_runs_was_is_its_own(tmp_path: Path) -> None:
    trace(tmp_path / "rank0.json", rank=0)
    trace(tmp_path / "rank0_later.json", rank=0, at_us=7e6)
    runs = open_traces([tmp_path]).runs
    assert [run.experiment.t0_unix_ns for run in runs] == [UNIX_NS, UNIX_NS + 7_000_000_000]


def test_a_link_to_itself_and_a_name_too_long_are_told_to_a_person(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    for name in ("loop.json", "x" * 5000):
        with pytest.raises(InputError, match="cannot be reached") as told:
            open_traces([tmp_path / name])
        assert told.value.hint


def test_a_folder_that_may_not_be_read_is_refused_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace(tmp_path / "rank0.json", rank=0)
    trace(tmp_path / "secret" / "rank1.json", rank=1)
    scandir = os.scandir

    def denied(path: Any) -> Any:
        if Path(path).name == "secret":  # root, who runs tests in containers, may read everything
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    opened = open_traces([tmp_path])
    assert [[window.rank for window in run.windows] for run in opened.runs] == [[0]]
    assert [(path, why) for path, why, _ in opened.refused] == [
        (str(tmp_path / "secret"), "The folder cannot be read: Permission denied.")
    ]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Window:
    (found,) = read(trace(tmp_path_factory.mktemp("made") / "rank0.json", rank=0))
    return found


FILES = st.lists(
    st.tuples(
        st.sampled_from(["x", "x/h0", "x/h1", "y"]),
        st.sampled_from(["a", "b_rank", "t_"]),
        st.integers(0, 3),
        st.sampled_from([0, 2, 4]),
        st.sampled_from(["trace", "file name", "order", "device"]),
        st.sampled_from([0, 3000, 400_000, 1_400_000, 2_000_000, 10**9]),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)


@given(files=FILES, seed=st.randoms(use_true_random=False))
def test_whatever_files_say_each_is_in_one_run_and_no_rank_twice_and_their_order_does_not_matter(
    window: Window, files: list[tuple[str, str, int, int, str, int, bool]], seed: Random
) -> None:
    made = [
        Filed(
            Path(folder) / f"{name}{at}.json",
            (replace(window.shifted(later_ns), rank=rank, world=world, rank_from=how, has_unix_time=has_time),),
        )
        for at, (folder, name, rank, world, how, later_ns, has_time) in enumerate(files)
    ]
    groups = together(made)
    assert sorted(file.path for group in groups for file in group.files) == sorted(file.path for file in made)
    assert all(len({w.rank for w in group.windows}) == len(group.windows) for group in groups)
    seed.shuffle(made)
    again = together(made)
    assert [[(f.path, f.first.rank) for f in group.files] for group in again] == [
        [(f.path, f.first.rank) for f in group.files] for group in groups
    ]
    assert [group.cannot_say for group in again] == [group.cannot_say for group in groups]


def apart(
    folder: Path, names: tuple[str, str], *, by_us: float = 11.56e6, hosts: tuple[str, ...] = ("", "")
) -> list[list[int]]:
    """Two ranks of two whose clocks are some time apart."""
    for rank, (name, host) in enumerate(zip(names, hosts, strict=True)):
        trace(folder / name, rank=rank, at_us=rank * by_us, **({"host_name": host} if host else {}))
    return ranks(folder)


def test_ranks_of_two_machines_whose_clocks_are_apart_are_one_run_and_that_is_said(tmp_path: Path) -> None:
    assert apart(tmp_path / "named", ("rank0.json", "rank1.json")) == [[0, 1]]
    assert apart(tmp_path / "hosts", ("a.json", "b.json"), hosts=("x", "y")) == [[0, 1]]
    (run,) = open_traces([tmp_path / "named"]).runs
    assert any("times apart" in why for why in said(run, "ranks"))


def test_what_one_machine_traced_at_another_time_is_another_run(tmp_path: Path) -> None:
    assert apart(tmp_path / "one", ("rank0.json", "rank1.json"), hosts=("x", "x")) == [[0], [1]]
    assert apart(tmp_path / "far", ("rank0.json", "rank1.json"), by_us=90e6) == [[0], [1]]
    assert apart(tmp_path / "unlike", ("a.json", "b.json")) == [[0], [1]]
    trace(tmp_path / "few" / "rank0.json", rank=0, world=3)
    trace(tmp_path / "few" / "rank1.json", rank=1, world=3, at_us=5e6)
    assert ranks(tmp_path / "few") == [[0], [1]]


def test_a_file_that_says_no_rank_has_the_one_of_its_folders_name(tmp_path: Path) -> None:
    for rank in (1, 0, 3):
        trace(tmp_path / f"rank_{rank}" / "trace.json", rank=None, world=None, at_us=rank)
    (run,) = open_traces([tmp_path]).runs
    assert [(window.rank, window.rank_from) for window in run.windows] == [
        (0, "folder name"), (1, "folder name"), (3, "folder name"),
    ]  # fmt: skip
    assert {int(rank) for window in run.windows for rank in window.spans.rank} == {0, 1, 3}


def test_the_folders_name_is_no_rank_of_several_files_in_it_nor_of_one_that_says_its_own(tmp_path: Path) -> None:
    for number in range(2):
        trace(tmp_path / "rank_7" / f"trace_{number}.json", rank=None, at_us=number)
    assert ranks(tmp_path / "rank_7") == [[0, 1]]
    (run,) = open_traces([trace(tmp_path / "rank_5" / "t.json", rank=1)]).runs
    assert (run.windows[0].rank, run.windows[0].rank_from) == (1, "trace")


def test_a_link_to_a_file_that_is_there_itself_is_no_file_of_its_own(tmp_path: Path) -> None:
    trace(tmp_path / "runs" / "rank1.json", rank=1)
    trace(tmp_path / "elsewhere" / "rank0.json", rank=0, at_us=1)
    (tmp_path / "runs" / "a_link.json").symlink_to(tmp_path / "runs" / "rank1.json")
    (tmp_path / "runs" / "rank0.json").symlink_to(tmp_path / "elsewhere" / "rank0.json")
    (run,) = open_traces([tmp_path / "runs"]).runs
    assert sorted(Path(window.source).name for window in run.windows) == ["rank0.json", "rank1.json"]
