"""What the watch and the profiler cost a DDP rank: CPU time per step against no watch, within one run.

    torchrun --standalone --nproc-per-node 2 tests/capture/cost/measure_torch.py

Blocks of steps without a watch, with an idle one, and with one window per block take turns, so that a busy machine
slows all three alike. Prints one line per rank. No test asserts a time.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "workloads"))

from meshscope.capture.workers.post import Post  # noqa: E402
from meshscope.capture.workers.rank_journal import RankJournal  # noqa: E402
from meshscope.capture.workers.torch_watch import TorchWatch  # noqa: E402
from meshscope.experiment import Experiment  # noqa: E402
from meshscope.recording import control  # noqa: E402
from meshscope.recording.control import Ask  # noqa: E402
from models.torch_transformer import Transformer  # noqa: E402
from options import Options  # noqa: E402
from tokens import micro_batches  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "6"))
BLOCK = int(os.environ.get("BLOCK", "20"))


def main() -> None:
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    options = Options(steps=10_000)
    model = DistributedDataParallel(Transformer(options), bucket_cap_mb=options.bucket_mb, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters())
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    recording = Path(str(folder[0]))
    (recording / "traces").mkdir(exist_ok=True)
    watch = _watch(recording, rank, ranks, options)
    watch.started(parameters=lambda: model, optimizer=lambda: optimizer)

    step = 0
    costs: dict[str, list[float]] = {"none": [], "idle": [], "window": []}

    def one(number: int, watched: bool) -> None:
        with watch.step(number) if watched else nullcontext():
            batch = torch.from_numpy(micro_batches(options, number, rank, ranks)).long()[0]
            loss = model(batch)
            loss.backward()
            optimizer.step()
            watch.loss(loss)
        optimizer.zero_grad()

    for number in range(3):
        one(number, watched=True)
    step = 3
    for _ in range(ROUNDS):
        for kind, taken in costs.items():
            if kind == "window" and rank == 0:
                control.ask(recording, Ask(what="window", first_step=step + 4, end_step=step + 6, reason="cycle"))
            dist.barrier()
            start = time.process_time()
            for number in range(step, step + BLOCK):
                one(number, watched=kind != "none")
            taken.append((time.process_time() - start) / BLOCK)
            step += BLOCK
    base, idle, window = (statistics.median(costs[kind]) for kind in costs)
    traces = len(list((recording / "traces").glob("*.gz")))
    dist.barrier()
    print(
        f"rank {rank}: {base * 1e3:.1f} ms CPU per step; idle watch × {idle / base:.3f}; one window in {BLOCK} steps "
        f"× {window / base:.3f}, {(window - base) * BLOCK * 1e3:.0f} ms per window ({traces} traces)",
        flush=True,
    )
    if rank == 0:
        shutil.rmtree(recording)


def _watch(recording: Path, rank: int, ranks: int, options: Options) -> TorchWatch:
    now = time.time_ns()
    experiment = Experiment(
        t0_unix_ns=now, strategy="ddp", title="", framework="torch", ranks=ranks, device_kind="cpu", model="tiny",
        planned_steps=10_000, global_batch=options.batch, sequence_length=options.seq,
    )  # fmt: skip
    journal = RankJournal(recording, rank, t0_unix_ns=now)
    return TorchWatch(Post(recording, experiment, journal, options, rank, rank, check_every=10))


if __name__ == "__main__":
    main()
    os._exit(0)
