"""The clock that a screen follows: the wall, or a position that runs at ×n, pauses and seeks.

A live run can be paused and wound back too, since what happened is on disk; ``follow`` catches up again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Clock:
    """``now()`` is in unix ns. ``wall`` is handed in, so tests own time.

    The clock never passes ``end_unix_ns`` once that is known (the recording has ended), nor the wall.
    """

    wall: Callable[[], int] = time.time_ns
    speed: float = 1.0
    is_paused: bool = False
    is_following: bool = True
    start_unix_ns: int = 0
    end_unix_ns: int | None = None
    _anchor_wall: int = field(default=0, repr=False)
    _anchor: int = field(default=0, repr=False)

    def now(self) -> int:
        limit = self.wall() if self.end_unix_ns is None else min(self.wall(), self.end_unix_ns)
        if self.is_following:
            return limit
        if self.is_paused:
            return min(self._anchor, limit)
        return min(self._anchor + int((self.wall() - self._anchor_wall) * self.speed), limit)

    @property
    def is_at_end(self) -> bool:
        return self.end_unix_ns is not None and self.now() >= self.end_unix_ns

    def seek(self, unix_ns: int) -> None:
        """Go to a time (kept within start and end) and run on from there at the current speed."""
        limit = self.wall() if self.end_unix_ns is None else self.end_unix_ns
        self._anchor = max(self.start_unix_ns, min(unix_ns, limit))
        self._anchor_wall = self.wall()
        self.is_following = False

    def pause(self) -> None:
        self.seek(self.now())
        self.is_paused = True

    def resume(self) -> None:
        self.seek(self.now())
        self.is_paused = False

    def run_at(self, speed: float) -> None:
        """Change the speed without moving."""
        self.seek(self.now())
        self.speed = speed

    def follow(self) -> None:
        """Back to the newest: live again, or the end of what was recorded."""
        self.is_following, self.is_paused = True, False
