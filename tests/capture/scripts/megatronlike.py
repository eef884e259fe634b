"""An optimizer as Megatron-LM's: none of torch's, it chains others of its kind, each around one of torch's.

Megatron-LM's script runs under torchrun, which is its own test. Knows nothing of meshscope.
"""

import torch
from torch import nn

UPDATES = 12


class MixedPrecision:
    """Scales, clips, and lets the optimizer within update its own copy of the parameters."""

    def __init__(self, inner):
        self.optimizer = inner
        self.param_groups = inner.param_groups

    def step(self):
        parameters = [p for group in self.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        self.optimizer.step()
        return True


class Chained:
    """The dense parameters' optimizer and the experts'."""

    def __init__(self, members):
        self.members = members

    def step(self):
        return all(tuple(member.step() for member in self.members))


def main():
    dense, experts = nn.Linear(8, 8), nn.Linear(8, 8)
    chained = Chained([MixedPrecision(torch.optim.Adam(part.parameters())) for part in (dense, experts)])
    for _ in range(UPDATES):
        for part in (dense, experts):
            part.zero_grad()
        experts(dense(torch.randn(4, 8))).pow(2).mean().backward()
        chained.step()


if __name__ == "__main__":
    main()
