"""Accumulation without ``no_sync``, FSDP's root gathered twice, and all-gathers that nothing hides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from asked import codes, only, said
from drawn import run
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.kinds import ANNOTATION
from meshscope.run import Run

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def micro_batch(at: int, *, syncs: bool = True, wait_ns: int = 0, size_bytes: int = 400) -> list[Made]:
    """Forward 0–20, backward 20–50; a bucket that is ready at 44 runs 50–60, 10 of them beside nothing."""
    found = [
        host(at, at + 20, "DistributedDataParallel.forward", rule=ANNOTATION),
        kernel(at + 2, at + 20, launch(at + 1, at + 2)),
        host(at + 20, at + 45, ENGINE, lane="autograd"),
        kernel(at + 22, at + 50, launch(at + 21, at + 22, lane="autograd")),
    ]
    asked = launch(at + 44, at + 45, lane="autograd")
    return [*found, collective(at + 50 + wait_ns, at + 60, asked, size_bytes=size_bytes)] if syncs else found


def stepped(*batches: list[Made], marks: bool = True) -> list[Made]:
    """The batches of one step of 200 ns, 70 apart, and the optimizer behind them."""
    found = [one for batch in batches for one in batch]
    if marks:
        found.append(host(170, 180, "Optimizer.step#SGD.step", rule=ANNOTATION))
    return [*found, kernel(175, 199, launch(171, 172))]


def of(spans: Sequence[Made], *, rank: int = 0, world: int = 0) -> object:
    return window(spans, rank=rank, world=world, steps=[(0, 200)], host="one")


def ran(*ranks: Sequence[Made]) -> Run:
    world = len(ranks) if len(ranks) > 1 else 0
    windows = [of(spans, rank=rank, world=world) for rank, spans in enumerate(ranks)]
    return run(windows=windows, ranks=len(ranks))  # type: ignore[arg-type]


TWICE = stepped(micro_batch(0), micro_batch(70))


def test_gradients_of_every_micro_batch_reduced_cost_the_passes_too_many() -> None:
    found = only("synced-accumulation", ran(TWICE))
    assert (found.cost_ns, found.cost_frac) == (10, pytest.approx(0.05))
    assert (
        "before 1 of 1 optimizer step of all ranks the same series of buckets was all-reduced more than once"
        in said(found)
    )
    assert "1 backward pass too many" in said(found)
    assert "no_sync()" in found.fix


def test_under_no_sync_with_an_unmarked_optimizer_or_other_sizes_nothing_is_said() -> None:
    assert "synced-accumulation" not in codes(ran(stepped(micro_batch(0, syncs=False), micro_batch(70))))
    assert "synced-accumulation" not in codes(ran(stepped(micro_batch(0), micro_batch(70), marks=False)))
    assert "synced-accumulation" not in codes(ran(stepped(micro_batch(0, size_bytes=300), micro_batch(70))))
    assert "synced-accumulation" not in codes(
        ran(stepped(micro_batch(0, size_bytes=-1), micro_batch(70, size_bytes=-1)))
    )
    assert "synced-accumulation" not in codes(ran(stepped(micro_batch(0))))


def test_waiting_in_a_pass_too_many_is_the_late_rank_s() -> None:
    """Rank 1 comes 8 ns late to the first all-reduce: 2 of its 10 ns would be saved on either rank."""
    late = stepped(micro_batch(0, wait_ns=8), micro_batch(70))
    assert "synced-accumulation" not in codes(ran(TWICE, late))  # 2 of 200 ns


def gather(at: int, module: str, begin: int, end: int, *, ahead: bool = False, backward: bool = False) -> list[Made]:
    lane = "autograd" if backward else "main"
    asked = launch(at, at + 1, lane=lane)
    named = f"FSDP::all_gather{f' ({module})' if module else ''}"
    return [
        host(at - 1, at + 2, named, rule=ANNOTATION, lane=lane),
        collective(begin, end, asked, "all_gather", size_bytes=64),
        *([host(at - 2, at + 3, f"FSDP::forward_prefetch for {module}", rule=ANNOTATION, lane=lane)] if ahead else []),
    ]


def fsdp_rank(*gathers: list[Made], compute: Sequence[tuple[int, int]]) -> list[Made]:
    """Forward until 100, backward until 190."""
    marks = [
        host(0, 100, "FSDP::pre_forward", rule=ANNOTATION),
        host(100, 190, ENGINE, lane="autograd"),
    ]
    kernels = [kernel(begin, end, launch(begin - 1, begin)) for begin, end in compute]
    return [*marks, *(one for some in gathers for one in some), *kernels]


def test_a_root_that_is_gathered_again_costs_its_exposed_time() -> None:
    again = gather(110, "", 112, 124, backward=True)
    found = only("root-resharded", ran(fsdp_rank(gather(2, "", 4, 10), again, compute=[(10, 100), (120, 190)])))
    assert (found.cost_ns, found.cost_frac) == (8, pytest.approx(0.04))
    assert (
        "1 all-gather of the root in backward passes of all ranks over all that was traced (1 complete step)"
        in said(found)
    )
    assert "their exposed time is 8 ns, 4.0 % of the mean profiled step of 200 ns" in said(found)
    assert "reshard_after_forward=False" in found.fix


def test_a_root_that_is_kept_or_gathered_under_compute_is_none() -> None:
    assert "root-resharded" not in codes(ran(fsdp_rank(gather(2, "", 4, 10), compute=[(10, 100), (120, 190)])))
    hidden = gather(110, "", 122, 134, backward=True)
    assert "root-resharded" not in codes(ran(fsdp_rank(gather(2, "", 4, 10), hidden, compute=[(10, 100), (120, 190)])))


EXPOSED = (gather(12, "blocks.0", 20, 45), gather(50, "blocks.1", 60, 85), gather(90, "blocks.2", 95, 110))
"""Of 25, 25 and 15 ns, 25, 20 and 0 are beside no compute of :data:`COMPUTE`."""

COMPUTE = [(10, 20), (45, 65), (85, 190)]


def test_all_gathers_that_nothing_hides_cost_their_exposed_time() -> None:
    found = only("exposed-gathers", ran(fsdp_rank(*EXPOSED, compute=COMPUTE)))
    assert (found.cost_ns, found.cost_frac) == (45, pytest.approx(45 / 200))
    assert "2 of 3 all-gathers of modules beside the root, on all ranks over all that was traced (1" in said(found)
    assert "have less than half of their time under compute; all of them are exposed for 45 ns" in said(found)
    assert (
        "most by the forward all-gather of blocks.0: 25 ns exposed in 1 call of all ranks over all that was traced"
        in said(found)
    )
    assert "0 of them were asked for by a prefetch" in said(found)


def test_all_gathers_under_the_compute_of_others_or_of_the_root_alone_are_none() -> None:
    assert "exposed-gathers" not in codes(ran(fsdp_rank(*EXPOSED, compute=[(10, 190)])))
    root = gather(2, "", 4, 60)
    assert "exposed-gathers" not in codes(ran(fsdp_rank(root, *EXPOSED[2:], compute=[(60, 190)])))


def searched(host_ns: int) -> list[Made]:
    name = "torch.distributed.ddp.reducer::search_unused_parameters"
    return [*stepped(micro_batch(70)), host(112, 112 + host_ns, name, lane="autograd")]


def test_a_search_for_unused_parameters_that_takes_time_is_told_without_a_cost() -> None:
    found = only("unused-search", ran(searched(6)))
    assert not found.has_cost
    assert "1 search for unused parameters on all ranks over all that was traced (1 complete step)" in said(found)
    assert "their host time is 6 ns, 3.0 % of the mean profiled step" in said(found)
    assert "find_unused_parameters=False" in found.fix


def test_a_quick_search_or_none_is_no_finding() -> None:
    assert "unused-search" not in codes(ran(searched(3)))
    assert "unused-search" not in codes(ran(stepped(micro_batch(70))))
