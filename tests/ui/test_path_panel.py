"""The panel of the critical path: its numbers are those of the JSON, and bars are aligned with what was measured."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest
from fed import fed, recorded

from meshscope.analysis.critical_path import critical_paths
from meshscope.analysis.explaining import explanations
from meshscope.analysis.path_course import courses, within
from meshscope.analysis.what_if import FREE, TWICE, WITH_WAITING
from meshscope.analysis.what_if_caveats import AT_ONCE, TURNS, briefly
from meshscope.reports.path_json import path_json
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cited import spots
from meshscope.ui.panel import Frame
from meshscope.ui.panels.path import PANEL, PARTS, OnPath, draw, question
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.words import whole_percent
from meshscope.units import milliseconds, percent

SIZES = {"least": (36, 7), "narrow": (37, 12), "middle": (71, 18), "wide": (118, 30), "widest": (216, 50)}


def answered(run: Run, **about: Any) -> OnPath:
    return question(Scene(None, (run,), Stance(), run.name, **about))


def lines(answer: OnPath, size: tuple[int, int], **about: Any) -> list[str]:
    strips = draw(answer, Frame(*size, **about))
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return [strip.text.rstrip() for strip in strips]


@pytest.mark.parametrize("size", SIZES)
def test_the_path_looks_as_it_did(snapshot: Callable[[str, str], None], size: str) -> None:
    snapshot(f"path-{size}", "\n".join(lines(answered(fed()), SIZES[size])) + "\n")


def test_in_ascii_all_of_it_is_ascii() -> None:
    shown = lines(answered(fed()), SIZES["wide"], look=Look(is_ascii=True, depth=Depth.NONE))
    assert "".join(shown).isascii()


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (12, 3), (36, 9), (250, 90)])
def test_it_fills_any_frame(size: tuple[int, int]) -> None:
    lines(answered(fed(2)), size)


def test_legs_follow_one_another_and_are_the_ranks_times() -> None:
    (path,) = critical_paths(fed())
    assert (path.legs[0].from_ns, path.legs[-1].to_ns) == (0, path.of_ns)
    for before, after in zip(path.legs, path.legs[1:], strict=False):
        assert before.to_ns == after.from_ns
        assert before.rank != after.rank
    for rank, ns in path.by_rank.items():
        assert sum(leg.to_ns - leg.from_ns for leg in path.legs if leg.rank == rank) == ns
    assert path.switches == len(path.legs) - 1


@pytest.mark.parametrize("cells", [1, 7, 40, 200])
def test_the_courses_of_all_ranks_cover_the_path_once(cells: int) -> None:
    (path,) = critical_paths(fed())
    found = courses(path, 8)
    shares = np.array([within(one, path.of_ns, cells) for one in found])
    assert shares.sum(axis=0) == pytest.approx(np.ones(cells), abs=1e-6)
    for one, share in zip(found, shares, strict=True):
        assert share.sum() * path.of_ns / cells == pytest.approx(one.total_ns)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "pmap", "torch-single"])
def test_what_it_shows_is_what_analyze_says(strategy: str) -> None:
    run = recorded()[strategy]
    told, _ = path_json(run)
    newest = told["critical_path"][-1]
    answer = answered(run)
    assert answer.path is not None
    assert answer.rounds == len(told["critical_path"])
    assert answer.path.parts == newest["parts"]
    assert {one.rank: one.total_ns for one in answer.ranks} == {int(r): ns for r, ns in newest["by_rank"].items()}
    steps = len(newest["steps"])
    shown = " ".join(" ".join(lines(answer, SIZES["widest"])).split())
    for name, ns in newest["parts"].items():
        if name in ("compute", "communication"):
            assert f"{name} {milliseconds(ns / steps)} ms" in shown
    for one in newest["what_ifs"]:
        assert f"{milliseconds(one['step_ns'])} {percent(one['saved_frac'])}" in shown
    if len(newest["ranks"]) > 1:
        goes = f"it goes from rank to rank {newest['switches']} time" if newest["switches"] else "it stays on rank"
        assert goes in shown


def test_the_operators_of_cpu_ranks_are_among_the_longest() -> None:
    run = recorded()["ddp"]
    (path,) = critical_paths(run)
    (product,) = [one for one in path.works if one.name == "aten::mm"]
    assert product.backward_ns is not None
    share, backward = percent(product.total_ns / path.of_ns), product.backward_ns / product.total_ns
    shown = lines(answered(run), SIZES["wide"])
    (line,) = [" ".join(re.sub("[█▏▎▍▌▋▊▉]", "", line).split()) for line in shown if "aten::mm" in line]
    each = f"{product.count // len(path.steps)} {milliseconds(product.total_ns / len(path.steps))}"
    assert line == f"aten::mm compute {each} {share} {backward * 100:.0f} %"


def test_the_reading_names_the_most_and_what_would_help_most() -> None:
    answer = answered(fed())
    assert answer.path is not None
    best = max(answer.path.what_ifs, key=lambda one: one.saved_frac)
    shown = " ".join(" ".join(lines(answer, SIZES["wide"])).split())
    assert shown.startswith("Largest part of a step's critical path (100 ms): compute, 54.0 ms (54.0 %)")
    assert f"it would be {milliseconds(best.step_ns)} ms (−{percent(best.saved_frac)})" in shown


def test_a_shorter_step_ends_where_dashes_go_on_to_the_measured_one() -> None:
    shown = lines(answered(fed()), SIZES["wide"])
    measured = next(line for line in shown if "as measured" in line)
    end = measured.rindex("█")
    for line in shown:
        if "no rank late" in line and "█" in line and "would" not in line:
            bar = line[: end + 1]
            assert bar.rstrip()[-1] in "╌█"
            assert len(bar.rstrip()) == end + 1


def test_what_cannot_be_said_is_told_with_its_reason() -> None:
    path = answered(fed()).path
    assert path is not None
    untold = dataclasses.replace(path, what_ifs=(), untold=(("no_straggler", "only one rank can be seen"),))
    shown = " ".join(lines(OnPath(untold), SIZES["wide"]))
    assert "no rank late  –  only one rank can be seen" in shown


def test_a_thousand_ranks_are_those_with_most_and_the_rest() -> None:
    path = answered(fed()).path
    assert path is not None
    by_rank = {rank: 1000 - rank for rank in range(1000)}
    many = dataclasses.replace(
        path, ranks=tuple(range(1024)), by_rank=by_rank, of_ns=sum(by_rank.values()), parts={"compute": 500_500}
    )
    shown = " ".join(" ".join(lines(OnPath(many, courses(many, 8)), SIZES["wide"])).split())
    assert "992 more: " in shown
    assert "never on 24 ranks" in shown


def test_it_says_why_it_has_nothing_to_say(tmp_path: Path) -> None:
    def words(answer: OnPath) -> str:
        return " ".join(" ".join(lines(answer, (71, 10))).split())

    assert words(answered(fed(), partial={fed().name: 0.5})).startswith("The critical path shows when every rank's")
    apart = [dataclasses.replace(one, steps=(9 + at,) * len(one.steps)) for at, one in enumerate(fed(2).windows)]
    cannot = answered(dataclasses.replace(fed(2), windows=tuple(apart)))
    assert words(cannot).startswith("Cannot say what is on the critical path: ")
    made.write(tmp_path / "run")
    plan, runs = Gallery(tmp_path / "run").at(made.T0 + 500 * made.S)
    unprofiled = dataclasses.replace(runs[0], windows=())
    ended = question(Scene(plan, (unprofiled,), Stance(), "ddp"))
    assert words(ended) == "Nothing was profiled in this run, so it is not known what is on the critical path."
    assert words(question(Scene(None, (), Stance()))) == PANEL.promise


@pytest.mark.parametrize("is_stepped", [True, False])
def test_what_is_cited_is_explained_by_the_value_it_shows(is_stepped: bool) -> None:
    run = fed(is_stepped=is_stepped)
    for answer in [answered(run)]:
        drawn = draw(answer, Frame(118, 40))
        assert spots(drawn)
        for spot in spots(drawn):
            shown = drawn[spot.line].crop(spot.start, spot.start + spot.width).text.strip()
            (told,) = explanations((run,), spot.cell.number)
            values = [float(case.figure.value) for case in told.cases if case.figure is not None]
            ways = [write(value) for value in values for write in (milliseconds, percent, whole_percent)]
            assert shown in ways, (spot.cell, shown, ways)


def test_what_speaks_against_an_answer_stands_below_it_and_no_such_answer_is_the_best() -> None:
    path = answered(fed()).path
    assert path is not None
    best = max(path.what_ifs, key=lambda one: one.saved_frac)
    doubted = [dataclasses.replace(one, caveat="it may save nothing") if one is best else one for one in path.what_ifs]
    shown = " ".join(" ".join(lines(OnPath(dataclasses.replace(path, what_ifs=tuple(doubted))), SIZES["wide"])).split())
    assert "it may save nothing" in shown
    assert f"it would be {milliseconds(best.step_ns)} ms" not in shown


@pytest.mark.parametrize("size", [(37, 9), (37, 10), (71, 12), (78, 7), (78, 18), (118, 30)])
def test_an_answer_that_may_save_nothing_is_never_seen_without_its_caveat(size: tuple[int, int]) -> None:
    path = answered(fed()).path
    assert path is not None
    doubted = tuple(
        dataclasses.replace(one, caveat=TURNS) if one.name in (FREE, TWICE) else one for one in path.what_ifs
    )
    shown = lines(OnPath(dataclasses.replace(path, what_ifs=doubted)), size)
    answers = [line for line in shown if re.match(r" comm(unication|\.) (hidden|×2)", line)]
    assert all("†" in line for line in answers)
    text = " ".join(" ".join(shown).split())
    full = f"† {TURNS}"
    assert not answers or full in text or "† may save nothing: ranks share cores" in text
    assert full in text or size[1] < 18
    assert answers or size in ((37, 9), (37, 10), (78, 7))
    assert "what if" in text
    assert not any("†" in line for line in shown if "straggler" in line or "host" in line)


def test_what_speaks_against_an_answer_is_said_in_few_words_and_anything_else_as_it_is() -> None:
    assert briefly(f"3 of 9 have none, so {WITH_WAITING}, and goes with it; {TURNS}") == (
        "waiting is part of it; may save nothing: ranks share cores"
    )
    assert briefly(AT_ONCE) == "a bound: results are needed at once"
    assert briefly("something else") == "something else"


def test_without_a_caveat_no_mark_stands_beside_an_answer() -> None:
    assert "†" not in " ".join(lines(answered(fed()), SIZES["wide"]))


@pytest.mark.parametrize("size", [(36, 7), (37, 12), (71, 18), (118, 30)])
def test_every_sign_of_the_bar_is_in_the_legend_and_stands_for_nothing_else(size: tuple[int, int]) -> None:
    answer = answered(fed())
    assert answer.path is not None
    parts = dict.fromkeys(PARTS, answer.path.of_ns // 1000) | {
        "compute": answer.path.of_ns - 7 * (answer.path.of_ns // 1000)
    }
    parts["communication_and_waiting"] = answer.path.of_ns // 60
    answer = dataclasses.replace(answer, path=dataclasses.replace(answer.path, parts=parts))
    strips = draw(answer, Frame(*size))
    rows = [[(segment.text, segment.style) for segment in strip] for strip in strips]
    assert rows
    shown = [strip.text for strip in strips]
    at = next(number for number, line in enumerate(shown) if line.startswith(" ██"))
    signs = set(shown[at].strip())
    legend = "".join(shown[at + 1 : at + 4])
    assert all(sign in legend for sign in signs)
    assert "·" not in "".join(shown[at + 4 :])
