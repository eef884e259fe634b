"""What a screen is about at one moment: the plan, every run folded up to now, and which of them is looked at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from meshscope.analysis.simulation import SIMULATED, are_all_simulated, is_any_simulated
from meshscope.experiment import Plan
from meshscope.run import Run


@dataclass(frozen=True)
class Stance:
    """How the clock stands. ``last_unix_ns`` is the newest that can be shown; ``speed`` counts while playing.

    ``is_live`` means that the wall is followed and the end is not known; once a recording has ended and its end is
    shown, ``is_at_end`` is all that is left, and nothing tells a live run from a replay.
    """

    now_unix_ns: int = 0
    start_unix_ns: int = 0
    last_unix_ns: int = 0
    speed: float = 1.0
    is_live: bool = False
    is_paused: bool = False
    is_at_end: bool = False

    def goes_on_from(self, before: Stance) -> bool:
        """Whether nothing but time lies between: the clock ran on as it did, and did not jump."""
        ran = replace(before, now_unix_ns=self.now_unix_ns, last_unix_ns=self.last_unix_ns)
        return ran == self and not self.is_paused


@dataclass(frozen=True)
class Stretch:
    """Where one strategy's recording lies in time."""

    strategy: str
    start_unix_ns: int
    newest_unix_ns: int


@dataclass(frozen=True, eq=False)
class Scene:
    """``runs`` in the order of the plan; ``selected`` names a run, or one that is only planned yet, or is "".

    ``partial`` maps the names of runs whose traces are still being read to the share of them that is known;
    ``refused`` lists (path, why, hint) of traces that belong to no run, ``notes`` what else went less than well.
    ``is_of_traces`` says that they were opened by themselves, which shows before any of them is read; ``is_read`` that
    all of them are, so that nothing more is to come.
    """

    plan: Plan | None
    runs: tuple[Run, ...]
    stance: Stance = Stance()
    selected: str = ""
    partial: dict[str, float] = field(default_factory=dict)
    refused: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()
    is_of_traces: bool = False
    is_read: bool = False

    @property
    def run(self) -> Run | None:
        """The run that is looked at; None while it has not started."""
        return next((run for run in self.runs if run.name == self.selected), None)

    @property
    def strategies(self) -> tuple[str, ...]:
        """The name of every run that there is or will be, in order: its strategy, or the title of a trace."""
        started = [run.name for run in self.runs]
        planned = [planned.strategy for planned in self.plan.runs] if self.plan else []
        return tuple(dict.fromkeys(planned + started))

    @property
    def is_recorded(self) -> bool:
        """Whether this is a recording, whose journal tells of steps and times; traces by themselves have none."""
        if self.is_of_traces:
            return False
        return self.plan is not None or not self.runs or any(run.experiment.strategy for run in self.runs)

    @property
    def caveat(self) -> str:
        """What is to be known of every answer about the run that is looked at."""
        return so_far(self.partial[self.selected]) if self.selected in self.partial else ""

    @property
    def mark(self) -> str:
        """What stands in the title of every answer about the run that is looked at, where that never ran."""
        return SIMULATED if self.run is not None and self.run.is_simulated else ""

    @property
    def overall_mark(self) -> str:
        """The same for an answer about all runs together, whichever of them never ran."""
        if are_all_simulated(self.runs):
            return SIMULATED
        return f"some {SIMULATED}" if is_any_simulated(self.runs) else ""

    def looking_at(self, strategy: str) -> Scene:
        return replace(self, selected=strategy)


def so_far(share: float) -> str:
    """``so far, 12 % looked at``: what stands beside a number that more of the trace will change.

    More than that may be read already: a beginning is looked at while the whole is read on.
    """
    return f"so far, {share * 100:.0f} % looked at" if share >= 0.01 else "so far, under 1 % looked at"


def running(scene: Scene) -> str:
    """The strategy that runs now: the newest that has not ended; "" when none does."""
    return next((run.experiment.strategy for run in reversed(scene.runs) if run.ended is None), "")


def moved(scene: Scene, by: int) -> str:
    """The strategy ``by`` places below the selected one, stopping at either end."""
    names = scene.strategies
    if not names:
        return ""
    at = names.index(scene.selected) if scene.selected in names else 0
    return names[min(max(at + by, 0), len(names) - 1)]


def version(run: Run | None) -> tuple[object, ...]:
    """Equal for two foldings of the same entries and traces, sensor readings aside (they come all the time)."""
    if run is None:
        return ()
    told = (run.phases, run.logs, run.compiles, run.memory, run.rank_ends, run.windows_asked)
    counts = tuple(len(entries) for entries in told)
    # A trace that is read further has the same windows, with more in them.
    read = sum(window.counts.read for window in run.windows)
    traced = (len(run.windows), len(run.records), read, len(run.refused))
    return (run.path, len(run.steps), *traced, run.ended is not None, *counts)
