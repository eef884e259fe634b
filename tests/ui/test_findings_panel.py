"""The panel of findings: how it looks, and how one of them is chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made
import pytest

from meshscope.analysis.findings import Finding
from meshscope.analysis.looked_for import ELSEWHERE, JUDGED, UNTOLD, LookedFor
from meshscope.recording.entries import Checked
from meshscope.recording.journal import Journal
from meshscope.run import Gallery
from meshscope.ui.look import Depth, Look
from meshscope.ui.panel import Frame
from meshscope.ui.panels.findings import PANEL, Found, depends
from meshscope.ui.scene import Scene

SIZES = {"narrow": (37, 10), "middle": (71, 12), "wide": (118, 24), "strip": (118, 4)}
FOUND = Found(
    findings=(
        Finding(
            code="hang", title="hang or deadlock", ranks=(3,), cost_ns=30e9, cost_frac=0.42, is_grave=True,
            of="the 71.0 s since the first step began", of_ns=71e9, advice="Look at what rank 3 did instead.",
            evidence=("no step has ended for 30.0 s", "ranks 0–3 finished step 9 and none after it"),
            fix="TORCH_FR_BUFFER_SIZE=20000 torchrun …",
        ),
        Finding(
            code="straggler", title="straggler", ranks=(2,), cost_ns=3e6, cost_frac=0.039,
            of="the mean profiled step of 77.6 ms", of_ns=77.6e6,
            advice="It waits for its batches longer than the others.",
            evidence=("rank 2 came last to 71 of 100 collectives", "late in 12 of 14 steps, since step 22"),
            fix="loader = torch.utils.data.DataLoader(dataset, num_workers=8, prefetch_factor=4)",
        ),
        Finding(
            code="memory-leak", title="memory grows with every step", advice="Something keeps what each step made.",
            evidence=("rank 0: \x1b[31mhostile",), fix="losses.append(loss.item())\ntotal += loss.detach()",
        ),
    ),
    is_asked=True,
)  # fmt: skip


def drawn(size: tuple[int, int], *, picked: int = 0, look: Look | None = None) -> str:
    frame = Frame(*size, picked=picked, look=look or Look())
    strips = PANEL.draw(FOUND, frame)
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


@pytest.mark.parametrize("size", SIZES)
def test_findings_look_as_they_did(snapshot: Callable[[str, str], None], size: str) -> None:
    snapshot(f"findings-{size}", drawn(SIZES[size], picked=1))


def test_findings_in_ascii_are_ascii(snapshot: Callable[[str, str], None]) -> None:
    shown = drawn(SIZES["middle"], look=Look(is_ascii=True, depth=Depth.NONE))
    assert shown.isascii()
    snapshot("findings-ascii", shown)


def test_the_chosen_finding_shows_its_evidence_and_what_to_paste() -> None:
    second = drawn(SIZES["wide"], picked=1)
    assert "▸! straggler" in second
    assert "late in 12 of 14 steps, since step 22" in second
    assert "num_workers=8" in second
    assert "no step has ended" not in second


def test_each_share_has_what_it_is_of_beside_it_unless_that_is_the_same_for_all() -> None:
    rows = drawn(SIZES["middle"]).splitlines()
    assert "share of" in rows[0]
    assert "42.0 % of    71.0 s" in rows[1]
    assert "3.9 % of  0.0776 s" in rows[2]  # in the unit of the longest
    assert "%" not in "".join(drawn(SIZES["narrow"]).splitlines()[:4])
    first, second, third = FOUND.findings
    alike = dataclasses.replace(FOUND, findings=(dataclasses.replace(first, of=second.of), second, third))
    shown = PANEL.draw(alike, Frame(*SIZES["middle"], look=Look()))
    assert shown[0].text.split() == ["finding", "cost", "share", "rank"]
    assert "42.0 % of" not in shown[1].text


def test_that_costs_do_not_add_up_is_said_where_there_are_several() -> None:
    said = "costs of findings overlap, and do not add up"
    assert said in drawn(SIZES["wide"])
    only = dataclasses.replace(FOUND, findings=FOUND.findings[1:])
    shown = " ".join(strip.text for strip in PANEL.draw(only, Frame(*SIZES["wide"], look=Look())))
    assert said not in shown


LOOKED = tuple(
    LookedFor(code, code, state, why)
    for code, state, why in (
        ("late ranks", JUDGED, ""), ("growing memory", JUDGED, ""), ("a hang", JUDGED, ""),
        ("fragmented memory", UNTOLD, "nothing tells what was reserved"), ("an exposed tail", ELSEWHERE, "no DDP"),
    )
)  # fmt: skip


def looked(size: tuple[int, int], turn: int = 0, findings: tuple[Finding, ...] = ()) -> list[str]:
    found = PANEL.turned(Found(findings, is_asked=True, looked=LOOKED), turn)
    return [strip.text.rstrip() for strip in PANEL.draw(found, Frame(*size, look=Look()))]


@pytest.mark.parametrize("size", [(37, 10), (71, 12), (118, 24)])
def test_what_was_looked_for_is_a_line_of_counts_until_g_opens_it(size: tuple[int, int]) -> None:
    folded, opened = (" ".join(" ".join(looked(size, turn)).split()) for turn in (0, 1))
    assert "3 looked for and not found, 1 could not be judged, 1 does not apply g which, and why" in folded
    assert "nothing tells what was reserved" not in folded
    for words in ("Looked for and not found: late ranks, growing memory, a hang.", "(nothing tells what was reserved)"):
        assert words in opened
    assert looked(size, 2) == looked(size, 0)


def test_beside_findings_g_tells_what_was_looked_for_too() -> None:
    shown = " ".join(looked((118, 24), 1, FOUND.findings))
    assert "an exposed tail (no DDP)" in shown
    assert "None of" not in shown
    assert "▸" not in shown


def test_a_panel_with_nothing_else_to_say_has_it_open() -> None:
    assert any("nothing tells what was reserved" in line for line in looked((218, 54)))
    assert not any("nothing tells what was reserved" in line for line in looked((218, 54), 1))
    assert not any("nothing tells what was reserved" in line for line in looked((218, 54), 0, FOUND.findings))


def test_a_choice_beyond_the_last_is_the_last_and_nothing_steers_the_terminal() -> None:
    last = drawn(SIZES["wide"], picked=9)
    assert "▸! memory grows with every step" in last
    assert "\x1b" not in last


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (12, 3), (37, 4), (250, 90)])
@pytest.mark.parametrize("picked", [0, 2])
def test_findings_fill_any_frame_exactly(size: tuple[int, int], picked: int) -> None:
    drawn(size, picked=picked)


def test_while_no_step_ends_the_question_is_asked_again_as_time_goes_by(folder: Path) -> None:
    plan, runs = Gallery(folder).at(made.T0 + 200 * made.S)
    goes_on = dataclasses.replace(runs[0], ended=None, now_ns=int(runs[0].steps.end_ns.max()))
    later = dataclasses.replace(goes_on, now_ns=goes_on.now_ns + 60 * made.S)
    keys = [depends(Scene(plan, (run,), selected=run.name)) for run in (goes_on, later, goes_on)]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


Staged = Callable[..., Any]


@pytest.fixture
def troubled(folder: Path) -> Path:
    """The ranks of ddp draw the same random numbers, and their gradients differ."""
    journal = Journal(folder / "ddp", "checks", t0_unix_ns=made.T0)
    for step in range(3):
        for rank in range(4):
            journal.append(
                Checked(t_ns=1, rank=rank, step=step, parameters=1.0, gradients=float(rank), rng=f"state {step}")
            )
    journal.close()
    return folder


async def test_f_leads_to_the_findings_and_arrows_choose_among_them_there(troubled: Path, staged: Staged) -> None:
    async with staged(troubled, size=(120, 40)) as stage:
        assert "f findings(2)" in stage.line(39)
        await stage.press("f")
        assert "▸✗ replicas drift apart" in stage.text()
        await stage.press("down")
        assert "▸✗ same random key" in stage.text()
        assert stage.watch.selected == "ddp"
        await stage.press("down", "up")
        assert "▸✗ replicas drift apart" in stage.text()


async def test_elsewhere_arrows_choose_a_strategy_and_another_run_begins_with_its_first_finding(
    troubled: Path, staged: Staged
) -> None:
    async with staged(troubled, size=(120, 40)) as stage:
        await stage.press("f", "down", "2", "down")
        assert stage.watch.selected == "fsdp"
        assert "findings(" not in stage.line(39)
        await stage.press("f", "down")
        assert "pitfalls that could be looked for" in stage.text()
        assert stage.watch.selected == "pmap"


async def test_where_there_is_room_findings_stand_beside_the_others_and_else_on_a_later_page(
    troubled: Path, staged: Staged
) -> None:
    async with staged(troubled, size=(220, 60)) as stage:
        assert "7 log" in stage.text()
        assert "9 findings" in stage.text()
    async with staged(troubled, size=(120, 40)) as stage:
        assert "1 of 3" in stage.text()
        assert "9 findings" not in stage.text()
