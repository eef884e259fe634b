"""Two profiled steps of torch on CPU, their memory timeline exported in both forms that hold numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile


def main(out: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    optimizer = torch.optim.Adam(model.parameters())
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True) as taken:
        for _ in range(2):
            model(torch.randn(8, 64)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    taken.export_memory_timeline(str(out / "memory_timeline.json"), device="cpu")
    taken.export_memory_timeline(str(out / "memory_timeline.raw.json.gz"), device="cpu")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
