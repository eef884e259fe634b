"""What host spans of a Kineto file are, beyond their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshscope.kinds import ANNOTATION, FRAME, Kind
from meshscope.readers import read
from meshscope.spans import Window


def event(name: str, category: str, at: int, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 5, "args": args}


def written(folder: Path, *more: dict[str, object]) -> Window:
    path = folder / "trace.json"
    events = [
        event("attention", "user_annotation", 10),
        event("attention", "cpu_op", 20),
        event("nn.Module: Linear_0", "python_function", 30),
        event("ProfilerStep#3", "user_annotation", 0),
        *more,
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return read(path, device_kind="cpu")[0]


def rules(window: Window) -> list[tuple[str, str]]:
    spans = window.spans
    return [(spans.name_of(row), spans.rule_of(row)) for row in range(len(spans))]


@pytest.mark.parametrize("is_gpu", [True, False])
def test_annotations_and_frames_are_told_from_operators_of_the_same_name(tmp_path: Path, is_gpu: bool) -> None:
    kernel = event("gemm", "kernel", 40, stream=7, device=0, correlation=1)
    operator = event("aten::mm", "cpu_op", 40)
    window = written(tmp_path, kernel if is_gpu else operator)
    found = rules(window)
    assert ("attention", ANNOTATION) in found
    assert ("nn.Module: Linear_0", FRAME) in found
    is_frame = [name.startswith("nn.Module") for name, _ in found]
    assert window.spans.kind[is_frame].tolist() == [Kind.HOST]
    assert sorted(rule == ANNOTATION for name, rule in found if name == "attention") == [False, True]


def test_a_transfer_that_is_written_as_an_annotation_stays_a_collective(tmp_path: Path) -> None:
    window = written(tmp_path, event("gloo:all_reduce", "user_annotation", 50))
    row = [name for name, _ in rules(window)].index("gloo:all_reduce")
    assert window.spans.kind[row] == Kind.COLLECTIVE
    assert window.spans.rule_of(row) == "gloo span"
