"""DDP, FSDP and XLA checked on small made ranks, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import run
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis import ddp as of_ddp
from meshscope.analysis import fsdp as of_fsdp
from meshscope.analysis import xla_checks as of_xla
from meshscope.analysis.ddp import Ddp, ddp, sent_as
from meshscope.analysis.fsdp import Fsdp, fsdp
from meshscope.analysis.xla_checks import xla
from meshscope.kinds import ANNOTATION, Kind
from meshscope.reports.strategy_text import strategy_lines
from meshscope.run import Gallery, Run, open_traces
from meshscope.spans import Window

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def a_pass(at: int, sizes: tuple[int, ...] = (400, 100), *, syncs: bool = True) -> list[Made]:
    """Forward 0–20, backward 20–50 on the device; bucket 1 is ready at 30 and runs 30–40, bucket 2 at 44: 50–65."""
    found = [
        host(at, at + 20, "DistributedDataParallel.forward", rule=ANNOTATION),
        kernel(at + 2, at + 20, launch(at + 1, at + 2)),
        host(at + 20, at + 45, ENGINE, lane="autograd"),
        kernel(at + 22, at + 50, launch(at + 21, at + 22, lane="autograd")),
    ]
    if syncs:
        times = ((30, 30, 40), (44, 50, 65))
        for size, (ready, begin, end) in zip(sizes, times, strict=True):
            call = launch(at + ready, at + ready + 1, lane="autograd")
            found.append(collective(at + begin, at + end, call, size_bytes=size))
    return found


def optimizer(at: int) -> list[Made]:
    return [host(at, at + 10, "Optimizer.step#SGD.step", rule=ANNOTATION), kernel(at + 5, at + 9, launch(at, at + 1))]


def of(spans: list[Made], **about: object) -> Ddp:
    found = ddp(run(windows=[window(spans, **about)]))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_the_bucket_behind_the_last_computation_is_the_exposed_tail() -> None:
    """By the device's clock, from the first kernel of the pass at 22 to its end at 50."""
    found = of([*a_pass(0), *optimizer(70)], steps=[(0, 100)])
    first, last = found.buckets
    assert (first.size_bytes, first.ready_ns, first.begin_ns, first.busy_ns) == (400, 8, 8, 10)
    assert (first.exposed_ns, first.after_ns) == (0, 0)
    assert (last.size_bytes, last.ready_ns, last.end_ns) == (100, 28, 43)
    assert (last.exposed_ns, last.after_ns) == (15, 15)
    assert (found.computed_ns, found.tail_ns) == (28, 15)
    assert found.tail_frac == 15 / (79 - 2)


def test_waiting_for_a_late_rank_is_told_apart_in_the_tail() -> None:
    """Rank 1 computes until 55: of rank 0's tail from 50 to 65, 5 are waiting."""
    late = [replace(one, start_ns=55) if one.collective and one.start_ns == 50 else one for one in a_pass(0)]
    ends = [replace(one, end_ns=55) if one.name == "gemm" and one.end_ns == 50 else one for one in late]
    found = ddp(run(windows=[window(spans, rank=rank, world=2) for rank, spans in enumerate((a_pass(0), ends))]))
    assert found is not None
    assert (found.tail_ns, found.waited_ns, found.unmatched) == ((15 + 10) / 2, 5 / 2, 0)
    assert of(a_pass(0), world=2).unmatched == 1, "the other rank's trace is not here"


def test_passes_are_added_up_over_ranks_and_steps() -> None:
    ranks = [window([*a_pass(0), *optimizer(70), *a_pass(100), *optimizer(170)], rank=rank) for rank in (0, 1)]
    found = ddp(run(windows=ranks))
    assert found is not None
    assert (found.passes, found.alike, found.ranks, found.tail_ns) == (4, 4, (0, 1), 15)


def test_gradients_reduced_twice_before_a_step_are_accumulated_without_no_sync() -> None:
    found = of([*a_pass(0), *a_pass(100), *optimizer(170)])
    assert (found.repeats, found.repeated, found.repeated_ns) == (1, 1, 15)


def test_buckets_on_two_streams_at_once_are_exposed_once() -> None:
    def doubled(at: int) -> list[Made]:
        asked = launch(at + 44, at + 45, lane="autograd")
        return [*a_pass(at), collective(at + 50, at + 65, asked, size_bytes=100, lane="stream 21")]

    found = of([*doubled(0), *doubled(100), *optimizer(170)])
    assert (found.repeats, found.repeated_ns, found.tail_ns) == (1, 15, 15)


def test_under_no_sync_only_the_last_pass_reduces() -> None:
    found = of([*a_pass(0, syncs=False), *a_pass(100), *optimizer(170)])
    assert (found.repeats, found.passes) == (0, 1)


