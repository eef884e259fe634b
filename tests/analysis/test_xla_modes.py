"""Which of XLA's collectives ran asynchronously, told by programs, names and streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn import run
from made_spans import Made, collective, kernel, window

from meshscope.analysis.explaining import explanations
from meshscope.analysis.xla_checks import XlaCollective, doubts, xla
from meshscope.analysis.xla_modes import BY_PROGRAM, BY_STREAMS, modes, why_untold
from meshscope.kinds import Kind
from meshscope.reports.strategy_text import strategy_lines
from meshscope.spans import How, Window

MAIN, OWN, MIXED = "Stream #1(Kernel)", "Stream #2(Kernel)", "Stream #3(Kernel)"


def gpu(*spans: Made, how: dict[int, How] | None = None) -> Window:
    """A GPU of a JAX process; ``how`` is by number of the span in order of its start."""
    made = window(spans, framework="jax", steps=[(0, 1000)])
    column = np.full(len(made.spans), -1, dtype=np.int8)
    for row, told in (how or {}).items():
        column[row] = told
    return replace(made, spans=replace(made.spans, how=column))


def computing() -> list[Made]:
    return [kernel(0, 50, lane=MAIN), kernel(60, 90, lane=MAIN)]


def reduced(start_ns: int, end_ns: int, lane: str = OWN) -> Made:
    return collective(start_ns, end_ns, lane=lane)


def one(made: Window) -> XlaCollective:
    found = xla(run(windows=[made]))
    assert found is not None
    (kind,) = found.collectives
    return kind


def test_the_program_beats_the_stream() -> None:
    """All three on a stream of their own; the program says of the first that it is synchronous."""
    told = {1: How.SYNCHRONOUS | How.SINGLE, 2: How.ASYNCHRONOUS | How.COMBINED, 4: How.ASYNCHRONOUS | How.SINGLE}
    found = one(gpu(*computing(), reduced(10, 20), reduced(30, 40), reduced(65, 70), how=told))
    assert (found.count, found.asynchronous, found.synchronous, found.untold) == (3, 2, 1, 0)
    assert (found.combined, found.told_by) == (1, (BY_PROGRAM,))


def test_without_a_program_the_streams_tell() -> None:
    found = one(gpu(*computing(), reduced(10, 20), reduced(52, 58, MAIN)))
    assert (found.asynchronous, found.synchronous, found.told_by) == (1, 1, (BY_STREAMS,))
    assert found.combined is None


def test_a_stream_with_a_few_kernels_beside_its_collectives_tells_nothing() -> None:
    made = gpu(*computing(), kernel(40, 42, lane=MIXED), reduced(10, 20, MIXED), reduced(30, 40))
    found = one(made)
    assert (found.asynchronous, found.synchronous, found.untold) == (None, None, 1)
    assert doubts(run(windows=[made])) == (("asynchronous", why_untold(made)),)
    assert "no program in it says" in why_untold(made)


def test_a_device_that_only_communicates_tells_nothing_by_its_streams() -> None:
    assert one(gpu(reduced(10, 20), reduced(30, 40, MAIN))).asynchronous is None


def test_in_command_buffers_streams_tell_nothing_and_the_reason_is_said() -> None:
    made = gpu(*computing(), reduced(10, 20), how={0: How.COMMANDS, 1: How.COMMANDS})
    found = one(made)
    assert (found.asynchronous, found.untold, found.in_commands) == (None, 1, 1)
    assert "command buffers" in why_untold(made)
    whole = xla(run(windows=[made]))
    assert whole is not None
    assert (whole.in_commands, whole.works, whole.commands) == (2, 3, 0)
    text = " ".join(" ".join(strategy_lines(run(windows=[made]))).split())
    assert "1 in command buffers" in text
    assert "2 of 3 operations ran in command buffers" in text


def test_a_collective_of_which_the_program_tells_is_told_beside_graphs() -> None:
    made = gpu(*computing(), reduced(10, 20), how={0: How.COMMANDS, 1: How.ASYNCHRONOUS | How.COMMANDS})
    assert (one(made).asynchronous, one(made).in_commands) == (1, 1)
    assert why_untold(made) == ""


def test_neither_torch_nor_jax_on_cpu_is_judged() -> None:
    spans = [*computing(), reduced(10, 20)]
    torch = window(spans)
    assert modes(torch).mode.tolist() == [-1]
    cpu = replace(gpu(*spans, how={1: How.SYNCHRONOUS}), device_kind="cpu")
    assert modes(cpu).mode.tolist() == [-1]
    assert "CPU runtime has no asynchronous collectives" in why_untold(cpu)


def test_a_tpu_is_told_by_the_line_of_an_operation_by_its_program_and_by_its_text() -> None:
    texts = {
        "%psum.7 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={}": 0,
        "%psum.8 = f32[8]{0} all-reduce-start(f32[8]{0} %x), replica_groups={}": 1,
        "all-gather-start.1": 1,
        "all-gather.2": 0,
        "psum.9": -1,
    }
    spans = [
        Made(Kind.COLLECTIVE, "XLA Ops", at * 10, at * 10 + 5, name, collective="all_reduce")
        for at, name in enumerate(texts)
    ]
    beside = Made(Kind.COLLECTIVE, "Async XLA Ops", 90, 95, "psum.10", collective="all_reduce")
    made = replace(gpu(*spans, beside, how={4: How(0)}), device_kind="tpu")
    assert modes(made).mode.tolist() == [*texts.values(), 1]
    program = replace(gpu(*spans, beside, how={4: How.SYNCHRONOUS, 5: How.SYNCHRONOUS}), device_kind="tpu")
    assert modes(program).mode.tolist() == [0, 1, 1, 0, 0, 1]


def test_the_count_is_explained_by_the_calls_behind_it() -> None:
    told = {1: How.SYNCHRONOUS | How.SINGLE, 2: How.ASYNCHRONOUS | How.COMBINED, 4: How.ASYNCHRONOUS | How.SINGLE}
    made = run(windows=[gpu(*computing(), reduced(10, 20), reduced(30, 40), reduced(65, 70), how=told)])
    (found,) = explanations([made], "xla.all_reduce.asynchronous")
    (case,) = found.cases
    assert case.figure is not None
    assert (case.figure.value, case.json) == (2, "xla.collectives[0].asynchronous")
    assert case.evidence is not None
    assert sorted((one.start_ns, one.duration_ns) for one in case.evidence.largest) == [(30, 10), (65, 5)]
    assert case.notes == ("told by the compiled program",)


def test_a_count_that_cannot_be_told_says_why() -> None:
    made = run(windows=[gpu(*computing(), reduced(10, 20), how={0: How.COMMANDS, 1: How.COMMANDS})])
    (asynchronous,) = explanations([made], "xla.all_reduce.asynchronous")[0].cases
    assert (asynchronous.figure, "command buffers" in asynchronous.why) == (None, True)
    (combined,) = explanations([made], "xla.all_reduce.combined")[0].cases
    assert "no compiled program" in combined.why
    (grouped,) = explanations([made], "xla.all_reduce.in_commands")[0].cases
    assert grouped.figure is not None
    assert grouped.figure.value == 1
