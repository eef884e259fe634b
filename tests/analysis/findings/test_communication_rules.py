"""Stragglers, exposed tails, small collectives and communication that hides nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from asked import codes, only, said
from drawn import run, timeline
from made_spans import Made, collective, host, kernel, launch
from made_spans import window as made_window
from meeting import MS, groups, met, run_of, window

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.findings import findings
from meshscope.analysis.stragglers import stragglers
from meshscope.kinds import ANNOTATION
from meshscope.recording.entries import StepDone
from meshscope.run import Run
from meshscope.spans import Window

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def late(times: int, by_ns: int = 30 * MS, *, of: int = 4, ranks: int = 2, device_kind: str = "gpu") -> Run:
    """One collective of 10 ms in each of some steps of 100 ms; the last rank is late to the first ``times``."""
    arrivals = [
        [at * 100 * MS + (by_ns if rank == ranks - 1 and at < times else 0) for at in range(of)]
        for rank in range(ranks)
    ]
    bounds = np.array([(at * 100 * MS, (at + 1) * 100 * MS) for at in range(of)])
    about = {"steps": tuple(range(of)), "step_ns": bounds, "start_ns": 0, "end_ns": of * 100 * MS}
    windows = [
        replace(one, device_kind=device_kind, **about) for one in met(arrivals, 10 * MS, steps=range(of), host="one")
    ]
    return run_of(windows, strategy="ddp", device_kind=device_kind, cores=2, ranks=ranks)


def test_a_rank_that_comes_late_in_three_steps_is_a_straggler_and_costs_what_the_other_waits() -> None:
    found = only("straggler", late(3))
    assert found.rank == 1
    assert found.cost_frac == pytest.approx(3 * 30 / 400)
    assert "late in 3 of 4 steps, since step 0" in said(found)


def test_what_others_wait_for_a_straggler_is_not_taken_for_what_the_step_would_save() -> None:
    found = only("straggler", late(3))
    assert "the step ends sooner by less where their own hosts take as long" in "\n".join(found.evidence)
    assert any("longer than the median rank, over all that was traced (" in one for one in found.evidence)


def of_machines(hosts: str, late_ms: Sequence[int]) -> Run:
    """Four steps of 100 ms with a collective in each; each rank comes as late as given, one after the other last."""
    arrivals = [
        [at * 100 * MS + (ms * MS + (rank + at) % 2 * 1000 if ms else 0) for at in range(4)]
        for rank, ms in enumerate(late_ms)
    ]
    bounds = np.array([(at * 100 * MS, (at + 1) * 100 * MS) for at in range(4)])
    about = {"steps": tuple(range(4)), "step_ns": bounds, "start_ns": 0, "end_ns": 400 * MS}
    windows = [
        replace(one, device_kind="gpu", host=host, **about)
        for one, host in zip(met(arrivals, 10 * MS, steps=range(4)), hosts, strict=True)
    ]
    return run_of(windows, strategy="ddp", device_kind="gpu", cores=2, ranks=len(hosts))


def test_a_machine_whose_ranks_are_late_together_is_one_finding_with_all_of_them() -> None:
    """Ranks 2 and 3 of machine b come 30 ms late in each step, and take turns at being the last."""
    found = only("straggler", of_machines("aabbcc", [0, 0, 30, 30, 0, 0]))
    assert found.ranks == (2, 3)
    assert found.title == "straggling machine"
    assert found.cost_ns == pytest.approx(30 * MS, abs=1000)
    assert found.cost_frac == pytest.approx(0.3, abs=0.001)
    assert "all 2 ranks of machine b come late to collectives, and none of the 4 others" in said(found)
    assert "late in 4 of 4 steps, since step 0" in said(found)


def test_late_ranks_of_different_machines_are_a_finding_each() -> None:
    run = of_machines("ababab", [0, 0, 30, 30, 0, 0])
    assert sorted(one.ranks for one in findings(run) if one.code == "straggler") == [(2,), (3,)]


def test_two_late_steps_make_no_straggler() -> None:
    assert "straggler" not in codes(late(2))


def test_lateness_of_a_hundredth_is_no_straggler() -> None:
    assert "straggler" not in codes(late(4, MS))


def test_waiting_under_compute_costs_nothing() -> None:
    beside = [kernel(at * 100 * MS, at * 100 * MS + 50 * MS) for at in range(4)]
    waits = [collective(at * 100 * MS, at * 100 * MS + 40 * MS) for at in range(4)]
    meets = [collective(at * 100 * MS + 30 * MS, at * 100 * MS + 40 * MS) for at in range(4)]
    bounds = [(at * 100 * MS, (at + 1) * 100 * MS) for at in range(4)]
    windows = [
        made_window([*waits, *beside], rank=0, steps=bounds, world=2, host="one"),
        made_window(meets, rank=1, steps=bounds, world=2, host="one"),
    ]
    assert "straggler" not in codes(run_of(windows, strategy="ddp"))


def apart(*late_ms: int) -> Run:
    """Two ranks that share their cores: in each step of 300 ms the one (the other, where below 0) is so much late."""
    arrivals = [[at * 300 * MS + max(sign * by, 0) * MS for at, by in enumerate(late_ms)] for sign in (-1, 1)]
    windows = [
        replace(one, start_ns=0, end_ns=len(late_ms) * 300 * MS, device_kind="cpu")
        for one in met(arrivals, 200 * MS, steps=range(len(late_ms)), host="one")
    ]
    return run_of(windows, strategy="ddp", device_kind="cpu", cores=2, ranks=2)


def test_ranks_that_share_cores_are_late_by_as_much_in_every_step_or_by_chance() -> None:
    # Means of two steps each: 105, 95, 105, 95 ms, 100 ± 17 with t = 5.84 of 3 degrees; 53, 73, 3, 100: 57 ± 121.
    assert only("straggler", apart(100, 110, 90, 100, 100, 110, 90, 100)).rank == 1
    assert "straggler" not in codes(apart(5, 100, 55, 90, 5, 0, 110, 90))
    assert "straggler" not in codes(apart(-55, 101, -52, 60, -55, 101, -52, 60))
    assert "straggler" not in codes(apart(100, 110, 90, 100))


def test_where_the_journal_tells_of_equal_work_lateness_in_every_profiled_step_is_the_schedulers() -> None:
    windows = apart(220, 175, 219, 210, 220, 175, 219, 210).windows
    done = [
        StepDone(t_ns=1, rank=rank, step=step, start_ns=step * 300 * MS, end_ns=(step + 1) * 300 * MS, cpu_ns=150 * MS)
        for rank in range(2)
        for step in range(2, 44)
    ]
    assert "straggler" in codes(with_steps([], windows))
    assert "straggler" not in codes(with_steps(done, windows))


def trained(*, beyond_ms: float, scatter_ms: float = 0.0, late_ms: int = 100, others_ms: int = 150) -> Run:
    """One profiled step, in which rank 1 is late, and 40 others, in which it computes longer than rank 0."""
    run = apart(late_ms)
    done = [
        StepDone(
            t_ns=1, rank=rank, step=step, start_ns=step * 300 * MS, end_ns=(step + 1) * 300 * MS,
            cpu_ns=round((others_ms + rank * (beyond_ms + scatter_ms * (-1) ** (step // 4))) * MS),
        )
        for rank in range(2)
        for step in range(2, 44)
    ]  # fmt: skip
    return with_steps(done, run.windows)


def with_steps(done: Sequence[StepDone], windows: Sequence[Window]) -> Run:
    return run(done, windows=windows, strategy="ddp", device_kind="cpu", cores=2, ranks=2)


def test_where_one_step_was_profiled_the_journal_of_all_shows_who_computes_longer() -> None:
    found = only("straggler", trained(beyond_ms=60))
    assert (found.rank, found.of) == (1, "the median step of 300 ms")
    assert found.cost_ns == pytest.approx(60 * MS)
    assert found.cost_frac == pytest.approx(0.2)
    assert "in the mean of 40 unprofiled steps it computes 60.0 ms longer than others (150 ms), 20.0 % of" in said(
        found
    )


def test_what_a_rank_computes_is_held_against_the_others_and_has_to_be_a_fiftieth_of_the_step_too() -> None:
    # A twentieth of 150 ms is 7.5 ms, a fiftieth of the step of 300 ms is 6 ms.
    assert "straggler" in codes(trained(beyond_ms=8))
    assert "straggler" not in codes(trained(beyond_ms=7))
    assert "straggler" not in codes(trained(beyond_ms=5, others_ms=50))
    assert "straggler" in codes(trained(beyond_ms=7, others_ms=50))


def test_the_journal_shows_none_by_little_by_chance_or_where_the_trace_shows_nobody_waiting() -> None:
    assert "straggler" not in codes(trained(beyond_ms=7))
    assert "straggler" not in codes(trained(beyond_ms=30, scatter_ms=80))
    assert "straggler" not in codes(trained(beyond_ms=60, late_ms=0))
    assert "straggler" not in codes(trained(beyond_ms=60, late_ms=-100))
    assert "straggler" not in codes(with_steps([], apart(100).windows))


def test_a_rank_whose_batches_come_late_in_all_steps_is_told_by_the_journal_too() -> None:
    done = [
        StepDone(
            t_ns=1, rank=rank, step=step, start_ns=step * 300 * MS, end_ns=(step + 1) * 300 * MS,
            data_wait_ns=(1 + 70 * rank) * MS, cpu_ns=150 * MS,
        )
        for rank in range(2)
        for step in range(2, 44)
    ]  # fmt: skip
    found = only("straggler", with_steps(done, apart(100).windows))
    assert found.rank == 1
    assert "it waits for its batch 70.0 ms longer than others (1.00 ms)" in said(found)
    assert "loader" in found.fix


def test_where_one_step_was_profiled_work_that_no_other_rank_does_shows_a_straggler() -> None:
    def doing(extra_ms: int) -> Run:
        bounds = [(0, 300 * MS)]
        first = [kernel(0, 50 * MS), collective(50 * MS, 160 * MS)]
        late = [kernel(0, 50 * MS), kernel(50 * MS, (50 + extra_ms) * MS, name="spin"), collective(150 * MS, 160 * MS)]
        about = {"steps": bounds, "world": 2, "host": "one", "device_kind": "cpu"}
        windows = [made_window(first, rank=0, **about), made_window(late, rank=1, **about)]
        return run_of(windows, strategy="pmap", framework="jax", device_kind="cpu", cores=2, ranks=2)

    found = only("straggler", doing(100))
    assert found.rank == 1
    assert "it spends 100 ms on what the others do not run, most of it spin: 1 call in a window" in said(found)
    assert "straggler" not in codes(doing(5))


def test_without_steps_in_the_traces_it_takes_ten_collectives() -> None:
    def late_to(times: int) -> Run:
        arrivals = [[at * 100 * MS + (30 * MS if rank and at < times else 0) for at in range(12)] for rank in range(2)]
        windows = [replace(one, start_ns=0, end_ns=1200 * MS) for one in met(arrivals, 10 * MS, host="one")]
        return run_of(windows, strategy="ddp", device_kind="gpu", ranks=2)

    # Of two equals one would be last to 11 of 12 in 0.6 % of all cases, to 10 of 12 in 4 %.
    assert only("straggler", late_to(11)).rank == 1
    assert "straggler" not in codes(late_to(10))


def jittering(ranks: int, count: int, seed: int, *, late_ms: float = 0.0) -> Run:
    """Steps of about 100 ms that end in a collective, to which all come by chance, and the last rank later."""
    rng = np.random.default_rng(seed)
    arrival, bounds, at = np.zeros((ranks, count), dtype=np.int64), [], 0
    for step in range(count):
        arrival[:, step] = at + 90 * MS + (rng.normal(0, 5, ranks) * MS).astype(np.int64)
        arrival[-1, step] += round(late_ms * MS)
        end = int(arrival[:, step].max()) + 5 * MS
        bounds.append((at, end))
        at = end
    made = met(arrival, 5 * MS, steps=list(range(count)))
    return run_of([replace(one, step_ns=np.array(bounds), start_ns=0) for one in made])


@pytest.mark.parametrize(("ranks", "count"), [(2, 5), (4, 5), (8, 3), (8, 10), (16, 5)])
def test_chance_makes_no_straggler(ranks: int, count: int) -> None:
    """Arrivals of equal devices, normal with 5 % of the step: at most one of forty runs may name somebody."""
    named = [seed for seed in range(40) if "straggler" in codes(jittering(ranks, count, seed))]
    assert len(named) <= 1


@pytest.mark.parametrize(("ranks", "count"), [(4, 5), (8, 4), (8, 10)])
def test_a_late_rank_is_named_through_the_jitter(ranks: int, count: int) -> None:
    named = [only("straggler", jittering(ranks, count, seed, late_ms=30)).rank for seed in range(10)]
    assert named == [ranks - 1] * 10


def test_a_rank_is_charged_for_those_that_wait_for_it_alone() -> None:
    """Two groups of two; rank 1 comes 100 ms late in each step of 200 ms: rank 0 loses half, nobody else anything."""
    groups_ = groups((0, 1), (2, 3))
    windows = []
    for first in (0, 2):
        arrival = np.arange(6) * 200 * MS + np.array([[0], [100 * MS if first == 0 else 0]])
        for one in met(arrival, MS, steps=range(6)):
            rank = one.rank + first
            spans = replace(
                one.spans,
                rank=np.full(6, rank, dtype=np.int32),
                group=np.full(6, first // 2, dtype=np.int32),
                groups=("0", "1"),
            )
            bounds = np.array([(at * 200 * MS, (at + 1) * 200 * MS) for at in range(6)])
            about = {"spans": spans, "world": 4, "process_groups": groups_, "step_ns": bounds}
            windows.append(replace(one, rank=rank, device=rank, start_ns=0, end_ns=1200 * MS, **about))
    found = only("straggler", run_of(windows))
    assert found.rank == 1
    assert found.cost_ns == 100 * MS
    assert found.cost_frac == pytest.approx(0.5)


def test_collectives_side_by_side_wait_once() -> None:
    """Two groups of the same ranks on two streams: rank 0 waits for both at once, half of the time."""
    arrival = np.arange(6) * 200 * MS + np.array([[0], [100 * MS]])
    bounds = np.array([(at * 200 * MS, (at + 1) * 200 * MS) for at in range(6)])
    windows = []
    for one in met(arrival, MS, steps=range(6)):
        twice = np.repeat(np.arange(6), 2)
        spans = one.spans.where(twice)
        spans = replace(spans, group=np.tile(np.array([0, 1], dtype=np.int32), 6), groups=("0", "1"))
        windows.append(replace(one, spans=spans, step_ns=bounds, start_ns=0, end_ns=1200 * MS))
    run = run_of([replace(one, process_groups=groups((0, 1), (0, 1))) for one in windows])
    found = only("straggler", run)
    assert found.cost_ns == 100 * MS
    (named,) = stragglers(run)
    assert (named.cost_ns, named.cost_frac) == (600 * MS, pytest.approx(0.5))


def passes(count: int, *, tail_ns: int) -> list[Made]:
    """Backward passes whose last all-reduce is ready at their end and takes ``tail_ns`` after it."""
    found: list[Made] = []
    for number in range(count):
        at = number * 200
        found += [
            host(at, at + 20, "DistributedDataParallel.forward", rule=ANNOTATION),
            kernel(at + 2, at + 20, launch(at + 1, at + 2)),
            host(at + 20, at + 45, ENGINE, lane="autograd"),
            kernel(at + 22, at + 90, launch(at + 21, at + 22, lane="autograd")),
            collective(at + 85, at + 90 + tail_ns, launch(at + 44, at + 45, lane="autograd"), size_bytes=40 << 20),
            host(at + 150, at + 160, "Optimizer.step#SGD.step", rule=ANNOTATION),
            kernel(at + 150, at + 199, launch(at + 149, at + 150)),
        ]
    return found


def test_an_all_reduce_after_the_backward_pass_is_an_exposed_tail_with_a_smaller_bucket_to_try() -> None:
    found = only("exposed-tail", run(windows=[made_window(passes(3, tail_ns=40), steps=[(0, 600)])]))
    assert found.cost_frac == pytest.approx(3 * 40 / 597, rel=0.01)
    assert "in the mean of 3 backward passes all-reduces are exposed for 40 ns" in said(found)
    assert "bucket_cap_mb=20" in found.fix


def test_tails_behind_the_marks_of_their_steps_cost_what_they_take_in_one() -> None:
    """The host is through with a step at 70, before the device comes to its tail, which ends at 130."""
    made = made_window(passes(3, tail_ns=40), steps=[(0, 70), (200, 270), (400, 470)])
    found = only("exposed-tail", run(windows=[replace(made, end_ns=made.end_ns + 600)]))
    assert (found.cost_ns, found.cost_frac) == (40, pytest.approx(40 / 130))
    assert found.of == "the mean profiled step of 130 ns"


def test_a_tail_in_which_a_late_rank_is_waited_for_is_no_bucket_s() -> None:
    """Rank 1's backward pass computes for 40 ns longer: of the all-reduce's 41 behind rank 0's last kernel, 40 wait."""
    early, late = passes(3, tail_ns=41), passes(3, tail_ns=41)
    late = [
        replace(one, start_ns=one.start_ns + 45) if one.collective
        else replace(one, end_ns=one.end_ns + 40) if one.end_ns - one.start_ns == 68
        else one
        for one in late
    ]  # fmt: skip
    both = [made_window(spans, rank=rank, world=2, steps=[(0, 600)]) for rank, spans in enumerate((early, late))]
    assert "exposed-tail" not in codes(run(windows=both))
    alone = only("exposed-tail", run(windows=both[:1]))
    assert "waiting for a late rank could not be told from transfer: only rank 0's trace is here" in said(alone)


