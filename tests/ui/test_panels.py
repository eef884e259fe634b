"""One snapshot per panel and state at three sizes; and what every panel must be."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest
from rich.cells import cell_len
from textual.strip import Strip

from meshscope.analysis.devices import DeviceField
from meshscope.analysis.standing import NO_STEP, NO_STEP_YET
from meshscope.analysis.steps import steps
from meshscope.discovery import discover
from meshscope.errors import TraceError
from meshscope.run import Gallery
from meshscope.ui.asking import Answered
from meshscope.ui.look import Depth, Look
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.panels import comparison, devices, log
from meshscope.ui.picture import svg
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens.board import panels
from meshscope.ui.view import PanelView
from meshscope.units import milliseconds, percent

SIZES = {"narrow": (37, 10), "middle": (71, 12), "wide": (118, 24)}
LOOKS = {"unicode": Look(), "ascii": Look(is_ascii=True, depth=Depth.NONE)}
PANELS = panels()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    made.write(folder, made.SIX, endings={"pjit": made.Ending("failed", 6)})
    return folder


@cache
def scene(folder: Path, after_s: float, selected: str) -> Scene:
    now = made.T0 + int(after_s * made.S)
    plan, runs = Gallery(folder).at(now)
    return Scene(plan, runs, Stance(now_unix_ns=now, start_unix_ns=made.T0), selected)


def strips_of(panel: Panel, given: Scene, size: tuple[int, int], look: Look) -> list[Strip]:
    frame = Frame(*size, look=look, now_unix_ns=given.stance.now_unix_ns, selected=given.selected)
    strips = panel.draw(panel.question(given), frame)
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return strips


def drawn(panel: Panel, given: Scene, size: tuple[int, int], look: Look) -> str:
    return "\n".join(strip.text.rstrip() for strip in strips_of(panel, given, size, look)) + "\n"


STATES = {
    "ended": (200.0, "ddp"),
    "sharded": (200.0, "fsdp"),
    "begun": (10.5, "fsdp"),
    "waiting": (5.0, "pmap"),
    "failed": (200.0, "pjit"),
    "single": (200.0, "torch-single"),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_a_panel_looks_as_it_did(
    whole: Path, snapshot: Callable[[str, str], None], panel: Panel, state: str, size: str
) -> None:
    """The characters as text and, with every colour, as a picture."""
    strips = strips_of(panel, scene(whole, *STATES[state]), SIZES[size], LOOKS["unicode"])
    name = f"panel-{panel.name}-{state}-{size}"
    snapshot(name, "\n".join(strip.text.rstrip() for strip in strips) + "\n")
    snapshot(f"{name}.svg", svg([list(strip) for strip in strips], SIZES[size][0], title=name))


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_a_panel_in_ascii_has_nothing_else(whole: Path, snapshot: Callable[[str, str], None], panel: Panel) -> None:
    shown = drawn(panel, scene(whole, 200.0, "ddp"), SIZES["middle"], LOOKS["ascii"])
    assert shown.isascii()
    snapshot(f"panel-{panel.name}-ascii", shown)


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (12, 3), (37, 4), (250, 90)])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_a_panel_fills_any_frame_exactly(whole: Path, panel: Panel, state: str, size: tuple[int, int]) -> None:
    drawn(panel, scene(whole, *STATES[state]), size, LOOKS["unicode"])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_an_empty_panel_says_what_will_fill_it(panel: Panel) -> None:
    shown = drawn(panel, Scene(None, (), Stance()), (71, 10), LOOKS["unicode"])
    if not panel.is_overall:
        assert len(shown.split()) > 5


def test_panels_are_found_by_their_constant_and_numbered_one_by_one() -> None:
    found = discover("meshscope.ui.panels", "PANEL", Panel)
    assert [panel.number for panel in panels()] == list(range(1, len(panels()) + 1))
    assert next(panel.name for panel in PANELS) == "comparison"
    for of in ("recording", "traces"):
        numbers = [panel.number for panel in panels(of)]
        assert len(set(numbers)) == len(numbers)
        assert [panel.is_overall for panel in panels(of)] == [True] + [False] * (len(numbers) - 1)
    assert len({panel.name for panel in found}) == len(found)


def test_drawing_the_same_answer_twice_gives_the_same_strips(whole: Path) -> None:
    given = scene(whole, 200.0, "ddp")
    for panel in PANELS:
        assert drawn(panel, given, (71, 12), Look()) == drawn(panel, given, (71, 12), Look())


def view(panel: Panel, answered: Answered | None, frame: Frame) -> list[str]:
    """What a panel's widget would show, title and freshness included."""
    widget = PanelView(panel)
    if answered is not None:
        widget.asking.answers[answered.strategy] = answered
    shown: list[Any] = []
    widget.paint = shown.extend  # type: ignore[method-assign]
    widget.show(frame, is_focused=False)
    return [strip.text.rstrip() for strip in shown]


