"""A folder and a clock: the one path by which a live run and a replay reach the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from meshscope.experiment import Plan
from meshscope.recording.clock import Clock
from meshscope.run import Run
from meshscope.ui.scene import Scene, Stance, Stretch
from meshscope.units import NS_PER_S

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

# Writers of one folder do not see each other: an entry may still arrive shortly after the last one was read.
_SETTLED_NS = 5 * NS_PER_S


class Reel(Protocol):
    """Folds a folder up to a time (``run.Gallery``). Called by one thread at a time."""

    @property
    def start_unix_ns(self) -> int: ...

    @property
    def end_unix_ns(self) -> int | None: ...

    @property
    def stretches(self) -> tuple[tuple[str, int, int], ...]: ...

    def at(self, unix_ns: int) -> tuple[Plan | None, tuple[Run, ...]]: ...


class Playback:
    """``scene`` is called in a thread, one call at a time; everything else from the screen."""

    def __init__(self, folder: Path, reel: Reel, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        self.stretches: tuple[Stretch, ...] = ()
        self._reel = reel
        self._measured_ns = 0
        self.measure()

    def measure(self) -> None:
        """Find out how far the folder reaches now, and hold the clock at the end once there is one."""
        self._measured_ns = self.clock.wall()
        self.clock.start_unix_ns = self._reel.start_unix_ns
        self.clock.end_unix_ns = self._reel.end_unix_ns
        self.stretches = tuple(Stretch(*stretch) for stretch in self._reel.stretches)

    def scene(self) -> Scene:
        """Everything that is known now. Who follows a live run looks for its end every time: see ``_stance``."""
        if self.is_due or self._is_live:
            self.measure()
        stance = self._stance()
        plan, runs = self._reel.at(stance.now_unix_ns)
        return Scene(plan, runs, stance)

    @property
    def is_due(self) -> bool:
        """Whether to find out again how far the folder reaches: once a second, until nothing can be added any more."""
        end = self.clock.end_unix_ns
        is_settled = end is not None and self._measured_ns - end > _SETTLED_NS
        return not is_settled and self.clock.wall() - self._measured_ns >= NS_PER_S

    def stance(self) -> Stance:
        """How the clock stands. Playing that has caught up with the wall becomes following it."""
        clock = self.clock
        if not clock.is_paused and clock.end_unix_ns is None and clock.wall() - clock.now() < NS_PER_S // 2:
            clock.follow()
        return self._stance()

    @property
    def _is_live(self) -> bool:
        return self.clock.is_following and self.clock.end_unix_ns is None

    def _stance(self) -> Stance:
        """A run that goes on reaches as far as it was last seen to: its end, found later, is never before that."""
        clock = self.clock
        now = clock.now()
        return Stance(
            now_unix_ns=now,
            start_unix_ns=clock.start_unix_ns,
            last_unix_ns=clock.end_unix_ns if clock.end_unix_ns is not None else self._measured_ns,
            speed=clock.speed,
            is_live=self._is_live,
            is_paused=clock.is_paused,
            is_at_end=clock.is_at_end,
        )

    @property
    def is_running(self) -> bool:
        """Whether somebody still writes the folder."""
        return self.clock.end_unix_ns is None

    def toggle(self) -> None:
        """Pause, or go on; at the end, play from the beginning."""
        if self.clock.is_at_end:
            self.clock.is_paused = False
            self.clock.seek(self.clock.start_unix_ns)
        elif self.clock.is_paused:
            self.clock.resume()
        else:
            self.clock.pause()

    def seek_by(self, share: int) -> None:
        """Move by ``share`` fiftieths of the recording, or as many times 2 s where that is more.

        Back from the end the clock is held: it would be there again before anybody has looked.
        """
        span, was_at_end = self.stance().last_unix_ns - self.clock.start_unix_ns, self.clock.is_at_end
        self.clock.seek(self.clock.now() + share * max(span // 50, 2 * NS_PER_S))
        if was_at_end and share < 0:
            self.clock.is_paused = True

    def to_start(self) -> None:
        self.clock.seek(self.clock.start_unix_ns)

    def to_end(self) -> None:
        self.clock.follow()

    def hold_at(self, unix_ns: int) -> None:
        """Hold the clock at a time."""
        self.clock.seek(unix_ns)
        self.clock.is_paused = True

    def faster(self, by: int) -> str:
        """The next of SPEEDS, up or down; what there is to say of it where the clock does not show it.

        Who follows the wall cannot go faster than it.
        """
        if self._is_live and by > 0:
            return "This is live: there is nothing newer to hurry to."
        near = min(range(len(SPEEDS)), key=lambda at: abs(SPEEDS[at] - self.clock.speed))
        speed = SPEEDS[min(max(near + by, 0), len(SPEEDS) - 1)]
        if speed == self.clock.speed:
            return f"×{speed:g} is the {'fastest' if by > 0 else 'slowest'} there is."
        if self.clock.is_at_end:
            self.clock.speed = speed
            return f"×{speed:g}, once it plays again: space."
        self.clock.run_at(speed)
        return f"×{speed:g}, once it plays on: space." if self.clock.is_paused else ""
