"""The panel of waiting and stragglers: many ranks, every kind of nothing to say, and what its characters mean."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path

import made
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis" / "support"))

from dataclasses import replace

from meeting import MS, met, run_of

from meshscope.analysis.rank_waits import bands
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.panel import Frame
from meshscope.ui.panels import files
from meshscope.ui.panels.waiting import Lates, depends, draw, question
from meshscope.ui.scene import Scene, Stance

SIZES = {"narrow": (37, 10), "middle": (71, 12), "wide": (118, 24)}
STEPS, PER_STEP = 12, 4


def many(ranks: int, *, numbered: bool = True) -> Run:
    """Rank 5 is 60 ms late once in every step of 400 ms, rank 40 by 25 ms in every fourth; the others by under 2 ms."""
    rng = np.random.default_rng(1)
    arrival = np.tile(np.cumsum(np.tile([50, 60, 180, 110], STEPS)) * MS, (ranks, 1))
    arrival += rng.integers(0, 2 * MS, arrival.shape)
    arrival[5, 2::PER_STEP] += 60 * MS
    arrival[40, 3 :: 4 * PER_STEP] += 25 * MS
    steps = np.repeat(np.arange(STEPS), PER_STEP).tolist() if numbered else ()
    windows = met(arrival, MS, steps=steps, host="node")
    return run_of(windows, strategy="ddp", device_kind="gpu", ranks=ranks, cores=4 * ranks)


def answered(run: Run, **about: object) -> Lates:
    return question(Scene(None, (run,), Stance(), run.name, **about))  # type: ignore[arg-type]


def lines(answer: Lates, size: tuple[int, int], look: Look | None = None) -> list[str]:
    strips = draw(answer, Frame(*size, look=look or Look()))
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return [strip.text.rstrip() for strip in strips]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ranks", [64, 1024])
def test_many_ranks_look_as_they_did(ranks: int, size: str, snapshot: Callable[[str, str], None]) -> None:
    snapshot(f"waiting-{ranks}-{size}", "\n".join(lines(answered(many(ranks)), SIZES[size])) + "\n")


def test_words_are_not_cut_above_blank_lines_and_name_every_straggler_first() -> None:
    told = answered(many(64))
    words = "2 stragglers (0, 6): rank 0 came last to 32 of 84 collectives; 35.4 % of the time traced another rank"
    words += " waits for it without computing, since step 3"
    told = replace(told, found=replace(told.found, words=words, rows=told.found.rows[:4]), worst=told.worst[:4])
    roomy = " ".join(" ".join(lines(told, (37, 16))).split())
    assert "waits for it without computing, since step 3" in roomy
    tight = lines(told, (37, 10))
    assert tight[0].startswith(" 2 stragglers (0, 6): rank 0")
    assert any(line.endswith("…") for line in tight[:4])


def test_where_ranks_do_not_fit_the_latest_come_first_and_the_others_are_folded_in_order() -> None:
    shown = lines(answered(many(64)), SIZES["wide"])
    ranks = [line.split()[0] for line in shown if line.split() and line.split()[-1].endswith("/48")]
    assert ranks[:2] == ["5", "40"]
    rows = [line for line in shown if line.split() and line.split()[-1].endswith("/48")]
    names = [re.split(r" [·░▒▓█]", line)[0].strip() for line in rows]
    assert len([name for name in names if name.isdigit()]) == 3
    assert sum(len_of(name) for name in names) == 64
    assert any("the latest of 8 ranks" in line for line in shown)


def test_a_row_of_several_ranks_has_the_least_and_the_most_of_them() -> None:
    """Rank 0 waits 30 ms a step and comes last never, rank 1 waits for nobody and comes last to 12 of 24."""
    arrival = np.tile(np.arange(2 * STEPS) * 200 * MS, (8, 1))
    arrival[1, ::2] += 30 * MS
    steps = np.repeat(np.arange(STEPS), 2).tolist()
    found = answered(run_of(met(arrival, MS, steps=steps, host="node"), strategy="ddp", ranks=8, device_kind="gpu"))
    (_, others) = (band.rows for band in bands(found.found.rows, 2))
    assert {round(row.wait_ns) for row in others} == {30 * MS}
    for size in ((80, 9), (60, 8)):
        shown = lines(found, size)
        assert any("wait, sum ms" in line for line in shown)
        assert not any("medians" in line for line in shown)
    folded = dataclasses.replace(found, worst=tuple(reversed(found.found.rows)))
    row = next(line for line in lines(folded, (80, 8)) if re.match(r" *0–\d", line))
    assert row.split()[2:] == ["0.00–30.0", "2.00", "0.00–30.0", "0–12/24"]


def len_of(name: str) -> int:
    """How many ranks a row stands for by its name."""
    if counted := re.fullmatch(r"\d+…\d+ \((\d+)\)", name):
        return int(counted[1])
    return sum(int(high or low) - int(low) + 1 for low, high in re.findall(r"(\d+)(?:–(\d+))?", name))


def test_a_row_of_folded_ranks_names_no_rank_that_has_a_row_of_its_own() -> None:
    shown = lines(answered(many(64)), (118, 9))
    assert not any(re.match(r" *0–63 ", line) for line in shown)
    assert any(re.match(r" *\d+…63 \(\d+\) ", line) for line in shown)


def test_without_colour_and_in_ascii_the_characters_alone_tell_how_late() -> None:
    for look in (Look(depth=Depth.NONE), Look(is_ascii=True, depth=Depth.NONE)):
        shown = lines(answered(many(64)), SIZES["middle"], look)
        signs = "·░▒▓█" if not look.is_ascii else ".:+*#"
        first, second = (next(line for line in shown if line.split()[:1] == [rank]) for rank in ("5", "40"))
        assert first.split()[1] == signs[3] * 12  # 60 of about 350 ms in each of twelve steps
        assert second.split()[1] == (signs[2] + signs[0] * 3) * 3
    assert "".join(shown).isascii()


def test_a_scale_says_what_a_character_is_in_shares_and_in_time() -> None:
    shown = "\n".join(lines(answered(many(64)), SIZES["middle"]))
    assert "late by ░ 2 ▒ 5 ▓ 10 █ 20 % of a step or more (7.04 ms to 70.4 ms)" in shown


def test_traces_that_mark_no_step_have_one_column() -> None:
    found = answered(many(8 * 8, numbered=False))
    shown = "\n".join(lines(found, SIZES["wide"]))
    assert "in all" in shown
    assert "% of the time" in shown
    assert "step" not in shown.splitlines()[1]


def test_more_steps_than_cells_share_them() -> None:
    found = answered(many(64))
    narrow = lines(found, (30, 12))
    strip = next(line for line in narrow if line.split()[:1] == ["5"]).split()[1]
    assert strip == "▓" * len(strip)
    assert 0 < len(strip) <= 12


def words(answer: Lates) -> str:
    return " ".join(" ".join(lines(answer, SIZES["middle"])).split())


def test_it_says_why_it_has_nothing_to_say(tmp_path: Path) -> None:
    whole = many(64)
    alone = dataclasses.replace(whole, windows=whole.windows[:1])
    assert "Cannot say who waits for whom: 48 of 48 collective spans: only rank 0 alone" in words(answered(alone))
    read = answered(whole, partial={whole.name: 0.5})
    assert words(read).startswith("Who is late shows when every rank's trace is read")
    assert not read.found.rows

    made.write(tmp_path / "run", made.SIX)
    plan, runs = Gallery(tmp_path / "run").at(made.T0 + 500 * made.S)
    by_name = {run.name: run for run in runs}
    single = question(Scene(plan, runs, Stance(), "torch-single"))
    assert words(single) == "One rank trains by itself: it waits for nobody, and nobody for it."
    unprofiled = dataclasses.replace(by_name["ddp"], windows=())
    ended = question(Scene(plan, (unprofiled,), Stance(), "ddp"))
    assert words(ended) == "Nothing was profiled in this run, so it is not known who waits for whom."
    live = Scene(plan, (dataclasses.replace(unprofiled, ended=None),), Stance(is_live=True), "ddp")
    assert words(question(live)).startswith("Fills with the first profiled steps")
    assert "which rank comes late" in words(question(live))
    nobody = question(Scene(None, (), Stance()))
    assert words(nobody).startswith("How late each rank comes, step by step")


def test_with_a_window_not_every_step_is_asked_about(tmp_path: Path) -> None:
    made.write(tmp_path / "run")
    gallery = Gallery(tmp_path / "run")
    plan, runs = gallery.at(made.T0 + 500 * made.S)
    run = runs[0]

    def key(rows: int) -> object:
        return depends(
            Scene(plan, (dataclasses.replace(run, steps=run.steps.where(np.arange(rows))),), Stance(), "ddp")
        )

    assert key(40) == key(44)
    assert key(40) != key(80)


def test_the_sum_over_calls_is_not_called_as_the_time_in_which_a_rank_only_waits() -> None:
    shown = "\n".join(lines(answered(many(64)), SIZES["wide"]))
    assert "wait, sum ms" in shown
    assert "wait ms" not in shown
    assert "ms per step; wait: until the last rank came, added up over calls, at once or not" in shown


def test_what_was_read_names_a_machine_whose_ranks_are_late_together_once() -> None:
    rng = np.random.default_rng(2)
    arrival = np.tile(np.arange(STEPS) * 400 * MS, (8, 1)) + rng.integers(0, MS, (8, STEPS))
    arrival[4:6] += 60 * MS
    windows = [
        dataclasses.replace(one, host="bcda"[one.rank // 2]) for one in met(arrival, MS, steps=tuple(range(STEPS)))
    ]
    run = run_of(windows, device_kind="gpu", ranks=8, cores=64)
    told = [line.text for line in files.question(Scene(None, (run,), Stance(), run.name)).after]
    (machine,) = [text for text in told if "every rank of d (ranks 4–5)" in text]
    assert machine.endswith("look at that machine and its network")
    assert not any("came last to" in text for text in told)
