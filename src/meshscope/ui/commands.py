"""What a screen can be told to do, by name: the entries of the command palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from textual.fuzzy import Matcher


@dataclass(frozen=True)
class Command:
    """``key`` does the same without the palette; "" where none does."""

    title: str
    about: str
    run: Callable[[], None]
    key: str = ""


@runtime_checkable
class Commanded(Protocol):
    """A screen that has commands of its own."""

    def commands(self) -> Iterator[Command]: ...


def matching(commands: Sequence[Command], typed: str) -> list[Command]:
    """Those whose title (or else whose explanation) holds the letters in order, the best first; all for none typed."""
    if not typed.strip():
        return list(commands)
    matcher = Matcher(typed.strip())
    scores = [(matcher.match(one.title), matcher.match(one.about)) for one in commands]
    order = sorted(range(len(commands)), key=lambda at: scores[at], reverse=True)
    by_title = [commands[at] for at in order if scores[at][0] > 0]
    return by_title or [commands[at] for at in order if scores[at][1] > 0]