def test_a_step_between_two_passes_makes_them_no_accumulation() -> None:
    assert of([*a_pass(0), *optimizer(70), *a_pass(100), *optimizer(170)]).repeats == 0


def test_two_series_of_other_sizes_are_no_accumulation() -> None:
    assert of([*a_pass(0), *a_pass(100, (300, 100)), *optimizer(170)]).repeats == 0


def test_unknown_sizes_tell_no_accumulation_and_say_so() -> None:
    made = window([*a_pass(0, (-1, -1)), *a_pass(100, (-1, -1)), *optimizer(170)])
    found = ddp(run(windows=[made]))
    assert found is not None
    assert found.repeats == 0
    assert found.buckets[0].size_bytes is None
    assert "sizes of buckets are not known" in of_ddp.doubts(run(windows=[made]))[0][1]


def test_the_search_for_unused_parameters_and_broadcasts_of_buffers_are_found() -> None:
    search = host(45, 52, "torch.distributed.ddp.reducer::search_unused_parameters", lane="autograd")
    buffers = collective(-10, 0, launch(-11, -10), "broadcast")
    found = of([buffers, *a_pass(0), search])
    assert (found.searches, found.search_ns, found.buffers, found.buffers_ns) == (1, 7, 1, 10)


def test_what_an_optimizer_broadcasts_is_no_buffer() -> None:
    """ZeRO's ranks send each other the parameters that they have updated."""
    update = host(60, 80, "Optimizer.step#ZeroRedundancyOptimizer.step", rule=ANNOTATION)
    buffers = collective(-10, 0, launch(-11, -10), "broadcast")
    parameters = collective(70, 79, launch(65, 66), "broadcast")
    found = of([buffers, *a_pass(0), update, parameters])
    assert (found.buffers, found.buffers_ns) == (1, 10)


def test_a_map_of_used_parameters_is_no_bucket() -> None:
    made = window(a_pass(0))
    dtype = np.where(made.spans.size_bytes == 100, 0, -1).astype(np.int32)
    whole = made.spans.__class__(**{**vars(made.spans), "dtype": dtype, "dtypes": ("Int",)})
    found = ddp(run(windows=[Window(**{**vars(made), "spans": whole})]))
    assert found is not None
    assert [bucket.size_bytes for bucket in found.buckets] == [400]


@pytest.mark.parametrize(
    ("types", "sent"),
    [
        (("c10::Half",), "fp16"),
        (("c10::BFloat16",), "bf16"),
        (("BFloat16",), "bf16"),
        (("Half", "Float"), ""),
        (("Float",), ""),
        ((), ""),
    ],
)
def test_buckets_that_were_all_sent_in_half_the_bytes_say_so(types: tuple[str, ...], sent: str) -> None:
    made = window(a_pass(0))
    rows = np.flatnonzero(made.spans.kind == Kind.COLLECTIVE)
    dtype = np.full(len(made.spans), -1, dtype=np.int32)
    dtype[rows] = np.arange(len(rows)) % len(types) if types else -1
    told = run(windows=[replace(made, spans=replace(made.spans, dtype=dtype, dtypes=types))])
    assert sent_as(told) == sent
    (first, *_) = strategy_lines(told)
    assert (f"sent in {sent}" in first) == bool(sent)


def test_what_is_no_ddp_is_not_taken_for_it() -> None:
    alone = [kernel(2, 20, launch(1, 2)), collective(30, 40, launch(25, 26))]
    assert ddp(run(windows=[window(alone)])) is None


def gathers(
    at: int, name: str, call: int, begin: int, end: int, *, what: str = "all_gather", ahead: bool = False
) -> list[Made]:
    """A collective of a module, asked for by FSDP at ``call``."""
    asked = launch(at + call, at + call + 1)
    scope = "all_gather" if what == "all_gather" else "post_backward_reduce"
    found = [
        host(at + call - 1, at + call + 2, f"FSDP::{scope}{f' ({name})' if name else ''}", rule=ANNOTATION),
        collective(at + begin, at + end, asked, what, size_bytes=64),
    ]
    if ahead:
        found.append(host(at + call - 2, at + call + 3, f"FSDP::backward_prefetch for {name}", rule=ANNOTATION))
    return found


def fsdp_rank() -> list[Made]:
    """The root and two blocks: block 1 is gathered while block 0 computes, and prefetched in the backward pass."""
    return [
        *gathers(0, "", 5, 6, 16), *gathers(0, "blocks.0", 20, 21, 31), kernel(31, 51, launch(25, 26)),
        *gathers(0, "blocks.1", 30, 32, 42), kernel(51, 70, launch(33, 34)),
        host(70, 130, ENGINE, lane="main"),
        *gathers(0, "blocks.0", 75, 80, 90, ahead=True), kernel(82, 100, launch(81, 82)),
        *gathers(0, "blocks.1", 110, 111, 121, what="reduce_scatter"),
    ]  # fmt: skip


