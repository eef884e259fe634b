"""Strategies predicted from a recording of another, on this machine's CPU ranks."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.live]


@pytest.fixture(scope="module")
def warm(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("advisor_warm", root / "tests" / "benchmarks" / "advisor_warm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["advisor_warm"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(1800)
def test_fsdp_and_pipelines_are_predicted_from_ddp_and_so_is_their_order(warm: ModuleType, tmp_path: Path) -> None:
    if os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1):
        pytest.skip(f"the machine is busy (load {os.getloadavg()[0]:.1f}): steps would be those of its neighbours")
    runs = warm.recordings(tmp_path, "tiny", rounds=3)
    factors, found = warm.verdicts(runs)
    said = "\n".join(warm.report("tiny", factors, found))
    print(said)
    assert all(one.holds for one in found), said
    assert all(order.is_right in (True, None) for order in warm.orders(found)), said
