"""Frames of Python stacks as a recording keeps them: ``path:line function(arguments)``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FRAME = re.compile(r"^(?P<path>.{1,1000}):(?P<line>\d{1,9}|\?\?\?) (?P<function>.{1,400})$")
_LIBRARIES = re.compile(r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|meshscope/capture)/|^<")
_BUNDLED = "meshscope/_bundled/workloads/"
_TORCH = re.compile(r"(^|/)(site-packages|dist-packages)/torch/")
_PLACE = re.compile(r"\b(?:device|rank)=(\d{1,6})\b")


@dataclass(frozen=True)
class Frame:
    """``function`` has its plain arguments where they were seen: ``wait(device=3)``."""

    path: str
    line: str
    function: str

    @property
    def is_own(self) -> bool:
        """Whether it is in the program's own code."""
        return is_own(self.path)

    @property
    def is_in_torch(self) -> bool:
        """Whether it is torch's: below such a frame a rank waits for the others, or for its device."""
        return _TORCH.search(self.path) is not None

    @property
    def words(self) -> str:
        """``wait(device=3) (train.py:12)``."""
        return f"{self.function.rpartition('.<locals>.')[2]} ({self.path.rpartition('/')[2]}:{self.line})"

    @property
    def place(self) -> int | None:
        """The rank or the device that its arguments name."""
        found = _PLACE.search(self.function)
        return int(found[1]) if found else None


def apart(innermost: Mapping[int, Frame]) -> int | None:
    """The one rank that is in no call of torch's while all others are: they wait for it. None where it is not one."""
    elsewhere = [rank for rank, found in innermost.items() if not found.is_in_torch]
    return elsewhere[0] if len(elsewhere) == 1 < len(innermost) else None


def frame(text: str) -> Frame | None:
    """None where it is no frame."""
    found = _FRAME.match(text)
    return Frame(found["path"], found["line"], found["function"]) if found else None


def is_own(path: str) -> bool:
    """Whether a file is the program's, not a library's, the interpreter's or the profiler's."""
    return _BUNDLED in path or _LIBRARIES.search(path) is None
