"""A model of one layer."""

from __future__ import annotations

from typing import Any


def made() -> Any:
    import torch

    x = torch.randn(8, 4)
    return torch.nn.Linear(4, 1), (x, x.sum(1, keepdim=True)), torch.nn.functional.mse_loss