SPLIT = next(panel for panel in PANELS if panel.name == "split")
FRAME = Frame(60, 8, selected="ddp", now_unix_ns=made.T0)


def test_a_panel_that_has_not_answered_yet_says_so_and_what_it_promises() -> None:
    lines = view(SPLIT, None, FRAME)
    assert lines[0].startswith("2 where a step goes, by rank ─")
    assert lines[1].startswith("Reading… A bar for each rank")


def test_a_panel_whose_question_failed_says_what_and_what_to_do() -> None:
    error = TraceError("rank0.json stops in the middle of an event", hint="The steps before it are shown.")
    lines = view(SPLIT, Answered("ddp", (), error=error), FRAME)
    assert lines[1:3] == [error.message, error.hint]


def test_a_panel_says_how_fresh_it_is_and_what_it_cost(whole: Path) -> None:
    given = scene(whole, 10.0, "ddp")
    answered = Answered("ddp", (), SPLIT.question(given))
    lines = view(SPLIT, answered, dataclasses.replace(FRAME, now_unix_ns=given.stance.now_unix_ns))
    run = given.run
    assert run is not None
    assert lines[-1] == f" steps 10–11, 40–41 · 3 s ago · profiler costs {percent(steps(run).profiler_cost_frac)}"


def test_the_split_of_a_step_is_the_mean_of_all_profiled_steps_as_in_the_table(whole: Path) -> None:
    given = scene(whole, 200.0, "ddp")
    answer = SPLIT.question(given)
    ranks = tuple(dataclasses.replace(rank, newest=rank.total) for rank in answer.ranks)
    strips = SPLIT.draw(dataclasses.replace(answer, ranks=ranks), Frame(*SIZES["wide"]))
    lines = [strip.text for strip in strips]
    assert "ms profiled" in lines[1]
    assert "ms/step" not in lines[1]
    by_step = next(at for at, line in enumerate(lines) if "step by step" in line)
    steps = [line.split() for line in lines[by_step + 1 :] if line.lstrip()[:1].isdigit()]
    assert [int(line[0]) for line in steps] == [10, 11, 40, 41]
    mean_ns = sum(rank.per_step.exposed_ns for rank in ranks) / len(ranks)
    assert sum(float(line[5]) for line in steps) / 4 == pytest.approx(mean_ns / 1e6, abs=0.01)
    lines = lines[:by_step]
    shown = [line.split() for line in lines if line.lstrip()[:1].isdigit()]
    assert [(line[2], line[5]) for line in shown] == [
        (milliseconds(rank.per_step.span_ns), milliseconds(rank.per_step.exposed_ns)) for rank in ranks
    ]


def test_without_a_complete_step_the_split_is_of_what_was_traced_and_says_so(whole: Path) -> None:
    answer = SPLIT.question(scene(whole, 200.0, "ddp"))
    ranks = tuple(dataclasses.replace(rank, per_step=None, newest=None, steps=()) for rank in answer.ranks)
    strips = SPLIT.draw(dataclasses.replace(answer, ranks=ranks), Frame(71, 12))
    assert "ms traced" in strips[1].text
    assert milliseconds(ranks[0].total.span_ns) in strips[2].text


