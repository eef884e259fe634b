"""Neither torch nor JAX is ever loaded in the process that draws."""

from __future__ import annotations

import subprocess
import sys

DRAWING = """
import importlib, pkgutil, sys
import meshscope.ui
for module in pkgutil.walk_packages(meshscope.ui.__path__, "meshscope.ui."):
    importlib.import_module(module.name)
from meshscope.ui.screens.board import panels
assert len(panels()) >= 7
{more}
heavy = sorted({{"torch", "jax", "jaxlib", "flax", "optax"}} & set(sys.modules))
print(",".join(heavy))
"""


def heavy(more: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", DRAWING.format(more=more)], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_drawing_loads_neither_torch_nor_jax() -> None:
    assert heavy() == ""


def test_the_test_above_can_fail() -> None:
    assert heavy("sys.modules['jax'] = sys") == "jax"
