"""``python -m meshscope.advisor.workers.fake_torch``: what torch allocates for a workload's step, on fake tensors.

The workload's own script runs as one rank of any number. Its process group sends nothing, its tensors have shapes and
no numbers, so a step of a large model takes seconds and little memory; every tensor that torch would make is made, and
counted while it lives. Three steps run: the first makes optimizer state, the second finds the peak, and the third, the
same over again, looks at what is alive there.

Allocations are those of torch's CPU operators: parameters, gradients, buffers and optimizer state are the same on any
device, what operators keep and need in between may differ on a GPU (fused optimizers, other attention kernels).
"""

from __future__ import annotations

import dataclasses
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
    unset_fake_temporarily,
)

from meshscope.advisor.workers import fake_group, scripted
from meshscope.advisor.workers.alive import Alive, keyed
from meshscope.advisor.workers.fake_ddp import FakeDdp
from meshscope.advisor.workers.scripted import Asked, Enough, UntoldError
from meshscope.capture.workers import torch_memory
from meshscope.capture.workers.torch_memory import SavedTensors

_WARM_UP, _SEEK, _LOOK = range(3)
_STEPS = 3
_EVEN = "tokens are taken to go to all experts alike"


class FakeWatch:
    """See ``workloads/watching.py`` for what a script calls, and when."""

    def __init__(self, fake: FakeTensorMode, alive: Alive) -> None:
        self._fake, self._alive = fake, alive
        self._module: torch.nn.Module | None = None
        self._optimizer: Any = None
        self._saved = SavedTensors()
        self._batch: Any = ()
        self._peak_operation = -1
        self.sizes: dict[str, int] = {}
        self.at_peak: dict[str, int] = {}
        self.told: dict[str, Any] = {}

    def started(
        self, *, parameters: Callable[[], Any], optimizer: Callable[[], Any], compiled: Any = None, key: Any = None
    ) -> None:
        del compiled, key
        self._module, self._optimizer = parameters(), optimizer()
        self._optimizer.register_step_pre_hook(self._before_update)
        self._optimizer.register_step_post_hook(self._after_update)

    def step(self, number: int) -> AbstractContextManager[None]:
        return self._stepping(number)

    @contextmanager
    def _stepping(self, number: int) -> Iterator[None]:
        self._alive.begin(self._peak_operation if number == _LOOK else -1, self._take_stock)
        self._saved = SavedTensors()
        with self._saved:
            yield
        if number == _SEEK:
            self._peak_operation = self._alive.peak_operation
            self.told = _told(self._alive)
            self.sizes["activations"] = self._saved.peak_bytes

    def batch(self, fetch: Callable[[], Any]) -> Any:
        with unset_fake_temporarily():
            found = fetch()
        self._batch = tuple(
            part if isinstance(part, torch._subclasses.FakeTensor) else self._fake.from_tensor(part) for part in found
        )
        self._alive.hold(self._batch)
        return self._batch

    def loss(self, value: Any) -> float:
        del value
        return float("nan")

    def compiling(self, what: str) -> AbstractContextManager[None]:
        raise UntoldError(f"{what} would have to be compiled, which fake tensors do not take part in")

    def finished(self) -> None:
        raise Enough

    @property
    def optimizer(self) -> Any:
        return self._optimizer

    def _before_update(self, *_: Any) -> None:
        self._alive.in_update = True
        self.sizes |= {name: sum(found.values()) for name, found in self._state().items()}

    def _after_update(self, *_: Any) -> None:
        self._alive.in_update = False

    def _take_stock(self) -> None:
        """What every storage that is alive at the peak is for."""
        left = dict(self._alive.sizes)
        gathered, shards = _of_fsdp(self._module)
        state = self._state()
        state["parameters"] = {key: size for key, size in (state["parameters"] | shards).items() if key not in gathered}
        groups = state | {
            "batch": keyed(self._batch),
            "activations": dict.fromkeys(self._saved.held, 0),
            "gathered": gathered,
            "communication": dict.fromkeys(self._alive.communicated, 0),
        }
        self.at_peak = {name: sum(left.pop(key, 0) for key in found) for name, found in groups.items()}
        self.at_peak["temporaries"] = sum(left.values())

    def _state(self) -> dict[str, dict[int, int]]:
        """What lives from step to step, each storage under the first that holds it."""
        module = self._module
        assert module is not None
        gradients = keyed(parameter.grad for parameter in module.parameters())
        return {
            "parameters": keyed(module.parameters()),
            "buffers": keyed(module.buffers()),
            "gradients": gradients,
            "buckets": {key: size for key, size in keyed(_buckets(module)).items() if key not in gradients},
            "optimizer": keyed(_optimizer_tensors(self._optimizer)),
        }


def _told(alive: Alive) -> dict[str, Any]:
    sent = [
        {"kind": kind, "size_bytes": size, "ranks": ranks, "count": count}
        for (kind, size, ranks), count in sorted(alive.sent.items())
    ]
    return {"peak_bytes": alive.peak_bytes, "peak_in": alive.peak_in, "collectives": sent}