@pytest.mark.parametrize("name", ["split", "overlap"])
def test_only_a_live_run_says_when_it_is_profiled_next_and_by_which_key(whole: Path, name: str) -> None:
    panel = next(panel for panel in PANELS if panel.name == name)
    recorded = scene(whole, 12.5, "fsdp")
    live = Scene(recorded.plan, recorded.runs, dataclasses.replace(recorded.stance, is_live=True), "fsdp")
    assert " in " in drawn(panel, live, (118, 10), Look())
    assert ("p profiles now" in drawn(panel, live, (118, 10), Look())) == (name == "split")
    shown = drawn(panel, recorded, (118, 10), Look())
    assert shown.startswith("Fills with the first profiled steps: ")
    assert "p profiles" not in shown
    assert panel.depends(live) != panel.depends(recorded)


@pytest.mark.parametrize("size", SIZES)
def test_a_dagger_in_the_table_is_explained_below_it(whole: Path, size: str) -> None:
    standing = PANELS[0].question(scene(whole, 200.0, "ddp"))
    height = max(comparison.height(standing), SIZES[size][1])
    lines = [strip.text.rstrip() for strip in comparison.draw(standing, Frame(SIZES[size][0], height))]
    assert sum("pjit †" in line for line in lines) == 1
    assert any(line.startswith("  † not ranked: pjit") for line in lines)
    assert comparison.height(standing) == 10


def test_a_strategy_without_a_measured_step_is_marked_once_it_has_ended(whole: Path) -> None:
    standing = PANELS[0].question(scene(whole, 200.0, "ddp"))
    first, *rest = standing.comparison.rows
    stepless = dataclasses.replace(first, is_ranked=False, not_ranked_why=NO_STEP, samples_per_s=math.nan)
    for why, is_marked in ((NO_STEP, True), (NO_STEP_YET, False)):
        rows = (dataclasses.replace(stepless, not_ranked_why=why), *rest)
        given = dataclasses.replace(standing, comparison=dataclasses.replace(standing.comparison, rows=rows))
        lines = [strip.text for strip in comparison.draw(given, Frame(118, 24))]
        assert (f"{first.strategy} †" in lines[1]) is is_marked
        assert any(f"{first.strategy} ({why})" in line for line in lines) is is_marked


def test_the_legend_of_the_table_starts_below_its_bars(whole: Path) -> None:
    standing = PANELS[0].question(scene(whole, 200.0, "ddp"))
    for width in (80, 118, 216):
        lines = [strip.text for strip in comparison.draw(standing, Frame(width, 24))]
        legend = next(line for line in lines if "█ compute  ▒ hidden" in line)
        assert legend.index("█") == lines[1].index("█")


def test_the_largest_spread_is_shown_or_none_of_its_column(whole: Path) -> None:
    """71.2±12.4 takes a cell more than the usual; while a state may still grow, there is none to spare."""
    standing = PANELS[0].question(scene(whole, 200.0, "ddp"))
    rows = standing.comparison.rows
    for is_running in (False, True):
        changed = [
            dataclasses.replace(row, progress=dataclasses.replace(row.progress, state="done")) for row in rows[:3]
        ]
        changed[1] = dataclasses.replace(changed[1], median_ns=71_200_000.0, spread_ns=12_400_000.0)
        if is_running:
            running = dataclasses.replace(changed[2].progress, state="training")
            changed[2] = dataclasses.replace(changed[2], progress=running)
        told = dataclasses.replace(standing.comparison, rows=tuple(changed))
        names = tuple(row.strategy for row in changed)
        given = dataclasses.replace(standing, comparison=told, waiting=(), order=names)
        lines = [strip.text for strip in comparison.draw(given, Frame(78, 8))]
        end = lines[0].index("ms/step") + len("ms/step")
        times = [line[end - 12 : end] for line in lines[1:4]]
        assert {"±" in time.split("  ")[-1] for time in times} == {not is_running}, lines
        assert ("71.2±12.4" in lines[2]) is not is_running


def test_every_column_of_the_table_has_a_heading_and_lines_say_of_what(whole: Path) -> None:
    standing = PANELS[0].question(scene(whole, 10.5, "fsdp"))
    lines = [strip.text for strip in comparison.draw(standing, Frame(118, 24))]
    assert lines[0].rstrip().endswith("lines   state")
    assert any("lines: of code that make it parallel  " in line for line in lines)


