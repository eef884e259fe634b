"""User's patterns: what they may cost is bounded before they are used."""

from __future__ import annotations

import re
import time

import pytest

from meshscope.errors import InputError
from meshscope.patterns import reach

CHEAP = [
    "nccl",
    "my_ring.*kernel",
    "a.*b.*c",
    "^(foo|bar)_v[0-9]$",
    "x{1,3}",
    "(?:half|float)?_all",
    r"\bring\b",
    "(ab){3}",
]
COSTLY = [
    "(a+)+$",
    "(a*)*b",
    "(a|a)*b",
    "(a|aa)+$",
    "a*a*a*b",
    "(.*a){12}",
    "(x?){30}x{30}",
    "a?" * 40 + "a" * 40,
    r"(a)\1+",
    "(?=a*)b",
]


@pytest.mark.parametrize("pattern", CHEAP)
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    assert reach(pattern) >= 256


def test_the_more_a_pattern_repeats_the_less_of_a_name_it_looks_at() -> None:
    assert [reach(pattern) for pattern in ("ring", "a.*b", "a.*b.*c")] == [8192, 8192, 512]


@pytest.mark.parametrize("pattern", COSTLY)
def test_patterns_with_too_many_ways_are_refused_unused(pattern: str) -> None:
    with pytest.raises(InputError, match="too long on some names") as told:
        reach(pattern)
    assert told.value.hint


@pytest.mark.parametrize("pattern", ["(", "a**", "[", "(?P<a", "*"])
def test_what_is_no_regular_expression_is_said_with_the_engines_reason(pattern: str) -> None:
    with pytest.raises(InputError, match="no regular expression"):
        reach(pattern)


def test_a_pattern_has_a_longest_length() -> None:
    with pytest.raises(InputError, match="201 characters"):
        reach("a" * 201)


@pytest.mark.parametrize("pattern", ["a.*a.*b", "a*a*b", "(a|b|c|d).*(a|b).*x"])
def test_the_costliest_pattern_allowed_ends_soon_on_the_worst_of_names(pattern: str) -> None:
    compiled, name = re.compile(pattern), "a" * reach(pattern)
    began_s = time.process_time()
    assert compiled.search(name) is None
    assert time.process_time() - began_s < 20
