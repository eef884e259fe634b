"""A made GPU run whose host, launches, modules and collectives are known: what panels of causes are tried on.

In each step of 100 ms every rank loads data for 4, computes in a module and in another, communicates beside its
backward pass and after it, waits for that, and ends with an optimizer that launches late. Rank 1 computes 10 ms longer.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "analysis" / "support"))

from drawn import run
from made_spans import Made, collective, copy, host, kernel, launch, window

from meshscope.kinds import ANNOTATION, FRAME
from meshscope.run import Gallery, Run

MS = 1_000_000
GEMM = "void at::native::gemm_kernel<float, 128, 64>(float*, float const*, int)"
HOSTILE = "\x1b[31mnorm 正規化\u202e kernel"
BUCKET = 4_000_000


def step_of(at: int, late: int) -> list[Made]:
    """One step that begins at ``at`` ms, whose forward kernel takes ``late`` ms longer."""

    def ms(value: float) -> int:
        return int((at + value) * MS)

    forward, norm = launch(ms(5), ms(5.1)), launch(ms(10), ms(10.1))
    backward, reduce = launch(ms(23), ms(23.1), lane="autograd"), launch(ms(24), ms(24.1), lane="autograd")
    adam, zero = launch(ms(84), ms(84.1)), launch(ms(84.2), ms(84.3))
    return [
        host(ms(0), ms(4), "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", rule=ANNOTATION),
        host(ms(4), ms(9), "nn.Module: Block_0", rule=FRAME),
        host(ms(9.5), ms(20), "nn.Module: Head_0", rule=FRAME),
        host(ms(22), ms(60), "autograd::engine::evaluate_function: MmBackward0", lane="autograd"),
        host(ms(62), ms(76), "cudaStreamSynchronize"),
        host(ms(77), ms(90), "Optimizer.step#AdamW.step", rule=ANNOTATION),
        kernel(ms(6), ms(30 + late), forward, GEMM),
        kernel(ms(30 + late), ms(40 + late), norm, HOSTILE),
        kernel(ms(40 + late), ms(60), backward, GEMM),
        collective(ms(50 + late), ms(75), reduce, size_bytes=BUCKET),
        kernel(ms(85), ms(88), adam, "adam"),
        copy(ms(88), ms(90), zero),
    ]


@cache
def fed(ranks: int = 4, steps: int = 2, *, is_stepped: bool = True) -> Run:
    """``ranks`` ranks of a GPU over ``steps`` steps."""
    marks = [(number * 100 * MS, (number * 100 + 100) * MS) for number in range(steps)] if is_stepped else []
    windows = []
    for rank in range(ranks):
        late = 10 if rank == 1 else 0
        spans = [one for number in range(steps) for one in step_of(number * 100, late)]
        windows.append(window(spans, rank=rank, steps=marks, world=ranks))
    return run(windows=windows, ranks=ranks, cores=4 * ranks)


@cache
def recorded() -> dict[str, Run]:
    """The runs of the recording that comes with meshscope, as they ended, by strategy."""
    _, runs = Gallery(Path(__file__).parents[3] / "recordings" / "tiny-4-cpu-ranks").at(2**62)
    return {run.name: run for run in runs}
