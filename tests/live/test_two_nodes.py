"""Two nodes in network namespaces of their own, with a wire between them that delays, and that is cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.slow]

WIRE = Path(__file__).parent / "wire.py"
SMALL = [
    "--layers",
    "2",
    "--width",
    "64",
    "--heads",
    "2",
    "--seq",
    "16",
    "--vocab",
    "64",
    "--bucket-mb",
    "0.1",
    "--device",
    "cpu",
]
DELAY_MS = 5
SPACES = (("net", "net"), ("uts", "uts"), ("mount", "mnt"))


@dataclass
class Pair:
    """Two namespaces, each held by a process, and the wire."""

    folder: Path
    holders: list[subprocess.Popen[bytes]]
    started: list[subprocess.Popen[bytes]]

    def run(self, node: int, *options: str, strategy: str = "ddp") -> subprocess.Popen[bytes]:
        pid = self.holders[node].pid
        inside = ["nsenter", *(f"--{kind}=/proc/{pid}/ns/{file}" for kind, file in SPACES)]
        line = [sys.executable, "-m", "meshscope", "run", strategy, "--headless", "--nodes", "2"]
        meet = ["--node-rank", str(node), "--rendezvous", "10.77.0.1:29500", "--out", str(self.folder / f"node{node}")]
        with (self.folder / f"node{node}.txt").open("wb") as log:
            child = subprocess.Popen(
                [*inside, *line, *meet, *SMALL, *options],
                env=os.environ | {"GLOO_SOCKET_IFNAME": "wire0"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.started.append(child)
        return child

    def said(self, node: int) -> str:
        return (self.folder / f"node{node}.txt").read_text()

    def cut(self) -> None:
        (self.folder / "cut").touch()

    def steps(self, node: int) -> int:
        journals = (self.folder / f"node{node}").glob("ddp/journal/rank*.jsonl")
        return min((path.read_text().count('"type":"step"') for path in journals), default=0)


@pytest.fixture
def pair(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setenv("PYTHONPATH", f"{root / 'src'}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"))
    if os.geteuid() or not Path("/dev/net/tun").exists():
        pytest.skip("namespaces with a wire between them need root and /dev/net/tun")
    names = ("alpha", "beta")
    # JAX has its collectives look up their own host's name, which a cluster's machines can.
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n10.77.0.1 alpha\n10.77.0.2 beta\n")
    hold = f"hostname $0 && mount --bind {hosts} /etc/hosts && exec sleep 600"
    holders = [subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", hold, name]) for name in names]
    found = Pair(tmp_path, holders, [])
    try:
        _until(lambda: all(_is_apart(holder.pid) for holder in holders), 10)
        pids = [str(holder.pid) for holder in holders]
        wire = subprocess.Popen(
            [sys.executable, str(WIRE), *pids, str(DELAY_MS), str(tmp_path / "cut")], stdout=subprocess.PIPE
        )
        found.started.append(wire)
        assert wire.stdout is not None
        assert wire.stdout.readline() == b"up\n"
        yield found
    finally:
        for child in (*found.started, *holders):
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _is_apart(pid: int) -> bool:
    """Whether the namespaces are made and have their file of hosts: the last thing a holder does is to sleep."""
    return Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"


def _until(holds: Callable[[], bool], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {patience_s} s"
        time.sleep(0.1)


def _analyzed(*paths: Path) -> tuple[dict, str]:
    line = [sys.executable, "-m", "meshscope", "analyze", "--json", *map(str, paths)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stderr


def test_two_nodes_are_one_run_and_their_ranks_are_numbered_over_both(pair: Pair) -> None:
    children = [pair.run(node, "--ranks", "4", "--steps", "30") for node in (0, 1)]
    for node, child in enumerate(children):
        assert child.wait(240) == 0, pair.said(node)
    assert "only ranks 2–3 of 4 are here" in " ".join(pair.said(1).split())
    for paths in ([pair.folder / "node0", pair.folder / "node1"], [pair.folder]):
        found, notes = _analyzed(*paths)
        (recording,) = found["recordings"]
        assert [rank["rank"] for rank in recording["ranks"]] == [0, 1, 2, 3]
        assert recording["steps"]["count"] == 30
        median_s = recording["steps"]["median_ns"] / 1e9
        assert recording["steps"]["samples_per_s"] == pytest.approx(8 / median_s, rel=0.02)
        # The wire takes 5 ms either way, and a ring of all ranks crosses it several times.
        assert median_s > 2 * DELAY_MS / 1000
        assert "the clock of beta is" in notes
        assert "collectives; its times are moved" in notes
    assert {one["device"] for one in recording["devices"]} >= {"host alpha", "host beta", "rank 0", "rank 3"}


@pytest.mark.parametrize("strategy", ["pmap", "pjit"])
def test_devices_of_two_jax_processes_are_one_run(pair: Pair, strategy: str) -> None:
    children = [pair.run(node, "--ranks", "4", "--steps", "30", strategy=strategy) for node in (0, 1)]
    for node, child in enumerate(children):
        assert child.wait(240) == 0, pair.said(node)
    assert "only ranks 2–3 of 4 are here" in " ".join(pair.said(1).split())
    found, notes = _analyzed(pair.folder)
    (recording,) = found["recordings"]
    assert [rank["rank"] for rank in recording["ranks"]] == [0, 1, 2, 3]
    assert recording["steps"]["count"] == 30
    median_s = recording["steps"]["median_ns"] / 1e9
    assert recording["steps"]["samples_per_s"] == pytest.approx(8 / median_s, rel=0.02)
    assert {one["rank"] for one in recording["memory"]} == {0, 1, 2, 3}
    assert not [one for one in recording["findings"] if one["code"] == "trace-incomplete"]
    assert "the clock of beta is" in notes


def test_a_wire_that_is_cut_ends_both_nodes_and_each_names_the_other_and_the_collective(pair: Pair) -> None:
    children = [pair.run(node, "--ranks", "2", "--steps", "100000", "--patience", "8") for node in (0, 1)]
    _until(lambda: pair.steps(0) > 10 and pair.steps(1) > 10, 150)
    pair.cut()
    for node, child in enumerate(children):
        assert child.wait(120) == 1, pair.said(node)
        said = " ".join(pair.said(node).split())
        assert f"every rank of node {node} waits in all" in said, said
        assert f"and so for node {1 - node}" in said
    found, _ = _analyzed(pair.folder)
    (recording,) = found["recordings"]
    assert recording["outcome"] == "failed"
