"""The panel of idle time: causes that add up, numbers of the JSON, and what a trace does not tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest
from fed import fed, recorded

from meshscope.analysis.explaining import explanations
from meshscope.reports.idle_json import idle_json
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cited import spots
from meshscope.ui.palette import texture
from meshscope.ui.panel import Frame
from meshscope.ui.panels.idle import MEANINGS, PANEL, Idles, beside_parts, count, draw, idle_parts, question
from meshscope.ui.scene import Scene, Stance
from meshscope.units import duration, milliseconds, percent, ratio, time_unit

SIZES = {"least": (36, 7), "narrow": (37, 12), "middle": (71, 18), "wide": (118, 30), "widest": (216, 50)}


def answered(run: Run, **about: Any) -> Idles:
    return question(Scene(None, (run,), Stance(), run.name, **about))


def lines(answer: Idles, size: tuple[int, int], **about: Any) -> list[str]:
    strips = draw(answer, Frame(*size, **about))
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return [strip.text.rstrip() for strip in strips]


def words(answer: Idles, size: tuple[int, int] = (71, 10)) -> str:
    return " ".join(" ".join(lines(answer, size)).split())


@pytest.mark.parametrize("size", SIZES)
def test_idle_time_looks_as_it_did(snapshot: Callable[[str, str], None], size: str) -> None:
    snapshot(f"idle-{size}", "\n".join(lines(answered(fed()), SIZES[size], picked=1)) + "\n")


def test_in_ascii_all_of_it_is_ascii() -> None:
    shown = lines(answered(fed()), SIZES["wide"], look=Look(is_ascii=True, depth=Depth.NONE))
    assert "".join(shown).isascii()


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (12, 3), (36, 9), (250, 90)])
def test_it_fills_any_frame(size: tuple[int, int]) -> None:
    lines(answered(fed(2)), size, picked=9)


@pytest.mark.parametrize("given", [Look(), Look(is_ascii=True)], ids=["blocks", "ascii"])
def test_no_two_reasons_share_a_texture(given: Look) -> None:
    assert len({texture(meaning, given) for meaning, _ in MEANINGS.values()}) == len(MEANINGS)


def test_a_ranks_parts_add_up_to_its_time_without_compute() -> None:
    for one in answered(fed()).shares.ranks:
        assert sum(ns for _, ns in idle_parts(one)) == pytest.approx(one.idle_ns)
        assert sum(ns for _, ns in beside_parts(one)) == pytest.approx(sum(one.beside.values()))


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "torch-single"])
def test_what_it_shows_is_what_analyze_says(strategy: str) -> None:
    run = recorded()[strategy]
    told, _ = idle_json(run)
    answer = answered(run)
    ranks = {one.rank: one for one in answer.shares.ranks}
    assert [one["rank"] for one in told["idle"]] == sorted(ranks)
    for one in told["idle"]:
        here = ranks[one["rank"]]
        assert here.steps == one["steps"]
        causes = {name: ns / here.steps for name, ns in one["step_causes"].items()}
        assert {name: ns for name, ns in here.causes.items() if name != "ends"} == causes


def test_launches_are_those_that_analyze_tells() -> None:
    told, _ = idle_json(fed())
    shown = lines(answered(fed()), SIZES["wide"])
    latencies = [one["latency"] for one in told["launches"]]
    unit = time_unit(ns for one in latencies for ns in (one["median_ns"], one["p95_ns"]))
    assert f"launch {unit.name}" in "\n".join(shown)
    for one in told["launches"]:
        row = next(line for line in shown if line.replace("▸", " ").split()[:1] == [str(one["rank"])])
        assert unit.figure(one["latency"]["median_ns"]) in row
        assert f"{one['depth_median']:.0f}/{one['depth_max']}" in row
        assert percent(ratio(one["short"], one["kernels"])) in row


def test_the_reading_tells_how_long_of_what_and_why() -> None:
    # Of 100 ms a device works from 6 to 75 and from 85 to 90: 26 are idle. From 60 to 75 and from 88 to 90 it computes
    # nothing.
    shown = words(answered(fed(1)), SIZES["wide"])
    assert shown.startswith("Idle 26.0 of 100 ms a step (26.0 %): ")
    assert "Another 17.0 ms only communication or copies run: host late 16.0 ms" in shown


def test_the_chosen_rank_tells_its_causes() -> None:
    first, second = (words(answered(fed()), SIZES["wide"]) for _ in range(2))
    assert first == second
    assert "rank 0: 26.0 ms idle a step, of which" in first
    assert "host loads data" in first
    picked = " ".join(" ".join(lines(answered(fed()), SIZES["wide"], picked=3)).split())
    assert "rank 3: " in picked
    assert count(answered(fed())) == 4


def test_what_is_cited_is_explained_by_the_value_it_shows() -> None:
    for run in (fed(), fed(is_stepped=False)):
        found = spots(draw(answered(run), Frame(118, 30)))
        assert found
        drawn = draw(answered(run), Frame(118, 30))
        for spot in found:
            shown = drawn[spot.line].text[spot.start : spot.start + spot.width].strip()
            (told,) = explanations((run,), spot.cell.number, rank=spot.cell.rank)
            (case,) = told.cases
            assert case.figure is not None
            value = case.figure.value
            in_a_unit = {time_unit((scale,)).figure(value, most) for scale in (1, 1e3, 1e6) for most in range(7)}
            assert shown in in_a_unit | {milliseconds(value), percent(value), duration(value)}


def test_many_ranks_scroll_and_the_rest_is_one_row() -> None:
    answer = answered(fed())
    many = tuple(dataclasses.replace(answer.shares.ranks[0], rank=rank) for rank in range(64))
    crowded = dataclasses.replace(answer, shares=dataclasses.replace(answer.shares, ranks=many))
    shown = lines(crowded, (71, 12), picked=40)
    assert any(line.startswith("▸  40") for line in shown)
    assert any("more: 26.0 ms idle each" in line for line in shown)


def test_of_many_ranks_the_most_idle_come_first_and_all_of_the_room_is_used() -> None:
    answer = answered(fed(6))
    ranks = [one.rank for one in answer.shares.ranks]
    idle_ns = [one.idle_ns for one in answer.shares.ranks]
    assert sorted(ranks) == list(range(6))
    assert idle_ns == sorted(idle_ns, reverse=True)
    shown = lines(answer, (78, 13))
    assert "why; most idle first" in "".join(shown)
    assert sum(line.replace("▸", " ").split()[:1] == [str(rank)] for rank in range(6) for line in shown) == 6


def test_a_trace_without_the_host_says_how_long_and_why_not_why() -> None:
    windows = tuple(dataclasses.replace(one, framework="jax") for one in fed(2).windows)
    shown = words(answered(dataclasses.replace(fed(2), windows=windows)), SIZES["wide"])
    assert "Cannot say why: the trace shows what devices did, not what the host did" in shown
    assert "26.0" in shown


def test_it_says_why_it_has_nothing_to_say(tmp_path: Path) -> None:
    made.write(tmp_path / "run")
    plan, runs = Gallery(tmp_path / "run").at(made.T0 + 500 * made.S)
    unprofiled = dataclasses.replace(runs[0], windows=())
    ended = question(Scene(plan, (unprofiled,), Stance(), "ddp"))
    assert words(ended) == "Nothing was profiled in this run, so it is not known why devices were idle."
    live = Scene(plan, (dataclasses.replace(unprofiled, ended=None),), Stance(is_live=True), "ddp")
    assert words(question(live)).startswith("Fills with the first profiled steps")
    assert words(question(Scene(None, (), Stance()))) == PANEL.promise


def test_a_long_queue_is_not_cut() -> None:
    answer = answered(fed())
    first, *rest = answer.shares.ranks
    assert first.launches is not None
    deep = dataclasses.replace(first.launches, depth_median=978.0, depth_max=12345)
    ranks = (dataclasses.replace(first, launches=deep), *rest)
    given = dataclasses.replace(answer, shares=dataclasses.replace(answer.shares, ranks=ranks))
    for size in ("wide", "widest"):
        assert "978/12345" in "\n".join(lines(given, SIZES[size]))