def test_a_short_tail_two_passes_or_shared_cores_are_no_finding() -> None:
    assert "exposed-tail" not in codes(run(windows=[made_window(passes(3, tail_ns=5), steps=[(0, 600)])]))
    assert "exposed-tail" not in codes(run(windows=[made_window(passes(2, tail_ns=40), steps=[(0, 400)])]))
    sharing = [made_window(passes(3, tail_ns=40), steps=[(0, 600)], device_kind="cpu")]
    assert "exposed-tail" not in codes(run(windows=sharing, device_kind="cpu", cores=1))


def reduced(
    sizes: Sequence[int], *, latency_ns: int = 1000, ns_per_kb: int = 1, steps: int = 2, step_ns: int = 40_000
) -> Run:
    """Two ranks that all-reduce buffers of some sizes in each step, one after the other: α + s/β each."""
    starts, ends, all_sizes, of = [], [], [], []
    for step in range(steps):
        at = step * step_ns
        for size_bytes in sizes:
            starts.append(at)
            at += latency_ns + size_bytes // 1000 * ns_per_kb
            ends.append(at)
            all_sizes.append(size_bytes)
            of.append(step)
    bounds = [(step * step_ns, (step + 1) * step_ns) for step in range(steps)]

    def one(rank: int) -> Window:
        made = window(rank, starts, ends, steps=of, spans={"size_bytes": all_sizes}, world=2, host="one")
        return replace(made, step_ns=_bounds(bounds), end_ns=steps * step_ns)

    return run_of([one(0), one(1)], strategy="ddp", ranks=2)


