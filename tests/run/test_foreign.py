"""Native traces that nobody described: which of them are one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import UNIX_NS, XSpace, kernel, step, write_kineto

from meshscope.errors import InputError
from meshscope.run import open_traces


def trace(path: Path, *, rank: int | None = 0, at_us: float = 0, world: int = 2, **how: Any) -> Path:
    about = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
    return write_kineto(path, [kernel("gemm", at_us, 1000)], rank=None, **about, **how)


def ranks(paths: list[Path]) -> list[list[int]]:
    return [[window.rank for window in run.windows] for run in open_traces(paths).runs]


def test_the_ranks_of_a_folder_are_one_run_that_starts_at_zero(tmp_path: Path) -> None:
    for rank in (1, 0):
        trace(tmp_path / f"{rank}.json", rank=rank, at_us=rank * 10)
    (run,) = open_traces([tmp_path]).runs
    assert [(window.rank, window.start_ns) for window in run.windows] == [(0, 0), (1, 10_000)]
    assert (run.path, run.experiment.ranks, run.experiment.t0_unix_ns) == (str(tmp_path), 2, UNIX_NS)
    assert (run.experiment.framework, run.experiment.strategy, run.experiment.device_kind) == ("torch", "", "gpu")


def test_a_file_that_was_cut_has_no_whole_step(tmp_path: Path) -> None:
    path = write_kineto(tmp_path / "a.json", [step(3, 0, 10), kernel("a", 0, 5), kernel("b", 5, 5)])
    assert open_traces([path]).runs[0].windows[0].steps == (3,)
    path.write_bytes(path.read_bytes()[:-40])
    (window,) = open_traces([path]).runs[0].windows
    assert window.steps == ()
    assert f"rank 0: {path} was cut short" in dict(window.cannot_say)["per_step"]


def test_a_rank_twice_is_two_runs(tmp_path: Path) -> None:
    for name, rank in (("a", 0), ("b", 1), ("c", 0), ("d", 1)):
        trace(tmp_path / f"{name}.json", rank=rank, at_us=0 if name in "ab" else 5e6)
    assert ranks([tmp_path]) == [[0, 1], [0, 1]]


def test_ranks_that_never_ran_at_the_same_time_are_not_one_run(tmp_path: Path) -> None:
    trace(tmp_path / "a.json", rank=0)
    trace(tmp_path / "b.json", rank=1, at_us=5e6)
    assert ranks([tmp_path]) == [[0], [1]]


def test_different_worlds_are_different_runs(tmp_path: Path) -> None:
    trace(tmp_path / "a.json", rank=0, world=2)
    trace(tmp_path / "b.json", rank=1, world=8)
    assert ranks([tmp_path]) == [[0], [1]]


def test_what_says_no_rank_or_no_time_stands_alone(tmp_path: Path) -> None:
    trace(tmp_path / "a.json", rank=None)
    trace(tmp_path / "b.json", rank=None)
    trace(tmp_path / "c.json", rank=1, base_ns=None)
    assert ranks([tmp_path]) == [[0], [0], [1]] or sorted(ranks([tmp_path])) == [[0], [0], [1]]


def test_the_devices_of_an_xplane_are_one_run(tmp_path: Path) -> None:
    line = ("XLA Ops", [("%dot", 0, 10_000, {})])
    space = XSpace().plane("/device:TPU:0", [line]).plane("/device:TPU:1", [line]).started(UNIX_NS)
    path = space.write(tmp_path / "host.xplane.pb")
    assert ranks([path]) == [[0, 1]]


def test_jaxs_second_copy_of_an_xplane_is_left_out(tmp_path: Path) -> None:
    XSpace().plane("/device:TPU:0", [("XLA Ops", [("%dot", 0, 10, {})])]).write(tmp_path / "host.xplane.pb")
    trace(tmp_path / "host.trace.json.gz", rank=None)
    assert len(open_traces([tmp_path]).runs) == 1


def test_what_cannot_be_read_is_listed_and_the_rest_is_read(tmp_path: Path) -> None:
    trace(tmp_path / "good.json")
    (tmp_path / "bad.json").write_text('{"nothing": []}')
    opened = open_traces([tmp_path])
    assert len(opened.runs) == 1
    ((path, why, hint),) = opened.refused
    assert path == str(tmp_path / "bad.json")
    assert why
    assert hint


@pytest.mark.parametrize("name", ["nowhere.json", "."])
def test_nothing_to_read_is_told_to_a_person(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as told:
        open_traces([tmp_path / name])
    assert told.value.hint
