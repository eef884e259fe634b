"""Panels of Runs that hold an allocator's snapshot, a device log or flight recorders and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "readers" / "support"))
from made_records import MIB, block, call, entry, segment, write_flight, write_snapshot, write_timeline
from made_traces import UNIX_NS

from meshscope.run import open_traces
from meshscope.ui.look import Look
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.scene import Scene
from meshscope.ui.screens.board import panels

PANELS = {panel.name: panel for panel in panels()}
SIZES = ((37, 10), (71, 12), (118, 24))


def drawn(path: Path, panel: Panel, size: tuple[int, int]) -> str:
    (run,) = open_traces([path]).runs
    strips = panel.draw(
        panel.question(Scene(None, (run,), selected=run.name)), Frame(*size, look=Look(), now_unix_ns=UNIX_NS)
    )
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return "\n".join(strip.text.rstrip() for strip in strips)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    history = [call("alloc", MIB, at) for at in range(1, 50)] + [
        call("free_requested", MIB, at) for at in range(50, 98)
    ]
    return write_snapshot(tmp_path / "memory_rank0.pickle", [segment(block(0, 3 * MIB))], history)


def test_a_snapshot_shows_what_was_held_over_its_history(snapshot: Path) -> None:
    wide = drawn(snapshot, PANELS["memory"], SIZES[2])
    assert "53.5 MB peak" in wide
    assert "rank 0 over 96.0 µs, of 53.5 MB" in wide
    assert "2.10 MB held at the start; the allocator holds 3.15 MB, 3.15 MB of it in use; peak: replayed" in wide
    assert "⣿" in wide
    (run,) = open_traces([snapshot]).runs
    assert (
        PANELS["memory"].fresh(PANELS["memory"].question(Scene(None, (run,), selected=run.name))).of
        == run.records[0].kind
    )


def with_sites(tmp_path: Path) -> Path:
    """Six lines of a program asked for 6, 5, … 1 MiB, and all of it is left."""
    sizes = [(7 - line) * MIB for line in range(1, 7)]
    history = [
        call("alloc", size, line, addr=line << 30,
             frames=[{"name": "forward", "filename": "/home/user/gpt/model.py", "line": line}])
        for line, size in enumerate(sizes, 1)
    ]  # fmt: skip
    segments = [segment(block(line << 30, size)) for line, size in enumerate(sizes, 1)]
    return write_snapshot(tmp_path / "memory_rank0.pickle", segments, history)


def test_a_snapshot_shows_who_asked_for_what_was_alive_at_its_peak(tmp_path: Path) -> None:
    shown = drawn(with_sites(tmp_path), PANELS["memory"], SIZES[2])
    assert "alive at the peak, of 22.0 MB, by who asked for it" in shown
    assert "6.29 MB  28.6 %     1 ×  gpt/model.py:1 forward" in shown
    assert "1.05 MB   4.8 %     1 ×  gpt/model.py:6 forward" in shown


def test_where_not_all_sites_fit_the_last_line_adds_up_the_rest(tmp_path: Path) -> None:
    shown = drawn(with_sites(tmp_path), PANELS["memory"], SIZES[0])
    assert "6.29 MB  28.6 %  …odel.py:1 forward" in shown
    assert "6.29 MB  28.6 %  3 more sites" in shown


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PANELS)
def test_every_panel_draws_such_a_run_at_every_size(
    tmp_path: Path, snapshot: Path, name: str, size: tuple[int, int]
) -> None:
    log = tmp_path / "gpu.csv"
    log.write_text("timestamp, utilization.gpu [%], power.draw [W]\n2026/04/25 16:06:01.0, 1 %, [N/A]\n")
    for path in (snapshot, log, write_flight(tmp_path / "nccl_trace_rank_0", [entry(1, state="started")])):
        drawn(path, PANELS[name], size)


def test_a_timeline_shows_also_what_has_no_colour_of_its_own(tmp_path: Path) -> None:
    rows: list[list[int | None]] = [[-1, 1, 7000, 0], [UNIX_NS, 2, 2000, 2], [UNIX_NS + 5, 2, 1000, 7]]
    path = write_timeline(tmp_path / "memory_timeline.raw.json", rows)
    shown = " ".join(drawn(path, PANELS["memory"], SIZES[1]).split())
    assert "parameters 7.00 kB 70 % measured" in shown
    assert "beside these (30 %): inputs 2.00 kB, unknown 1.00 kB" in shown


def test_a_log_of_an_unknown_zone_shows_its_readings_and_no_age(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    rows = "".join(f"2026/04/25 16:06:0{t}.0, 0, {10 * t} %\n" for t in range(5))
    path.write_text("timestamp, index, utilization.gpu [%]\n" + rows)
    assert "gpu 0 util" in drawn(path, PANELS["devices"], SIZES[1])
    (run,) = open_traces([path]).runs
    assert (
        PANELS["devices"].fresh(PANELS["devices"].question(Scene(None, (run,), selected=run.name))).at_unix_ns is None
    )


def test_the_log_panel_names_the_rank_that_was_waited_for(tmp_path: Path) -> None:
    write_flight(tmp_path / "nccl_trace_rank_0", [entry(1), entry(2, state="started", retired=False)])
    write_flight(tmp_path / "nccl_trace_rank_1", [entry(1)])
    shown = " ".join(drawn(tmp_path, PANELS["log"], SIZES[2]).split())
    assert "✗ not done: all_reduce 2 of group 0 (default_pg): rank 0 had called it" in shown
    assert "rank 1 had not called it" in shown
