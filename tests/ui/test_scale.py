"""Sixty-four and a thousand ranks: every panel sums them up, the worst of them first, and says what it left out."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import crowd
import numpy as np
import pytest

from meshscope.analysis import fsdp, waiting
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.panel import Frame
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens.board import panels

# What a panel has at 80 × 24, at 120 × 40, at 220 × 60 and maximised there.
FRAMES = {"80x24": (38, 8), "120x40": (57, 11), "220x60": (70, 14), "maximised": (218, 53)}
LOOKS = {
    "unicode": Look(),
    "sixteen": Look(depth=Depth.ANSI16),
    "ascii": Look(is_ascii=True, depth=Depth.NONE),
    "no-color": Look(depth=Depth.NONE),
}
PANELS = {panel.name: panel for of in ("recording", "traces") for panel in panels(of)}
WORST = {"split": str(crowd.LATE), "memory": "1021", "waiting": str(crowd.LATE)}
LIMIT_S = 0.25


@cache
def made(cause: str, ranks: int, traced: int = 20) -> Run:
    return crowd.crowd(cause, ranks, traced=traced)


@cache
def answer(name: str, cause: str, ranks: int, traced: int = 20) -> Any:
    run = made(cause, ranks, traced)
    return PANELS[name].question(Scene(None, (run,), Stance(now_unix_ns=run.experiment.t0_unix_ns), run.name))


def lines(name: str, frame: tuple[int, int], of: Any, look: Look = LOOKS["unicode"]) -> list[str]:
    strips = PANELS[name].draw(of, Frame(*frame, look=look, selected="ddp"))
    assert len(strips) == frame[1]
    assert {strip.cell_length for strip in strips} == {frame[0]}
    return [strip.text.rstrip() for strip in strips]


def rows(shown: list[str]) -> list[str]:
    """The first words of lines: names of ranks where those are rows."""
    return [line.split()[0] for line in shown if line.split()]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("name", PANELS)
def test_every_panel_draws_a_thousand_ranks_within_its_frame(name: str, frame: str) -> None:
    shown = lines(name, FRAMES[frame], answer(name, "late", 1024))
    assert any(shown)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("name", WORST)
def test_the_worst_rank_of_a_thousand_stands_first(name: str, frame: str) -> None:
    found = [row for row in rows(lines(name, FRAMES[frame], answer(name, "late", 1024))) if row.isdigit()]
    assert found[0] == WORST[name]


def test_what_is_left_out_is_counted_with_its_least_and_its_most() -> None:
    split = "\n".join(lines("split", FRAMES["220x60"], answer("split", "late", 1024)))
    (count,) = set(re.findall(r"\+(\d+)", split))
    alone = [row for row in rows(split.splitlines()) if row.isdigit()]
    assert int(count) + len(alone) == 1024
    assert re.search(rf"\+{count}: the mean of more, 110 ms;", split)
    memory = "\n".join(lines("memory", FRAMES["220x60"], answer("memory", "late", 1024)))
    assert re.search(r"… \d+ more ranks with peaks of 130 MB each", memory)
    overlap = "\n".join(lines("overlap", FRAMES["220x60"], answer("overlap", "late", 1024)))
    assert re.search(r"… \d+ more: 10\.\d to \d+\.\d ms exposed each", overlap)
    assert f"\n {crowd.LATE} " not in overlap, "it is exposed least, since the others wait for it"


def test_sensors_of_a_thousand_devices_are_a_line_for_each_field_and_those_that_differ_most() -> None:
    shown = lines("devices", FRAMES["220x60"], answer("devices", "late", 1024))
    text = "\n".join(shown)
    assert re.search(r"1024 gpus util .* 96\.0 %\s+5\.0 % to 96\.0 %", text)
    assert re.search(r"1024 ranks rss .*373 MB\s+372 MB to 373 MB", text)
    assert re.search(r"128 hosts util", text)
    at = next(number for number, line in enumerate(shown) if "1024 gpus util" in line)
    assert shown[at + 1].split()[:3] == ["gpu", str(crowd.LATE), "util"]


def test_what_a_thousand_ranks_log_alike_is_one_line_and_who_failed_first_is_seen() -> None:
    run = crowd.fallen(made("late", 1024))
    found = PANELS["log"].question(Scene(None, (run,), Stance(), run.name))
    shown = lines("log", FRAMES["220x60"], found)
    text = " ".join(" ".join(shown).split())
    assert shown[0] == " So far: 2 errors (first at 0:26), 1 warning (first at 0:05)"
    assert "1024 ranks (0–1023): compiled step again, up to 1.50 s: tokens int32[8,128] → int32[7,128]" in text
    assert f"rank {crowd.LATE} ended with 1: RuntimeError: CUDA error" in text
    assert "1023 ranks (0–36, 38–1023) ended with -15: SIGTERM" in text
    assert len(found.lines) < 12


def test_files_of_a_thousand_ranks_are_summed_up_above_their_list() -> None:
    shown = lines("files", FRAMES["120x40"], answer("files", "late", 1024))
    assert shown[0] == " 1024 files of 120 events each"
    assert re.search(r"… \d+ more lines, pgdn", shown[-1])
    roomy = lines("files", FRAMES["220x60"], answer("files", "late", 1024))
    assert any("file, fewest events first" in line for line in roomy)


# Who is late, by eye


ROW = r"\s*(\d+(?:(?:[–…~-]|\.{1,3}|, )\d+)*(?: \(\d+\))?)"
"""A rank, or several as one: 3, 0–4, 6–16 or 33…50 (16)."""


def strip_of(line: str) -> str:
    """The cells of a row of the panel of waiting: its name, then the strip, then figures."""
    return re.match(ROW + r" ?([·░▒▓█.:+*# ]+?)\s+[\d.]+", line).group(2)  # type: ignore[union-attr]


def darkness(line: str) -> float:
    """The share of cells that are late by a tenth of a step or more."""
    cells = strip_of(line)
    return sum(cell in "▓█*#" for cell in cells) / len(cells)


def seen(cause: str, ranks: int, frame: str, look: str) -> dict[str, float]:
    """Row by row of the panel, how much of its strip is dark."""
    shown = lines("waiting", FRAMES[frame], answer("waiting", cause, ranks, crowd.STEPS), LOOKS[look])
    heading = next(number for number, line in enumerate(shown) if line.split()[:1] == ["rank"])
    table = shown[heading + 1 :]
    return {name[1]: darkness(line) for line in table if (name := re.match(ROW, line))}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("frame", FRAMES)
def test_a_late_rank_a_bad_node_and_roaming_input_look_different(frame: str, look: str) -> None:
    late, node, roaming = (seen(cause, 64, frame, look) for cause in ("late", "node", "roaming"))
    assert [name for name, dark in late.items() if dark > 0.9] == [str(crowd.LATE)]
    assert max(dark for name, dark in late.items() if name != str(crowd.LATE)) < 0.1
    members = [str(rank) for rank in range(crowd.NODE * crowd.PER_NODE, (crowd.NODE + 1) * crowd.PER_NODE)]
    dark_rows = [name for name, dark in node.items() if dark > 0.9]
    assert dark_rows
    assert all(name in members or not name.isdigit() for name in dark_rows)
    assert len(dark_rows) > 1
    assert not [name for name, dark in roaming.items() if name.isdigit() and dark > 0.9]
    assert sum(dark > 0 for dark in roaming.values()) >= 0.75 * len(roaming), "it is everywhere, and nowhere for long"


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_so_do_they_among_a_thousand(look: str) -> None:
    late, node, roaming = (seen(cause, 1024, "120x40", look) for cause in ("late", "node", "roaming"))
    assert [name for name, dark in late.items() if dark > 0.9] == [str(crowd.LATE)]
    assert len([name for name, dark in node.items() if dark > 0.9]) > 1
    assert not [name for name, dark in roaming.items() if name.isdigit() and dark > 0.9]


@pytest.mark.parametrize("frame", FRAMES)
def test_what_was_folded_into_a_cell_is_said(frame: str) -> None:
    shown = lines("waiting", FRAMES[frame], answer("waiting", "roaming", 64, crowd.STEPS))
    said = next(line for line in shown if "latest of" in line)
    steps = re.search(r"(\d+) steps", said)
    heading = next(number for number, line in enumerate(shown) if line.split()[:1] == ["rank"])
    width = len(strip_of(shown[heading + 1]))
    assert (steps is None) == (width >= crowd.STEPS)
    if steps is not None:
        assert -(-crowd.STEPS // int(steps.group(1))) <= width
    assert "ranks" in said
    assert "latest of" not in "".join(lines("waiting", (260, 80), answer("waiting", "roaming", 64, crowd.STEPS)))


# In time


def grown(run: Run) -> Run:
    """The run a moment later: nothing that was worked out about the run as a whole holds any more."""
    return replace(run, steps=run.steps.where(np.arange(len(run.steps))), now_ns=run.now_ns + 1)


def test_what_windows_alone_tell_is_not_looked_for_again_once_there_are_more_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def counted(module: Any, name: str) -> None:
        found = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **named: asked.append(name) or found(*args, **named))

    counted(fsdp, "host_named")
    counted(waiting, "charges")
    run = crowd.crowd("node", 64, traced=20)
    for expected in ({"host_named", "charges"}, set()):
        run = grown(run)
        asked.clear()
        PANELS["findings"].question(Scene(None, (run,), Stance(), run.name))
        assert set(asked) == expected


@pytest.mark.slow
@pytest.mark.parametrize("cause", ["late", "node", "roaming"])
@pytest.mark.parametrize("name", PANELS)
def test_a_panel_of_a_thousand_ranks_is_asked_and_drawn_in_a_quarter_of_a_second(name: str, cause: str) -> None:
    answer(name, cause, 1024)  # what traces hold is worked out once, when they come
    took_s = []
    for _ in range(3):
        run = grown(made(cause, 1024))
        begun = time.process_time()
        found = PANELS[name].question(Scene(None, (run,), Stance(), run.name))
        lines(name, FRAMES["220x60"], found)
        took_s.append(time.process_time() - begun)
    assert min(took_s) < LIMIT_S, took_s


@pytest.mark.slow
def test_a_journal_of_a_thousand_ranks_at_ten_steps_a_second_is_kept_up_with(tmp_path: Path) -> None:
    crowd.begin(tmp_path, 1024)
    gallery = Gallery(tmp_path)
    journals = crowd.journals(tmp_path, 1024)
    spent_s, seconds = 0.0, 20
    for tick in range(seconds * 4):
        for step in range(5 * tick // 2, 5 * (tick + 1) // 2):
            crowd.step(journals, step)
        begun = time.process_time()
        _, (run,) = gallery.at(2**62)
        spent_s += time.process_time() - begun
    assert len(run.steps) == 1024 * 10 * seconds
    assert spent_s < 0.5 * seconds
    crowd.close(journals)
