"""Two ranks under `accelerate launch`, as accelerate's quick tour shows it. Knows nothing of meshscope."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    # Two micro-batches per update: the wrapper's step is called for each, the optimizer's own for every second.
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    data = TensorDataset(torch.randn(320, 64), torch.randint(0, 10, (320,)))
    loader = DataLoader(data, batch_size=8)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    criterion = nn.CrossEntropyLoss()
    for _ in range(2):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = criterion(model(inputs), labels)
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    accelerator.print(f"loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
