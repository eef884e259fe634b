"""What a number is, and what an explanation of it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from meshscope.analysis.explaining.figure import Figure
from meshscope.run import Run


@dataclass(frozen=True, eq=False)
class Asked:
    """A question for one number of ``run``, which stands beside ``runs`` (itself included).

    ``rank`` and ``step`` narrow it down; None for all.
    """

    run: Run
    runs: tuple[Run, ...]
    rank: int | None = None
    step: int | None = None

    def has(self, rank: int) -> bool:
        """Whether a rank was asked about."""
        return self.rank is None or self.rank == rank


@dataclass(frozen=True)
class Place:
    """A window that a number rests on, from its first to its last device event, in ns of the run's own time.

    ``steps`` are those that count, ``steps_ns`` how long they take: by their marks, which may begin before the first
    device event and end after the last, or on the device where that is behind its host (``is_behind``).
    """

    source: str
    rank: int
    start_ns: int
    end_ns: int
    steps: tuple[int, ...]
    is_complete: bool
    steps_ns: int = 0
    is_behind: bool = False


@dataclass(frozen=True)
class Shown:
    """One span, or one stretch without any: ``share_ns`` of its ``duration_ns`` belong to the number.

    ``lane`` is the stream, XLA line or thread; ``rule`` is what its kind was told by.
    """

    name: str
    lane: str
    rank: int
    kind: str
    rule: str
    start_ns: int
    duration_ns: int
    share_ns: int


@dataclass(frozen=True)
class Ruled:
    """The spans that one rule took for one thing; ``joined_ns`` is what the number has of them, joined over time."""

    kind: str
    collective: str
    rule: str
    count: int
    joined_ns: int


@dataclass(frozen=True)
class Evidence:
    """``count`` spans (``what`` in words) stand behind a number; ``largest`` are those with most of it."""

    what: str
    count: int
    rules: tuple[Ruled, ...] = ()
    largest: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Events:
    """What reading the files of these windows met, as ``events`` of ``analyze --json`` counts it."""

    read: int
    device: int
    dropped: dict[str, int]
    repaired: dict[str, int]


@dataclass(frozen=True)
class Case:
    """One value: of a rank, of all ranks, of a row. ``figure`` is None where it cannot be said, and ``why`` says why.

    ``json`` is where it stands in ``analyze --json``, from the recording on (from ``comparison`` on where it begins
    so); "" where it does not. ``notes`` are sentences about how it was come by.
    """

    of: str
    figure: Figure | None
    json: str = ""
    why: str = ""
    rank: int | None = None
    places: tuple[Place, ...] = ()
    evidence: Evidence | None = None
    events: Events | None = None
    notes: tuple[str, ...] = ()


def traced_steps(run: Run) -> set[int]:
    """The steps that lie wholly in some window."""
    return {step for window in run.windows for step in window.steps}


OF_ALL_RANKS = "it is one number of all ranks together"
OF_ALL_STEPS = "it is of all that was recorded, not of a step"


@dataclass(frozen=True)
class Number:
    """A number that can be explained. ``definition`` is one sentence, ``excludes`` says what it does not include.

    ``also`` are other names for it, those of JSON and of columns among them. ``by`` says what it can be narrowed to:
    ``rank``, ``step``; ``no_rank`` and ``no_step`` say why not, where it cannot. What is not ``is_listed`` is found by
    its name, and stands in no list: there are thousands of kernels, each with its median. ``known_steps`` are those
    that it can be told of.
    """

    name: str
    unit: str
    definition: str
    excludes: str
    cases: Callable[[Asked], tuple[Case, ...]]
    also: tuple[str, ...] = ()
    by: tuple[str, ...] = ("rank",)
    no_rank: str = OF_ALL_RANKS
    no_step: str = OF_ALL_STEPS
    is_listed: bool = True
    known_steps: Callable[[Run], Iterable[int]] = traced_steps


@dataclass(frozen=True)
class Group:
    """Numbers that belong together; ``numbers`` are those that a run has, or could have.

    ``heads`` are what all their names begin with, where they have that in common: a group that takes long to ask is
    then asked for those alone.
    """

    title: str
    place: int
    numbers: Callable[[Run], tuple[Number, ...]]
    heads: tuple[str, ...] = ()

    def may_have(self, name: str) -> bool:
        """Whether a name could be one of its numbers'."""
        return not self.heads or name.startswith(self.heads)


@dataclass(frozen=True)
class Explanation:
    """The answer: a number of one run, case by case."""

    number: Number
    group: str
    run: str
    path: str
    cases: tuple[Case, ...]
