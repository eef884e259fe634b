"""One process updates its weights after every fourth micro-batch."""

import torch
from torch import nn

model = nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number in range(1, 4 * 12 + 1):
    x = torch.randn(4, 32)
    (model(x).pow(2).mean() / 4).backward()
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
