"""What the path of an XLA operation says: the scope in which its code stands, and the phase of the step.

JAX writes scopes (``jax.named_scope``, Flax modules) and transformations into every operation's ``op_name``, outermost
first and the primitive last: ``jit(step)/transpose(jvp(Net))/Dense_0/dot_general`` is of the backward pass of
``Net/Dense_0``. What ``jvp`` marks is the forward pass of something that is differentiated; an optimizer is told by the
name of a scope or of a function that was compiled on its own. Nothing else says a phase: it is called other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from meshscope.analysis.phase_names import BACKWARD, FORWARD, OPTIMIZER, OTHER

NO_PATHS = "no compiled program in the trace says where its operations come from"

_AROUND = re.compile(r"^(\w+)\((.*)\)$", re.DOTALL)
_FUNCTIONS = frozenset({"jit", "pjit", "pmap", "xla_call", "core_call"})
"""What stands around the name of a function, which is no scope."""

_CONTROL = re.compile(r"(?<![^/])(while/(body|cond)|cond/branch_\d+_fun)(?![^/])")
_CALLS = frozenset({
    "", "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
    "remat", "remat2", "rematted_computation", "shard_map", "xla_call", "pjit",
})  # fmt: skip
_OPTIMIZER = re.compile(
    r"^(optax|optimi[sz]ers?|opt(imi[sz]er)?_(update|step)|update_(params|parameters|weights)|apply_(updates|gradients)"
    r"|adam(w|ax)?|sgd|lamb|lion|adafactor|adagrad|rmsprop|muon|shampoo)(?![a-z])",
    re.IGNORECASE,
)
_EQUATION = "->"


class Place(NamedTuple):
    """``scope`` is "" outside of any."""

    scope: str
    phase: str


@lru_cache(maxsize=65_536)
def place(path: str) -> Place:
    """Where an operation's code stands."""
    parts = _parts(_CONTROL.sub("", path))
    told = [_unwrapped(part) for part in parts]
    transforms = {name for one in told for name in one.transforms}
    inner = told[:-1]  # the last is the primitive
    scopes = [one.name for one in inner if not one.is_function and _is_scope(one.name)]
    # The first is the whole program, which may well be called after what it does at last.
    is_optimizer = any(_OPTIMIZER.match(one.name) for one in told[1:-1])
    return Place("/".join(scopes), _phase(transforms, is_optimizer=is_optimizer))


def _phase(transforms: set[str], *, is_optimizer: bool) -> str:
    if "transpose" in transforms:
        return BACKWARD
    if "jvp" in transforms:
        return FORWARD
    return OPTIMIZER if is_optimizer else OTHER


class _Part(NamedTuple):
    name: str
    transforms: tuple[str, ...]
    is_function: bool


def _unwrapped(part: str) -> _Part:
    """``transpose(jvp(Net))`` is ``Net``, transformed twice."""
    transforms: list[str] = []
    while (found := _AROUND.match(part)) is not None:
        transforms.append(found[1])
        part = found[2]
    return _Part(part, tuple(transforms), bool(transforms) and transforms[-1] in _FUNCTIONS)


def _is_scope(name: str) -> bool:
    """``einsum`` leaves its equation where scopes stand."""
    return name not in _CALLS and _EQUATION not in name


def _parts(path: str) -> list[str]:
    """Split at slashes outside of parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(path):
        depth += (character == "(") - (character == ")")
        if character == "/" and depth <= 0:
            parts.append(path[start:at])
            start = at + 1
    return [*parts, path[start:]]
