"""What the faults of ``faults`` do to a training script. Without ``--inject`` nothing here does anything.

Each framework is imported only by what serves it. The faults that stand in the options alone (``small-buckets`` under
DDP, batches that are ragged, late or of a new length) are in ``options`` and ``tokens``.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from breaking import SlowLink, crash
from faults import faults
from options import Options

if TYPE_CHECKING:
    import jax
    import torch

_MIB = 2**20
_SIDE = 256
_ROUNDS_AHEAD = 500


class TorchFaults:
    """The faults of one torch rank, made once the model is wrapped."""

    def __init__(self, options: Options, model: torch.nn.Module, device: torch.device) -> None:
        self._asked = faults(options.inject)
        self._device = device
        self._is_last = int(os.environ.get("RANK", "0")) == int(os.environ.get("WORLD_SIZE", "1")) - 1
        self._kept: list[torch.Tensor] = []
        self._link = (
            SlowLink(self._asked["slow-link"], device) if "slow-link" in self._asked and self._is_last else None
        )
        self._work_s = self._calibrated() if "straggler" in self._asked else 0.0
        if self.is_unsynced:
            model.require_backward_grad_sync = False  # What DDP's no_sync() does, for good.
        if "same-key" in self._asked:
            import torch

            torch.manual_seed(options.seed)

    @property
    def is_unsynced(self) -> bool:
        """Whether gradients stay what each rank has made of its own part."""
        return "unsynced-gradients" in self._asked

    def strike(self, step: int) -> None:
        """Inside a step, between its batch and its forward pass."""
        if "memory-leak" in self._asked:
            import torch

            size = int(self._asked["memory-leak"] * _MIB / 4)
            self._kept.append(torch.ones(size, device=self._device))
        if "straggler" in self._asked and self._is_last:
            self._work(self._asked["straggler"] / 1000)
        if self._link is not None:
            self._link.slow_down()
        if self._asked.get("rank-crash") == step and self._is_last:
            crash(step)
        if self._asked.get("hang") == step and self._is_last:
            self._hang()

    def _work(self, longer_s: float) -> None:
        """Matrix products: until the time is over on a CPU, as many as take that long on a GPU."""
        import torch

        square = torch.ones(_SIDE, _SIDE, device=self._device)
        if self._work_s:
            for _ in range(round(longer_s / self._work_s)):
                torch.mm(square, square)
            return
        deadline_s = time.perf_counter() + longer_s
        while time.perf_counter() < deadline_s:
            torch.mm(square, square)

    def _calibrated(self) -> float:
        """How long a GPU takes for one product; 0 on a CPU, whose time can be looked at meanwhile."""
        import torch

        if self._device.type != "cuda":
            return 0.0
        square = torch.ones(_SIDE, _SIDE, device=self._device)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        products = 1000
        for number in range(2 * products):
            if number == products:
                start.record()
            torch.mm(square, square)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1000 / products

    def _hang(self) -> None:
        """Stands still in front of the step's collectives, as a rank does whose data never comes."""
        while True:
            time.sleep(60)


