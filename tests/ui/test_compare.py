"""The screen of two runs side by side."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from meshscope.analysis.pairing import Changes, changes
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Look
from meshscope.ui.picture import text
from meshscope.ui.screens.compare import Compare, drawn

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis" / "support"))
from measured import MS, measured, noisy, work, works

Snapshot = Callable[[str, str], None]


def found() -> Changes:
    """DDP that became slower, and FSDP whose steps are too few."""
    about = {"parts_ns": {name: (at * 10.0 * MS,) * 4 for at, name in enumerate(
        ("idle", "exposed", "collective", "compute", "span"))}}  # fmt: skip
    before = works(work("all_reduce", [5] * 4, kind="collective"), work("mm", [20, 21, 20, 20]))
    after = works(work("all_reduce", [9] * 4, kind="collective"), work("mm", [20, 20, 21, 20]),
                  work("\x1b[2Jclip", [2] * 4))  # fmt: skip
    a = [measured(noisy(1), works=before, **about), measured([50.0] * 3, strategy="fsdp", title="fsdp")]
    b = [measured(noisy(2, median_ms=65), works=after, **about), measured([51.0] * 3, strategy="fsdp", title="fsdp")]
    return changes(a, [*b, measured([50.0], strategy="pmap", title="pmap")])


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_two_runs_stand_side_by_side(size: tuple[int, int], snapshot: Snapshot) -> None:
    app = MeshscopeApp(Options(), lambda _: Compare(found(), Look()))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        shown = text(app)
        assert "ddp: B is slower: a step is" in shown
        assert "pmap only in B" in shown
        assert "\x1b" not in shown
        snapshot(f"compare-{size[0]}x{size[1]}", shown)


async def test_keys_choose_a_strategy_scroll_and_leave() -> None:
    app = MeshscopeApp(Options(look=Look(is_ascii=True)), lambda _: Compare(found(), Look(is_ascii=True)))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("right")
        await pilot.pause()
        assert "cannot say whether B is faster or slower: A has 3 unprofiled steps" in text(app)
        await pilot.press("left", "down", "down", "down")
        await pilot.pause()
        assert "ddp: B is slower" not in text(app)
        await pilot.press("home")
        await pilot.pause()
        assert "ddp: B is slower" in text(app)
        assert text(app).isascii()
        await pilot.press("q")
    assert app.return_value == ""


def test_two_strategies_of_two_frameworks_are_told_by_their_names() -> None:
    spans = {"parts_ns": {name: (at * 10.0 * MS,) * 4 for at, name in enumerate(
        ("idle", "exposed", "collective", "compute", "span"))}}  # fmt: skip
    a = measured(noisy(1), works=works(work("all_reduce", [5] * 4, kind="collective"), work("mm", [20] * 4)), **spans)
    b = measured(noisy(2, median_ms=90), strategy="pmap", title="pmap", framework="jax", **spans,
                 works=works(work("all_reduce", [9] * 4, kind="collective"), work("dot.3", [20] * 4)))  # fmt: skip
    (pair,) = changes([a], [b]).changes
    text = "\n".join("".join(part for part, _ in line) for line in drawn(pair, 118, Look()))
    assert "ddp → pmap: B is slower" in text
    assert re.search(r"per step +A ddp +B pmap", text)
    assert "all_reduce" in text
    assert "dot.3" not in text
    assert "PyTorch and JAX name the same kernels differently" in text