def _bounds(pairs: Sequence[tuple[int, int]]) -> object:
    import numpy as np

    return np.array(pairs, dtype=np.int64)


SMALL = [20_000, 100_000] * 5


def test_many_small_calls_cost_their_latency_fitted_to_their_own_times() -> None:
    found = only("small-collectives", reduced(SMALL))
    # Ten calls a step, α = 1 µs by construction; one call could carry them: nine of them saved, of 40 µs.
    assert found.cost_ns == pytest.approx(9_000)
    assert found.cost_frac == pytest.approx(9_000 / 40_000)
    assert "10 all-reduce calls a step move 600 kB, 60.0 kB each in the mean" in said(found)
    assert "a call takes 1.00 µs and 1.00 µs for a megabyte" in said(found)
    assert found.fix == "DistributedDataParallel(model, bucket_cap_mb=25)"


def test_small_calls_of_xla_are_put_together_by_its_own_thresholds() -> None:
    of = reduced(SMALL)
    found = only("small-collectives", replace(of, experiment=msgspec.structs.replace(of.experiment, framework="jax")))
    assert "xla_gpu_all_reduce_combine_threshold_bytes" in found.fix


def test_on_cpu_xla_combines_all_reduces_only() -> None:
    of = reduced(SMALL)
    on_cpu = replace(of, windows=tuple(replace(one, framework="jax", device_kind="cpu") for one in of.windows))
    assert "ravel_pytree" in only("small-collectives", _of_jax(on_cpu)).fix, "flags of the GPU compiler change nothing"
    tables = (replace(one.spans, collectives=("all_gather",)) for one in on_cpu.windows)
    gathered = tuple(replace(one, spans=table) for one, table in zip(on_cpu.windows, tables, strict=True))
    assert "small-collectives" not in codes(replace(on_cpu, windows=gathered))
    on_gpu = tuple(replace(one, device_kind="gpu") for one in gathered)
    assert "small-collectives" in codes(replace(on_cpu, windows=on_gpu))


