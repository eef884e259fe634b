"""What torch and JAX could use here, found out without importing them into this process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec

from meshscope.capture.probing import told
from meshscope.errors import MissingPackageError

PACKAGES = {"torch": ("torch",), "jax": ("jax", "jaxlib", "flax", "optax")}
PATIENCE_S = 90.0


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """``platform`` is ``cpu``, ``gpu`` or ``tpu``; ``names`` has one entry per accelerator, none on a CPU.

    ``error`` says why a framework that is installed does not work; "" when it does.
    """

    version: str = ""
    platform: str = "cpu"
    names: tuple[str, ...] = ()
    error: str = ""

    @property
    def count(self) -> int:
        return len(self.names)


def missing(framework: str) -> tuple[str, ...]:
    """The packages that a framework's workloads need and that are not installed. Imports none of them."""
    return tuple(name for name in PACKAGES[framework] if importlib.util.find_spec(name) is None)


def require(framework: str) -> None:
    """Raises MissingPackageError, with the extra that brings them, when packages are missing."""
    absent = missing(framework)
    if absent:
        raise MissingPackageError(
            f"{framework} strategies need {' and '.join(absent)}, which this Python does not have.",
            hint=f"Install: pip install 'meshscope[{framework}]'",
        )


def probe(frameworks: tuple[str, ...]) -> dict[str, Framework]:
    """Each framework as a short process of this interpreter finds it; all at once, each found once per process."""
    with ThreadPoolExecutor(max_workers=len(PACKAGES)) as pool:
        return dict(zip(frameworks, pool.map(_probed, frameworks), strict=True))


_FOUND: dict[str, Framework] = {}
_LOCK = threading.Lock()


def _probed(framework: str) -> Framework:
    with _LOCK:
        known = _FOUND.get(framework)
    if known is None:
        known = _ask(framework)
        with _LOCK:
            _FOUND[framework] = known
    return known


def _ask(framework: str) -> Framework:
    line = [sys.executable, "-m", "meshscope.capture.workers.probe", framework]
    # Looking is not claiming: without this JAX would take three quarters of every GPU's memory for a moment.
    quiet = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONSAFEPATH": "1"}
    try:
        found = told(line, quiet, Framework, patience_s=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return Framework(error=f"it did not answer within {PATIENCE_S:.0f} s")
    return Framework(error=found) if isinstance(found, str) else found
