"""Where in a program an allocation was asked for: one line out of the stack that torch's allocator recorded.

``_record_memory_history`` keeps frames, the innermost first; Python's stand between those of C++. The one that helps is
the innermost of the program's own. The backward pass runs on threads of C++ alone: there the operator is what can be
told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from meshscope.records import STEP_PARTS
from meshscope.units import printable

_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|torch|lib[/\\]python3(\.\d+)?)[/\\]|^<frozen")
_OPERATOR = re.compile(r"^at::_ops::(\w+)::")
_OPTIMIZER = re.compile(r"[/\\]torch[/\\]optim[/\\]")
_AUTOGRAD = re.compile(r"[/\\]torch[/\\]autograd[/\\](graph|__init__)\.py$")
_MODULE = re.compile(r"[/\\]torch[/\\]nn[/\\]modules[/\\]module\.py$")
_ENGINE = "torch::autograd::Engine::"
_LONGEST = 300
_WIDTH = 120
_MOST_FRAMES = 512


class Sites:
    """Numbers for sites, in the order in which they were first met. A stack that is shared is looked at once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._of_stack: dict[int, tuple[int, int]] = {}

    def numbers(self, frames: Any) -> tuple[int, int]:
        """(site, part of the step), −1 without a stack. ``frames`` is known by its identity, so it has to live on."""
        if not isinstance(frames, list) or not frames:
            return -1, -1
        known = self._of_stack.get(id(frames))
        if known is None:
            words = site(frames)
            number = self._numbers.setdefault(words, len(self._numbers)) if words else -1
            known = self._of_stack[id(frames)] = (number, STEP_PARTS.index(part(frames)) if words else -1)
        return known

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self._numbers)


def site(frames: list[Any]) -> str:
    """``file:line function``, fit for a terminal; "" where no frame tells anything."""
    listed = list(_frames(frames))
    python = [(name, file, line) for name, file, line in listed if file.endswith(".py") or file.startswith("<")]
    own = [frame for frame in python if not _LIBRARY.search(frame[1])]
    for name, file, line in (*own, *python):
        where = "/".join(re.split(r"[/\\]", file)[-2:])
        return printable(f"{where}:{line} {name}")[:_WIDTH].strip()
    return _operator([name for name, _, _ in listed])


def part(frames: list[Any]) -> str:
    """Who had called: the optimizer, autograd, a module, or none of them. Autograd's calls may run modules again."""
    listed = list(_frames(frames))
    if any(_OPTIMIZER.search(file) for _, file, _ in listed):
        return "optimizer"
    if any(name.startswith(_ENGINE) or _AUTOGRAD.search(file) for name, file, _ in listed):
        return "backward"
    is_forward = any(name == "_call_impl" and _MODULE.search(file) for name, file, _ in listed)
    return "forward" if is_forward else "elsewhere"


def _operator(names: list[str]) -> str:
    """The innermost operator, and whether autograd's engine had asked for it."""
    found = next((match[1] for name in names if (match := _OPERATOR.match(name))), "")
    if not found:
        return ""
    is_backward = any(name.startswith(_ENGINE) for name in names)
    return printable(f"aten::{found}{' in the backward pass' if is_backward else ''}")[:_WIDTH]


def _frames(frames: list[Any]) -> Iterator[tuple[str, str, int]]:
    for frame in frames[:_MOST_FRAMES]:
        if isinstance(frame, dict):
            name, file, line = (frame.get(key) for key in ("name", "filename", "line"))
            if isinstance(name, str) and isinstance(file, str):
                yield name[:_LONGEST], file[-_LONGEST:], line if type(line) is int and 0 <= line < 1 << 31 else 0
