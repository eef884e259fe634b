"""XLA writes a file per host: the hosts of one profile are one recording, with ranks counted over all of them."""

from __future__ import annotations

from pathlib import Path

from made_traces import UNIX_NS, Line, XSpace

from meshscope.run import Run, open_traces

MS = 1_000_000_000  # picoseconds


def host(path: Path, *, devices: int = 2, at_ms: int = 0, started: bool = True, kind: str = "TPU") -> Path:
    """A host's file with 1 ms of work on each device."""
    space = XSpace()
    for device in range(devices):
        line: Line = ("XLA Ops", [("%dot = f32[] dot()", at_ms * MS, MS, {})])
        space.plane(f"/device:{kind}:{device}", [line])
    path.parent.mkdir(parents=True, exist_ok=True)
    return (space.started(UNIX_NS) if started else space).write(path)


def profile(root: Path, stamp: str, name: str) -> Path:
    return root / "plugins" / "profile" / stamp / f"{name}.xplane.pb"


def placed(run: Run) -> list[tuple[str, int, int]]:
    """Host, device and rank of every window."""
    return [(Path(w.source).name.removesuffix(".xplane.pb"), w.device, w.rank) for w in run.windows]


def test_hosts_of_one_folder_are_one_run_with_ranks_over_all_devices(tmp_path: Path) -> None:
    for name in ("w-10", "w-2", "w-1"):
        host(profile(tmp_path, "2026_05_06_04_47_36", name))
    (run,) = open_traces([tmp_path]).runs
    assert placed(run) == [
        ("w-1", 0, 0), ("w-1", 1, 1), ("w-2", 0, 2), ("w-2", 1, 3), ("w-10", 0, 4), ("w-10", 1, 5),
    ]  # fmt: skip
    assert run.experiment.ranks == 6
    assert {rank for window in run.windows for rank in window.spans.rank.tolist()} == set(range(6))
    assert {window.rank_from for window in run.windows} == {"file name"}
    assert dict(run.windows[0].cannot_say)["rank order"].endswith("w-1, w-2, w-10")


def test_hosts_whose_folders_lie_seconds_apart_are_one_run(tmp_path: Path) -> None:
    host(profile(tmp_path, "2026_05_06_04_47_36", "a"))
    host(profile(tmp_path, "2026_05_06_04_47_38", "b"), at_ms=2000)
    (run,) = open_traces([tmp_path]).runs
    assert placed(run) == [("a", 0, 0), ("a", 1, 1), ("b", 0, 2), ("b", 1, 3)]
    assert Path(run.path).name == "profile"


def test_hosts_with_a_log_folder_each_are_one_run(tmp_path: Path) -> None:
    for name in "ab":
        host(profile(tmp_path / f"host-{name}", "2026_05_06_04_47_36", name))
    (run,) = open_traces([tmp_path]).runs
    assert [rank for _, _, rank in placed(run)] == [0, 1, 2, 3]
    given = open_traces([tmp_path / "host-a", tmp_path / "host-b"]).runs
    assert [placed(run) for run in given] == [placed(run)]


def test_two_profiles_of_the_same_hosts_are_two_recordings(tmp_path: Path) -> None:
    for number, stamp in enumerate(("2026_05_06_04_47_36", "2026_05_06_04_50_00")):
        for name in "ab":
            host(profile(tmp_path, stamp, name), at_ms=number * 144_000)
    runs = open_traces([tmp_path]).runs
    assert [[rank for _, _, rank in placed(run)] for run in runs] == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_profiles_in_quick_succession_are_joined_with_the_nearest(tmp_path: Path) -> None:
    for number in range(2):
        host(profile(tmp_path, f"2026_05_06_04_47_3{number * 4}", "a"), at_ms=number * 4000)
        host(profile(tmp_path, f"2026_05_06_04_47_3{number * 4 + 1}", "b"), at_ms=number * 4000 + 300)
    runs = open_traces([tmp_path]).runs
    assert [placed(run) for run in runs] == [[("a", 0, 0), ("a", 1, 1), ("b", 0, 2), ("b", 1, 3)]] * 2
    assert [run.windows[0].start_ns for run in runs] == [0, 0]


def test_profiles_far_apart_are_different_runs_whatever_their_hosts(tmp_path: Path) -> None:
    host(profile(tmp_path, "2026_05_06_04_47_36", "a"))
    host(profile(tmp_path, "2026_05_06_05_47_36", "b"), at_ms=3_600_000)
    assert [placed(run) for run in open_traces([tmp_path]).runs] == [
        [("a", 0, 0), ("a", 1, 1)],
        [("b", 0, 0), ("b", 1, 1)],
    ]


def test_without_a_time_only_the_profilers_own_folder_joins_hosts(tmp_path: Path) -> None:
    for name in "ab":
        host(profile(tmp_path / "made", "2026_05_06_04_47_36", name), started=False)
        host(tmp_path / "heap" / f"{name}.xplane.pb", started=False)
        host(profile(tmp_path / "apart", f"2026_05_06_04_47_3{ord(name) % 10}", name), started=False)
    assert len(open_traces([tmp_path / "made"]).runs) == 1
    assert len(open_traces([tmp_path / "heap"]).runs) == 2
    assert len(open_traces([tmp_path / "apart"]).runs) == 2


def test_hosts_of_different_devices_are_different_runs(tmp_path: Path) -> None:
    host(profile(tmp_path, "2026_05_06_04_47_36", "a"))
    host(profile(tmp_path, "2026_05_06_04_47_36", "b"), kind="GPU")
    gpu = XSpace().plane("/device:GPU:0", [("Stream #1", [("gemm", 0, MS, {})])]).started(UNIX_NS)
    gpu.write(profile(tmp_path, "2026_05_06_04_47_36", "b"))
    assert len(open_traces([tmp_path]).runs) == 2


def test_one_host_keeps_its_devices_numbers(tmp_path: Path) -> None:
    (run,) = open_traces([host(profile(tmp_path, "2026_05_06_04_47_36", "a"))]).runs
    assert [(w.rank, w.rank_from) for w in run.windows] == [(0, "device"), (1, "device")]
    assert "rank order" not in dict(run.windows[0].cannot_say)