def test_few_calls_large_calls_and_calls_without_latency_are_no_finding() -> None:
    assert "small-collectives" not in codes(reduced(SMALL[:6]))
    assert "small-collectives" not in codes(reduced([2_000_000, 9_000_000] * 5))
    assert "small-collectives" not in codes(reduced(SMALL, latency_ns=0, ns_per_kb=20))


def test_calls_of_one_size_do_not_tell_latency_from_bandwidth() -> None:
    assert "small-collectives" not in codes(reduced([20_000] * 10))


def test_calls_of_unknown_sizes_are_judged_by_the_gradients_they_carry() -> None:
    unsized = reduced([-1] * 10)

    def known(parameters: int) -> Run:
        return replace(unsized, experiment=_with(unsized, parameters))

    assert "the quickest tenth of calls take at most" in said(only("small-collectives", known(200_000)))
    assert "small-collectives" not in codes(known(0))
    assert "small-collectives" not in codes(known(200_000_000))


def _of_jax(of: Run) -> Run:
    return replace(of, experiment=msgspec.structs.replace(of.experiment, framework="jax"))


def _with(of: Run, parameters: int) -> object:
    return msgspec.structs.replace(of.experiment, parameters=parameters)


APART = """
    0 compute    ####....####....####....####....
    0 all_gather ....####....####....####....####
    0 step       aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
"""
BESIDE = """
    0 compute    ####..######..######..######....
    0 all_gather ....####....####....####....####
    0 step       aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
"""


