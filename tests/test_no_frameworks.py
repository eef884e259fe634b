"""The side that reads and draws never loads a framework: seconds of start-up, gigabytes, and a GPU context."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = ("torch", "jax", "jaxlib", "flax", "optax", "tensorflow")

READS = """
import meshscope.readers, meshscope.run, meshscope.reports.text, meshscope.reports.analysis_json
import meshscope.analysis.comparison, meshscope.analysis.collectives, meshscope.analysis.devices
import meshscope.analysis.pairing, meshscope.reports.change_text, meshscope.reports.baseline
import meshscope.advisor.answer, meshscope.advisor.planned, meshscope.advisor.against, meshscope.reports.advice_text
meshscope.readers.readers()
"""


def loaded(program: str) -> set[str]:
    """The frameworks that a program of its own process has loaded at its end."""
    tail = "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    ran = subprocess.run(
        [sys.executable, "-c", program + tail], capture_output=True, text=True, timeout=120, check=True
    )
    return set(ran.stdout.split()) & set(FRAMEWORKS)


def test_readers_analyses_and_reports_load_no_framework() -> None:
    assert loaded(READS) == set()


def test_this_test_can_fail() -> None:
    """A stand-in named like a framework is noticed, wherever it was loaded."""
    stand_in = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
    assert loaded(stand_in + READS) == {"torch"}


@pytest.mark.parametrize("package", ["textual", "rich"])
def test_they_load_no_terminal_toolkit_either(package: str) -> None:
    program = READS + f"\nimport sys; assert {package!r} not in sys.modules"
    assert loaded(program) == set()
