"""Numbers that JSON does not have cost no event, and what only looks like one is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_traces import UNIX_NS, kernel

from meshscope.analysis.breakdown import measure
from meshscope.readers import read
from meshscope.readers.chrome_mending import BAD_QUOTE, NOT_FINITE
from meshscope.readers.chrome_numbers import COMMA, ODD_NUMBER, renumbered
from meshscope.readers.damage import DAMAGED
from meshscope.spans import Window

AROUND = '{"schemaVersion": 1, "baseTimeNanoseconds": %d, "traceEvents": [%s]}'


def window_of(folder: Path, *values: str, name: str = "gemm") -> Window:
    """A kernel of 10 µs every 20 µs, each with an argument of one of the values as they stand."""
    events = [kernel(name, 20 * n, 10, **{"blocks per SM": "@", "grid": [1024, 1, 1]}) for n in range(len(values))]
    said = ", ".join(json.dumps(event).replace('"@"', value) for event, value in zip(events, values, strict=True))
    (folder / "t.json").write_text(AROUND % (UNIX_NS, said), encoding="utf-8")
    (window,) = read(folder / "t.json")
    return window


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("7,757576", COMMA), ("-0,5", COMMA), ("1,5e-05", COMMA), ("inf", NOT_FINITE), ("-inf", NOT_FINITE),
        ("nan", NOT_FINITE), ("-nan(ind)", NOT_FINITE), ("1.#INF", NOT_FINITE), ("-1.#IND00", NOT_FINITE),
        ("NaN", NOT_FINITE), ("-Infinity", NOT_FINITE), (".5", ODD_NUMBER), ("1.", ODD_NUMBER), ("01", ODD_NUMBER),
        ("+1", ODD_NUMBER), ("-.5e3", ODD_NUMBER),
    ],
)  # fmt: skip
def test_an_odd_number_costs_no_kernel(tmp_path: Path, value: str, reason: str) -> None:
    window = window_of(tmp_path, "1.0", value, "2")
    assert measure(window).total.compute_ns == 30_000
    assert window.counts.repaired == {reason: 1}
    assert (window.counts.read, window.counts.dropped) == (3, {})


@pytest.mark.parametrize("value", ["0x1", "True", "-", "7,5,6", "7,", "infinite", "1.2.3"])
def test_what_is_no_number_at_all_costs_its_kernel_alone(tmp_path: Path, value: str) -> None:
    window = window_of(tmp_path, "1.0", value, "2")
    assert measure(window).total.compute_ns == 20_000
    assert (window.counts.repaired, window.counts.dropped) == ({}, {DAMAGED: 1})


def test_an_event_is_counted_once_however_many_of_its_numbers_are_odd(tmp_path: Path) -> None:
    window = window_of(tmp_path, '7,5, "warps per SM": 31,25, "occupancy": inf', "1", "2,5")
    assert window.counts.repaired == {COMMA: 2}
    assert measure(window).total.compute_ns == 30_000


def test_times_with_a_decimal_comma_keep_their_nanoseconds(tmp_path: Path) -> None:
    text = json.dumps([kernel("a", 0, 10), kernel("b", 111, 222)]).replace("111", "20,125").replace("222", "1,5")
    (tmp_path / "t.json").write_text(AROUND % (UNIX_NS, text[1:-1]), encoding="utf-8")
    (window,) = read(tmp_path / "t.json")
    assert measure(window).total.compute_ns == 11_500
    assert window.end_ns - window.start_ns == 21_625


def test_a_list_of_numbers_and_text_that_looks_like_one_stay_as_they_are() -> None:
    assert renumbered(b'[{"a": [7,5], "b": "x: 7,5, \\"c\\": inf}", "c": 1.5, "d: .5}": 2}]') is None
    found = renumbered(b'[{"a": [7,5], "b": "x: 7,5", "c": 01}]')
    assert found == (b'[{"a": [7,5], "b": "x: 7,5", "c": 1}]', {ODD_NUMBER: 1})


def test_a_name_with_a_quote_inside_is_still_mended_beside_odd_numbers(tmp_path: Path) -> None:
    window = window_of(tmp_path, "1", "2,5", name='f<"x">')
    assert measure(window).total.compute_ns == 20_000
    text = (tmp_path / "t.json").read_text(encoding="utf-8").replace('\\"x\\"', '"x"').replace("2,5", "2")
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    (window,) = read(tmp_path / "t.json")
    assert window.counts.repaired == {BAD_QUOTE: 2}
    assert measure(window).total.compute_ns == 20_000


@pytest.mark.parametrize(("lost", "is_told"), [(9, True), (7, False)])
def test_an_answer_from_what_many_lost_events_leave_is_none(tmp_path: Path, lost: int, is_told: bool) -> None:
    window = window_of(tmp_path, *["0x1"] * lost, *["1"] * 40)
    assert window.counts.dropped == {DAMAGED: lost}
    why = f"{lost} of {lost + 40} events could not be read"
    assert any(what == "breakdown" and why in said for what, said in window.cannot_say) == is_told
    assert window.device_kind == ("none" if is_told else "gpu")
