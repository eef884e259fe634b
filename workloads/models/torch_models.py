"""Which torch model is trained, and what of it is wrapped. Every script builds its model here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from families import MLP, MOE, OWN, RESNET, TRANSFORMER, family
from models.torch_images import Mlp, ResNet50
from models.torch_moe import MoeTransformer
from models.torch_own import OwnModel
from models.torch_transformer import Transformer
from models.torch_units import wrapped
from options import Options

_MODELS: dict[str, Callable[[Options], nn.Module]] = {
    TRANSFORMER: Transformer,
    MOE: MoeTransformer,
    RESNET: ResNet50,
    MLP: Mlp,
    OWN: OwnModel,
}
_HAVE_CHECKPOINTS = (TRANSFORMER, MOE)


def build(options: Options) -> nn.Module:
    """The model, on the device in whose context it is built: ``model(*micro_batch)`` is the mean loss."""
    kind = family(options)
    model = _MODELS[kind](options)
    if options.checkpoint_activations and kind not in _HAVE_CHECKPOINTS:
        for unit in units(model, options):
            unit.forward = partial(checkpoint, unit.forward, use_reentrant=False)
    return model


def units(model: nn.Module, options: Options) -> list[nn.Module]:
    """The modules that are compiled, gathered and computed again one by one: blocks, or what ``--wrap`` asks for."""
    return wrapped(model, options.wrap)


def on_device(batch: tuple[Any, ...], device: torch.device) -> tuple[Tensor, ...]:
    """A batch as tensors on a device; tokens and classes become indices."""
    found = [torch.as_tensor(part) for part in batch]
    return tuple(part.to(device, torch.long if part.dtype == torch.int32 else part.dtype) for part in found)
