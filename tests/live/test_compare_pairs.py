"""Runs recorded one after another on this machine, and what ``compare`` says of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from compare_pairs import triple

from meshscope.analysis.change import change

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(1800)]

TRIPLES = 3


@pytest.mark.parametrize("strategy", ["ddp", "pmap"])
def test_the_same_is_never_called_different_and_a_late_batch_is_called_slower(strategy: str, tmp_path: Path) -> None:
    """Where other programs use the cores throughout, not being able to say is the right answer too."""
    for number in range(TRIPLES):
        first, second, late = triple(tmp_path / str(number), strategy)
        same, slower = change([first], [second]), change([second], [late])
        assert same.verdict in ("no difference", "cannot say"), same.why
        assert slower.verdict == "slower" or "other programs used" in slower.why, slower.why
