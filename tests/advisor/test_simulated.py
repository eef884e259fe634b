"""A plan as a recording: it opens like any trace, says what was predicted to the nanosecond, and that nothing ran."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import time_ns

import drawn
import msgspec
import planned
import pytest
from planned import DDP, FSDP, candidate, cluster, simulated, spans

from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import Forecast, TimeForecast
from meshscope.advisor.simulated import Simulated, write
from meshscope.advisor.simulated_ranks import drawn as drawn_ranks
from meshscope.advisor.simulated_ranks import group
from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.comparison import comparison
from meshscope.analysis.explaining import explanations
from meshscope.analysis.figures import figures
from meshscope.analysis.findings import findings, rules
from meshscope.analysis.looked_for import ELSEWHERE, looked_for
from meshscope.analysis.memory import memory
from meshscope.analysis.pairing import changes
from meshscope.analysis.steps import steps
from meshscope.cli.opening import open_paths
from meshscope.errors import RecordingError
from meshscope.experiment import Experiment
from meshscope.reports.analysis_json import analysis, analysis_json
from meshscope.reports.baseline import decoded, encoded
from meshscope.reports.change_text import change_report
from meshscope.reports.explain_text import explain_report
from meshscope.reports.text import report
from meshscope.run import Run
from meshscope.spans import Kind

NOW_UNIX_NS = 1_796_000_000_000_000_000

Written = Callable[..., tuple[Run, ...]]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def make(*some: Simulated) -> tuple[Run, ...]:
        write(tmp_path / "plan", some or (simulated("ddp"), simulated("fsdp")), now_unix_ns=NOW_UNIX_NS, constants="c1")
        opened = open_paths((tmp_path / "plan",))
        assert not opened.refused
        return opened.runs

    return make


def time_of(one: Simulated) -> TimeForecast:
    assert one.forecast.time is not None
    return one.forecast.time


# What it says is what was predicted


@pytest.mark.parametrize(("strategy", "drawing"), [("ddp", DDP), ("fsdp", FSDP)])
def test_analyze_gives_back_the_forecast_to_the_nanosecond(written: Written, strategy: str, drawing: str) -> None:
    one = simulated(strategy, drawing)
    said, (run,) = time_of(one), written(one)
    for rank in breakdown(run):
        assert rank.per_step is not None
        assert rank.per_step.span_ns == round(said.step_s.value * 1e9)
        assert rank.per_step.compute_ns == round(said.compute_s * 1e9)
        assert rank.per_step.exposed_ns == round(said.exposed_s * 1e9)
        assert rank.per_step.hidden_ns == round(said.hidden_s * 1e9)
        assert rank.per_step.idle_ns == round((said.idle_s + said.bubble_s) * 1e9)


def test_by_hand_a_drawn_step_hides_and_exposes_what_the_drawing_shows(written: Written) -> None:
    (run,) = written(
        simulated(
            "ddp",
            """
            compute layer      ####......
            comm    all_reduce ..####....
            """,
        )
    )
    mean = breakdown(run)[0].per_step
    assert mean is not None
    assert (mean.span_ns, mean.compute_ns, mean.hidden_ns, mean.exposed_ns, mean.idle_ns) == (70, 40, 20, 20, 10)


def test_every_rank_of_a_node_is_drawn_and_meets_the_others(written: Written) -> None:
    (run,) = written(simulated("ddp"))
    assert [window.rank for window in run.windows] == list(range(8))
    spans_ = run.windows[3].spans
    met = [row for row in range(len(spans_)) if spans_.kind[row] == Kind.COLLECTIVE]
    assert {spans_.collectives[spans_.collective[row]] for row in met} == {"all_reduce"}
    assert {spans_.groups[spans_.group[row]] for row in met} == {"data 0-7"}
    assert [int(spans_.sequence[row]) for row in met] == [0, 1, 2]
    assert {int(spans_.size_bytes[row]) for row in met} == {4_000_000}
    assert {spans_.dtypes[spans_.dtype[row]] for row in met} == {"Float"}  # gradients are reduced in fp32
    assert run.windows[3].process_groups[0].ranks == tuple(range(8))


def test_parameters_are_gathered_in_the_type_they_are_cast_to(written: Written) -> None:
    (run,) = written(simulated("fsdp"))
    found = run.windows[0].spans
    types = {
        found.collectives[found.collective[row]]: found.dtypes[found.dtype[row]]
        for row in range(len(found))
        if found.kind[row] == Kind.COLLECTIVE
    }
    assert types == {"all_gather": "BFloat16", "reduce_scatter": "Float"}


def test_of_many_ranks_one_stands_for_those_that_do_the_same_and_counts_their_samples(written: Written) -> None:
    (run,) = written(simulated("fsdp", devices=64))
    assert run.experiment.simulated is not None
    assert run.experiment.simulated.stands_for == {"0": "0–63"}
    assert [window.rank for window in run.windows] == [0]
    assert int(run.steps.samples.sum()) == run.experiment.global_batch == 4 * 64
    assert "rank 0 for ranks 0–63" in report([run], encoding="utf-8").replace("\n", " ").replace("    ", "")


def test_the_step_stands_for_itself_without_warm_up_or_spread(written: Written) -> None:
    (run,) = written(simulated("ddp"))
    found = steps(run)
    assert (found.count, found.measured, found.median_ns) == (1, 1, 180)
    assert found.samples_per_s == pytest.approx(32 / 180e-9)
    assert found.spread_ns != found.spread_ns
    assert found.profiler_cost_frac != found.profiler_cost_frac


def test_memory_is_told_by_category_as_predicted(written: Written) -> None:
    (run,) = written(simulated("ddp"))
    rank = memory(run)[0]
    assert {category.name: category.size_bytes for category in rank.categories} == {
        "parameters": 6_000_000_000,
        "gradients": 6_000_000_000,
        "optimizer": 12_000_000_000,
        "activations": 6_000_000_000,
    }
    assert {category.how for category in rank.categories} == {rank.peak_how} == {"predicted"}
    assert rank.peak_bytes == 30_000_000_000


def test_equal_plans_are_written_equal(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write(tmp_path / name, [simulated("ddp")], now_unix_ns=NOW_UNIX_NS)
    one, other = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "other")
    )
    assert one == other


def test_what_computes_is_never_read_as_communication(written: Written) -> None:
    (run,) = written(simulated("ddp", "compute nccl_all_reduce_copy ####"))
    assert breakdown(run)[0].total.collective_ns == 0
    assert breakdown(run)[0].total.compute_ns == 40


# That nothing ran is said wherever it is shown


def test_every_report_says_that_it_is_simulated(written: Written) -> None:
    runs = written()
    text = report(runs, encoding="utf-8")
    assert text.startswith("Simulated, not measured: ")
    for run in runs:
        alone = report([run], encoding="utf-8")
        assert "never run" in alone
        assert "nothing ran, and no number here was measured" in " ".join(alone.split())
        (found,) = explanations((run,), "exposed")[:1]
        assert "simulated" in explain_report([found], encoding="utf-8").splitlines()[0]
    said = json.loads(analysis_json(runs))
    assert all(one["simulated"]["by"].startswith("meshscope") for one in said["recordings"])
    assert {one["simulated"]["constants"] for one in said["recordings"]} == {"c1"}
    assert all("simulated" in [doubt["what"] for doubt in one["cannot_say"]] for one in said["recordings"])
    assert all(one["simulated"] for one in said["comparison"]["strategies"])
    assert said["comparison"]["verdict"].startswith("Simulated, not measured: ")


def test_a_trace_of_it_opened_by_itself_says_so_too(written: Written, tmp_path: Path) -> None:
    written(simulated("ddp"))
    file = tmp_path / "plan" / "ddp-simulated" / "traces" / "rank0-step0-simulated.pt.trace.json.gz"
    (run,) = open_paths((file,)).runs
    assert run.is_simulated
    assert run.name.endswith("(simulated)")
    assert "simulated, not measured" in report([run], encoding="utf-8")
    head = json.loads(gzip.decompress(file.read_bytes()))
    assert head["simulated"]["by"].startswith("meshscope")
    processes = [event["args"]["name"] for event in head["traceEvents"] if event["name"] == "process_name"]
    assert processes
    assert all("simulated" in name for name in processes)


@pytest.mark.parametrize("claim", ["somebody", {"by": 7}, {"by": ""}, True, ["x"]])
def test_a_trace_that_claims_to_be_simulated_in_any_form_is_taken_at_its_word(tmp_path: Path, claim: object) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 7, "args": {"device": 0}}
    (tmp_path / "x.json").write_text(json.dumps({"simulated": claim, "traceEvents": [event]}))
    (run,) = open_paths((tmp_path / "x.json",)).runs
    assert run.is_simulated


def test_a_drawn_trace_is_never_one_run_with_a_measured_one(written: Written, tmp_path: Path) -> None:
    written(simulated("ddp", devices=2))
    traces = tmp_path / "plan" / "ddp-simulated" / "traces"
    other = next(traces.glob("rank1-*"))
    said = json.loads(gzip.decompress(other.read_bytes()))
    del said["simulated"]
    other.write_bytes(gzip.compress(json.dumps(said).encode()))
    runs = open_paths((traces,)).runs
    assert sorted((run.is_simulated, [window.rank for window in run.windows]) for run in runs) == [
        (False, [1]),
        (True, [0]),
    ]


def test_what_ran_is_written_as_before_and_says_nothing_of_it() -> None:
    head = Experiment(
        t0_unix_ns=1, strategy="ddp", title="", framework="torch", ranks=1, device_kind="gpu", model="tiny"
    )
    assert b"simulated" not in msgspec.json.encode(head)
    assert not drawn.run(strategy="ddp").is_simulated


# No verdict sets it beside what was measured


def measured_run() -> Run:
    about = {"strategy": "pmap", "model": "1.3b", "device_kind": "gpu", "ranks": 8, "global_batch": 32}
    return replace(drawn.run(drawn.steps([180] * 20), **about), path="/measured")


def test_beside_a_measured_run_it_is_shown_and_not_ranked(written: Written) -> None:
    (run,) = written(simulated("ddp"))
    found = comparison((run, measured_run()))
    assert [row.is_ranked for row in found.rows] == [False, True]
    assert found.rows[0].not_ranked_why == "is simulated, and the others were measured"
    assert "ddp simulated is not ranked: it is simulated, and the others were measured." in found.footnotes
    assert not found.verdict.startswith("Simulated")
    assert "ddp simulated" not in found.verdict


def test_compare_refuses_a_prediction_against_a_measurement(written: Written) -> None:
    (run,) = written(simulated("ddp"))
    (pair,) = changes([figures(run)], [figures(measured_run())]).changes
    assert pair.verdict == "cannot say"
    assert "ddp simulated is simulated and the other was measured" in pair.sentence


def test_predictions_whose_intervals_overlap_have_no_winner(written: Written) -> None:
    runs = written(simulated("ddp", off_frac=0.05), simulated("fsdp", off_frac=0.05))
    found = comparison(runs)
    assert found.leader == ""
    assert "what is predicted overlaps" in found.verdict


def test_predictions_whose_intervals_lie_apart_have_one_and_say_that_they_are_predictions(written: Written) -> None:
    runs = written(simulated("ddp", off_frac=0.01), simulated("fsdp", off_frac=0.01))
    found = comparison(runs)
    assert found.leader == "ddp simulated"
    assert found.verdict.startswith("Simulated, not measured: ddp simulated leads: ")
    (pair,) = changes([figures(runs[0])], [figures(runs[1])]).changes
    assert pair.verdict == "slower"
    assert "nothing was measured" in pair.sentence
    assert all(one.verdict == "cannot say" for one in pair.quantities if one.metric not in ("step_time", "throughput"))
    assert "predictions with their own intervals" in change_report(changes([figures(runs[0])], [figures(runs[1])]))


def test_a_saved_baseline_still_says_that_it_was_predicted(written: Written) -> None:
    (run,) = written(simulated("ddp"))
    (again,) = decoded(encoded([figures(run)]), "kept")
    assert again.simulated_by.startswith("meshscope")
    assert again.predicted_ns == (171, 189)


# Nothing is found about a machine that nobody used


def test_only_what_lies_in_the_plan_is_looked_for(written: Written) -> None:
    of_plan = {rule.code for rule in rules() if rule.is_of_plan}
    assert of_plan == {
        "exposed-gathers", "exposed-tail", "no-overlap", "root-resharded", "synced-accumulation", "uneven-stages",
    }  # fmt: skip
    (run,) = written(simulated("fsdp", devices=64))  # 63 ranks have no trace, which is no fault of a machine
    assert {one.code for one in findings(run)} <= of_plan
    assert {one.state for one in looked_for(run) if one.code not in of_plan} == {ELSEWHERE}


def test_a_plan_that_takes_turns_is_found_to(written: Written) -> None:
    (run,) = written(
        simulated(
            "ddp",
            """
            compute layer      ####....####....
            comm    all_reduce ....#|#|....#|#|
            """,
        )
    )
    assert [one.code for one in findings(run)] == ["no-overlap"]


# What cannot be drawn is refused, and nothing is left behind


@pytest.mark.parametrize("kind", ["no time", "no spans", "cpu"])
def test_what_has_no_simulated_step_is_refused_before_anything_is_written(tmp_path: Path, kind: str) -> None:
    one = simulated("ddp")
    if kind == "no time":
        one = replace(one, forecast=Forecast(None, None, ("time: no table for this device",)))
    elif kind == "no spans":
        one = replace(one, forecast=Forecast(None, replace(time_of(one), spans=())))
    else:
        one = replace(one, cluster=cluster(8, replace(planned.H100, name="cpu")))
    with pytest.raises(NotCovered):
        write(tmp_path / "plan", [simulated("fsdp"), one], now_unix_ns=NOW_UNIX_NS)
    assert not (tmp_path / "plan").exists()


def test_a_recording_that_stands_there_is_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "plan", [simulated("ddp")], now_unix_ns=NOW_UNIX_NS)
    with pytest.raises(RecordingError):
        write(tmp_path / "plan", [simulated("fsdp")], now_unix_ns=NOW_UNIX_NS)


def test_candidates_of_one_strategy_are_told_apart(tmp_path: Path) -> None:
    some = [simulated("fsdp", micro_batch=2), simulated("fsdp", micro_batch=4), simulated("ddp")]
    plan = write(tmp_path / "plan", some, now_unix_ns=NOW_UNIX_NS)
    assert [run.strategy for run in plan.runs] == ["fsdp mb2 simulated", "fsdp mb4 simulated", "ddp simulated"]
    assert plan.is_simulated
    assert len(open_paths((tmp_path / "plan",)).runs) == 3


# Which ranks do what


def test_neighbours_share_a_tensor_group_and_stages_are_furthest_apart() -> None:
    laid = candidate("3d", 16, shard=2, replicate=1, tensor=2, pipeline=4)
    assert group(laid, 5, "tensor") == (4, 5)
    assert group(laid, 5, "shard") == group(laid, 5, "data") == (5, 7)
    assert group(laid, 5, "pipeline") == (1, 5, 9, 13)
    assert group(laid, 5, "world") == group(laid, 5, "") == tuple(range(16))


def test_ranks_that_share_a_sequence_share_its_state_or_its_sums() -> None:
    sharded = candidate("fsdp", 8, shard=2, replicate=2, context=2)
    assert group(sharded, 5, "shard") == (4, 5, 6, 7)
    assert group(sharded, 5, "replicate") == (1, 5)
    assert group(sharded, 5, "context") == (4, 5)
    added = candidate("ddp", 8, replicate=4, context=2)
    assert group(added, 5, "replicate") == tuple(range(8))


def test_experts_are_spread_over_neighbours_on_the_data_axes() -> None:
    laid = candidate("moe", 16, shard=8, replicate=1, tensor=2, expert=4)
    assert group(laid, 3, "expert") == (1, 3, 5, 7)
    assert group(laid, 8, "expert") == (8, 10, 12, 14)


@pytest.mark.parametrize(
    ("classes", "firsts"), [((0,), [(0, 0)]), ((0, 1, 2), [(0, 0), (1, 8), (2, 56)]), (tuple(range(8)), None)]
)
def test_a_class_is_a_stretch_of_stages(classes: tuple[int, ...], firsts: list[tuple[int, int]] | None) -> None:
    laid = candidate("pp", 64, shard=8, replicate=1, pipeline=8)
    found = [(one.rank_class, one.rank) for one in drawn_ranks(laid, classes)]
    assert found == (firsts or [(stage, 8 * stage) for stage in range(8)])
    assert sum(len(one.stands_for) for one in drawn_ranks(laid, classes)) == 64


def test_classes_that_are_no_stages_are_refused() -> None:
    with pytest.raises(NotCovered):
        drawn_ranks(candidate("pp", 64, shard=8, replicate=1, pipeline=8), (0, 1))


def test_each_stage_of_a_pipeline_has_its_own_spans(tmp_path: Path) -> None:
    first = spans("compute embedding ####....", rank_class=0)
    last = spans("compute head ....####", rank_class=1)
    one = simulated("ddp")
    one = replace(
        one,
        candidate=candidate("pp", 4, shard=2, replicate=1, pipeline=2),
        forecast=Forecast(None, planned.time((*first, *last), 90)),
    )
    write(tmp_path / "plan", [one], now_unix_ns=NOW_UNIX_NS)
    (run,) = open_paths((tmp_path / "plan",)).runs
    kernels = {
        window.rank: [window.spans.names[name] for name in window.spans.name[window.spans.kind == Kind.COMPUTE]]
        for window in run.windows
    }
    assert kernels == {0: ["embedding"], 1: ["embedding"], 2: ["head"], 3: ["head"]}


def test_what_is_written_now_can_be_opened_now(tmp_path: Path) -> None:
    write(tmp_path / "plan", [simulated("ddp"), simulated("fsdp")], now_unix_ns=time_ns())
    assert [len(run.windows) for run in open_paths((tmp_path / "plan",)).runs] == [8, 8]


def test_its_json_is_that_of_any_recording(written: Written) -> None:
    said = analysis(written(simulated("ddp")))["recordings"][0]
    assert said["strategy"] == "ddp simulated"
    assert said["device_kind"] == "gpu"
    assert said["outcome"] == "done"
    assert len(said["ranks"]) == 8
