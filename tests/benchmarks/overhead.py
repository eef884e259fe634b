"""What being watched costs a script: ``python tests/benchmarks/overhead.py [SECONDS]``.

One training script as it is, under the hooks alone (no window is ever asked for), and under the usual cycle of windows:
all three at the same time, on the same core, one thread each, so that whatever else the machine does meets them alike,
some milliseconds apart. What is compared is CPU time per step, of the script's process, from its third step on and with
everything that happens between steps. The processes that supervise are told apart: they are no part of the script's.

The cycle's cost is kept within its budget over the length of a run, so a short run shows its first window most of all.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ARMS = ("no meshscope", "hooks", "cycling")
LIMITS = {"hooks": 1.01, "cycling": 1.04}
# Layers, width, tokens a step.
MODELS = {"tiny": (4, 256, 128), "larger": (8, 512, 512)}
_SLICE = 10
_WARM = 2


@dataclass(frozen=True)
class Arm:
    """``slice_s`` are CPU seconds per step of each ten steps in turn, ``watching_s`` those of the supervisor."""

    steps: int
    cpu_s: float
    slice_s: list[float]
    windows: int
    watching_s: float


def train(model: str, seconds: str) -> None:
    """The script: it knows nothing of who watches. The last line it prints is what it used."""
    import torch
    from torch import nn

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    layers, width, tokens = MODELS[model]
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    network = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(network.parameters())
    marks = []
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline:
        network(torch.randn(2, tokens // 2, width)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        marks.append(time.process_time())
    print(json.dumps(marks[_WARM:]))


def watched(arm: str, folder: str, model: str, seconds: str) -> None:
    """The script under one arm, and what its supervisor used."""
    from meshscope.capture import places, supervisor
    from meshscope.capture.own import planning
    from meshscope.capture.own.passing import Passing
    from meshscope.capture.request import Request, Windows

    windows = Windows(active=0) if arm == "hooks" else Windows()
    command = (sys.executable, __file__, "train", model, seconds)
    plan = planning.plan(Request(strategies=(), out=folder, windows=windows, command=command))
    places.made(Path(folder), plan).close()
    supervisor.supervise(Path(folder), Passing(Path(folder)))
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps(own.ru_utime + own.ru_stime))


def measured(model: str, seconds: float, folder: Path) -> dict[str, Arm]:
    """All arms at once."""
    lines = {
        arm: [sys.executable, __file__, "train", model, str(seconds)]
        if arm == ARMS[0]
        else [sys.executable, __file__, "watched", arm, str(folder / arm), model, str(seconds)]
        for arm in ARMS
    }
    running = {arm: subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for arm, line in lines.items()}
    told = {arm: [json.loads(line) for line in child.communicate()[0].splitlines()] for arm, child in running.items()}
    return {arm: _arm(said, folder / arm) for arm, said in told.items()}


def _arm(said: list[object], folder: Path) -> Arm:
    marks = [float(mark) for mark in said[0]]  # type: ignore[attr-defined]
    ends = marks[::_SLICE]
    return Arm(
        steps=len(marks) - 1,
        cpu_s=(marks[-1] - marks[0]) / (len(marks) - 1),
        slice_s=[(after - before) / _SLICE for before, after in itertools.pairwise(ends)],
        windows=len(list(folder.rglob("*.pt.trace.json.gz"))),
        watching_s=float(said[1]) if len(said) > 1 else 0.0,  # type: ignore[arg-type]
    )


def main(seconds: str = "120") -> int:
    is_met = True
    print(
        f"{'model':8} {'':13} {'steps':>6} {'CPU/step':>10} {'ratio':>7} {'of medians':>11} {'windows':>8}  supervisor"
    )
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            arms = measured(model, float(seconds), Path(folder))
        bare = arms[ARMS[0]]
        for name, arm in arms.items():
            ratio = arm.cpu_s / bare.cpu_s
            middle = statistics.median(arm.slice_s) / statistics.median(bare.slice_s)
            is_over = ratio > LIMITS.get(name, 1.0)
            is_met &= not is_over or name == ARMS[0]
            verdict = f" (at most {LIMITS[name]}{': MISSED' if is_over else ''})" if name in LIMITS else ""
            supervisor = f"{arm.watching_s / float(seconds):.1%} of a core" if arm.watching_s else "–"
            print(
                f"{model:8} {name:13} {arm.steps:6} {arm.cpu_s * 1e3:7.2f} ms {ratio:7.4f} {middle:11.4f} "
                f"{arm.windows:8}  {supervisor}{verdict}",
                flush=True,
            )
    return 0 if is_met else 1


if __name__ == "__main__":
    doors = {"train": train, "watched": watched}
    if sys.argv[1:2] and sys.argv[1] in doors:
        doors[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(main(*sys.argv[1:]))
