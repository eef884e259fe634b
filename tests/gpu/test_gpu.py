"""The GPU paths on real GPUs: the checks of ``meshscope doctor --gpu``. Never run where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshscope.cli import gpu_checks

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("strategy", gpu_checks.STRATEGIES)
def test_every_gpu_check_holds(strategy: str, tmp_path: Path) -> None:
    outcomes = gpu_checks.checked(strategy, tmp_path / strategy)
    assert [o for o in outcomes if o.state != "held"] == []
