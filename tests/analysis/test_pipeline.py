"""The bubble of a pipeline: what stages wait, beside what equal ones would, and whether they are equal."""

from __future__ import annotations

import math

import pytest
from asked import codes, only, said
from drawn import run
from staged import MS, OPTIONS, first, last, ops, receives, sends, stage, staged, ties

from meshscope.analysis.looked_for import looked_for
from meshscope.analysis.pipeline import balanced_ns, ideal_frac, pipeline
from meshscope.analysis.pipeline_words import pipeline_words, uneven_words
from meshscope.analysis.rank_waits import rank_waits
from meshscope.recording.entries import MemoryMeasured
from meshscope.run import Run


@pytest.mark.parametrize(
    ("stages", "micro_batches", "chunks", "frac"),
    [(2, 2, 1, 1 / 3), (4, 8, 1, 3 / 11), (4, 8, 2, 3 / 19), (4, 1, 1, 3 / 4), (8, 64, 1, 7 / 71)],
)
def test_the_ideal_bubble_is_that_of_the_papers(stages: int, micro_batches: int, chunks: int, frac: float) -> None:
    assert ideal_frac(stages, micro_batches, chunks) == pytest.approx(frac)


def test_equal_stages_that_pass_on_at_once_wait_the_ideal_share() -> None:
    found = pipeline(staged())
    assert found is not None
    assert [(one.compute_ns, one.wait_ns, one.rest_ns) for one in found.ranks] == [(12 * MS, 6 * MS, 0)] * 2
    assert found.wait_frac == pytest.approx(found.ideal_frac) == pytest.approx(1 / 3)
    assert not found.is_uneven
    assert balanced_ns(found) == 0


def test_a_send_under_way_is_no_waiting_on_a_cpu_and_blocks_its_stream_on_a_gpu() -> None:
    spans = [ops(0, 8), sends(8, 14), ops(14, 18)]
    for kind, waits_ms in (("cpu", 0), ("gpu", 6)):
        found = pipeline(staged(stage(0, spans, device_kind=kind), stage(1, last())))
        assert found is not None
        assert found.ranks[0].wait_ns == waits_ms * MS


def test_what_is_neither_compute_nor_waiting_is_told_apart() -> None:
    found = pipeline(staged(stage(0, [ops(0, 8), receives(8, 10, "ranks 1 to 0"), ops(13, 18)]), stage(1, last())))
    assert found is not None
    one = found.ranks[0]
    assert (one.compute_ns, one.wait_ns, one.rest_ns, one.wait_frac) == (13 * MS, 2 * MS, 3 * MS, pytest.approx(2 / 18))


def test_only_a_run_of_stages_is_a_pipeline() -> None:
    assert pipeline(run(strategy="ddp")) is None
    assert pipeline(staged(options=OPTIONS | {"schedule": "none"})) is None
    assert pipeline(staged(options=OPTIONS | {"stages": 1})) is None


def test_before_a_trace_is_read_the_ideal_is_known_and_nothing_else() -> None:
    found = pipeline(staged(windows=()))
    assert found is not None
    assert math.isnan(found.wait_frac)
    assert (found.is_uneven, found.longest) == (False, None)
    assert pipeline_words(found) == (
        "GPipe over 2 stages and 2 micro-batches: equal stages that pass on at once would compute nothing for 33.3 % "
        "(1 / (2 + 1), 3 turns)"
    )
    assert uneven_words(found) == ""


def test_the_words_have_the_formula_with_the_chunks_of_an_interleaved_schedule() -> None:
    found = pipeline(staged(options=OPTIONS | {"schedule": "interleaved"}))
    assert found is not None
    assert pipeline_words(found) == (
        "interleaved 1F1B over 2 stages and 2 micro-batches: a stage computes nothing, and receives or is in a "
        "collective, for 33.3 % of its step in the mean; equal stages that pass on at once would compute "
        "nothing for 20.0 % (1 / (2 × 2 + 1), 5 turns)"
    )


def test_the_panel_of_waiting_tells_the_bubble_of_each_stage_and_no_straggler() -> None:
    found = rank_waits(staged())
    assert found.words == (
        "stages compute nothing, and receive or are in a collective, for 33.3 % of their step (rank 0: 33.3 %, 1: "
        "33.3 %); even ones that pass on at once would compute nothing for "
        "33.3 %; GPipe over 2 stages × 2 micro-batches"
    )
    assert not found.is_bad
    assert [one.late_frac.tolist() for one in found.rows] == [[0], [0]]


