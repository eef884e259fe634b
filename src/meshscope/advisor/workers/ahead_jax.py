"""``python -m meshscope.advisor.workers.ahead_jax``: what XLA would run for a workload's step, compiled and never run.

The workload's own script comes as far as its compiled step, on as many virtual CPU devices as it asks for. Parameters
and optimizer state are never made: where the script draws them it gets their shapes, and how they lie over devices.

The sizes of arguments and results are those of any device. Which collectives there are is the partitioner's doing, up
to what a backend's own passes make of them (combining, pairs of start and done). Temporaries are of XLA's CPU compiler:
they tell nothing about a GPU, and are told apart for that.
"""

from __future__ import annotations

import dataclasses
import re
import resource
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from math import prod
from typing import Any

import jax

from meshscope.advisor.workers import scripted
from meshscope.advisor.workers.scripted import Asked, Enough, UntoldError
from meshscope.readers.hlo_program import Instruction, instructions_of
from meshscope.readers.xplane_messages import message

_TRIPS = re.compile(rb'"known_trip_count":\{"n":"(\d+)"\}')
_SOMETIMES = "some are within a loop of unknown length or a branch, and count once"


class Namespace:
    """``jax`` as the script sees it: what it would compute before its step is worked out in shape alone.

    ``rows``: arrays of a script that uses pmap have a row for each device.
    """

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self.rows = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)

    def jit(self, function: Callable[..., Any], **how: Any) -> Program:
        return Program(jax.jit(function, **how), how.get("out_shardings"))

    def pmap(self, function: Callable[..., Any], *args: Any, **how: Any) -> Program:
        self.rows = self._devices
        return Program(jax.pmap(function, *args, **how), None)


class Program:
    """A function to compile; called, it gives the shapes of what it would return."""

    def __init__(self, jitted: Any, shardings: Any) -> None:
        self._jitted, self._shardings = jitted, shardings

    def lower(self, *args: Any) -> Any:
        return self._jitted.lower(*args)

    def __call__(self, *args: Any) -> Any:
        shapes = jax.eval_shape(self._jitted, *args)
        if self._shardings is None:
            return shapes
        return jax.tree.map(_laid_out, self._shardings, shapes)


def _laid_out(sharding: Any, shapes: Any) -> Any:
    """One sharding may stand for a whole tree of arrays."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shapes)


class AheadWatch:
    """See ``workloads/watching.py`` for what a script calls, and when."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self.told: dict[str, Any] = {}

    def compiling(self, what: str) -> AbstractContextManager[None]:
        del what
        return nullcontext()

    def started(
        self, *, parameters: Callable[[], Any], optimizer: Callable[[], Any], compiled: Any = None, key: Any = None
    ) -> None:
        del key
        if compiled is None:
            raise UntoldError("the script compiles its step only when it runs")
        sizes = {"parameters": self._bytes(parameters()), "optimizer": self._bytes(optimizer())}
        self.told = {"sizes": sizes | _planned(compiled), **_collectives(compiled)}
        raise Enough

    def _bytes(self, tree: Any) -> int:
        """On one device; a row per device, as pmap has them, is that device's."""
        return sum(_leaf_bytes(leaf) // self._namespace.rows for leaf in jax.tree.leaves(tree))


def _leaf_bytes(leaf: Any) -> int:
    sharding = getattr(leaf, "sharding", None)
    shape = leaf.shape if sharding is None else sharding.shard_shape(leaf.shape)
    return int(prod(shape) * leaf.dtype.itemsize)


def _planned(compiled: Any) -> dict[str, int]:
    """Of one device for one run of the step; ``results`` are those that take no argument's place."""
    analysis = compiled.memory_analysis()
    if isinstance(analysis, list | tuple):
        analysis = analysis[0] if analysis else None
    if analysis is None:
        raise UntoldError("XLA does not tell what the compiled step needs")
    return {
        "arguments": int(analysis.argument_size_in_bytes),
        "outputs": int(analysis.output_size_in_bytes),
        "results": max(0, int(analysis.output_size_in_bytes - analysis.alias_size_in_bytes)),
        "cpu_temporaries": int(analysis.temp_size_in_bytes),
    }


def _collectives(compiled: Any) -> dict[str, Any]:
    """Of one device in one step, alike ones together."""
    content = _as_program(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    times, is_whole = _times(content)
    found: Counter[tuple[str, int, int, int]] = Counter()
    for name, one in instructions_of(content).items():
        if one.message is not None:
            found[_what(one)] += times.get(name, 1)
    sent = [
        {"kind": kind, "size_bytes": size, "ranks": ranks, "groups": groups, "count": count}
        for (kind, size, ranks, groups), count in sorted(found.items())
    ]
    return {"collectives": sent, "notes": [] if is_whole else [_SOMETIMES]}


def _what(one: Instruction) -> tuple[str, int, int, int]:
    assert one.message is not None
    kind = one.opcode.removesuffix("-start").replace("-", "_")
    return kind, one.message.size_bytes, one.message.groups.size, one.message.groups.count


def _as_program(module: bytes) -> bytes:
    """A serialized HloModuleProto as the only field of an HloProto, which is what traces hold."""
    length, size = len(module), bytearray()
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return b"\x0a" + bytes([*size, length]) + module


def _times(content: bytes) -> tuple[dict[str, int], bool]:
    """How often each instruction runs in a step, and whether all of that is known: loops run their body many times."""
    module = message("Program").FromString(content).module
    callers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    is_whole = True
    for computation in module.computations:
        for one in computation.instructions:
            trips = _TRIPS.search(one.backend_config) if one.opcode == b"while" else None
            is_open = one.opcode == b"conditional" or (one.opcode == b"while" and trips is None)
            for called in one.called_computation_ids:
                callers[called].append((computation.id, int(trips[1]) if trips else 1))
                is_whole &= not (is_open and _has_collectives(module, called))
    runs = {computation.id: _runs(computation.id, callers) for computation in module.computations}
    times = {
        one.name.decode("utf-8", "replace"): runs[computation.id]
        for computation in module.computations
        for one in computation.instructions
    }
    return times, is_whole


def _runs(computation: int, callers: dict[int, list[tuple[int, int]]]) -> int:
    """Computations call no circle, so this ends."""
    if computation not in callers:
        return 1
    return sum(_runs(caller, callers) * trips for caller, trips in callers[computation])


def _has_collectives(module: Any, number: int) -> bool:
    kinds = (b"all-", b"reduce-scatter", b"collective-", b"send", b"recv")
    its = next((one for one in module.computations if one.id == number), None)
    return its is not None and any(one.opcode.startswith(kinds) for one in its.instructions)


def tell(asked: Asked) -> dict[str, Any]:
    options = dataclasses.replace(scripted.options(asked), devices=asked.ranks, device="cpu")
    script: Any = scripted.imported(asked.script)
    script.jax = Namespace(asked.ranks)
    watch = AheadWatch(script.jax)
    with suppress(Enough):
        script.train(options, watch)
    return {
        "version": jax.__version__,
        "worker_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **watch.told,
    }


if __name__ == "__main__":
    sys.exit(scripted.answer(tell))
