"""The memory limit of a control group, read from files as Linux lays them out."""

from __future__ import annotations

from pathlib import Path

from meshscope.capture.sensors.cgroup import MemoryLimit, memory_limit


def group(folder: Path, limit: str, used: int, inactive_file: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(limit + "\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - inactive_file}\ninactive_file {inactive_file}\nactive_file 1\n")
    return folder


def own(tmp_path: Path, path: str) -> Path:
    (tmp_path / "own").write_text(f"1:name=systemd:/other\n0::{path}\n")
    return tmp_path / "own"


def test_what_is_used_counts_without_the_cache_that_can_be_dropped(tmp_path: Path) -> None:
    root = group(tmp_path / "cgroup", "1000", 700, 300)
    assert memory_limit(root, own(tmp_path, "/")) == MemoryLimit(400, 1000)


def test_the_group_around_counts_where_it_leaves_less(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    group(root / "job", "1000", 900)
    group(root / "job" / "step", "500", 200)
    assert memory_limit(root, own(tmp_path, "/job/step")) == MemoryLimit(900, 1000)


def test_without_a_limit_there_is_none(tmp_path: Path) -> None:
    root = group(tmp_path / "cgroup", "max", 700)
    assert memory_limit(root, own(tmp_path, "/")) is None
    assert memory_limit(tmp_path / "nowhere", tmp_path / "nothing") is None
    assert memory_limit(root, own(tmp_path, "/../../etc")) is None
