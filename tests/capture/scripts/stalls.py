"""Rank 1 of two stops in a function of its own for `--wait` seconds. Knows nothing of meshscope.

With `--alone` the ranks share nothing, and rank 0 goes on meanwhile; else it waits for rank 1 in an all-reduce.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def fetch(token, seconds):
    time.sleep(seconds)
    return token


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", type=float, default=15)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--fails", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model = nn.Linear(16, 4)
    if not args.alone:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    until_s = time.monotonic() + args.wait + 6
    step = 0
    while time.monotonic() < until_s if args.alone else step < 40:
        if rank == 1 and step == 30:
            fetch("secret", args.wait)
            if args.fails:
                raise ValueError("no such batch")
        optimizer.zero_grad()
        model(torch.randn(8, 16)).pow(2).mean().backward()
        optimizer.step()
        time.sleep(0.05)
        step += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
