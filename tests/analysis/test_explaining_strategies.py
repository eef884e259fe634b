"""What DDP's, FSDP's and the critical path's numbers are made of, worked by hand."""

from __future__ import annotations

from dataclasses import replace

from drawn import run
from explained import asked, only, parts, value, worth
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.kinds import ANNOTATION, Kind
from meshscope.run import Run
from meshscope.spans import Window

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def a_pass(at: int) -> list[Made]:
    """Forward 0–20, backward 20–50 on the device; bucket 1 is ready at 30 and runs 30–40, bucket 2 at 44: 50–65."""
    found = [
        host(at, at + 20, "DistributedDataParallel.forward", rule=ANNOTATION),
        kernel(at + 2, at + 20, launch(at + 1, at + 2)),
        host(at + 20, at + 45, ENGINE, lane="autograd"),
        kernel(at + 22, at + 50, launch(at + 21, at + 22, lane="autograd")),
    ]
    for size, (ready, begin, end) in zip((400, 100), ((30, 30, 40), (44, 50, 65)), strict=True):
        call = launch(at + ready, at + ready + 1, lane="autograd")
        found.append(collective(at + begin, at + end, call, size_bytes=size))
    return found


def ddp() -> Run:
    """Two steps; in the second the last all-reduce takes 10 longer."""
    second = [replace(one, end_ns=175) if one.end_ns == 165 else one for one in a_pass(100)]
    return run(windows=[window([*a_pass(0), *second], steps=[(0, 100), (100, 200)])])


def test_the_tail_is_the_mean_over_passes_and_each_can_be_told() -> None:
    case = only(ddp(), "ddp.tail")
    assert (value(case), case.json) == (20.0, "ddp.tail_ns")
    assert list(parts(case).values()) == [15, 25]
    assert (worth(ddp(), "ddp.tail", step=0), worth(ddp(), "ddp.tail", step=1)) == (15, 25)
    assert worth(ddp(), "ddp.tail_share") == 40 / 173
    assert worth(ddp(), "ddp.tail_share", step=1) == 25 / 100
    assert case.evidence is not None
    assert [one.share_ns for one in case.evidence.largest] == [25, 15]


def test_a_bucket_is_ready_from_the_beginning_of_its_pass() -> None:
    """On the device: its first kernel begins at 22. The bucket is asked for at 44, when what was launched before it
    computes until 50."""
    assert [worth(ddp(), f"ddp.buckets.2.{what}") for what in ("size", "ready", "begin", "busy", "after")] == [
        100, 28, 28, 20, 20,
    ]  # fmt: skip
    assert worth(ddp(), "ddp.buckets.2.exposed", step=0) == 15
    assert only(ddp(), "ddp.buckets.1.ready").json == "ddp.buckets[0].ready_ns"


def test_a_devices_step_is_from_pass_to_pass() -> None:
    assert worth(ddp(), "ddp.device_step") == 100
    assert worth(ddp(), "ddp.passes_per_step") == 1


def test_passes_that_need_not_have_reduced_are_counted_with_their_exposed_time() -> None:
    twice = run(windows=[window([*a_pass(0), *a_pass(100), host(170, 180, "Optimizer.step#SGD.step")])])
    assert [worth(twice, f"ddp.{what}") for what in ("repeats", "repeated", "repeated_exposed")] == [1, 1, 15]
    assert worth(ddp(), "ddp.searches") == 0


def gathers(module: str, call: int, begin: int, end: int, *, ahead: bool = False) -> list[Made]:
    found = [
        host(call - 1, call + 2, f"FSDP::all_gather ({module})", rule=ANNOTATION),
        collective(begin, end, launch(call, call + 1), "all_gather", size_bytes=64),
    ]
    if ahead:
        found.append(host(call - 2, call + 3, f"FSDP::forward_prefetch for {module}", rule=ANNOTATION))
    return found


def fsdp() -> Run:
    """Block 0 is gathered bare in 20–30, block 1 ahead of time in 32–42 with 8 of it under compute of 34–60."""
    spans = [*gathers("blocks.0", 18, 20, 30), *gathers("blocks.1", 28, 32, 42, ahead=True),
             kernel(34, 60, launch(31, 32))]  # fmt: skip
    return run(windows=[window(spans, steps=[(0, 25), (25, 70)])])


def test_a_modules_gathers_are_hidden_exposed_and_ahead() -> None:
    of = fsdp()
    assert [worth(of, f"fsdp.blocks.1.forward.{what}") for what in ("busy", "hidden", "exposed", "ahead", "size")] == [
        10, 8, 2, 1, 64,
    ]  # fmt: skip
    assert worth(of, "fsdp.blocks.0.forward.hidden_calls") == 0
    assert (worth(of, "fsdp.exposed"), worth(of, "fsdp.exposed", step=1)) == (12, 2)
    assert worth(of, "fsdp.hidden_share") == 8 / 20
    assert worth(of, "fsdp.gathers", step=0) == 1
    (case,) = asked(of, "fsdp.blocks.1.forward.exposed", step=0)
    assert case.why == "no such call begins there"


