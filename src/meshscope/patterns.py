"""What a regular expression may cost: patterns come from a file, names from a trace, and neither may hang a screen.

Python's engine tries one way after another to match; a pattern such as ``(a+)+$`` has exponentially many. The number
of ways is bounded here before a pattern is ever used: choices multiply along a sequence and add up over alternatives.
"""

from __future__ import annotations

import re
from typing import Any

from meshscope.errors import InputError

LONGEST_NAME = 512
"""How many characters of a name are looked at by a pattern that a user wrote."""

LONGEST_PATTERN = 200
MOST_WAYS = LONGEST_NAME**2
"""Ways to match from one starting point: two unlimited repetitions, ``first.*second.*third``."""

_SIMPLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def checked(pattern: str) -> str:
    """The pattern itself. Raises InputError when it is no regular expression, or one that could take too long."""
    if len(pattern) > LONGEST_PATTERN:
        raise InputError(f"The pattern has {len(pattern)} characters.", hint=f"At most {LONGEST_PATTERN} are allowed.")
    try:
        re.compile(pattern, re.IGNORECASE)
        parsed: Any = re._parser.parse(pattern)  # type: ignore[attr-defined]  # sre_parse, whose own name is deprecated
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            f"{pattern!r} is no regular expression: {error}.", hint="Put a backslash before characters like ( [ * + ?"
        ) from error
    if _ways(parsed) > MOST_WAYS:
        raise InputError(
            f"{pattern!r} could take too long on some names.",
            hint="Use at most two of * and +, and none inside a repeated group.",
        )
    return pattern


def _ways(parsed: Any) -> int:
    """In how many ways a sequence can match at one place, at most; anything unknown counts as too many."""
    product = 1
    for op, argument in parsed:
        product *= _ways_of(str(op), argument)
        if product > MOST_WAYS:
            return MOST_WAYS + 1
    return product


def _ways_of(op: str, argument: Any) -> int:
    if op in _SIMPLE:
        return 1
    if op == "SUBPATTERN":
        return _ways(argument[-1])
    if op == "ATOMIC_GROUP":
        return _ways(argument)
    if op == "BRANCH":
        return sum(_ways(branch) for branch in argument[1])
    if op in _REPEATS:
        return _repeated(*argument)
    return MOST_WAYS + 1


def _repeated(least: int, most: int, item: Any) -> int:
    most = min(int(most), LONGEST_NAME)
    choices = most - min(int(least), most) + 1
    if most > 1 and (_ways(item) > 1 or item.getwidth()[0] == 0):
        return MOST_WAYS + 1
    return choices * max(_ways(item), 1)
