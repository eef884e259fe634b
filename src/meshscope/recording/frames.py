"""Frames of Python stacks as a recording keeps them: ``path:line function(arguments)``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r"^(?P<path>.{1,1000}):(?P<line>\d{1,9}|\?\?\?) (?P<function>.{1,400})$")
_LIBRARIES = re.compile(r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|meshscope/capture)/|^<")
_BUNDLED = "meshscope/_bundled/workloads/"
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
    def words(self) -> str:
        """``wait(device=3) (train.py:12)``."""
        return f"{self.function.rpartition('.<locals>.')[2]} ({self.path.rpartition('/')[2]}:{self.line})"

    @property
    def place(self) -> int | None:
        """The rank or the device that its arguments name."""
        found = _PLACE.search(self.function)
        return int(found[1]) if found else None


def frame(text: str) -> Frame | None:
    """None where it is no frame."""
    found = _FRAME.match(text)
    return Frame(found["path"], found["line"], found["function"]) if found else None


def is_own(path: str) -> bool:
    """Whether a file is the program's, not a library's, the interpreter's or the profiler's."""
    return _BUNDLED in path or _LIBRARIES.search(path) is None