def twice(picture: str) -> str:
    """With a second rank that does the same: nobody waits, which of a rank alone nobody would know."""
    return picture.rstrip() + re.sub(r"^( *)0 ", r"\g<1>1 ", picture, flags=re.MULTILINE).rstrip()


def test_devices_that_communicate_and_compute_in_turns_do_not_overlap() -> None:
    found = only("no-overlap", timeline(twice(APART)))
    assert found.cost_frac == pytest.approx(0.5)
    assert "0.0 % of the time of collectives is under compute" in said(found)


def test_only_who_wraps_a_model_is_advised_to_let_the_wrapper_overlap() -> None:
    drawn = timeline(twice(APART))
    fixes = {}
    for strategy in ("fsdp", "tensor-parallel"):
        here = msgspec.structs.replace(drawn.experiment, strategy=strategy)
        fixes[strategy] = only("no-overlap", replace(drawn, experiment=here)).fix
    assert "prefetch" in fixes["fsdp"]
    assert "prefetch" not in fixes["tensor-parallel"]
    assert "async_op=True" in fixes["tensor-parallel"]


def test_the_older_fsdp_is_advised_in_its_own_words() -> None:
    bounds = [(0, 100 * MS)]
    spans: list[Made] = [host(0, 100 * MS, "FullyShardedDataParallel.forward", rule=ANNOTATION)]
    for at in range(5):
        spans += [kernel(20 * at * MS, (20 * at + 10) * MS), collective((20 * at + 10) * MS, (20 * at + 20) * MS)]
    found = only("no-overlap", run_of([made_window(spans, steps=bounds)], strategy="fsdp1"))
    assert "forward_prefetch=True" in found.fix
    assert "fully_shard" not in found.fix


