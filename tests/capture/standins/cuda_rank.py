"""A torch rank on a stand-in GPU: torch.cuda answers with scripted numbers, the rest is the real watch.

    python cuda_rank.py RECORDING

Allocator numbers of step n: 1000 + n bytes allocated, 5000 reserved, a peak of 200000 + n since the last reset.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import torch

from meshscope.capture.workers.post import Post
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.experiment import Experiment
from meshscope.recording import control
from meshscope.recording.control import Ask

STEP = 0
RESETS: list[int] = []


@contextmanager
def stand_in():
    """Only what the watch may use; anything else on torch.cuda is the CPU build's and fails."""
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 2
    torch.cuda.get_device_properties = lambda index: SimpleNamespace(
        name=f"Stand-in {index}", uuid=f"uuid-{index}", total_memory=80_000
    )
    torch.cuda.get_device_name = lambda index: f"Stand-in {index}"
    torch.cuda.memory_stats_as_nested_dict = lambda index: {
        "allocated_bytes": {"all": {"current": 1000 + STEP, "peak": 200_000 + STEP}},
        "reserved_bytes": {"all": {"current": 5000, "peak": 6000}},
    }
    torch.cuda.reset_peak_memory_stats = RESETS.append
    torch.cuda.synchronize = lambda *_: None  # The profiler's own, at its end.
    # A CUDA build without a driver would look for the stream; the optimizer asks whether it is capturing.
    torch.accelerator.current_stream = lambda *_: SimpleNamespace(is_capturing=lambda: False)
    torch.cuda.get_rng_state = lambda: torch.arange(16, dtype=torch.uint8)
    yield


def main(recording: Path) -> None:
    global STEP
    (recording / "traces").mkdir(parents=True)
    now = time.time_ns()
    experiment = Experiment(
        t0_unix_ns=now, strategy="ddp", title="", framework="torch", ranks=2, device_kind="gpu", model="tiny",
        planned_steps=8, global_batch=4, sequence_length=16,
    )  # fmt: skip
    journal = RankJournal(recording, 1, t0_unix_ns=now)
    post = Post(recording, experiment, journal, SimpleNamespace(compile=False), 1, 1, check_every=4)
    control.ask(recording, Ask(what="window", first_step=3, end_step=5, has_memory=True))

    from meshscope.capture.workers.torch_watch import TorchWatch

    watch = TorchWatch(post)
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.AdamW(model.parameters())
    watch.started(parameters=lambda: model, optimizer=lambda: optimizer)
    for STEP in range(8):  # the stand-in's clock
        with watch.step(STEP):
            loss = model(watch.batch(lambda: torch.ones(2, 32))).tanh().sum()
            loss.backward()
            optimizer.step()
            watch.loss(loss)
        optimizer.zero_grad()
    watch.finished()
    assert set(RESETS) == {1}, "every counter is asked of this rank's own device"
    assert len(RESETS) == 8


if __name__ == "__main__":
    with stand_in():
        main(Path(sys.argv[1]))