def _buckets(module: torch.nn.Module) -> list[torch.Tensor]:
    return [bucket for one in module.modules() if isinstance(one, FakeDdp) for bucket in one.buckets]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    states = torch_memory.optimizer_state(optimizer).values()
    return [value for state in states for value in state.values() if isinstance(value, torch.Tensor)]


def _most_state_rank(optimizer: Any) -> int:
    """Who has most of what ZeRO-1 deals out, whole parameters; −1 where all have the same."""
    if not hasattr(optimizer, "_partition_parameters"):
        return -1
    loads = [
        sum(p.numel() for group in groups for p in group["params"]) for groups in optimizer._partition_parameters()
    ]
    return max(range(len(loads)), key=loads.__getitem__)


def _of_fsdp(module: torch.nn.Module | None) -> tuple[dict[int, int], dict[int, int]]:
    """Parameters that FSDP2 holds whole at the moment, and its shards of all; what keeps them has no public name."""
    whole: dict[int, int] = {}
    shards: dict[int, int] = {}
    for one in module.modules() if module is not None else ():
        state = one._get_fsdp_state() if hasattr(one, "_get_fsdp_state") else None
        for group in getattr(state, "_fsdp_param_groups", ()):
            for parameter in group.fsdp_params:
                whole |= keyed([*parameter.all_gather_outputs, getattr(parameter, "_unsharded_param", None)])
                shards |= keyed([parameter.sharded_param])
    return whole, shards


def tell(asked: Asked) -> dict[str, Any]:
    fake_group.join(asked)
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    options = scripted.options(asked)
    script = scripted.imported(asked.script)
    notes = _even_experts()
    alive = Alive(asked.ranks, is_fused=not asked.is_cpu)
    watch = FakeWatch(fake, alive)
    try:
        with fake, alive:
            _own_made(options.model, fake, alive)
            script.train(_three_steps(options), watch)
    except Enough:
        pass
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        traceback.print_exception(error)
        raise UntoldError(f"the model's shapes depend on numbers ({error}), and fake tensors have none") from error
    except UnsupportedOperatorException as error:
        raise UntoldError(f"torch knows no shapes for {error}, an operator of the model") from error
    return {
        "version": torch.__version__,
        "sizes": watch.sizes,
        "at_peak": watch.at_peak,
        "notes": notes if getattr(options, "experts", 1) > 1 else [],
        "most_state_rank": _most_state_rank(watch.optimizer),
        "worker_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **watch.told,
    }


def _three_steps(options: Any) -> Any:
    return dataclasses.replace(options, steps=_STEPS, device="cpu")


def _own_made(model: str, fake: FakeTensorMode, alive: Alive) -> None:
    """A user's own model without numbers; where its factory needs them, made in full and then stripped of them."""
    if ":" not in model:
        return
    import own

    _let_modules_stay()
    try:
        own.made(model)
    except Exception:  # noqa: BLE001  # whatever a factory raises that is asked for a model without numbers
        own.made.cache_clear()
        with unset_fake_temporarily():
            module = own.made(model)[0]
            if isinstance(module, torch.nn.Module):
                _strip(module, fake)
                alive.hold([*module.parameters(), *module.buffers()])


def _let_modules_stay() -> None:
    """``module.to(device)`` swaps fake parameters for new ones, which torch refuses for some: not where all are there
    already."""
    apply = torch.nn.Module._apply

    def applied(self: torch.nn.Module, function: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.nn.Module:
        with torch.no_grad():
            if all(function(tensor) is tensor for tensor in (*self.parameters(), *self.buffers())):
                return self
        return apply(self, function, *args, **kwargs)

    setattr(torch.nn.Module, "_apply", applied)  # noqa: B010  # a checker takes it for a mistake


def _strip(module: torch.nn.Module, fake: FakeTensorMode) -> None:
    """Shared parameters stay shared: a tensor has one fake."""
    for part in module.modules():
        for held in (part._parameters, part._buffers):
            held |= {name: fake.from_tensor(value) for name, value in held.items() if value is not None}


def _even_experts() -> list[str]:
    """Where the bundled mixture of experts asks how many tokens each expert has, it is told as many as any other."""
    from models import torch_moe

    experts: Any = torch_moe.Experts
    forward = experts.forward

    def evenly(self: Any, rows: torch.Tensor, counts: Any) -> torch.Tensor:
        return forward(self, rows, _Even(len(rows), len(self.up)))

    experts.forward = evenly
    return [_EVEN]


class _Even:
    def __init__(self, rows: int, experts: int) -> None:
        self._rows, self._experts = rows, experts

    def tolist(self) -> list[int]:
        few, more = divmod(self._rows, self._experts)
        return [few + (number < more) for number in range(self._experts)]


if __name__ == "__main__":
    sys.exit(scripted.answer(tell))
