"""DDP's gradients made smaller on their way: what ``--compress`` asks for."""

from __future__ import annotations

from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from options import Options, check_kind

_ROUNDED = {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}
# DDP sorts its buckets anew after the first step, and PowerSGD keeps what it has approximated by bucket.
_FIRST_STEP = 2


def compress(model: DistributedDataParallel, options: Options) -> None:
    """``fp16`` and ``bf16`` send half the bytes. ``powersgd`` sends two thin matrices (rank 1) for each wide one, and
    adds what they left out to the next step's gradients (https://arxiv.org/abs/1905.13727)."""
    check_kind(options, model.device_type)
    if options.compress in _ROUNDED:
        model.register_comm_hook(None, _ROUNDED[options.compress])
    elif options.compress == "powersgd":
        model.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=_FIRST_STEP), powerSGD_hook)
