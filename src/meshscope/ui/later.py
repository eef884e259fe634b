"""What is loaded once somebody asks, while meshscope may have been changed on disk under a screen that runs.

A live run is looked at for hours; an upgrade meanwhile must not end the screen. What is loaded stays, and what is not
cannot be loaded any more beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from meshscope.errors import MeshscopeError

T = TypeVar("T")


class ChangedError(MeshscopeError):
    """A part of meshscope cannot be loaded beside those that are."""


@contextmanager
def loading() -> Iterator[None]:
    """Around work that loads what it needs. Raises ChangedError in place of what Python raises."""
    try:
        yield
    except (ImportError, SyntaxError) as error:
        why = f"meshscope was changed on disk since it was started ({type(error).__name__}: {error})."
        raise ChangedError(why, hint="Restart it for this.") from error


def later(load: Callable[[], T], tell: Callable[[str], None]) -> T | None:
    """What ``load`` imports; None where that cannot be loaded any more, and then a line tells so."""
    try:
        with loading():
            return load()
    except ChangedError:
        tell("meshscope was changed on disk; restart it for this screen.")
        return None
