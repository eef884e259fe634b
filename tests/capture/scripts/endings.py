"""A few steps, and then the end that its argument names."""

import os
import shutil
import signal
import sys
import time

import torch
from torch import nn

how = sys.argv[1]
if how == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if how == "tidy":

    def stop(number, frame):
        print("tidied up", flush=True)
        sys.exit(7)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)

model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.randn(2, 8)).sum().backward()
    optimizer.step()
print("trained", sys.argv[1:], os.path.basename(sys.path[0]), flush=True)
print("to stderr", file=sys.stderr, flush=True)
if how == "crash":
    raise ValueError("the loss is no number")
if how == "three":
    sys.exit(3)
if how == "erase":
    # Somebody cleans up what this script knows nothing of, while it trains.
    shutil.rmtree(os.environ["MESHSCOPE_RECORDING"])
    for _ in range(20):
        model(torch.randn(2, 8)).sum().backward()
        optimizer.step()
        time.sleep(0.05)
    print("and on", flush=True)
if how == "echo":
    print("read", sys.stdin.readline().strip())
if how in ("deaf", "tidy"):
    time.sleep(2 if how == "deaf" else 30)