def of_fsdp_run(spans: list[Made], **about: object) -> Fsdp:
    found = fsdp(run(windows=[window(spans, **about)]))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_an_all_gather_under_the_compute_of_another_module_is_hidden() -> None:
    found = of_fsdp_run(fsdp_rank(), steps=[(0, 200)])
    modules = {(one.module, one.what): one for one in found.modules}
    assert modules["blocks.1", "forward"].hidden_ns == 10
    assert modules["blocks.0", "forward"].exposed_ns == 10
    assert modules["blocks.0", "backward"].hidden_ns == 8
    assert (modules["blocks.0", "backward"].ahead, modules["blocks.0", "forward"].ahead) == (1, 0)
    assert modules["blocks.1", "reduce_scatter"].exposed_ns == 10
    assert {one.per_step for one in found.modules} == {1}
    assert (found.gathers, found.hidden, found.hidden_frac) == (4, 2, 18 / 40)
    assert (found.exposed_ns, found.root_again) == (10 + 10 + 2 + 10, 0)


def test_collectives_of_others_are_no_exposed_time_of_fsdp() -> None:
    """The gradients' norm is all-reduced on a stream of its own, once beside an all-gather of FSDP."""
    norm = [collective(140, 190, launch(135, 136), lane="stream 30"), collective(6, 16, launch(4, 5), lane="stream 30")]
    found = of_fsdp_run([*fsdp_rank(), *norm], steps=[(0, 200)])
    assert found.exposed_ns == 10 + 10 + 2 + 10
    assert found.exposed_frac == found.exposed_ns / (190 - 6)


def test_a_root_that_is_gathered_again_was_freed_too_early() -> None:
    again = gathers(0, "", 72, 73, 79)
    found = of_fsdp_run([*fsdp_rank(), *again])
    assert (found.root_again, found.root_again_ns) == (1, 6)


def test_fsdp_that_does_not_name_modules_is_not_guessed_at() -> None:
    made = run(windows=[window([host(0, 9, "FullyShardedDataParallel.forward", rule=ANNOTATION), collective(1, 5)])])
    assert fsdp(made) is None
    assert "FSDP1" in of_fsdp.doubts(made)[0][1]


def xla_window(names: list[str], *, device_kind: str = "tpu", sizes: int = -1) -> Window:
    spans = [
        Made(Kind.COLLECTIVE, "XLA Ops", at * 10, at * 10 + 5, name, collective="all_gather", size_bytes=sizes)
        for at, name in enumerate(names)
    ]
    return window([*spans, kernel(2, 4, name="fusion")], framework="jax", device_kind=device_kind, steps=[(0, 1000)])


def test_collectives_with_a_start_are_asynchronous() -> None:
    names = ["all-gather-start.1", "all-gather.2", "%all-gather.3 = f32[8]{0} all-gather()"]
    found = xla(run(windows=[xla_window(names)]))
    assert found is not None
    (one,) = found.collectives
    assert (one.count, one.asynchronous, one.per_step, one.exposed_ns) == (3, 1, 3, 13)


def test_asynchronous_collectives_side_by_side_are_exposed_once() -> None:
    spans = [
        Made(Kind.COLLECTIVE, lane, 10, 30, name, collective="all_gather")
        for lane, name in (("XLA Ops", "all-gather-start.1"), ("Async XLA Ops", "all-gather-start.2"))
    ]
    made = window([*spans, kernel(0, 15, name="fusion")], framework="jax", device_kind="tpu", steps=[(0, 40)])
    found = xla(run(windows=[made]))
    assert found is not None
    (gathers,) = found.collectives
    assert (gathers.count, gathers.busy_ns, gathers.exposed_ns) == (2, 40, 15)


@pytest.mark.parametrize(("device_kind", "why"), [("cpu", "no asynchronous collectives"), ("gpu", "names kernels")])
def test_where_names_do_not_tell_asynchronous_collectives_are_not_counted(device_kind: str, why: str) -> None:
    name = "all-gather.1" if device_kind == "cpu" else "ncclDevKernel_AllGather_RING_LL"
    only = window([Made(Kind.COLLECTIVE, "Stream #1", 0, 5, name, collective="all_gather")], framework="jax")
    made = run(windows=[replace(only, device_kind=device_kind)])
    found = xla(made)
    assert found is not None
    assert found.collectives[0].asynchronous is None
    assert why in of_xla.doubts(made)[0][1]


