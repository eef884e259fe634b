"""A request that cannot be met, and what to change about it."""

from __future__ import annotations


class OptionError(Exception):
    """A request that cannot be trained as it was put; ``hint`` says what to change."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
