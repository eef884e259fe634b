"""Ranks under the `deepspeed` launcher: ZeRO-1 with two parameter groups. Knows nothing of meshscope."""

import argparse
import sys

import deepspeed
import torch
from torch import nn

# DeepSpeed compiles a C++ all-reduce over shared memory for CPU ranks; gloo is as good here, and needs no compiler.
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None

UPDATES, MICRO = 20, 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    named = list(model.named_parameters())
    groups = [
        {"params": [p for name, p in named if name.endswith("weight")], "weight_decay": 0.1},
        {"params": [p for name, p in named if name.endswith("bias")], "weight_decay": 0.0},
    ]
    config = {
        "train_micro_batch_size_per_gpu": 8,
        "gradient_accumulation_steps": MICRO,
        "zero_optimization": {"stage": 1},
        "bf16": {"enabled": True},
        "zero_force_ds_cpu_optimizer": False,
    }
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for _ in range(UPDATES * MICRO):
        x = torch.randn(8, 64, dtype=torch.bfloat16, device=engine.device)
        loss = engine(x).float().pow(2).mean()
        engine.backward(loss)
        engine.step()
    print(f"updates {engine.global_steps}", flush=True)


if __name__ == "__main__":
    main()
