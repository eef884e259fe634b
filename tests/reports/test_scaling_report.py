"""A sweep in the text report and in JSON: the same numbers, and each share says what it is of."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis" / "support"))
from drawn import run, steps

from meshscope.recording.entries import Ended
from meshscope.reports.comparison_json import comparison_json
from meshscope.reports.text import report
from meshscope.run import Run


def swept(ranks: int, step_ms: float, outcome: str = "done") -> Run:
    made = steps([step_ms - (ranks - 1)] * 14, ranks=ranks, samples=8 // ranks)
    about = {"workload": "ddp", "ranks": ranks, "global_batch": 8}
    return run([*made, Ended(t_ns=10**12, outcome=outcome)], strategy=f"ddp ranks {ranks}", **about)


RUNS = swept(1, 80), swept(2, 50), swept(4, 40, "failed")


def test_the_report_has_a_table_for_each_curve() -> None:
    text = report(RUNS, encoding="utf-8", answer_last=True)
    assert text.endswith(
        """\
strong scaling of ddp, global batch 8 (efficiency is throughput per rank, as a
share of that of 1 rank):
  ranks  batch  ms/step  samples/s     ±     ×  efficiency
  1          8     80.0        100  0.00  1.00     100.0 %
  2          8     50.0        160  0.00  1.60      80.0 %
  without ddp ranks 4: failed before its last step
Each point is one run: how far runs of the same scatter is not known."""
    )
    assert "scaling" not in report(RUNS[:1], encoding="utf-8")


def test_json_has_the_curves_beside_the_strategies() -> None:
    found = comparison_json(RUNS)
    assert found is not None
    (curve,) = found["scaling"]
    assert (curve["kind"], curve["global_batch"], curve["strategy"]) == ("strong", 8, "ddp")
    assert curve["over"] == "efficiency is throughput per rank, as a share of that of 1 rank"
    assert [point["efficiency_frac"] for point in curve["points"]] == [1.0, 0.8]
    assert [point["median_ns"] for point in curve["points"]] == [80_000_000, 50_000_000]
    assert curve["left_out"] == [{"strategy": "ddp ranks 4", "why": "failed before its last step"}]
    assert "scaling" not in (comparison_json(RUNS[:1]) or {})
