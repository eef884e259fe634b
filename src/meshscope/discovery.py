"""Finds the members of an open set: one file per member, no list to keep in step.

A reader, an analysis or a panel is a module of its package with one constant (``READER``, ``ANALYSIS``,
``PANEL``). Workloads are scripts that declare themselves in a PEP 723 block, which is read as text: discovery
never imports what might import torch or JAX.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from meshscope.errors import InputError

Member = TypeVar("Member")

_SCRIPT_BLOCK = re.compile(r"(?m)^# /// script\s*$\n(?P<body>(?:^#(?: .*)?$\n)+?)^# ///\s*$")
_PARALLEL_MARK = re.compile(r"#\s*parallel\b")


def discover(package: str, attribute: str, kind: type[Member]) -> tuple[Member, ...]:
    """Every ``attribute`` of type ``kind`` among the direct modules of ``package``, in order of module name.

    Sub-packages are not entered, so ``workers/`` (which may import torch or JAX) is never touched.
    """
    members = []
    parent = importlib.import_module(package)
    for module in sorted(pkgutil.iter_modules(parent.__path__), key=lambda found: found.name):
        if module.ispkg:
            continue
        member = getattr(importlib.import_module(f"{package}.{module.name}"), attribute, None)
        if isinstance(member, kind):
            members.append(member)
    return tuple(members)


def bundled(name: str) -> Path:
    """The folder ``workloads`` or ``recordings``: the installed copy, else the source tree's."""
    here = Path(__file__).resolve().parent
    for candidate in (here / "_bundled" / name, here.parent.parent / name):
        if candidate.is_dir():
            return candidate
    raise InputError(
        f"The folder {name}/ is missing from this installation.",
        hint="Install meshscope again: pip install --force-reinstall meshscope",
    )


@dataclass(frozen=True)
class Workload:
    """A training script and what it says about itself in its PEP 723 block.

    ``launch`` is ``"torchrun"`` (one process per rank) or ``"process"`` (one process over all devices).
    ``arguments`` are added before the user's own. ``parallel_lines`` counts the lines marked ``# parallel``. What
    ``needs_gpu`` cannot run on a CPU.
    """

    strategy: str
    title: str
    framework: str
    launch: str
    script: Path
    min_ranks: int = 1
    max_ranks: int | None = None
    is_baseline: bool = False
    arguments: tuple[str, ...] = ()
    parallel_lines: int = 0
    needs_gpu: bool = False


def workloads(folder: Path | None = None) -> tuple[Workload, ...]:
    """Every strategy declared by a script in ``folder`` (the bundled ones by default), by strategy name."""
    found: list[Workload] = []
    for script in sorted((folder or bundled("workloads")).glob("*.py")):
        text = script.read_text(encoding="utf-8")
        found += (_workload(script, text, entry) for entry in _declared(text))
    return tuple(sorted(found, key=lambda w: (w.is_baseline, w.framework != "torch", w.strategy)))


def _declared(text: str) -> list[dict[str, Any]]:
    block = _SCRIPT_BLOCK.search(text)
    if block is None:
        return []
    body = "".join(line[2:] if line.startswith("# ") else line[1:] for line in block["body"].splitlines(keepends=True))
    entries = tomllib.loads(body).get("tool", {}).get("meshscope", {}).get("strategy", [])
    return list(entries)


def _workload(script: Path, text: str, entry: dict[str, Any]) -> Workload:
    return Workload(
        strategy=entry["name"],
        title=entry["title"],
        framework=entry["framework"],
        launch=entry["launch"],
        script=script,
        min_ranks=entry.get("min_ranks", 1),
        max_ranks=entry.get("max_ranks"),
        is_baseline=entry.get("baseline", False),
        arguments=tuple(entry.get("arguments", ())),
        parallel_lines=sum(1 for line in text.splitlines() if _PARALLEL_MARK.search(line)),
        needs_gpu=entry.get("needs_gpu", False),
    )