LONG = (
    [ops(0, 3), sends(3, 3), receives(3, 12, "ranks 1 to 0"), ops(12, 15), ties(15, 18)],
    [receives(0, 3), ops(3, 12), sends(12, 12, "ranks 1 to 0"), ops(12, 18), ties(18, 18)],
)
"""Of a step of 18 ms rank 0 computes 6 and rank 1 15: the mean is 10.5."""


def uneven(kind: str = "gpu", **about: object) -> Run:
    return staged(*(stage(rank, spans, device_kind=kind) for rank, spans in enumerate(LONG)), device_kind=kind, **about)


def test_uneven_stages_are_found_with_what_an_even_cut_would_save() -> None:
    # Two micro-batches and one further stage are three turns, each of which would be (15 − 10.5) / 2 ms shorter.
    found = only("uneven-stages", uneven())
    assert found.ranks == (1,)
    assert found.cost_ns == pytest.approx(3 * 2.25 * MS)
    assert found.cost_frac == pytest.approx(3 * 2.25 / 18)
    assert "rank 1 computes 15.0 ms of a step, 42.9 % more than the mean stage's 10.5 ms" in said(found)
    assert "rank 0 6.00 ms, rank 1 15.0 ms" in said(found)


def test_stages_that_differ_by_less_than_a_tenth_are_even() -> None:
    assert "uneven-stages" not in codes(staged(stage(0, first(longer_ms=0.5)), stage(1, last())))


def test_nothing_is_found_where_cpu_ranks_share_their_cores() -> None:
    shared = uneven("cpu", cores=2)
    assert "uneven-stages" not in codes(shared)
    state = {one.code: one for one in looked_for(shared)}
    assert "share their cores" in state["uneven-stages"].why
    assert "scheduler" in uneven_words(pipeline(shared))  # type: ignore[arg-type]
    assert "uneven-stages" in codes(uneven("cpu", cores=8))


def test_a_healthy_pipeline_has_no_finding_and_says_what_does_not_apply() -> None:
    assert codes(staged()) == []
    state = {one.code: (one.state, one.why) for one in looked_for(staged())}
    assert state["straggler"] == ("does not apply", "stages of a pipeline have different work by design")
    assert state["uneven-stages"] == ("judged", "")
    elsewhere = {one.code: one.why for one in looked_for(run(strategy="ddp"))}
    assert elsewhere["uneven-stages"] == "no pipeline"


def test_waiting_for_the_stage_before_is_no_lack_of_overlap() -> None:
    """Nothing of the receives is under compute, and they are a third of the step; on a GPU the sends block as well."""
    turns = [ops(0, 2), receives(2, 6), ops(6, 8), receives(8, 12), ops(12, 14), receives(14, 18)]
    windows = [stage(rank, turns, device_kind="gpu", host="", process_groups=()) for rank in (0, 1)]
    other = staged(*windows, device_kind="gpu", options={}, strategy="mine")
    assert {one.code: one.state for one in looked_for(other)}["no-overlap"] == "cannot say", "it may be waiting"
    run_of_stages = staged(*windows, device_kind="gpu")
    assert "no-overlap" not in codes(run_of_stages)
    why = {one.code: one.why for one in looked_for(run_of_stages)}
    assert why["no-overlap"] == "a stage of a pipeline waits for what the one before it computes"


def test_stages_of_which_some_were_not_traced_are_not_called_uneven() -> None:
    alone = staged(stage(1, LONG[1], device_kind="gpu"), device_kind="gpu")
    assert "uneven-stages" not in codes(alone)
    assert "not every stage" in {one.code: one.why for one in looked_for(alone)}["uneven-stages"]


def test_unequal_memory_of_stages_is_told_as_partly_by_design() -> None:
    entries = [
        MemoryMeasured(
            t_ns=1, rank=rank, device=rank, step=1, source="made", categories={}, how={}, peak_bytes=peak_bytes,
            peak_how="measured",
        )
        for rank, peak_bytes in enumerate((4_000_000_000, 1_000_000_000))
    ]  # fmt: skip
    found = only("memory-imbalance", staged(entries=entries))
    assert found.title == "stages hold unequal memory"
    assert found.advice.startswith("Partly by design: every stage keeps the activations of all micro-batches")
    other = only("memory-imbalance", run(entries))
    assert other.title == "memory imbalance"
