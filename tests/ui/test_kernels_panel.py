"""The panel of kernels: its numbers are those of the JSON, its groupings turn, and no name breaks it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest
from fed import GEMM, HOSTILE, fed, recorded

from meshscope.analysis.explaining import explanations
from meshscope.analysis.operations import operations
from meshscope.reports.operations_json import operations_json
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cited import spots
from meshscope.ui.panel import Frame
from meshscope.ui.panels.kernel_rows import brief, calls, reading
from meshscope.ui.panels.kernels import PANEL, Kernels, count, draw, question, turned
from meshscope.ui.scene import Scene, Stance
from meshscope.units import duration, milliseconds, percent

SIZES = {"least": (36, 7), "narrow": (37, 12), "middle": (71, 16), "wide": (118, 24), "widest": (216, 40)}


def answered(run: Run, **about: Any) -> Kernels:
    return question(Scene(None, (run,), Stance(), run.name, **about))


def lines(answer: Kernels, size: tuple[int, int], **about: Any) -> list[str]:
    strips = draw(answer, Frame(*size, **about))
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return [strip.text.rstrip() for strip in strips]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turn", [0, 1, 3])
def test_kernels_look_as_they_did(snapshot: Callable[[str, str], None], size: str, turn: int) -> None:
    shown = lines(turned(answered(fed()), turn), SIZES[size], picked=1)
    snapshot(f"kernels-{turn}-{size}", "\n".join(shown) + "\n")


def test_in_ascii_all_of_it_is_ascii() -> None:
    for turn in range(4):
        shown = lines(turned(answered(fed()), turn), SIZES["wide"], look=Look(is_ascii=True, depth=Depth.NONE))
        assert "".join(shown).isascii()


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (12, 3), (36, 9), (250, 90)])
def test_it_fills_any_frame(size: tuple[int, int]) -> None:
    for turn in range(4):
        lines(turned(answered(fed(2)), turn), size, picked=9)


def test_a_mean_step_of_each_name_is_worked_by_hand() -> None:
    rows = {row.name: row for row in answered(fed()).grouping.rows}
    # The forward kernel takes 24 and the one of backward 20; on one of four ranks 34 and 10.
    assert rows[GEMM].ns == pytest.approx((3 * 44 + 44) / 4 * 1e6)
    assert rows[GEMM].calls == 2
    assert rows[HOSTILE].ns == 10e6
    # 44 + 10 + an all-reduce of 25 (15 on the late rank) + 3 + a copy of 2.
    of_ns = (44 + 10 + (3 * 25 + 15) / 4 + 3 + 2) * 1e6
    assert answered(fed()).grouping.of_ns == pytest.approx(of_ns)
    assert rows[GEMM].frac == pytest.approx(44e6 / of_ns)
    assert rows[GEMM].home == "Block_0"


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "pmap", "pjit", "torch-single"])
def test_what_it_shows_is_what_analyze_says(strategy: str) -> None:
    run = recorded()[strategy]
    told, _ = operations_json(run)
    answer = answered(run)
    by_name = answer.groupings[0]
    assert by_name.of_ns == pytest.approx(told["operations"]["per_step_ns"])
    rows = {(row.name, row.kind): row for row in by_name.rows}
    for one in told["operations"]["top"]:
        if not one["per_step_count"]:
            continue
        row = rows[one["name"], one["kind"]]
        assert (row.ns, row.calls) == (one["per_step_ns"], one["per_step_count"])
        assert row.lengths_ns == (one["mean_ns"], one["median_ns"], one["p95_ns"])
    others = {grouping.by: grouping for grouping in answer.groupings[1:]}
    for scopes in told["scopes"]:
        known = {row.name: row.ns for row in others[scopes["source"]].rows}
        assert all(known[one["name"]] == one["per_step_ns"] for one in scopes["scopes"])
        assert others[scopes["source"]].of_ns == scopes["per_step_ns"]
    if told["phases"]:
        assert [(row.name, row.ns) for row in others["phase"].rows] == [
            (one["name"], one["per_step_ns"]) for one in told["phases"]
        ]
    shown = "\n".join(lines(answer, SIZES["wide"]))
    first = by_name.rows[0]
    assert milliseconds(first.ns) in shown
    assert percent(first.frac) in shown
    assert f"{milliseconds(first.ns)} of {milliseconds(by_name.of_ns)} ms of device work a step" in shown


def test_a_bar_has_the_texture_of_what_it_is() -> None:
    answer = answered(fed())
    shown = lines(answer, SIZES["widest"])
    (collective,) = (row for row in answer.grouping.rows if row.kind == "collective")
    # It takes 25 ms, on the late rank 15, of which 15 are beside no compute on each.
    assert collective.exposed_frac == pytest.approx(4 * 15 / (3 * 25 + 15))
    assert any("▚" in line and line.startswith(" Memcpy") for line in shown)
    assert any("▒" in line and "░" in line and "█" not in line for line in shown if "nccl:all_reduce" in line)
    assert any("█ compute  ▒ hidden  ░ exposed  ▚ copy" in line for line in shown)


def test_turning_goes_round_and_each_grouping_adds_up() -> None:
    answer = answered(fed())
    ways = [turned(answer, turn).grouping.by for turn in range(5)]
    assert ways == ["name", "module", "annotation", "phase", "name"]
    for grouping in answer.groupings:
        assert sum(row.ns for row in grouping.rows) <= grouping.of_ns * (1 + 1e-9)
    assert sum(row.ns for row in answer.groupings[0].rows) == pytest.approx(answer.groupings[0].of_ns)
    assert sum(row.frac for row in answer.groupings[3].rows) == pytest.approx(1)
    assert "in no known module" in reading(answer.groupings[1])


def test_it_says_what_its_shares_are_of() -> None:
    shown = " ".join(" ".join(lines(answered(fed()), SIZES["wide"])).split())
    assert "gemm_kernel<float, 128, 64>" in shown
    assert "takes 44.0 of 81.5 ms of device work a step (54.0 %)" in shown
    assert "ms, calls: per step and rank; what runs at once is added up" in shown


def test_without_steps_it_is_all_that_was_traced() -> None:
    shown = " ".join(lines(answered(fed(is_stepped=False)), SIZES["wide"]))
    assert "ms of device work traced" in shown
    assert "ms/step" not in shown


def test_a_hostile_name_is_cleaned_and_cut_by_cells() -> None:
    for width in range(36, 120, 3):
        shown = lines(answered(fed()), (width, 20), picked=1)
        assert not set("\x1b\u202e") & set("".join(shown))
    assert any("[31mnorm 正規化" in line for line in lines(answered(fed()), SIZES["wide"]))


def test_a_long_name_is_whole_where_the_terminal_has_room_for_it() -> None:
    answer = answered(fed())
    name = "cutlass_" + "x" * 100
    (first, *others), rest = answer.groupings[0].rows, answer.groupings[1:]
    longer = dataclasses.replace(answer.groupings[0], rows=(dataclasses.replace(first, name=name), *others))
    answer = dataclasses.replace(answer, groupings=(longer, *rest))
    at_once = next(line for line in lines(answer, (218, 13))[1:] if "cutlass" in line)
    assert name in at_once
    assert "█" in at_once
    table = lines(answer, (118, 40))[2:10]
    assert "".join(part for line in table for part in re.findall("cutlass_x+|(?<=^ {3})x+$", line)) == name
    cut = next(line for line in lines(answer, (118, 8))[1:] if "cutlass" in line)
    assert "xxx…" in cut


def test_the_chosen_row_tells_its_whole_name_its_rule_and_its_module() -> None:
    shown = " ".join(" ".join(lines(answered(fed()), SIZES["wide"])).split())
    assert GEMM in shown
    assert "compute by the rule «the trace's own category»; 16 calls on 4 ranks: mean 22.0 ms" in shown
    assert "60.2 % of its time in module Block_0" in shown
    assert count(answered(fed())) == len(operations(fed()))


def test_more_names_than_room_scroll_and_tell_of_the_rest() -> None:
    answer = answered(fed())
    (grouping, *others) = answer.groupings
    many = tuple(dataclasses.replace(grouping.rows[0], name=f"kernel {n}", ns=1e6) for n in range(50))
    crowded = dataclasses.replace(answer, groupings=(dataclasses.replace(grouping, rows=many), *others))
    shown = lines(crowded, (71, 12), picked=30)
    assert any(line.startswith("▸kernel 30") for line in shown)
    assert any("more: " in line and "ms together" in line for line in shown)


def test_it_says_why_it_has_nothing_to_say(tmp_path: Path) -> None:
    def words(answer: Kernels) -> str:
        return " ".join(" ".join(lines(answer, (71, 10))).split())

    made.write(tmp_path / "run")
    plan, runs = Gallery(tmp_path / "run").at(made.T0 + 500 * made.S)
    unprofiled = dataclasses.replace(runs[0], windows=())
    ended = question(Scene(plan, (unprofiled,), Stance(), "ddp"))
    assert words(ended) == "Nothing was profiled in this run, so it is not known which kernels take the time."
    live = Scene(plan, (dataclasses.replace(unprofiled, ended=None),), Stance(is_live=True), "ddp")
    assert words(question(live)).startswith("Fills with the first profiled steps")
    nothing = dataclasses.replace(
        fed().windows[0], device_kind="none", cannot_say=(("all", "the trace holds no kernel"),),
        spans=fed().windows[0].spans.where([]),
    )  # fmt: skip
    told = answered(dataclasses.replace(fed(), windows=(nothing,)))
    assert words(told) == "Cannot say which kernels take the time: the trace holds no kernel."
    partial = answered(dataclasses.replace(fed(), windows=()), partial={fed().name: 0.1})
    assert words(partial) == "Nothing in what is read so far tells which kernels take the time."
    assert words(question(Scene(None, (), Stance()))) == PANEL.promise


def test_signatures_lose_their_namespaces_and_nothing_else() -> None:
    assert brief(GEMM).startswith("gemm_kernel<float")
    assert brief("void (anonymous namespace)::softmax<8>(int)") == "softmax<8>(int)"
    assert brief("%copy-done.2 = f32[5,1024]{1,0:T(8,128)} copy-done(%copy-start.2)") == "copy-done.2"
    functor = "void at::native::vectorized_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, float>(int)"
    assert brief(functor) == "vectorized_kernel<4, CUDAFunctor_add<BFloat16>, float>(int)"
    for name in ("aten::mm", "nccl:all_reduce", "void", "voided::kernel", ""):
        assert brief(name) == name


@pytest.mark.parametrize(("value", "shown"), [(2.0, "2"), (0.25, "0.25"), (24.5, "24.5"), (812.3, "812")])
def test_calls_are_whole_where_they_are(value: float, shown: str) -> None:
    assert calls(value) == shown


@pytest.mark.parametrize("is_stepped", [True, False])
def test_what_is_cited_is_explained_by_the_value_it_shows(is_stepped: bool) -> None:
    run = fed(is_stepped=is_stepped)
    for answer in [turned(answered(run), turn) for turn in range(4)]:
        drawn = draw(answer, Frame(118, 40))
        assert spots(drawn)
        for spot in spots(drawn):
            shown = drawn[spot.line].crop(spot.start, spot.start + spot.width).text.strip()
            (told,) = explanations((run,), spot.cell.number)
            values = [float(case.figure.value) for case in told.cases if case.figure is not None]
            ways = [write(value) for value in values for write in (milliseconds, percent, duration, calls)]
            assert shown in ways, (spot.cell, shown, ways)