def test_collectives_side_by_side_cost_their_time_once() -> None:
    """An all-gather and a reduce-scatter take the same 12 parts of a step of 20."""
    beside = """
        0 compute        ########............########............
        0 all_gather     ........############........############
        0 reduce_scatter ........############........############
        0 step           aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    """
    found = only("no-overlap", timeline(twice(beside), tells_wait=False))
    assert (found.cost_ns, found.cost_frac) == (120, pytest.approx(0.6))


def test_some_overlap_nothing_to_hide_behind_and_shared_cores_are_no_finding() -> None:
    assert codes(timeline(BESIDE)) == []
    assert (
        codes(
            timeline(
                APART.replace("0 compute    ####....####....####....####", "0 copy       ####....####....####....####")
            )
        )
        == []
    )
    sharing = run(windows=timeline(APART, device_kind="cpu").windows, device_kind="cpu", cores=2)
    assert codes(sharing) == []


WAITED = """
    0 compute    ##......##......##......##......
    0 all_gather ..######..######..######..######
    0 step       aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    1 compute    #######.#######.#######.#######.
    1 all_gather .......#.......#.......#.......#
    1 step       aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
"""


def test_waiting_for_a_late_rank_is_not_what_overlap_would_win() -> None:
    of = timeline(WAITED)
    assert [rank.total.exposed_ns for rank in breakdown(of)] == [240, 40]
    found = only("no-overlap", of)
    assert found.cost_frac == pytest.approx(4 / 32), "of 24 exposed parts of rank 0's 32 twenty wait for rank 1"
    assert "wait for a late rank" in said(found)
