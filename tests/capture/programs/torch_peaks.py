"""Prints, as JSON, what a rank's watch says of memory for windows that begin early and late, and for a short run.

python torch_peaks.py FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import torch

from meshscope.capture.workers.post import Post
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.capture.workers.torch_account import Account
from meshscope.capture.workers.torch_watch import TorchWatch
from meshscope.experiment import Experiment
from meshscope.recording import control
from meshscope.recording.control import Ask
from meshscope.recording.entries import MemoryMeasured
from meshscope.recording.journal import Tail

WIDTH, BATCH = 64, 8


def post(recording: Path, steps: int) -> Post:
    (recording / "traces").mkdir(parents=True)
    now = time.time_ns()
    experiment = Experiment(
        t0_unix_ns=now, strategy="toy", title="", framework="torch", ranks=1, device_kind="cpu", model="tiny",
        planned_steps=steps, global_batch=BATCH, sequence_length=1,
    )  # fmt: skip
    journal = RankJournal(recording, 0, t0_unix_ns=now)
    return Post(recording, experiment, journal, SimpleNamespace(compile=False), 0, 0, check_every=0)


def measured(
    recording: Path, *, steps: int, window: Ask | None, clears: str = "after", momentum: float | None = None
) -> dict:
    """The newest measurement of a run of one linear layer."""
    own = post(recording, steps)
    if window is not None:
        control.ask(recording, window)
    watch = TorchWatch(own)
    model = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    update = torch.optim.AdamW(model.parameters(), fused=True)
    if momentum is not None:
        update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    watch.started(parameters=lambda: model, optimizer=lambda: update)
    for step in range(steps):
        with watch.step(step):
            # The profiler drops events whose time, brought to its own clock, lies before its first moment.
            time.sleep(0.01)
            if clears == "at start":
                update.zero_grad()
            loss = model(watch.batch(lambda: torch.ones(BATCH, WIDTH))).tanh().sum()
            loss.backward()
            update.step()
            watch.loss(loss)
        if clears == "after":
            update.zero_grad()
    watch.finished()
    found = [e for e in Tail(recording / "journal" / "rank0.jsonl").read() if isinstance(e, MemoryMeasured)]
    return msgspec.to_builtins(found[-1])


def window(first: int, end: int, warmup: int = 1) -> Ask:
    return Ask(what="window", first_step=first, end_step=end, warmup=warmup, has_memory=True)


def too_small(recording: Path) -> dict:
    """What is told of a peak of one byte less than what is alive together."""
    own = post(recording, 8)
    account = Account(torch.nn.Linear(2, 2), torch.optim.SGD([torch.zeros(1)]), {"parameters": 40, "gradients": 2})
    device = SimpleNamespace(
        is_cuda=False, capacity_bytes=-1, counters=lambda: SimpleNamespace(reserved=-1, allocated=-1)
    )
    return msgspec.to_builtins(account.entry(own, device, 1, peak_bytes=41, peak_how="derived"))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {
        "first step": measured(folder / "a", steps=10, window=window(1, 10)),
        "no warm-up": measured(folder / "b", steps=10, window=window(1, 10, warmup=0)),
        "late": measured(folder / "c", steps=10, window=window(6, 7)),
        "cleared at start": measured(folder / "f", steps=10, window=window(1, 3), clears="at start"),
        "two steps": measured(folder / "d", steps=2, window=window(1, 2)),
        "one step": measured(folder / "g", steps=1, window=None),
        "plain SGD": measured(folder / "h", steps=2, window=None, momentum=0.0),
        "SGD": measured(folder / "i", steps=2, window=None, momentum=0.9),
        "too small": too_small(folder / "e"),
    }
    print(json.dumps(found), flush=True)
