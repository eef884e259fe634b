"""Gloo does a reduce-scatter by an all-reduce: a span's name is then not what it carries out."""

from __future__ import annotations

from pathlib import Path

from meshscope.analysis.carried_out import carried_out
from meshscope.cli.opening import open_paths
from meshscope.reports.operations_text import operations_lines
from meshscope.reports.path_text import path_lines

SAID = "gloo:all_reduce carries out reduce_scatter here: that is how gloo does it"


def test_a_name_that_says_another_collective_is_told_where_it_stands(root: Path) -> None:
    runs = {run.name: run for run in open_paths((root / "recordings" / "tiny-4-cpu-ranks",)).runs}
    assert carried_out(runs["fsdp"]) == {"gloo:all_reduce": SAID}
    for lines in (operations_lines(runs["fsdp"]), path_lines(runs["fsdp"])):
        assert " ".join(" ".join(lines).split()).count(SAID) == 1
    for name in ("ddp", "pjit", "torch-single"):
        assert carried_out(runs[name]) == {}
        assert not any("carries out" in line for line in (*operations_lines(runs[name]), *path_lines(runs[name])))
