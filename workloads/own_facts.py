"""What a user's own model is, asked before anything is started: ``own_facts.py torch|jax RANKS FLAG…`` prints JSON.

``parameters``, and ``flop_per_sample`` with ``how`` it was counted or ``why`` it could not be; or ``error`` and
``hint``, where the factory is not one to train. Nothing is computed: torch builds on its meta device where the factory
can do without values, and JAX only traces.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import own
from batches import micro_batches
from options import Options, parse
from refusals import OptionError

_LONGEST = 200
_LOOPS = ("scan", "while")


def main(framework: str, ranks: int, flags: list[str]) -> dict[str, Any]:
    try:
        return {"torch": _of_torch, "jax": _of_jax}[framework](parse(flags), ranks)
    except OptionError as refused:
        return {"error": refused.message, "hint": refused.hint}


def _of_torch(options: Options, ranks: int) -> dict[str, Any]:
    import torch

    from models.torch_models import build, on_device, units

    model = _built(lambda: build(options), options)
    units(model, options)
    micro_batch = [part[0] for part in on_device(micro_batches(options, 0, 0, ranks), torch.device("meta"))]
    known = {"parameters": sum(parameter.numel() for parameter in model.parameters())}
    model.to("meta")

    def count() -> float:
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False) as counter:
            model(*micro_batch).backward()
        return float(counter.get_total_flops()) / len(micro_batch[0])

    how = (
        "torch's FlopCounterMode on the model's forward and backward pass: matrix products, convolutions and attention"
    )
    return known | _counted(count, how)


def _built(build: Callable[[], Any], options: Options) -> Any:
    """On the meta device, where it takes neither time nor memory; in full where the factory needs values."""
    import torch

    try:
        with torch.device("meta"):
            return build()
    except Exception:  # noqa: BLE001  # whatever a factory raises that is asked for a model without values
        own.made.cache_clear()
        return build()


def _of_jax(options: Options, ranks: int) -> dict[str, Any]:
    import jax

    from models.flax_models import build

    jax.config.update("jax_platforms", "cpu")
    model = build(options)
    key = jax.random.key(options.seed)
    params = _traced(lambda: jax.eval_shape(model.init, key), options, "init")
    micro_batch = [part[0] for part in micro_batches(options, 0, 0, ranks)]
    traced = _traced(lambda: jax.jit(jax.value_and_grad(model.loss)).trace(params, micro_batch, key), options, "loss")

    def count() -> float:
        names = set(_primitives(traced.jaxpr.jaxpr))
        if looping := sorted(names & set(_LOOPS)):
            raise ValueError(f"the loss loops ({', '.join(looping)}), and XLA's counter counts a loop's body once")
        if "checkpoint" in names or "remat2" in names:
            raise ValueError("the loss computes activations again, and XLA's counter adds that")
        return float(traced.lower().cost_analysis()["flops"]) / len(micro_batch[0])

    how = "XLA's cost analysis of the loss and its gradients: every operation, not matrix products alone"
    return {"parameters": sum(leaf.size for leaf in jax.tree.leaves(params))} | _counted(count, how)


def _traced(trace: Callable[[], Any], options: Options, what: str) -> Any:
    """What the user's functions fail with is told with its place."""
    with own.told(f"{what} of {options.model}", options.model):
        return trace()


def _primitives(jaxpr: Any) -> set[str]:
    found = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for value in equation.params.values():
            held = value if isinstance(value, list | tuple) else (value,)
            inner = [getattr(one, "jaxpr", one) for one in held]
            found |= {name for one in inner if hasattr(one, "eqns") for name in _primitives(one)}
    return found


def _counted(count: Callable[[], float], how: str) -> dict[str, Any]:
    try:
        flop = count()
    except OptionError:
        raise
    except Exception as error:  # noqa: BLE001  # a model may do what no counter can follow
        return {"why": " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]}
    return {"flop_per_sample": flop, "how": how} if flop > 0 else {"why": "the counter knows none of its operations"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])))