@pytest.mark.parametrize(
    ("count", "sizes", "is_scattered"), [(8, 1000, True), (8, 1 << 21, False), (7, 1000, False), (8, -1, False)]
)
def test_many_small_collectives_in_a_step_could_be_combined(count: int, sizes: int, is_scattered: bool) -> None:
    found = xla(run(windows=[xla_window(["all-gather.1"] * count, sizes=sizes)]))
    assert found is not None
    assert found.collectives[0].is_scattered is is_scattered


def test_on_cpu_the_compiler_combines_all_reduces_only() -> None:
    made = xla_window(["all-gather.1"] * 8, sizes=1000, device_kind="cpu")
    found = xla(run(windows=[made]))
    assert found is not None
    assert not found.collectives[0].is_scattered
    reduced = replace(made, spans=replace(made.spans, collectives=("all_reduce",)))
    found = xla(run(windows=[reduced]))
    assert found is not None
    assert found.collectives[0].is_scattered


def test_the_instructions_with_the_most_exposed_time_are_named() -> None:
    """At 0, 10, 20, 30, 40, each of 5 ns; a kernel hides 2 ns of the first."""
    names = ["ag.1", "%ag.2 = f32[8]{0} all-gather()", "ag.3", "ag.3", "ag.4"]
    found = xla(run(windows=[xla_window(names, sizes=1000)]))
    assert found is not None
    (one,) = found.collectives
    assert [(call.name, call.count, call.exposed_ns, call.size_bytes) for call in one.longest] == [
        ("ag.3", 2, 10, 1000), ("ag.2", 1, 5, 1000), ("ag.4", 1, 5, 1000),
    ]  # fmt: skip
    assert (one.sized, one.small, one.sized_bytes) == (5, 5, 5000)


def test_a_call_whose_size_is_not_told_moves_no_known_bytes() -> None:
    found = xla(run(windows=[xla_window(["ag.1"])]))
    assert found is not None
    (one,) = found.collectives
    assert (one.sized, one.sized_bytes, one.longest[0].size_bytes) == (0, 0, None)


def test_command_buffers_are_counted_and_named() -> None:
    made = window([kernel(0, 9, name="command_buffer.3"), kernel(10, 19)], framework="jax")
    found = xla(run(windows=[made]))
    assert found is not None
    assert (found.commands, found.works, found.command_names) == (1, 2, ("command_buffer.3",))
    none = xla(run(windows=[window([kernel(10, 19)], framework="jax")]))
    assert none is not None
    assert (none.commands, none.command_names) == (0, ())


def bundled(root: Path) -> dict[str, Run]:
    gallery = Gallery(root / "recordings" / "tiny-4-cpu-ranks")
    end = gallery.end_unix_ns
    assert end is not None
    return {run.experiment.strategy: run for run in gallery.at(end)[1]}


def test_the_bundled_strategies_show_what_they_are(root: Path) -> None:
    runs = bundled(root)
    by_ddp, by_fsdp = ddp(runs["ddp"]), fsdp(runs["fsdp"])
    assert by_ddp is not None
    assert by_fsdp is not None
    assert (by_ddp.passes, len(by_ddp.buckets), by_ddp.repeats) == (4, 3, 0)
    assert by_ddp.tail_ns > 0
    # Per rank: the root and both blocks forward, both blocks backward. FSDP keeps its root.
    assert (by_fsdp.gathers, by_fsdp.root_again) == (4 * 5, 0)
    assert {one.module for one in by_fsdp.modules} == {"", "blocks.0", "blocks.1"}
    counts = {name: {one.name: one.per_step for one in xla(runs[name]).collectives} for name in ("pmap", "pjit")}  # type: ignore[union-attr]
    assert counts == {"pmap": {"all_reduce": 1}, "pjit": {"all_gather": 15, "all_reduce": 1}}
    assert ddp(runs["fsdp"]) is fsdp(runs["ddp"]) is xla(runs["ddp"]) is None


@pytest.mark.shared
@pytest.mark.parametrize(
    ("case", "sizes"),
    [
        ("nccl-hta-nccl-data", [8196000, 31502336, 26255360, 26550272, 9724160]),
        ("nccl-tl-resnet-actckpt-mi300", [5746640, 17632384]),
    ],
)
def test_the_buckets_of_real_ranks_are_found(shared: Path, case: str, sizes: list[int]) -> None:
    (here,) = open_traces([shared / "traces" / case]).runs
    found = ddp(here)
    assert found is not None
    assert [bucket.size_bytes for bucket in found.buckets] == sizes
    assert (found.passes, found.alike, found.repeats, found.buffers) == (3, 3, 0, 6)
    assert found.buckets[-1].after_ns == pytest.approx(found.buckets[-1].exposed_ns)
    assert found.tail_ns >= found.buckets[-1].after_ns
