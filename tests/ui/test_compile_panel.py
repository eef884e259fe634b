"""The panel of what compiled again: how it looks, and when it is there at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import made
import pytest

from meshscope.recording.entries import Compiled
from meshscope.recording.journal import Journal
from meshscope.run import Gallery, Run
from meshscope.ui.look import Depth, Look
from meshscope.ui.panel import Frame
from meshscope.ui.panels.compile import PANEL, question
from meshscope.ui.scene import Scene, Stance

SIZES = {"narrow": (37, 10), "middle": (71, 12), "wide": (118, 24), "widest": (218, 12)}
MS = made.MS


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Sixty steps of four devices, compiled once."""
    folder = tmp_path_factory.mktemp("made") / "run"
    end = made.write(folder, ("pmap",))
    return Gallery(folder).at(end)[1][0]


def again(count: int, name: str = "jit(train_step)") -> list[Compiled]:
    """``count`` recompilations from step 1 on, every fourth step, each for one more row."""
    entries = []
    for number in range(count):
        step, at = 1 + 4 * number, 10_000 * MS + 10 * number
        said = (f"tokens int32[{8 + number},128] → int32[7,128]",)
        stages: tuple[tuple[str, int, tuple[str, ...]], ...]
        stages = (("trace", 30, ()), ("lower", 20, ()), ("compile", 450, said))
        entries += [
            Compiled(
                t_ns=at + place, rank=0, name=name, stage=stage, duration_ns=ms * MS, step=step,
                is_recompilation=bool(changed), changed=changed,
            )
            for place, (stage, ms, changed) in enumerate(stages)
        ]  # fmt: skip
    return entries


def with_again(run: Run, count: int, name: str = "jit(train_step)") -> Run:
    return replace(run, compiles=(*run.compiles, *again(count, name)))


def scene(run: Run) -> Scene:
    return Scene(None, (run,), Stance(now_unix_ns=made.T0 + 20 * made.S), run.name)


def drawn(run: Run, size: tuple[int, int], look: Look | None = None) -> str:
    strips = PANEL.draw(question(scene(run)), Frame(*size, look=look or Look()))
    assert len(strips) == size[1]
    assert {strip.cell_length for strip in strips} == {size[0]}
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


@pytest.mark.parametrize("size", SIZES)
def test_recompilations_look_as_they_did(clean: Run, snapshot: Callable[[str, str], None], size: str) -> None:
    snapshot(f"compile-{size}", drawn(with_again(clean, 7), SIZES[size]))


def test_recompilations_in_ascii_are_ascii(clean: Run, snapshot: Callable[[str, str], None]) -> None:
    shown = drawn(with_again(clean, 3), SIZES["middle"], Look(is_ascii=True, depth=Depth.NONE))
    assert shown.isascii()
    snapshot("compile-ascii", shown)


def test_the_newest_are_kept_where_there_is_no_room_for_all(clean: Run) -> None:
    shown = drawn(with_again(clean, 7), SIZES["narrow"])
    assert "… 5 earlier" in shown
    assert "int32[14,128]" in shown
    assert "int32[8,128]" not in shown


def test_each_row_says_the_step_the_time_and_what_changed(clean: Run) -> None:
    shown = drawn(with_again(clean, 2), SIZES["widest"])
    assert "1 recompilation in step 5 took 500 ms" in shown
    early, late = (line for line in shown.splitlines() if "train_step" in line)
    assert early.split()[:3] == ["1", "500", "ms"]
    assert "in warm-up: tokens int32[8,128] → int32[7,128]" in early
    assert "in warm-up" not in late
    assert "trace 30.0 ms, lower 20.0 ms, compile 450 ms" in late


def test_it_is_there_only_where_something_compiled_again(clean: Run) -> None:
    assert not PANEL.suits(scene(clean))
    assert PANEL.suits(scene(with_again(clean, 1)))
    assert not PANEL.suits(Scene(None, (), Stance()))


def test_nothing_in_a_name_steers_the_terminal(clean: Run) -> None:
    shown = drawn(with_again(clean, 2, "\x1b[31mred"), SIZES["wide"])
    assert "\x1b" not in shown


@pytest.mark.parametrize("size", [(1, 1), (5, 2), (12, 3), (37, 4), (250, 90)])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_it_fills_any_frame_exactly(clean: Run, count: int, size: tuple[int, int]) -> None:
    drawn(with_again(clean, count), size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (220, 60)])
async def test_its_key_shows_it_beside_the_others(
    tmp_path: Path, staged: Callable[..., Any], snapshot: Callable[[str, str], None], size: tuple[int, int]
) -> None:
    folder = tmp_path / "run"
    end = made.write(folder, ("ddp", "pmap"))
    journal = Journal(folder / "pmap", "rank0", t0_unix_ns=made.T0)
    for entry in again(5):
        journal.append(entry)
    journal.close()
    async with staged(folder, size=size, wall=lambda: end + 10**9 * made.S) as stage:
        await stage.press("up", "0")
        assert "0 compiled again" not in stage.text(), "ddp compiled nothing"
        assert "No panel 0 here (compiled again): nothing was compiled again." in stage.text()
        await stage.press("down", "0")
        assert "▸✓ pmap" in stage.text()
        assert "4 recompilations in step" in stage.text()
        assert "int32[12,128]" in stage.text()
        snapshot(f"screen-compile-{size[0]}x{size[1]}", stage.text() + "\n")
