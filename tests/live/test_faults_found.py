"""Every fault that can be put in is found where it is, while the run goes on or at its end and ever after; a clean run
has none.

Real runs of two ranks, with the options that a person gets by default.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from meshscope.analysis.findings import Finding, findings
from meshscope.run import Gallery

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(1800)]

MESHSCOPE = [sys.executable, "-m", "meshscope"]
PATIENCE_S = 300.0
"""For each strategy; a crowded machine takes a minute and a half."""

LOOK_EVERY_S = 3.0


@dataclass(frozen=True)
class Case:
    """``code`` is found, about ``ranks`` (None: whichever it names); ``beside`` may be found as well."""

    strategy: str
    fault: str
    code: str
    ranks: tuple[int, ...] | None = None
    beside: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


CASES = (
    *(Case(strategy, "straggler", "straggler", (1,)) for strategy in ("ddp", "fsdp", "pmap", "pjit")),
    *(Case(strategy, "slow-input", "input-bound", (0,), beside=("straggler",)) for strategy in ("ddp", "fsdp")),
    # One process fetches for all its devices: its journal does not tell whose share of the batch came late.
    *(Case(strategy, "slow-input", "input-bound", (), beside=("straggler",)) for strategy in ("pmap", "pjit")),
    *(Case(strategy, "unsynced-gradients", "ranks-drift") for strategy in ("ddp", "tp", "pmap")),
    # Half the samples are half the work: the other rank may be late by it.
    *(Case(strategy, "ragged-batch", "ragged-batch", beside=("straggler",)) for strategy in ("ddp", "fsdp")),
    *(Case(strategy, "same-key", "same-key") for strategy in ("ddp", "pmap")),
    *(Case(strategy, "memory-leak", "memory-leak") for strategy in ("ddp", "pmap")),
    *(
        Case(strategy, "hang:8", "hang", (1,), options=("--patience", "8"))
        for strategy in ("ddp", "fsdp", "pp-1f1b", "pmap")
    ),
    Case("ddp", "small-buckets", "small-collectives"),
    *(Case(strategy, "slow-link", "slow-link", ()) for strategy in ("ddp", "fsdp")),
)


def followed(folder: Path, strategies: tuple[str, ...], *options: str) -> list[tuple[str, Finding]]:
    """Every finding, with its strategy, that anybody who watched the run would have seen: while it went on and then."""
    line = [*MESHSCOPE, "run", *strategies, "--ranks", "2", "--out", "r", "--headless", *options]
    seen: dict[tuple[str, str, tuple[int, ...]], tuple[str, Finding]] = {}
    with (folder / "said.txt").open("w") as said:
        run = subprocess.Popen(line, cwd=folder, stdout=said, stderr=said)
        try:
            for gallery in _looks(run, folder, PATIENCE_S * len(strategies)):
                seen |= {(name, one.code, one.ranks): (name, one) for name, one in found(gallery)}
        finally:
            if run.poll() is None:
                run.terminate()  # it ends its ranks
                run.wait(60)
    return list(seen.values())


def _looks(run: subprocess.Popen[bytes], folder: Path, patience_s: float) -> Iterator[Gallery]:
    """The recording, again and again, as soon as there is one; the last time when the run has ended."""
    start_s = time.monotonic()
    gallery: Gallery | None = None
    while run.poll() is None:
        assert time.monotonic() - start_s < patience_s, (folder / "said.txt").read_text()
        time.sleep(LOOK_EVERY_S)
        if gallery is None and (folder / "r" / "plan.json").is_file():
            gallery = Gallery(folder / "r")
        if gallery is not None:
            yield gallery
    assert gallery is not None, (folder / "said.txt").read_text()
    yield gallery


def found(gallery: Gallery) -> list[tuple[str, Finding]]:
    """The findings of every run as of now."""
    _, runs = gallery.at(time.time_ns())
    return [(run.name, one) for run in runs for one in findings(run)]


def analyzed(folder: Path) -> dict[str, list[dict[str, object]]]:
    """What ``analyze --json`` finds, by strategy."""
    line = [*MESHSCOPE, "analyze", "r", "--json"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    return {recording["strategy"]: recording["findings"] for recording in json.loads(done.stdout)["recordings"]}


def replayed(folder: Path) -> str:
    line = [*MESHSCOPE, "replay", "r", "--headless"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fault.partition(':')[0]}-{case.strategy}")
def test_a_fault_is_found_live_in_the_analysis_and_in_a_replay(case: Case, tmp_path: Path) -> None:
    live = [one for _, one in followed(tmp_path, (case.strategy,), "--inject", case.fault, *case.options)]
    named = [one for one in live if one.code == case.code]
    assert named, (tmp_path / "said.txt").read_text()
    assert case.ranks is None or {one.ranks for one in named} == {case.ranks}, named
    assert {one.code for one in live} <= {case.code, *case.beside}, live

    last = [one for one in analyzed(tmp_path)[case.strategy] if one["code"] == case.code]
    assert last
    assert named[-1].title in replayed(tmp_path)


@pytest.mark.parametrize("strategy", ["ddp", "pp-1f1b"])
def test_a_rank_that_crashes_ends_the_run_with_its_exit_code_and_last_line(strategy: str, tmp_path: Path) -> None:
    line = [*MESHSCOPE, "run", strategy, "--ranks", "2", "--out", "r", "--headless", "--inject", "rank-crash:6"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1, done.stdout
    why = "rank 1: it ended with exit code 70; its last line: fatal: rank-crash was asked for at step 6, exit code 70"
    assert f"{strategy} failed: {why}" in done.stderr
    assert why in " ".join(replayed(tmp_path).split())


def test_a_clean_run_of_all_strategies_has_no_finding_at_any_time(tmp_path: Path) -> None:
    assert followed(tmp_path, ("ddp", "fsdp", "pmap", "pjit")) == []
    assert analyzed(tmp_path) == {"ddp": [], "fsdp": [], "pmap": [], "pjit": []}
