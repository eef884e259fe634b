"""Which inputs of a function are not as they were when it was compiled before, from what JAX logs of compilations.

Two logs tell. ``jax_explain_cache_misses`` names the arguments, but says nothing of a function that was defined in a
library, and to JAX the function inside ``pmap`` is one. The log of lowerings has the shapes of all inputs of every
program and no names; it is written at DEBUG, and nothing that was not shown before is shown because of this.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from meshscope.recording.entries import function_of

_LOWERING_LOGGER = "jax._src.interpreters.pxla"
_LOWERING = "Compiling %s with global shapes and types"
_FUNCTION = re.compile(r"^\s*(?:for (.+?)(?: defined at .*)?|never seen function:\s*(\S+) id=.*)$", re.MULTILINE)
_INPUT = re.compile(r"^\s*\* at (.+), now (\S+) and before (\S+?)(?:https://\S*)?$", re.MULTILINE)
_ADDRESS = re.compile(r" id=\d+")
_DTYPE = re.compile(r"^(bf|f|i|u|c)(\d+)(?=\[)")
_DTYPES = {"bf": "bfloat", "f": "float", "i": "int", "u": "uint", "c": "complex"}
_MOST, _LONGEST = 8, 500


@dataclass(frozen=True)
class _Lowered:
    """The inputs of one program, in order: ``int32[8,128]``, and how each lies on the devices, JAX's own objects."""

    shapes: tuple[str, ...]
    shardings: tuple[Any, ...]


class Inputs(logging.Handler):
    """Listens to both logs. A function is called by its bare name: ``step``, also where JAX says ``jit(step)``."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._reasons: dict[str, str] = {}
        self._earlier: dict[str, list[_Lowered]] = defaultdict(list)
        self._newest: dict[str, _Lowered] = {}
        logger = logging.getLogger(_LOWERING_LOGGER)
        self._logger, self._own_level = logger, logger.level
        logger.addFilter(self._lowered)
        logger.setLevel(min(logging.DEBUG, self._shown_from))

    @property
    def _shown_from(self) -> int:
        """What would be shown without this: a script may set the levels of the loggers above at any time."""
        above = self._logger.parent
        return self._own_level or (above.getEffectiveLevel() if above is not None else logging.WARNING)

    def explain(self) -> None:
        """From now on ask JAX for reasons: before the first step everything is new, and explaining it costs time."""
        if "jax_explain_cache_misses" in jax.config.values:
            jax.config.update("jax_explain_cache_misses", True)  # noqa: FBT003
            logging.getLogger("jax").addHandler(self)

    def compiled(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Of the function that was just compiled: JAX's reason ("" where it gave none) and the inputs that changed."""
        function = function_of(name)
        reason = self._reasons.pop(function, "")
        newest = self._newest.pop(function, None)
        named = tuple(f"{at} {_long(before)} → {_long(now)}" for at, now, before in _INPUT.findall(reason))
        changed = named or (_differences(newest, self._earlier[function]) if newest else ())
        if newest is not None and newest not in self._earlier[function]:
            self._earlier[function].append(newest)
        return _one_line(reason), _first(changed)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        found = _FUNCTION.search(text) if "CACHE MISS" in text else None
        if found is not None:
            # The functions that it calls are traced meanwhile and explained under their own names.
            self._reasons[found[1] or found[2]] = text

    def _lowered(self, record: logging.LogRecord) -> bool:
        """A filter, since one sees what no handler may show."""
        told = record.args if isinstance(record.args, tuple) else ()
        if str(record.msg).startswith(_LOWERING) and len(told) >= 2 and isinstance(told[1], Sequence):
            mapping = told[2] if len(told) > 2 and isinstance(told[2], Sequence) else ()
            self._newest[function_of(str(told[0]))] = _Lowered(tuple(_shape(aval) for aval in told[1]), tuple(mapping))
        return record.levelno >= self._shown_from


def _shape(aval: Any) -> str:
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        return str(aval)
    weak = " (weak type)" if getattr(aval, "weak_type", False) else ""
    return f"{dtype}[{','.join(str(size) for size in shape)}]{weak}"


def _differences(newest: _Lowered, earlier: Sequence[_Lowered]) -> tuple[str, ...]:
    """Against the earlier program that is most like it, the newest of several: only one with as many inputs can be."""
    alike = [program for program in earlier if len(program.shapes) == len(newest.shapes)]
    if not alike:
        return ()
    nearest = min(reversed(alike), key=lambda program: _distance(newest, program))
    count = len(newest.shapes)
    changed = [
        f"input {number} of {count} {before} → {now}"
        for number, (before, now) in enumerate(zip(nearest.shapes, newest.shapes, strict=True), start=1)
        if before != now
    ]
    if changed or len(nearest.shardings) != len(newest.shardings):
        return tuple(changed)
    return tuple(
        f"input {number} of {count} {newest.shapes[number - 1]} is split over the devices in another way"
        for number, (before, now) in enumerate(zip(nearest.shardings, newest.shardings, strict=True), start=1)
        if before != now
    )


def _distance(one: _Lowered, other: _Lowered) -> int:
    return sum(first != second for first, second in zip(one.shapes, other.shapes, strict=True))


def _long(short: str) -> str:
    """``int32[8,128]`` of ``i32[8,128]``: numpy's names, as everywhere else."""
    return _DTYPE.sub(lambda found: _DTYPES[found[1]] + found[2], short)


def _first(changed: tuple[str, ...]) -> tuple[str, ...]:
    return changed if len(changed) <= _MOST else (*changed[:_MOST], f"{len(changed) - _MOST} more inputs")


def _one_line(reason: str) -> str:
    """Without the place of the call and the function's address, which is another one each time."""
    lines = (_ADDRESS.sub("", line).strip() for line in reason.splitlines()[1:])
    return " ".join(line for line in lines if line)[:_LONGEST]
