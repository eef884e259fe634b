"""Pickles that nobody should trust: plain values come out, and nothing else happens."""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.errors import TraceError
from meshscope.readers.pickles import plain

scalars = (
    st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False) | st.text() | st.binary()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner)
)


@given(values, st.integers(0, 5))
def test_plain_values_come_out_as_they_went_in(value: Any, protocol: int) -> None:
    if protocol < 3 and any(made in pickle.dumps(value, protocol) for made in (b"_codecs", b"__builtin__")):
        protocol = 3  # before it there are no bytes: Python writes a call that makes them
    assert plain(pickle.dumps(value, protocol), "f") == value


class Command:
    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.touched}",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_command_is_refused_by_its_name_and_never_run(tmp_path: Path, protocol: int) -> None:
    touched = tmp_path / "touched"
    with pytest.raises(TraceError, match=r"posix\.system") as told:
        plain(pickle.dumps({"segments": [Command(touched)]}, protocol), "f.pickle")
    assert told.value.hint
    assert not touched.exists()


HOSTILE = {
    "a built-in function": (b"cbuiltins\neval\n(S'1'\ntR.", "builtins.eval"),
    "an instance": (b"(S'x'\nios\nsystem\n.", "os.system"),
    "a class by two texts": (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system"),
    "a call without an import": (b"\x80\x02]]R.", "REDUCE"),
    "a state": (b"\x80\x02}}b.", "BUILD"),
    "a persistent id": (b"\x80\x02U\x01xQ.", "BINPERSID"),
    "a persistent id in text": (b"Px\n.", "PERSID"),
    "an extension": (b"\x80\x02\x82\x01.", "EXT1"),
    "an integer of a megabyte": (b"\x80\x02\x8b\x00\x00\x10\x00" + b"\xff" * 0x100000 + b".", "integer"),
    "an integer of many digits": (b"L" + b"9" * 100_000 + b"L\n.", "integer"),
    "a list as a key": (b"\x80\x02}]K\x01s.", "list as a key"),
    "a tuple as a key": (b"\x80\x02})K\x01s.", "tuple as a key"),
    "a set": (b"\x80\x04\x8f.", "EMPTY_SET"),
    "a buffer": (b"\x80\x05\x97.", "NEXT_BUFFER"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_plain_value_is_refused_by_its_name(case: str) -> None:
    content, said = HOSTILE[case]
    with pytest.raises(TraceError) as told:
        plain(content, "f")
    assert said in told.value.message
    assert told.value.hint


def test_a_memo_number_of_ten_digits_reserves_nothing() -> None:
    assert plain(b"\x80\x02Nr\xff\xff\xff\xff.", "f") is None


def test_values_nested_a_million_deep_are_no_crash() -> None:
    found = plain(b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".", "f")
    depth = 0
    while found:
        (found,) = found
        depth += 1
    assert depth == 999_999


def test_a_tuple_that_doubles_sixty_times_over_takes_no_time_and_is_no_key() -> None:
    doubled = b"\x80\x02)" + b"2\x86" * 60
    assert len(plain(doubled + b".", "f")) == 2
    with pytest.raises(TraceError, match="tuple as a key"):
        plain(b"\x80\x02}" + doubled[2:] + b"K\x01s.", "f")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.8, 0.99])
def test_a_pickle_cut_anywhere_is_refused_as_cut(share: float) -> None:
    content = pickle.dumps({"segments": [{"size": 2**40, "name": "x" * 300}] * 3, "more": [1.5, None, "é"]})
    with pytest.raises(TraceError, match="stops in the middle"):
        plain(content[: int(len(content) * share)], "f")


@given(st.binary(max_size=64), st.integers(0, 60))
def test_any_bytes_are_read_or_refused(noise: bytes, at: int) -> None:
    content = pickle.dumps({"segments": [1, 2, {"a": (3, "x")}], "b": None})
    for hostile in (noise, b"\x80\x04" + noise, content[:at] + noise + content[at:]):
        with suppress(TraceError):
            plain(hostile, "f")
