"""Damaged traces by the hundred, and by the hundred thousand in the slow tier: no crash, no hang, nothing unsound."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import sound
from fuzz import TooSlow, failure, limited
from made_traces import kernel, write_kineto
from mutations import case, spaces, texts

from meshscope.readers import read

FUZZ = Path(__file__).parent / "fuzz.py"


def test_a_few_hundred_damaged_traces_are_read_soundly_or_refused(tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    failures = [why for number in range(400) if (why := failure(7, number, tmp_path, told))]
    assert failures == []
    assert told["read"] > 200
    assert told["refused"] > 10


@pytest.mark.parametrize("content", [*texts(), *spaces()])
def test_what_is_damaged_was_sound(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trace").write_bytes(content)
    assert sound.check(tmp_path / "trace") == "read"
    assert all(not window.counts.dropped for window in read(tmp_path / "trace"))


def test_a_case_is_always_the_same_bytes() -> None:
    assert [case(3, number) for number in range(50)] == [case(3, number) for number in range(50)]
    assert len({case(3, number).content for number in range(200)}) > 180


def test_an_unsound_answer_is_found(tmp_path: Path) -> None:
    (window,) = read(write_kineto(tmp_path / "t.json", [kernel("a", 0, 5), kernel("b", 9, 5)]))
    sound._check_window(window)
    for unsound in (
        replace(window, end_ns=window.start_ns - 1),
        replace(window, spans=replace(window.spans, end_ns=window.spans.start_ns - 1)),
        replace(window, spans=replace(window.spans, name=window.spans.name + 5)),
        replace(window, counts=replace(window.counts, device=9)),
        replace(window, counts=replace(window.counts, dropped={"nothing": 0})),
        replace(window, end_ns=window.end_ns + 400 * sound.DAY_NS),
    ):
        with pytest.raises(AssertionError):
            sound._check_window(unsound)


def test_a_case_that_takes_too_long_is_found() -> None:
    with pytest.raises(TooSlow), limited(0.05):
        time.sleep(5)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_damaged_traces_are_read_soundly_or_refused() -> None:
    ran = subprocess.run([sys.executable, str(FUZZ), "--cases", "100000"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
