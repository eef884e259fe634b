"""What being watched costs a script: ``python tests/benchmarks/overhead.py [SECONDS [MODEL…]]``.

CPU time per training step of the script's process, one thread, with everything that happens between steps, from the
fourth step on. Two comparisons, each made so that whatever else the machine does meets both sides alike:

- **hooks**, when no window is asked for: one process in which the hooks are there for three steps and away for three,
  in turn. The ratio is of the two medians.
- **cycling**, the usual cycle of windows: two processes at the same time on the same core, one as it is and one under
  meshscope. The ratio is of all their CPU time per step, windows, traces and all. The first window comes at once and
  more follow within the budget, so a short run shows the first one most of all.

Before them stands what the hooks cost by themselves: the same coming and going over thousands of steps that do next to
nothing. On a busy machine that is the figure to trust, as a share of any step.

The processes that supervise are no part of the script's; what they use is told beside it.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LIMITS = {"hooks": 1.01, "cycling": 1.04}
# Layers, width, tokens a step.
MODELS = {"tiny": (4, 256, 128), "larger": (6, 384, 192)}
_BLOCK = 3
_WARM = 3


@dataclass(frozen=True)
class Used:
    """CPU seconds: of each step, and of the supervisor in all (0 without one)."""

    step_s: list[float]
    watching_s: float = 0.0


def train(model: str, seconds: str, how: str) -> None:
    """The script: it knows nothing of who watches, unless hooks are to come and go. What it used is printed last."""
    import torch
    from torch import nn

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    if model == "nothing":
        print(json.dumps(_nothing(float(seconds), _turns())))
        return
    layers, width, tokens = MODELS[model]
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    network = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(network.parameters())
    turn = _turns() if how == "alternating" else lambda _: None
    marks = [time.process_time()]
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline:
        turn(len(marks) - 1 - _WARM)
        network(torch.randn(2, tokens // 2, width)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        marks.append(time.process_time())
    print(json.dumps([after - before for before, after in itertools.pairwise(marks[_WARM:])]))


def _nothing(seconds: float, turn: Callable[[int], None]) -> list[float]:
    """CPU seconds of a step of one number, each the mean over a hundred; hooks go and come as in any other script."""
    import torch

    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer = torch.optim.SGD([parameter], lr=1e-9)
    for _ in range(100):
        optimizer.step()
    found: list[float] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        turn(len(found))
        begun = time.process_time()
        for _ in range(100):
            optimizer.step()
        found.append((time.process_time() - begun) / 100)
    return found


def _turns() -> Callable[[int], None]:
    """Takes the hooks away and puts them back, by the number of the step."""
    import gc

    from meshscope.capture.workers.own_listening import Listening

    [listening] = [one for one in gc.get_objects() if type(one) is Listening]

    def turn(step: int) -> None:
        if step >= 0 and step % _BLOCK == 0:
            listening.pause()
            if step // _BLOCK % 2:
                listening.listen()

    return turn


def watched(folder: str, model: str, seconds: str, how: str) -> None:
    """The script under meshscope; what its supervisor used is printed after it."""
    from meshscope.capture import places, supervisor
    from meshscope.capture.own import planning
    from meshscope.capture.own.passing import Passing
    from meshscope.capture.request import Request, Windows

    windows = Windows(active=0) if how == "alternating" else Windows()
    command = (sys.executable, __file__, "train", model, seconds, how)
    plan = planning.plan(Request(strategies=(), out=folder, windows=windows, command=command))
    places.made(Path(folder), plan).close()
    supervisor.supervise(Path(folder), Passing(Path(folder)))
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps(own.ru_utime + own.ru_stime))


def _began(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _used(child: subprocess.Popen[str]) -> Used:
    steps, *watching = [json.loads(line) for line in child.communicate()[0].splitlines()]
    return Used(steps, *watching)


def hooks(model: str, seconds: str, folder: Path) -> tuple[float, float, str]:
    """CPU seconds of a step without and with the hooks, and what else there is to say."""
    used = _used(_began("watched", str(folder / "hooks"), model, seconds, "alternating"))
    without = [step_s for at, step_s in enumerate(used.step_s) if at // _BLOCK % 2 == 0]
    with_hooks = [step_s for at, step_s in enumerate(used.step_s) if at // _BLOCK % 2]
    return statistics.median(without), statistics.median(with_hooks), _beside(used, seconds, folder)


def cycling(model: str, seconds: str, folder: Path) -> tuple[float, float, str]:
    children = (
        _began("train", model, seconds, "as it is"),
        _began("watched", str(folder / "c"), model, seconds, "as it is"),
    )
    bare, used = map(_used, children)
    return statistics.fmean(bare.step_s), statistics.fmean(used.step_s), _beside(used, seconds, folder)


def _beside(used: Used, seconds: str, folder: Path) -> str:
    windows = len(list(folder.rglob("*.pt.trace.json.gz")))
    supervisor = f"supervisor {used.watching_s / float(seconds):.1%} of a core"
    return f"{len(used.step_s)} steps, {windows} windows, {supervisor}"


def main(seconds: str = "120", *models: str) -> int:
    is_met = True
    with tempfile.TemporaryDirectory() as folder:
        without_s, with_s, _ = hooks("nothing", "10", Path(folder))
    print(f"the hooks by themselves: {(with_s - without_s) * 1e6:.1f} µs a step, its journal included")
    print(f"{'model':8} {'':8} {'without':>10} {'with':>10} {'ratio':>7} {'at most':>8}")
    for model in models or MODELS:
        for measure in (hooks, cycling):
            with tempfile.TemporaryDirectory() as folder:
                without_s, with_s, beside = measure(model, seconds, Path(folder))
            ratio, limit = with_s / without_s, LIMITS[measure.__name__]
            is_met &= ratio <= limit
            print(
                f"{model:8} {measure.__name__:8} {without_s * 1e3:7.2f} ms {with_s * 1e3:7.2f} ms {ratio:7.4f} "
                f"{limit:8}  {beside}{'' if ratio <= limit else ': MISSED'}",
                flush=True,
            )
    return 0 if is_met else 1


if __name__ == "__main__":
    doors = {"train": train, "watched": watched}
    if sys.argv[1:2] and sys.argv[1] in doors:
        doors[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(main(*sys.argv[1:]))
