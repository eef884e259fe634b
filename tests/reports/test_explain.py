"""Explanations against what ``analyze --json`` says, number by number; and their text and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn import run as folded
from drawn import timeline

from meshscope.analysis.explaining import explainable, explanations
from meshscope.analysis.explaining.figure import OPERATIONS, Figure
from meshscope.analysis.explaining.number import Asked, Case, Number
from meshscope.analysis.overlap import overlap
from meshscope.discovery import bundled
from meshscope.recording.entries import MemoryMeasured
from meshscope.reports.analysis_json import analysis
from meshscope.reports.explain_json import explain_json, numbers_json
from meshscope.reports.explain_text import explain_report, numbers_report
from meshscope.run import Gallery, Run, open_traces

DRAWN = """
    0 step        aaaaaaaaaabbbbbbbbbb
    0 compute     ####......######....
    0 all_reduce  ..####........####..
"""
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")


def at(said: Any, path: str) -> Any:
    """What stands at a place such as ``ranks[rank=0].per_step.exposed_ns`` of the JSON."""
    for name, chosen in _STEP.findall(path):
        if name:
            said = said[name]
        elif "=" in chosen:
            key, wanted = chosen.split("=", 1)
            (said,) = [one for one in said if str(one[key]) == wanted]
        else:
            said = said[int(chosen)]
    return said


def cases(run: Run, runs: tuple[Run, ...]) -> Iterator[tuple[Number, Case]]:
    for _, numbers in explainable((run,)):
        for number in numbers:
            yield from ((number, case) for case in number.cases(Asked(run, runs)))


def works_out(figure: Figure) -> None:
    """Every operation of a formula gives what the formula says it gives."""
    if figure.how:
        assert OPERATIONS[figure.how]([part.value for part in figure.of]) == figure.value, figure.name
    for part in figure.of:
        works_out(part)


def agree(runs: tuple[Run, ...]) -> int:
    """How many numbers were held against the JSON; each that is not said says why."""
    said, checked = analysis(runs), 0
    for number_of, run in enumerate(runs):
        for number, case in cases(run, runs):
            if case.figure is None:
                assert case.why, (number.name, case.of)
                continue
            works_out(case.figure)
            if case.json:
                root = said if case.json.startswith("comparison") else said["recordings"][number_of]
                assert at(root, case.json) == case.figure.value, (run.path, number.name, case.of)
                checked += 1
    return checked


def tiny() -> tuple[Run, ...]:
    folder = bundled("recordings") / "tiny-4-cpu-ranks"
    return Gallery(folder).at(1 << 62)[1]


@pytest.fixture(scope="module")
def recorded() -> tuple[Run, ...]:
    return tiny()


def test_the_parts_of_every_number_add_up_to_the_json_of_the_bundled_recording(recorded: tuple[Run, ...]) -> None:
    assert agree(recorded) > 800


def test_rows_of_the_table_of_kinds_add_up_to_what_it_shows(recorded: tuple[Run, ...]) -> None:
    for run in recorded:
        for kind in overlap(run):
            for what, shown in (("busy", kind.busy_ns), ("exposed", kind.exposed_ns), ("wait", kind.wait_ns),
                                ("size", kind.size_bytes), ("count", kind.count)):  # fmt: skip
                (found,) = explanations(recorded, f"by_kind.{kind.name}.{what}", of=run.name)
                (case,) = found.cases
                assert (case.figure.value if case.figure else None) == shown, (run.name, kind.name, what)


def test_events_of_a_rank_are_those_of_the_json(recorded: tuple[Run, ...]) -> None:
    said = analysis(recorded)
    for number, run in enumerate(recorded):
        (found,) = explanations(recorded, "busy", of=run.name)
        for case, rank in zip(found.cases, said["recordings"][number]["ranks"], strict=True):
            assert case.events is not None
            assert [case.events.read, case.events.device] == [rank["events"]["read"], rank["events"]["device"]]


CORPUS = (
    "gpu-hta-alexnet", "gpu-hta-mi250", "gpu-tl-bertsmall-h100", "mem-hta-timeline-raw", "mem-snapshot-medium-fwd",
    "mr-hta-sampled2", "mr-megatron-tp8-a100", "mr-torchrec-sst4-a2a", "mr-torchrec-sst4-mixedruns",
    "nccl-hta-nccl-data", "nccl-tl-resnet-actckpt-mi300", "odd-hta-mtia", "util-nvidia-smi-plato",
    "xla-jax-conv-mi300-08", "xla-tpu-inference2",
)  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize("name", CORPUS)
def test_the_parts_of_every_number_add_up_to_the_json_of_real_traces(shared: Path, name: str) -> None:
    runs = open_traces([shared / "traces" / name]).runs
    assert runs
    agree(runs)


def test_the_text_has_the_formula_the_windows_the_spans_and_the_events(golden: Callable[[str, str], None]) -> None:
    found = explanations((timeline(DRAWN),), "exposed")
    golden("explain.txt", explain_report(found, encoding="utf-8"))


def test_the_json_has_the_same_and_every_part(golden: Callable[[str, str], None]) -> None:
    text = explain_json(explanations((timeline(DRAWN),), "exposed"), [("a", "broken", "mend it")])
    assert json.loads(text)["refused"] == [{"path": "a", "why": "broken", "hint": "mend it"}]
    golden("explain.json", text)


def test_the_list_has_a_line_for_each_number_and_fits() -> None:
    found = explainable((timeline(DRAWN),))
    text = numbers_report(found, ["ddp"], encoding="utf-8")
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert listed == [number.name for _, numbers in found for number in numbers]
    assert max(map(len, text.splitlines())) <= 80
    assert [one["name"] for one in json.loads(numbers_json(found))["numbers"]] == listed


def test_no_number_that_is_not_finite_reaches_the_json(recorded: tuple[Run, ...]) -> None:
    for name in ("throughput", "data_wait", "tokens_per_s"):
        said = json.loads(explain_json(explanations(recorded, name)), parse_constant=pytest.fail)
        assert len(said["explanations"]) == len(recorded)


def test_names_that_a_recording_makes_up_cannot_steer_the_terminal() -> None:
    entry = MemoryMeasured(
        t_ns=1, rank=0, device=0, step=1, source="a\x1bb", categories={"evil\x1b[2J": 5}, how={"evil\x1b[2J": "\x07"}
    )
    of = folded([entry])
    (name,) = [number.name for _, numbers in explainable((of,)) for number in numbers if "evil" in number.name]
    for text in (numbers_report(explainable((of,)), ["x\x1by"]), explain_report(explanations((of,), name))):
        assert "evil" in text
        assert "\x1b" not in text
        assert "\x07" not in text
