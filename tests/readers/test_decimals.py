"""Microseconds to nanoseconds by their digits: against ``decimal``, for every way a number may be written."""

from __future__ import annotations

from decimal import Decimal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from meshscope.readers.decimals import BEFORE_NS, BEYOND_NS, RATHER_NS, UNKNOWN_NS, nanoseconds


def tokens(texts: list[str]) -> list[msgspec.Raw]:
    return [msgspec.Raw(text.encode()) for text in texts]


def by_decimal(text: str) -> int:
    exact = int((Decimal(text) * 1000).to_integral_value())
    return exact if abs(exact) < 2**63 - 4 else RATHER_NS if 946_684_800 * 10**9 <= Decimal(text) < 2**62 else BEYOND_NS


whole = st.integers(0, 10**17).map(str)
fractional = st.tuples(st.integers(0, 10**16), st.text("0123456789", min_size=1, max_size=6)).map(
    lambda p: f"{p[0]}.{p[1]}"
)
odd = st.sampled_from(
    ["-5", "-0.25", "1e3", "1.5E2", "0", "0.001", "00", "9223372036854775.807", "9999999999999999.999"]
)


@given(st.lists(st.one_of(whole, fractional, odd), max_size=30))
def test_every_number_is_exact(texts: list[str]) -> None:
    assert nanoseconds(tokens(texts)).tolist() == [by_decimal(text) for text in texts]


def test_an_absolute_time_of_nineteen_digits_keeps_its_last_nanosecond() -> None:
    assert nanoseconds(tokens(["1714066300000000.123"])).tolist() == [1714066300000000123]
    assert round(float("1714066300000000.123") * 1000) != 1714066300000000123  # what a float would have made of it


def test_numbers_in_quotes_are_numbers() -> None:
    assert nanoseconds(tokens(['"12.25"'])).tolist() == [12250]


def test_what_is_no_number_is_unknown_and_costs_its_neighbours_nothing() -> None:
    found = nanoseconds(tokens(["1.5", "null", "NaN", "[1,2]", '""', "2"])).tolist()
    assert found == [1500, UNKNOWN_NS, UNKNOWN_NS, UNKNOWN_NS, UNKNOWN_NS, 2000]


def test_no_tokens_are_no_times() -> None:
    assert nanoseconds([]).tolist() == []


def test_a_number_beyond_int64_is_told_from_none_and_so_is_one_that_counts_nanoseconds() -> None:
    found = nanoseconds(tokens(["1e20", "-1e20", "1e17", "-1e17", "1790000000000000000", "1e999999999"])).tolist()
    assert found == [BEYOND_NS, BEFORE_NS, BEYOND_NS, BEFORE_NS, RATHER_NS, BEYOND_NS]