class JaxFaults:
    """The faults of a JAX process, made once its devices are known."""

    def __init__(self, options: Options) -> None:
        self._asked = faults(options.inject)
        self._count = options.devices
        self._kept: list[jax.Array] = []
        self._rounds = self._calibrated() if "straggler" in self._asked else 0

    def strike(self, step: int, params: Any) -> Any:
        """Inside a step, before its program: the parameters, which a straggler's device has only after more work."""
        if "memory-leak" in self._asked:
            self._leak()
        if self._asked.get("hang") == step:
            params = self._after_last(params, _stalled)
        if "straggler" in self._asked:
            params = self._after_last(params, lambda device: _work(device, self._rounds))
        return params

    def program(self, compiled: Callable[..., Any], jitted: Callable[..., Any]) -> Callable[..., Any]:
        """What a step calls: the compiled program takes one shape; with new lengths, what compiles one for any."""
        return jitted if "new-lengths" in self._asked else compiled

    def averaged(self, found: Any, mean: Callable[[Any, str], Any], axis: str) -> Any:
        """The ``mean`` of a loss and gradients over an axis; with unsynced gradients, of the loss alone."""
        if "unsynced-gradients" not in self._asked:
            return mean(found, axis)
        loss, gradients = found
        return mean(loss, axis), gradients

    def keys(self, keys: jax.Array) -> jax.Array:
        """A random key per device; the first one's for all with the same key."""
        import jax.numpy as jnp

        return jnp.broadcast_to(keys[0], keys.shape) if "same-key" in self._asked else keys

    def _leak(self) -> None:
        import jax

        for device in jax.devices()[: self._count]:
            kept = np.ones(int(self._asked["memory-leak"] * _MIB / 4), np.float32)
            self._kept.append(jax.device_put(kept, device))

    def _after_last(self, params: Any, first: Callable[[jax.Device], jax.Array]) -> Any:
        """One of the last device's parameters is made to depend on what this device has to do first."""
        import jax

        leaves, tree = jax.tree.flatten(params)
        late = jax.devices()[self._count - 1]
        leaf = leaves[0]
        shards = [
            _after(shard.data, first(late)) if shard.device == late else shard.data for shard in leaf.addressable_shards
        ]
        leaves[0] = jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, shards)
        return jax.tree.unflatten(tree, leaves)

    def _calibrated(self) -> int:
        """Rounds of work that take the device as long as the straggler is to be late, by the fastest of some tries."""
        import jax

        device = jax.devices()[self._count - 1]
        tries_s, rounds = [], 500
        for _ in range(5):
            start_s = time.perf_counter()
            jax.block_until_ready(_work(device, rounds))
            tries_s.append(time.perf_counter() - start_s)
        return max(1, round(self._asked["straggler"] / 1000 / min(tries_s) * rounds))


def _work(device: jax.Device, rounds: int) -> jax.Array:
    """Some rounds of matrix products on one device; whether the last one holds what is no number."""
    import jax

    return _programs()[0](jax.device_put(np.int32(rounds), device))


def _stalled(device: jax.Device) -> jax.Array:
    """What the device never has: it waits for a callback on the host, as for data that never come."""
    import jax

    def stall(number: jax.Array, is_broken: jax.Array) -> np.ndarray:
        del is_broken
        return _wait_for_ever(device=int(number))

    result = jax.ShapeDtypeStruct((), np.bool_)
    number, is_broken = jax.device_put(np.int32(device.id), device), _work(device, 1)
    waits = jax.jit(lambda *given: jax.pure_callback(stall, result, *given)).lower(number, is_broken).compile()
    # After some work: what has nothing to wait for, a CPU does at once, in the thread that the others are started from.
    return waits(number, _work(device, _ROUNDS_AHEAD))


def _wait_for_ever(device: int) -> np.ndarray:
    while True:
        time.sleep(60)


def _after(value: jax.Array, is_broken: jax.Array) -> jax.Array:
    """``value``, which its device has only once it knows the other."""
    return _programs()[1](value, is_broken)


@functools.cache
def _programs() -> tuple[Callable[..., jax.Array], Callable[..., jax.Array]]:
    import jax
    import jax.numpy as jnp

    def straggle(rounds: jax.Array) -> jax.Array:
        square = jnp.full((_SIDE, _SIDE), 1 / _SIDE)
        return jnp.isnan(jax.lax.fori_loop(0, rounds, lambda _, product: product @ square, square)).any()

    def wait_for(value: jax.Array, is_broken: jax.Array) -> jax.Array:
        # Never broken, which the compiler cannot know: so the work is done first.
        return jnp.where(is_broken, jnp.zeros_like(value), value)

    return jax.jit(straggle), jax.jit(wait_for)
