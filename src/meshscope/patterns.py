"""What a regular expression may cost: patterns come from a file, names from a trace, and neither may hang a screen.

Python's engine tries one way after another to match; a pattern such as ``(a+)+$`` has exponentially many. The number
of ways is bounded here before a pattern is ever used: choices multiply along a sequence and add up over alternatives.
The costlier a pattern may get, the less of a name it looks at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from meshscope.errors import InputError

LONGEST_PATTERN = 200
MOST_STEPS = 150_000_000
"""Ways times starting points: about a second for the worst name that could be made for a pattern."""

_REACHES = (8192, 2048, 512, 256)
_SIMPLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def reach(pattern: str) -> int:
    """How many characters of a name the pattern may look at: 8192 for all but those with several repetitions.

    Raises InputError when it is no regular expression, or one that could take too long on any name.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise InputError(f"The pattern has {len(pattern)} characters.", hint=f"At most {LONGEST_PATTERN} are allowed.")
    try:
        re.compile(pattern, re.IGNORECASE)
        parsed: Any = re._parser.parse(pattern)  # type: ignore[attr-defined]  # sre_parse, whose own name is deprecated
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            f"{pattern!r} is no regular expression: {error}.", hint="Put a backslash before characters like ( [ * + ?"
        ) from error
    for length in _REACHES:
        if _Ways(length).of(parsed) * length <= MOST_STEPS:
            return length
    raise InputError(
        f"{pattern!r} could take too long on some names.",
        hint="Use at most two of * and +, and none inside a repeated group.",
    )


@dataclass(frozen=True)
class _Ways:
    """In how many ways something can match at one place of a text of ``length``; anything unknown is too many."""

    length: int

    def of(self, parsed: Any) -> int:
        product = 1
        for op, argument in parsed:
            product *= self._one(str(op), argument)
            if product > MOST_STEPS:
                return MOST_STEPS + 1
        return product

    def _one(self, op: str, argument: Any) -> int:
        if op in _SIMPLE:
            return 1
        if op == "SUBPATTERN":
            return self.of(argument[-1])
        if op == "ATOMIC_GROUP":
            return self.of(argument)
        if op == "BRANCH":
            return sum(self.of(branch) for branch in argument[1])
        return self._repeated(*argument) if op in _REPEATS else MOST_STEPS + 1

    def _repeated(self, least: int, most: int, item: Any) -> int:
        most = min(int(most), self.length)
        inside = self.of(item)
        if most > 1 and (inside > 1 or item.getwidth()[0] == 0):
            return MOST_STEPS + 1
        return (most - min(int(least), most) + 1) * inside
