"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What a test has read must not answer another, nor fill the cache of whoever runs them.
os.environ["MESHSCOPE_CACHE"] = "off"
# Nor may a test change what somebody chose on the screens, or depend on it.
os.environ["MESHSCOPE_SETTINGS"] = "off"

# How long an example takes says how busy the machine is, not whether the claim holds.
settings.register_profile("meshscope", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("meshscope")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite kept answers and snapshots; review them as a diff")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The corpus of real traces beside the project; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("MESHSCOPE_SHARED", ROOT.parent / "shared"))
    if not (folder / "traces" / "INDEX.md").is_file():
        pytest.skip(f"no trace corpus at {folder}")
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The source tree."""
    return ROOT
