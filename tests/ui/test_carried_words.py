"""Where gloo's spans are named after another collective, the panels that list them say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshscope.cli.opening import open_paths
from meshscope.run import Run
from meshscope.ui.panel import Frame
from meshscope.ui.panels import kernels, path
from meshscope.ui.scene import Scene, Stance

SAID = "gloo:all_reduce carries out reduce_scatter here"


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, Run]:
    return {run.name: run for run in open_paths((root / "recordings" / "tiny-4-cpu-ranks",)).runs}


@pytest.mark.parametrize(("name", "is_said"), [("fsdp", True), ("ddp", False)])
def test_the_path_says_what_its_names_carry_out(runs: dict[str, Run], name: str, is_said: bool) -> None:
    answer = path.question(Scene(None, (runs[name],), Stance(), name))
    drawn = " ".join(" ".join(strip.text for strip in path.draw(answer, Frame(100, 40))).split())
    assert (SAID in drawn) == is_said


@pytest.mark.parametrize(("name", "is_said"), [("fsdp", True), ("ddp", False)])
def test_a_kernel_says_what_it_carries_out(runs: dict[str, Run], name: str, is_said: bool) -> None:
    answer = kernels.question(Scene(None, (runs[name],), Stance(), name))
    (row,) = [row for row in answer.groupings[0].rows if row.name == "gloo:all_reduce"]
    assert any(words.startswith(SAID) for words in row.about) == is_said
