"""Torch ranks on CPU: operators compute, gloo's threads communicate, and a wait inside an operator is no compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import Event, memory, span, thread_name, write_kineto

from meshscope.readers import read
from meshscope.spans import Kind, Window

MAIN, GLOO, GLOO_TOO = 1, 8, 9


def gloo(name: str, start_us: float, dur_us: float, *, tid: int = GLOO, elements: int | None = None) -> Event:
    shape: dict[str, Any] = {} if elements is None else {"Input Dims": [[elements]], "Input type": ["float"]}
    return span(f"gloo:{name}", start_us, dur_us, cat="user_annotation", tid=tid, **shape)


def call(name: str, start_us: float, dur_us: float, dims: list[Any], types: list[str]) -> Event:
    return span(f"c10d::{name}", start_us, dur_us, tid=MAIN, **{"Input Dims": dims, "Input type": types})


def one(tmp_path: Path, events: list[Event], **how: Any) -> Window:
    (window,) = read(write_kineto(tmp_path / "t.json", events, **how.pop("around", {})), **how)
    return window


def ns(window: Window, kind: Kind) -> int:
    return window.spans.busy(kind).total_ns


def hidden_ns(window: Window) -> int:
    return (window.spans.busy(Kind.COMPUTE) & window.spans.busy(Kind.COLLECTIVE)).total_ns


def test_a_bucket_that_travels_during_backward_is_hidden(tmp_path: Path) -> None:
    window = one(tmp_path, [span("aten::mm", 0, 100), gloo("all_reduce", 50, 100)])
    assert window.device_kind == "cpu"
    assert ns(window, Kind.COMPUTE) == 100_000
    assert ns(window, Kind.COLLECTIVE) == 100_000
    assert hidden_ns(window) == 50_000


def test_an_operator_that_waits_inside_computes_only_around_the_wait(tmp_path: Path) -> None:
    window = one(tmp_path, [
        span("aten::sum", 0, 100),
        span("aten::add", 5, 90),
        span("_c10d_functional::wait_tensor", 10, 80),
        gloo("all_reduce", 5, 84),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 20_000
    assert ns(window, Kind.WAIT) == 80_000
    assert hidden_ns(window) == 5_000


def test_a_collective_call_inside_an_operator_is_no_compute(tmp_path: Path) -> None:
    window = one(tmp_path, [span("aten::sum", 0, 100), call("allreduce_", 20, 30, [], []), gloo("all_reduce", 50, 1)])
    assert ns(window, Kind.COMPUTE) == 70_000


def test_a_copy_inside_an_outermost_call_is_compute(tmp_path: Path) -> None:
    events = [call("_reduce_scatter_base_", 0, 100, [], []), span("aten::clone", 10, 50), gloo("all_reduce", 200, 1)]
    window = one(tmp_path, events)
    assert ns(window, Kind.COMPUTE) == 50_000
    assert ns(window, Kind.WAIT) == 0


def test_autograd_wrappers_are_no_compute(tmp_path: Path) -> None:
    window = one(tmp_path, [
        span("autograd::engine::evaluate_function: RegisterPostBackwardFunctionBackward", 0, 100),
        span("RegisterPostBackwardFunctionBackward", 1, 98),
        span("Optimizer.step#AdamW.step", 0, 100, cat="user_annotation"),
        span("FSDP::pre_forward", 0, 100, cat="user_annotation"),
        span("aten::mm", 10, 5),
        gloo("all_reduce", 0, 100),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 5_000


def test_custom_operators_compute(tmp_path: Path) -> None:
    window = one(tmp_path, [span("fsdp::chunk_cat", 0, 10), span("mylib::rope", 10, 10), gloo("all_reduce", 50, 1)])
    assert ns(window, Kind.COMPUTE) == 20_000


def test_what_gloos_threads_copy_is_part_of_the_transfer(tmp_path: Path) -> None:
    window = one(tmp_path, [span("aten::copy_", 5, 10, tid=GLOO), gloo("all_gather", 0, 20), span("aten::mm", 90, 1)])
    assert ns(window, Kind.COMPUTE) == 1_000


def test_a_thread_named_as_gloos_is_one_even_if_its_span_lies_outside(tmp_path: Path) -> None:
    window = one(tmp_path, [
        span("aten::copy_", 5, 10, tid=GLOO_TOO),
        thread_name(GLOO_TOO, "thread 9 (pt_gloo_runloop)"),
        thread_name(GLOO_TOO, "thread 9 (python3)"),
        gloo("all_reduce", 0, 20, tid=GLOO),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 0


def test_a_transfer_that_its_caller_records_leaves_the_callers_operators_as_compute(tmp_path: Path) -> None:
    """torch records ``gloo:send`` and ``gloo:recv`` on the thread that asks for them."""
    window = one(tmp_path, [
        span("aten::mm", 0, 10, tid=MAIN), call("send", 20, 2, [[[4]], [], []], ["TensorList", "", ""]),
        gloo("send", 21, 9, tid=MAIN, elements=4), span("aten::add", 25, 10, tid=MAIN),
        gloo("all_reduce", 50, 10, tid=GLOO), span("aten::copy_", 52, 5, tid=GLOO),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 20_000
    assert ns(window, Kind.COLLECTIVE) == 19_000
    assert hidden_ns(window) == 5_000


def test_a_caller_is_known_by_autograds_wrappers_where_no_call_is_recorded(tmp_path: Path) -> None:
    window = one(tmp_path, [
        span("autograd::engine::evaluate_function: MmBackward0", 0, 12, tid=MAIN),
        span("aten::mm", 1, 10, tid=MAIN), gloo("recv", 20, 5, tid=MAIN),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 10_000


def test_a_thread_named_as_gloos_stays_one_though_a_callback_annotates_on_it(tmp_path: Path) -> None:
    window = one(tmp_path, [
        span("aten::mm", 0, 10, tid=MAIN), thread_name(GLOO, "thread 8 (pt_gloo_runloop)"),
        gloo("all_reduce", 20, 10, tid=GLOO), span("my_hook", 32, 9, cat="user_annotation", tid=GLOO),
        span("aten::div_", 33, 5, tid=GLOO),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 10_000


def test_a_wait_on_one_thread_does_not_stop_another(tmp_path: Path) -> None:
    window = one(tmp_path, [
        span("aten::sum", 0, 100, tid=MAIN), span("c10d::barrier", 10, 80, tid=MAIN),
        span("aten::mm", 0, 100, tid=2), gloo("barrier", 0, 1),
    ])  # fmt: skip
    assert ns(window, Kind.COMPUTE) == 100_000


def test_a_reduce_scatter_is_told_by_its_call(tmp_path: Path) -> None:
    window = one(tmp_path, [
        call("_allgather_base_", 0, 1, [[200], [100], [], []], ["float", "float", "", ""]),
        gloo("all_gather", 2, 5, elements=100),
        call("_reduce_scatter_base_", 10, 1, [[100], [200], [], []], ["float", "float", "", ""]),
        gloo("all_reduce", 12, 5, elements=200),
        call("allreduce_", 20, 1, [[[50]], []], ["TensorList", ""]),
        gloo("all_reduce", 22, 5, elements=50),
    ])  # fmt: skip
    spans = window.spans
    comm = [row for row in range(len(spans)) if spans.kind[row] == Kind.COLLECTIVE]
    assert [spans.collectives[spans.collective[row]] for row in comm] == ["all_gather", "reduce_scatter", "all_reduce"]
    assert [int(spans.size_bytes[row]) for row in comm] == [800, 800, 200]
    assert [spans.name_of(int(spans.link[row])) for row in comm] == [
        "c10d::_allgather_base_", "c10d::_reduce_scatter_base_", "c10d::allreduce_",
    ]  # fmt: skip


def test_queued_calls_are_matched_first_in_first_out(tmp_path: Path) -> None:
    calls = [call("allreduce_", at, 1, [[[size]], []], ["TensorList", ""]) for at, size in ((0, 10), (2, 20), (4, 30))]
    spans = [gloo("all_reduce", 10, 5, elements=10), gloo("all_reduce", 10.5, 9, tid=GLOO_TOO, elements=20),
             gloo("all_reduce", 16, 5, elements=30)]  # fmt: skip
    window = one(tmp_path, [*calls, *spans])
    table = window.spans
    comm = [row for row in range(len(table)) if table.kind[row] == Kind.COLLECTIVE]
    assert [int(table.start_ns[int(table.link[row])] - window.start_ns) for row in comm] == [-10_000, -8_000, -6_000]


def test_calls_that_nothing_carries_out_do_not_slow_the_matching_of_the_others(tmp_path: Path) -> None:
    lost = [call("allreduce_", at, 1, [[[5]], []], ["TensorList", ""]) for at in range(3000)]
    calls = [call("barrier", at, 1, [], []) for at in range(3000)]
    spans = [gloo("all_reduce", 4000 + at, 1, elements=10) for at in range(300)]
    window = one(tmp_path, [*lost, *calls, *spans, call("allreduce_", 3500, 1, [[[10]], []], ["TensorList", ""])])
    linked = window.spans.link[window.spans.kind == Kind.COLLECTIVE]
    assert int((linked >= 0).sum()) == 1
    assert linked[0] >= 0


def test_a_span_whose_call_lies_before_the_window_is_doubted(tmp_path: Path) -> None:
    window = one(tmp_path, [gloo("all_reduce", 0, 5, elements=10), span("aten::mm", 0, 1)])
    assert "reduce-scatter" in dict(window.cannot_say)["collectives"]


def test_sizes_are_doubted_without_shapes(tmp_path: Path) -> None:
    window = one(tmp_path, [gloo("all_reduce", 0, 5)])
    assert "size_bytes" in dict(window.cannot_say)
    assert window.spans.size_bytes.tolist() == [-1]


def test_a_rank_known_to_run_on_cpu_needs_no_collective(tmp_path: Path) -> None:
    events = [span("aten::mm", 0, 10)]
    assert one(tmp_path, events).device_kind == "none"
    window = one(tmp_path, events, device_kind="cpu")
    assert window.device_kind == "cpu"
    assert ns(window, Kind.COMPUTE) == 10_000
    assert window.cannot_say == ()


def test_device_events_win_over_gloo(tmp_path: Path) -> None:
    events = [gloo("all_reduce", 0, 50), span("gemm", 0, 10, cat="kernel", stream=7, device=0)]
    window = one(tmp_path, events)
    assert window.device_kind == "gpu"
    assert ns(window, Kind.COLLECTIVE) == 0


def test_host_allocations_are_kept_in_order(tmp_path: Path) -> None:
    window = one(tmp_path, [gloo("all_reduce", 0, 9), memory(5, 300), memory(2, 100), memory(3, 50, device_type=1)])
    assert window.allocations is not None
    assert window.allocations.total_bytes.tolist() == [100, 300]


Drawn = tuple[str, int, int, int]
NAMES = ["aten::mm", "mylib::op", "c10d::allreduce_", "_c10d_functional::wait_tensor", "autograd::engine::x"]
drawn_spans = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 30), st.integers(0, 12), st.sampled_from([1, 2])), max_size=12
)


def ticks(start: int, length: int) -> set[int]:
    return set(range(start, start + length))


def computed(spans: list[Drawn]) -> set[int]:
    """The rule, tick by tick: on each thread, what operators cover, less waits and less calls inside operators."""
    found: set[int] = set()
    for thread in (1, 2):
        here = [(name, ticks(at, length)) for name, at, length, tid in spans if tid == thread]
        operators = set[int]().union(*(covered for name, covered in here if name in NAMES[:2]))
        waits = [covered for name, covered in here if name == NAMES[3]]
        calls = [covered for name, covered in here if name == NAMES[2] and covered <= operators]
        found |= operators - set[int]().union(*waits, *calls)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn_spans)
def test_compute_is_the_rule_tick_by_tick(tmp_path: Path, spans: list[Drawn]) -> None:
    events = [span(name, at, length, tid=tid) for name, at, length, tid in spans]
    window = one(tmp_path, [*events, gloo("all_reduce", 0, 1)])
    assert ns(window, Kind.COMPUTE) == 1000 * len(computed(spans))


def test_a_call_lost_with_the_end_of_a_file_is_not_said_to_lie_before_the_window(tmp_path: Path) -> None:
    def why(*events: Event, cut: bool) -> str:
        path = write_kineto(tmp_path / "t.json", [gloo("all_reduce", 50, 100), *events])
        if cut:
            path.write_bytes(path.read_bytes()[:-20])
        (window,) = read(path)
        return dict(window.cannot_say)["collectives"]

    more = gloo("all_reduce", 200, 10)
    rest = "; a reduce-scatter among them shows as all_reduce"
    assert why(cut=False) == f"1 gloo span was called before the window{rest}"
    assert why(more, cut=False) == f"2 gloo spans were called before the window{rest}"
    assert why(more, call("allreduce_", 40, 5, [[1]], ["float"]), cut=True) == (
        f"what is left of the file holds no call for 2 gloo spans{rest}"
    )
