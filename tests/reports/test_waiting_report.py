"""What the reports say of waiting: the rank that comes late, its cost, and what cannot be said."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn import run, steps, timeline
from meeting import MS, later, met, run_of

from meshscope.analysis.explaining import explanations
from meshscope.reports.analysis_json import analysis_json
from meshscope.reports.columns import WIDTH
from meshscope.reports.text import report
from meshscope.reports.waiting_json import MOST_STEPS
from meshscope.run import Run

STEPS = 5


def straggling(steps: int = STEPS, *, ranks: int = 4) -> Run:
    """Rank 1 is 100 ms late to the third of four all-reduces of 1 ms in every step but the first."""
    gaps = np.tile([50, 60, 180, 110], steps) * MS
    arrival = np.tile(np.cumsum(gaps), (ranks, 1))
    arrival[1, 6::4] += 100 * MS
    numbers = np.repeat(np.arange(steps), 4).tolist()
    return run_of(met(arrival, MS, steps=numbers, host="node", spans={"size_bytes": 2**20}))


def words(run: Run) -> str:
    return " ".join(report([run], encoding="utf-8").split())


def said(run: Run) -> dict[str, Any]:
    (found,) = json.loads(analysis_json([run]))["recordings"]
    assert isinstance(found, dict)
    return found


def test_the_text_names_the_late_rank_its_cost_and_since_when() -> None:
    text = words(straggling())
    assert "waiting: 20 collectives matched over 4 ranks, their ends within 0 ns;" in text
    assert "rank 1 came last to 4 of 20 collectives and held up each other rank, computing or not, 400 ms" in text
    assert "400 ms (20.5 % of 1.95 s), since step 1" in text
    assert "since step 1: its device idles 400 ms longer than the median rank's" in text
    assert "late in 4 of 5 steps, and mostly rank 1: look at it" in text


def test_no_line_of_it_is_wider_than_a_plain_terminal() -> None:
    text = report([straggling(40, ranks=20)], encoding="utf-8")
    assert "lateness by step (the last 8 of 40)" in text
    assert "… 4 more ranks" in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_what_xla_records_of_waiting_has_another_name_than_what_matching_tells() -> None:
    rows = """
        0 all_reduce  .#####..
        0 wait        .###....
        1 all_reduce  ...###..
        1 wait        ........
    """
    xla = timeline(rows, framework="jax", device_kind="cpu", world=2)
    assert "exposed ms rendezvous ms bytes" in words(xla)
    assert "wait ms" not in words(xla)
    assert said(xla)["ranks"][0]["wait_source"] == "rendezvous"
    assert (said(xla)["ranks"][0]["breakdown"]["wait_ns"], said(xla)["waiting"]["ranks"][0]["wait_ns"]) == (30, 20)
    (definition,) = {one.number.definition for one in explanations([xla], "wait")}
    assert "in XLA's rendezvous" in definition
    assert "exposed ms wait ms bytes" in words(straggling())
    assert "wait_source" not in said(straggling())["ranks"][0]


def test_clocks_that_were_set_right_are_told() -> None:
    run = straggling()
    first, *others = (replace(window, host=f"node {window.rank}") for window in run.windows)
    assert "clocks set right by up to 11.6 s" in words(run_of([first, *(later(one, 11_560 * MS) for one in others)]))


def test_a_lone_rank_is_told_what_cannot_be_said_of_it() -> None:
    alone = run_of(straggling().windows[:1])
    text = words(alone)
    assert "matched over" not in text
    assert "cannot say wait_ns: 20 of 20 collective spans: only rank 0 alone of the 4 ranks of the run" in text
    found = said(alone)
    assert (found["waiting"]["matched"], found["stragglers"], found["lateness"]) == (0, [], [])
    assert {"transfer_ns", "algbw_bytes_per_s", "wait_ns"} <= {doubt["what"] for doubt in found["cannot_say"]}


def test_what_only_some_ranks_cannot_say_names_them() -> None:
    first, *others = straggling().windows
    cut = [replace(one, cannot_say=(("breakdown", "the file was cut"),)) for one in others]
    assert f"cannot say breakdown of rank {others[0].rank}: the file was cut" in words(
        run_of([first, cut[0], *others[1:]])
    )
    text = words(run_of([replace(first, cannot_say=cut[0].cannot_say), *cut]))
    assert "cannot say breakdown: the file was cut" in text


def test_json_has_waiting_lateness_and_the_straggler() -> None:
    found = said(straggling())
    assert found["waiting"]["residual_ns"] == 0
    assert found["waiting"]["ranks"][1] == {
        "rank": 1, "calls": 20, "busy_ns": 20 * MS, "wait_ns": 0, "transfer_ns": 20 * MS, "last": 4,
        "charged_ns": 1200 * MS,
    }  # fmt: skip
    (matrix,) = found["lateness"]
    assert (matrix["ranks"], matrix["steps"]) == ([0, 1, 2, 3], list(range(STEPS)))
    assert matrix["late_ns"][1] == [0, *[100 * MS] * 4]
    assert matrix["pattern"] == {"kind": "rank", "ranks": [1], "steps": 4, "of": 5, "since": 1}
    (straggler,) = found["stragglers"]
    assert (straggler["rank"], straggler["cost_ns"], straggler["since"]) == (1, 400 * MS, 1)
    (row,) = found["collectives"]
    assert row["late_ns"] == {"1": 1200 * MS}
    assert row["wait_ns"] + row["transfer_ns"] == row["busy_ns"]


def test_json_shows_the_newest_steps_of_a_long_matrix() -> None:
    (matrix,) = said(straggling(300))["lateness"]
    assert matrix["steps"] == list(range(300 - MOST_STEPS, 300))
    assert len(matrix["late_ns"][0]) == MOST_STEPS
    assert matrix["pattern"]["of"] == 300


def test_every_rank_has_a_row_and_one_without_a_whole_step_no_numbers() -> None:
    run = straggling()
    cut = replace(run.windows[2], steps=(), step_ns=np.empty((0, 2), dtype=np.int64), is_complete=False)
    text = report([replace(run, windows=(*run.windows[:2], cut, *run.windows[3:]))], encoding="utf-8")
    after = text[text.index("where a step goes") :].splitlines()
    rows = [line.split() for line in after if line.startswith("    ")][:5]
    assert [row[0] for row in rows] == ["rank", "0", "1", "2", "3"]
    assert rows[3] == ["2", *["–"] * 7]
    assert "–" not in rows[4][1]


def test_calls_are_said_to_be_those_of_the_profiled_steps() -> None:
    steps, ranks = 5, 4
    said = words(straggling(steps, ranks=ranks))
    assert "calls in the profiled steps, over all ranks" in said
    assert f"all_reduce {4 * steps * ranks} " in said


@pytest.mark.parametrize(
    ("slow", "words"),
    [((14,), "one slow step: step 14 took "), ((14, 20), "2 slow steps (numbers 14, 20); the worst, step 20, took ")],
)
def test_slow_steps_are_counted_and_numbered_apart(slow: tuple[int, ...], words: str) -> None:
    lengths = [900.0 + at if at in slow else 100.0 for at in range(30)]
    assert words in " ".join(report([run(steps(lengths))], encoding="utf-8").split())