def three(late: tuple[int, ...] = (10, 10, 110)) -> list[Window]:
    """Ranks compute, meet for 20 once the last has come, and compute 10 more."""
    end = max(late) + 20
    return [
        window([kernel(0, ns), collective(ns, end), kernel(end, end + 10)], rank=rank, world=3, steps=[(0, end + 10)])
        for rank, ns in enumerate(late)
    ]


def test_the_critical_path_is_its_kinds_and_each_is_its_ranks() -> None:
    of = run(windows=three())
    assert parts(only(of, "critical_path.total")) == {"compute": 120, "communication": 20}
    case = only(of, "critical_path.compute")
    assert (value(case), case.json) == (120, "critical_path[0].parts.compute")
    assert worth(of, "path:compute", rank=2) >= 110
    assert worth(of, "critical_path.compute.share") == 120 / 140
    assert sum(value(one) for one in asked(of, "critical_path.by_rank")) == 140
    assert worth(of, "critical_path.works.gemm") == 120
    assert worth(of, "critical_path.works.gemm.count") == 2
    assert case.evidence is not None
    assert [(one.name, one.share_ns) for one in case.evidence.largest] == [("gemm", 110), ("gemm", 10)]


def test_an_operator_on_the_path_is_its_own_time_and_calls() -> None:
    nested = [kernel(at, at + 30, name="aten::linear", lane="main") for at in (0, 50)]
    nested += [kernel(at + 5, at + 25, name="aten::mm", lane="main") for at in (0, 50)]
    plain = run(windows=[window(nested, device_kind="cpu", steps=[(0, 100)])])
    assert "phase" in only(plain, "critical_path.works.aten::mm.backward").why
    engine = host(52, 78, "autograd::engine::evaluate_function: MmBackward0")
    of = run(windows=[window([*nested, engine], device_kind="cpu", steps=[(0, 100)])])
    assert worth(of, "critical_path.works.aten::mm.backward") == 20
    assert (worth(of, "critical_path.works.aten::mm"), worth(of, "critical_path.works.aten::linear")) == (40, 20)
    assert worth(of, "critical_path.works.aten::linear.count") == 2
    case = only(of, "critical_path.works.aten::linear")
    assert case.json == "critical_path[0].works[1].total_ns"
    assert case.evidence is not None
    assert [(one.name, one.share_ns) for one in case.evidence.largest] == [("aten::linear", 5)] * 4


def test_an_answer_of_a_replay_is_the_path_of_that_replay() -> None:
    of = run(windows=three())
    twice = only(of, "what_if.communication_twice_as_fast.total")
    assert parts(twice) == {"compute": 120, "communication": 10}
    assert worth(of, "what_if.communication_hidden") == 120
    assert worth(of, "what_if.communication_hidden.saved") == 20 / 140
    even = only(of, "what_if.no_straggler.total")
    assert (value(even), parts(even)) == (
        40, {"rank 0 by itself": 40, "rank 1 by itself": 40, "rank 2 by itself": 140})  # fmt: skip
    assert any("replay's rule" in note for note in even.notes)


def test_an_answer_that_the_traces_cannot_give_says_why() -> None:
    alone = three((10,))[0]
    case = only(run(windows=[replace(alone, world=1)]), "what_if.no_straggler")
    assert (case.figure, case.why) == (None, "only one rank can be seen")


def test_xla_collectives_are_exposed_once_side_by_side() -> None:
    spans = [
        Made(Kind.COLLECTIVE, lane, 10, 30, name, collective="all_gather", size_bytes=size)
        for lane, name, size in (
            ("XLA Ops", "all-gather-start.1", 64),
            ("Async XLA Ops", "all-gather-start.2", 2 << 20),
        )
    ]
    later = Made(Kind.COLLECTIVE, "XLA Ops", 60, 66, "all-gather.3", collective="all_gather")
    made = window([*spans, later, kernel(0, 15, name="fusion")], framework="jax", device_kind="tpu",
                  steps=[(0, 40), (40, 80)])  # fmt: skip
    of = run(windows=[made])
    told = [worth(of, f"xla.all_gather.{what}") for what in ("count", "busy", "exposed", "median", "small", "per_step")]
    assert told == [3, 46, 15 + 6, 20, 1, 1.5]
    assert worth(of, "xla.all_gather.exposed", step=1) == 6
    assert only(of, "xla.all_gather.busy").json == "xla.collectives[name=all_gather].busy_ns"
