"""The header: the clock, the verdict and the rail, in the room there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import made
import msgspec
import pytest

from meshscope.experiment import Experiment, Plan, PlannedRun
from meshscope.recording.entries import Recognized
from meshscope.run import Gallery, fold
from meshscope.ui.header import badge, footer, height, lines, rail, subject
from meshscope.ui.look import Look
from meshscope.ui.panels.comparison import question
from meshscope.ui.scene import Scene, Stance, Stretch, moved, running

S = made.S


def said(line: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in line)


@pytest.mark.parametrize(
    ("stance", "shown"),
    [
        (Stance(is_live=True), "● live"),
        (Stance(is_paused=True), "‖ paused"),
        (Stance(speed=8.0), "▶ ×8"),
        (Stance(speed=0.25), "▶ ×0.25"),
        (Stance(is_at_end=True, is_paused=True, speed=8.0), "■ ended"),
    ],
)
def test_a_badge_says_how_the_clock_stands(stance: Stance, shown: str) -> None:
    assert badge(stance)[0] == shown


STRETCHES = (Stretch("ddp", 0, 40 * S), Stretch("fsdp", 50 * S, 100 * S))


def test_the_rail_shows_where_the_clock_stands_among_the_strategies() -> None:
    line = said(rail(Stance(now_unix_ns=25 * S, last_unix_ns=100 * S), STRETCHES, 40))
    assert line == "ddp ──────●─────────fsdp ───────────────"


@pytest.mark.parametrize("stance", [Stance(is_live=True, last_unix_ns=9), Stance(is_at_end=True, last_unix_ns=9)])
def test_at_the_newest_there_is_no_rail(stance: Stance) -> None:
    assert rail(stance, STRETCHES, 40) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("made") / "run"
    made.write(found)
    return found


def scene(folder: Path, after_s: float) -> Scene:
    now = made.T0 + int(after_s * S)
    plan, runs = Gallery(folder).at(now)
    return Scene(plan, runs, Stance(now_unix_ns=now, start_unix_ns=made.T0, last_unix_ns=made.T0 + 44 * S), "ddp")


@pytest.mark.parametrize("width", [20, 40, 80, 120, 220])
@pytest.mark.parametrize("after_s", [0.1, 5, 200])
def test_a_header_has_the_same_height_whatever_it_says(folder: Path, width: int, after_s: float) -> None:
    given = scene(folder, after_s)
    found = lines(given, question(given), STRETCHES, width)
    assert len(found) == height(width)
    assert all(len(said(list(line))) <= width for line in found)


def test_what_runs_is_said_before_anything_has_started(folder: Path) -> None:
    given = scene(folder, 0.1)
    assert subject(given) == "tiny · 4 CPU ranks"
    assert said(list(lines(given, None, (), 120)[1])).strip() == "Waiting for the first rank to start."


def test_a_running_strategy_is_named_with_its_step_and_its_next_trace(folder: Path) -> None:
    given = scene(folder, 3.66)
    title = said(list(lines(given, question(given), STRETCHES, 120)[0]))
    assert "ddp step 7/60   trace in 3 steps" in title


def test_what_the_numbers_stand_on_is_said_with_the_verdict(folder: Path) -> None:
    given = scene(folder, 200)
    shown = " ".join(said(list(line)) for line in lines(given, question(given), STRETCHES, 220))
    assert "4 CPU ranks share 2 cores: this compares code paths, not GPUs." in shown


def test_a_footer_keeps_help_and_quit_however_narrow_it_gets() -> None:
    for width in (24, 40, 80, 200):
        shown = said(footer(Stance(), width, is_running=True, is_small=False))
        assert "? help" in shown
        assert "q quit" in shown
        assert len(shown) <= width


def test_in_ascii_the_keys_that_seek_are_not_those_of_the_speed() -> None:
    plainly = said(footer(Stance(), 200, Look(is_ascii=True), is_running=True, is_small=False))
    assert "left/right seek" in plainly
    assert "<> speed" in plainly
    assert "←→ seek" in said(footer(Stance(), 200, is_running=True, is_small=False))


def test_the_newest_strategy_that_has_not_ended_is_the_one_that_runs(folder: Path) -> None:
    assert running(scene(folder, 5)) == "ddp"
    assert running(scene(folder, 12)) == "fsdp"
    assert running(scene(folder, 200)) == ""


def test_the_selection_moves_over_strategies_that_have_not_started_too(folder: Path) -> None:
    given = scene(folder, 5)
    assert moved(given, 3) == "pjit"
    assert moved(given, 99) == "pjit"
    assert moved(given, -99) == "ddp"


def test_a_run_with_a_fault_put_in_says_so_in_its_title(folder: Path) -> None:
    given = scene(folder, 200)
    assert "injected" not in subject(given)
    faulty = tuple(
        replace(run, experiment=msgspec.structs.replace(run.experiment, faults=["same key"])) for run in given.runs
    )
    assert subject(replace(given, runs=faulty)).endswith(" · injected same key")


def test_a_script_of_ones_own_is_called_by_what_it_was_seen_to_be() -> None:
    head = Experiment(t0_unix_ns=0, strategy="fit.py", title="", framework="", ranks=0, device_kind="cpu", model="")
    planned = PlannedRun(strategy="fit.py", title="", framework="", folder="fit")
    plan = Plan(t0_unix_ns=0, runs=[planned], ranks=0, model="")
    seen = Recognized(t_ns=5, rank=0, framework="torch", ranks=2, device_kind="gpu", seen="ddp", title="DDP (seen)")
    assert subject(Scene(plan, (fold(head, [seen]),))) == "DDP (seen) · 2 GPU ranks"
