"""Numbers that JSON has no words for survive the journal, in every field that may hold one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from meshscope.recording.entries import AnyEntry, Checked, Entry, Log, StepDone
from meshscope.recording.journal import Journal, Tail

PLAIN: dict[Any, Any] = {int: 1, str: "null", bool: False, dict[str, int]: {}, dict[str, str]: {}}
FRACTIONS = [
    (kind, field.name)
    for kind in AnyEntry.__args__
    for field in msgspec.structs.fields(kind)
    if "float" in str(field.type)
]


def entry(kind: type[Entry], name: str, value: float) -> Entry:
    """An entry with the number in one field, and in all of what it needs something plain."""
    fields = msgspec.structs.fields(kind)
    needed = {field.name: PLAIN.get(field.type, 1.0) for field in fields if field.required}
    is_by_name = any(field.name == name and "dict" in str(field.type) for field in fields)
    return kind(**needed | {name: {"a": value, "b": 2.5} if is_by_name else value})


def read(folder: Path, *written: Entry) -> list[Entry]:
    journal = Journal(folder, "rank0", t0_unix_ns=0)
    journal.append_all(written)
    tail = Tail(folder / "journal" / "rank0.jsonl")
    found = tail.read()
    assert tail.skipped == 0
    return found


def test_every_kind_of_entry_with_such_a_field_is_tried() -> None:
    assert {(kind.__name__, name) for kind, name in FRACTIONS} >= {
        ("StepDone", "loss"), ("Checked", "parameters"), ("Checked", "replicas"), ("Sampled", "values")
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), FRACTIONS, ids=lambda part: getattr(part, "__name__", part))
def test_what_is_not_finite_is_read_back_as_it_was(tmp_path: Path, kind: type[Entry], name: str) -> None:
    for value in (math.nan, math.inf, -math.inf):
        *_, found = read(tmp_path, entry(kind, name, value))
        held = getattr(found, name)
        if isinstance(held, dict):
            assert held["b"] == 2.5
            held = held["a"]
        assert held == value or (math.isnan(value) and math.isnan(held))


def test_a_text_of_that_name_stays_a_text(tmp_path: Path) -> None:
    log = Log(t_ns=1, level="nan", text="inf null")
    assert read(tmp_path, log) == [log]


def test_older_recordings_have_null_there(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    path.write_bytes(
        b'{"type":"checked","t_ns":1,"rank":0,"step":0,"parameters":null,"gradients":null,"replicas":{"0,1":null}}\n'
        b'{"type":"step","t_ns":1,"rank":0,"step":0,"start_ns":0,"end_ns":1,"loss":null}\n'
        b'{"type":"checked","t_ns":1,"rank":0,"step":0,"parameters":"many"}\n'
        b'{"type":["checked"]}\n[1]\n'
    )
    tail = Tail(path)
    check, step = tail.read()
    assert tail.skipped == 3
    assert isinstance(check, Checked)
    assert math.isnan(check.parameters)
    assert math.isnan(check.replicas["0,1"])
    assert isinstance(step, StepDone)
    assert step.loss is None