@pytest.mark.parametrize("level", ["info", "error"])
def test_a_line_that_tells_what_was_raised_is_wrapped_to_its_end(level: str) -> None:
    text = "rank 1: torch.RuntimeError: [/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] " * 2
    strips = log.draw(log.Chronicle((log.Happened(0, level, text + "Connection closed by peer"),)), Frame(37, 14))
    shown = [strip.text.rstrip() for strip in strips]
    assert "…" not in "".join(shown)
    assert "Connection closed by peer" in " ".join(" ".join(shown).split())


@pytest.mark.parametrize("size", ["middle", "wide"])
def test_the_mark_of_profiled_steps_is_named_and_what_is_counted_too(whole: Path, size: str) -> None:
    panel = next(panel for panel in PANELS if panel.name == "steptime")
    given = scene(whole, 200.0, "ddp")
    assert "▴ profiled" in drawn(panel, given, SIZES[size], LOOKS["unicode"])
    assert panel.fresh(panel.question(given)).of == "52 of 60 steps measured"


def test_one_process_over_all_devices_is_called_the_process_and_no_rank() -> None:
    recording = Path(__file__).parents[2] / "recordings" / "tiny-4-cpu-ranks"
    plan, runs = Gallery(recording).at(2**62)

    def shown(strategy: str) -> str:
        return drawn(panel, Scene(plan, runs, Stance(), strategy), SIZES["wide"], Look())

    panel = next(panel for panel in PANELS if panel.name == "devices")
    assert "rank 0 rss" in shown("ddp")
    assert "rank 0" not in shown("pmap")
    assert "process rss" in shown("pmap")


def test_the_newest_reading_and_the_most_stand_apart(whole: Path) -> None:
    from meshscope.ui.panels.devices import draw

    panel = next(panel for panel in PANELS if panel.name == "devices")
    answer = panel.question(scene(whole, 200.0, "ddp"))
    cores = dataclasses.replace(answer.fields[0], device="host", field="cpu_cores", last=11.77, maximum=11.98)
    shown = draw(dataclasses.replace(answer, fields=(cores,), capacity={}), Frame(71, 3))
    assert any("11.77 cores max 11.98 cores" in strip.text.replace("  ", " ") for strip in shown)


def test_a_panel_that_cannot_say_gives_the_reason() -> None:
    from meshscope.ui.panels.split import Split, draw

    strips = draw(Split(cannot_say=("the trace holds no device work",)), Frame(60, 4))
    assert strips[0].text.rstrip() == "Cannot say: the trace holds no device work"


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_promises_fit_their_panel_and_titles_their_line(panel: Panel) -> None:
    assert cell_len(panel.title) <= 32
    assert panel.promise.endswith(".")


@pytest.mark.parametrize("width", [28, 36, 44, 60, 100])
def test_what_is_said_of_the_most_exposed_collective_names_it_at_every_width(whole: Path, width: int) -> None:
    (panel,) = (panel for panel in PANELS if panel.name == "overlap")
    overlaps = panel.question(scene(whole, *STATES["sharded"]))
    first = panel.draw(overlaps, Frame(width, 12))[0].text
    assert overlaps.kinds[0].name in first
    assert "exposed" in first.lower()


def test_the_throughput_is_named_and_its_scale_is_the_same_at_every_width(whole: Path) -> None:
    (panel,) = (panel for panel in PANELS if panel.name == "steptime")
    pace = panel.question(scene(whole, *STATES["ended"]))
    least = set()
    for width in (37, 71, 118):
        shown = [strip.text for strip in panel.draw(pace, Frame(width, 14))]
        at = next(number for number, line in enumerate(shown) if "samples/s of the same steps" in line)
        least.add(shown[at + 2].split()[0])
    assert least == {f"{np.nanquantile(pace.samples_per_s, 0.05):.0f}"}


def test_computing_and_what_is_beside_it_add_up_to_the_step_with_hidden_inside_of_it(whole: Path) -> None:
    (panel,) = (panel for panel in PANELS if panel.name == "split")
    shown = [strip.text for strip in panel.draw(panel.question(scene(whole, *STATES["ended"])), Frame(118, 12))]
    (at,) = (number for number, line in enumerate(shown) if "computing  (hidden)   exposed      idle" in line)
    span, computing, hidden, exposed, idle = (float(figure) for figure in shown[at + 1].split()[-7:-2])
    assert computing + exposed + idle == pytest.approx(span, abs=0.1)
    assert 0 < hidden < computing


