"""A torch model of the user's own, as every script trains it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import own
from options import Options
from refusals import OptionError

_HINT = "torch strategies take (module, batch) or (module, batch, loss); for (init, loss, batch) name pmap or pjit."


class OwnModel(nn.Module):
    """Arrays of the user's batch in, mean loss out. OptionError: what the factory returns is no torch model."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.name = options.model
        module, _, *loss = own.made(options.model)
        if not isinstance(module, nn.Module):
            raise own.of_another_framework(options.model, module, "a torch.nn.Module", _HINT)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise OptionError(f"The module of {options.model} has nothing to train.", "Give it trainable parameters.")
        self.module = module
        self.loss = loss[0] if loss else None
        self._form = own.batch(options.model)
        if self.loss is not None and not isinstance(self._form, dict) and len(_arguments(self._form)) < 2:
            raise OptionError(
                f"The batch of {options.model} has no target for its loss.", "Return it as (inputs…, target)."
            )
        self.to(torch.get_default_device())

    def forward(self, *arrays: Tensor) -> Tensor:
        batch = own.rebuilt(self._form, iter(arrays))
        loss = self._output(batch) if self.loss is None else self._judged(batch)
        # Models of the transformers library return a loss among other things.
        loss = getattr(loss, "loss", loss)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            what = f"a tensor of {list(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
            raise OptionError(
                f"The model of {self.name} gives {what}, which is no loss.",
                "Return a module whose output is one number, or add a loss function: (module, batch, loss).",
            )
        return loss.mean() if loss.dim() else loss

    def _judged(self, batch: Any) -> Any:
        assert self.loss is not None
        if isinstance(batch, dict):
            return self.loss(self.module(**batch), batch)
        *inputs, target = batch
        return self.loss(self.module(*inputs), target)

    def _output(self, batch: Any) -> Any:
        return self.module(**batch) if isinstance(batch, dict) else self.module(*_arguments(batch))


def _arguments(batch: Any) -> tuple[Any, ...]:
    return tuple(batch) if isinstance(batch, list | tuple) else (batch,)
