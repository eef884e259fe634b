"""Says its steps itself: meshscope.step() where no optimizer of torch's tells them."""

import torch

import meshscope

weights = torch.zeros(16, requires_grad=True)
with meshscope.record():
    for _ in range(12):
        weights.sub(1.0).pow(2).sum().backward()
        with torch.no_grad():
            weights -= 0.1 * weights.grad
        weights.grad = None
        meshscope.step(loss=0.5, samples=4)
print("done", float(weights.sum()) > 0)