def chronicle(*levels: str, ended: str = "") -> log.Chronicle:
    lines = tuple(log.Happened(at * made.S, level, f"line {at}") for at, level in enumerate(levels, 1))
    last = log.Happened(90 * made.S, "info", ended) if ended else None
    return log.Chronicle(lines, ended=last)


@pytest.mark.parametrize(
    ("found", "width", "said"),
    [
        (chronicle("info", ended="done"), 60, ("Done at 1:30, no error or warning", "text")),
        (chronicle("info"), 60, ("So far, no error or warning", "text")),
        (chronicle("warning", "error", "error", ended="failed"), 80,
         ("Failed at 1:30: 2 errors (first at 0:02), 1 warning (first at 0:01)", "bad")),
        (chronicle("warning", "error", "error", ended="failed"), 40, ("Failed at 1:30: 2 errors, 1 warning", "bad")),
        (chronicle("warning", ended="done"), 60, ("Done at 1:30: 1 warning (first at 0:01)", "warn")),
    ],
)  # fmt: skip
def test_the_log_says_how_it_went_in_a_line(found: log.Chronicle, width: int, said: tuple[str, str]) -> None:
    assert log.reading(found, width) == said


def test_the_line_of_the_log_stays_while_it_scrolls() -> None:
    found = chronicle(*["info"] * 30, ended="done")
    for scroll in (0, 10):
        shown = [strip.text.rstrip() for strip in log.draw(found, Frame(60, 8, scroll=scroll))]
        assert shown[0] == " Done at 1:30, no error or warning"
        assert shown[-1].endswith(f"line {30 - scroll}")
        assert len(shown) == 8


def reading_of(device: str, field: str, mean: float, most: float, last: float = 0.0) -> DeviceField:
    return DeviceField(device, field, 2, last, mean, most, np.arange(2), np.array([mean, most]))


def test_devices_are_read_in_a_line_accelerators_before_the_host() -> None:
    fields = (
        reading_of("host", "utilization_frac", 0.2, 0.3),
        reading_of("gpu 0", "utilization_frac", 0.9, 1.0), reading_of("gpu 1", "utilization_frac", 0.5, 1.0),
        reading_of("gpu 0", "memory_used_bytes", 1e9, 70e9), reading_of("gpu 1", "memory_used_bytes", 1e9, 71e9),
        reading_of("rank 0", "rss_bytes", 1e9, 2e9, 1.5e9), reading_of("rank 1", "rss_bytes", 1e9, 2e9, 0.5e9),
    )  # fmt: skip
    capacity = {(f"gpu {at}", "memory_used_bytes"): 80e9 for at in range(2)}
    answer = devices.Sensors(fields, capacity)
    assert devices.reading(answer, 200) == (
        "2 devices 70.0 % busy in the mean, gpu 1 least (50.0 %); fullest gpu 1 71.0 of 80.0 GB (88.8 %); "
        "2 ranks hold 2.00 GB"
    )
    assert devices.reading(answer, 60) == "2 devices 70.0 % busy in the mean, gpu 1 least (50.0 %)"
    host = devices.Sensors(fields[:1])
    assert devices.reading(host, 60) == "Host 20.0 % busy in the mean"
    assert devices.reading(devices.Sensors((reading_of("gpu 0", "power_w", 1, 2),)), 60) == "1 sensor of gpu 0"


def test_where_there_is_room_every_kind_is_told_by_rank(whole: Path) -> None:
    panel = next(panel for panel in PANELS if panel.name == "overlap")
    answer = panel.question(scene(whole, 200.0, "fsdp"))
    assert len(answer.kinds) > 1
    shown = "\n".join(strip.text for strip in panel.draw(answer, Frame(118, 50)))
    for kind in answer.kinds:
        assert f"{kind.name} by rank, most exposed first" in shown
        for one in next(ranks for ranks in answer.by_rank if ranks[0].name == kind.name):
            assert re.search(rf"^ {one.ranks[0]} .* {milliseconds(one.busy_ns)} ", shown, re.MULTILINE)
