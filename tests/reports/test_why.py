"""What both reports say of causes."""

from __future__ import annotations

from drawn import run
from made import host, kernel, launch, window

from meshscope.kinds import ANNOTATION
from meshscope.reports.analysis_json import analysis
from meshscope.reports.text import report
from meshscope.run import Run

MS = 1_000_000


def starved() -> Run:
    """A device that waits for its batch, twice."""
    spans = []
    for at in (0, 100 * MS):
        call = launch(at, at + 1000)
        second = launch(at + 90 * MS, at + 90 * MS + 1000)
        spans += [
            kernel(at + MS, at + 10 * MS, call, "a gemm"),
            host(at + 10 * MS, at + 90 * MS, "enumerate(DataLoader)#x", rule=ANNOTATION),
            kernel(at + 91 * MS, at + 100 * MS, second, "\x1b[31mhostile"),
        ]
    return run(windows=[window(spans, steps=[(0, 100 * MS), (100 * MS, 200 * MS)])], ranks=1)


def said(text: str) -> str:
    """Without the line breaks that are there for the terminal."""
    return " ".join(text.split())


def test_idle_time_is_told_with_its_cause_in_both() -> None:
    (recording,) = analysis([starved()])["recordings"]
    (idle,) = recording["idle"]
    assert idle["idle_ns"] == sum(idle["causes"].values())
    assert max(idle["causes"], key=lambda cause: idle["causes"][cause]) == "data"
    assert recording["launches"][0]["bound"] == "input"
    text = said(report([starved()], encoding="utf-8"))
    assert "the host loads data" in text
    assert "input-bound: the device waits for the next batch 80.4 % of 199 ms" in text


def test_the_longest_kernels_are_told_in_both_and_steer_no_terminal() -> None:
    (recording,) = analysis([starved()])["recordings"]
    assert [one["name"] for one in recording["operations"]["top"]] == ["\x1b[31mhostile", "a gemm"]
    assert "\x1b" not in report([starved()], encoding="utf-8")


def test_what_is_not_known_is_listed() -> None:
    made = run(windows=[window([kernel(0, 9), kernel(20, 30)])], ranks=1)
    (recording,) = analysis([made])["recordings"]
    assert recording["idle"] == []
    assert {"idle", "phases"} <= {doubt["what"] for doubt in recording["cannot_say"]}
