"""Compiles the model and, as torch's recipe does, the optimizer's step."""

import torch
from torch import nn

model = torch.compile(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)), backend="eager")
optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))


@torch.compile(backend="eager", fullgraph=False)
def update():
    optimizer.step()


for number in range(12):
    model(torch.randn(6 if number == 8 else 8, 16)).pow(2).mean().backward()
    update()
    optimizer.zero_grad()
    if number > 8:
        optimizer.step()
print("trained", model(torch.zeros(1, 16)).shape)
