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
from made_spans import kernel, window
from staged import staged

from meshscope.analysis.explaining import explainable, explanations, groups
from meshscope.analysis.explaining.figure import OPERATIONS, Figure
from meshscope.analysis.explaining.number import Asked, Case, Number
from meshscope.analysis.explaining.words import formulas
from meshscope.analysis.overlap import overlap
from meshscope.discovery import bundled
from meshscope.recording.entries import MemoryMeasured
from meshscope.reports.analysis_json import analysis
from meshscope.reports.columns import narrowed as terminal
from meshscope.reports.explain_json import explain_json, numbers_json
from meshscope.reports.explain_text import explain_report, numbers_report
from meshscope.run import Gallery, Run, open_traces

DRAWN = """
    0 step        aaaaaaaaaabbbbbbbbbb
    0 compute     ####......######....
    0 all_reduce  ..####........####..
"""
FEW, MOST = 30, 240
"""Numbers of a group that are held against the JSON: of thousands of kernels those of the longest three, or twenty."""

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


def cases(run: Run, runs: tuple[Run, ...], most: int = FEW) -> Iterator[tuple[Number, Case]]:
    for group in groups():
        last = most if most < MOST or "operation" in group.heads else None
        for number in group.numbers(run)[:last]:
            yield from ((number, case) for case in number.cases(Asked(run, runs)))


def works_out(figure: Figure) -> None:
    """Every operation of a formula gives what the formula says it gives."""
    if figure.how:
        assert OPERATIONS[figure.how]([part.value for part in figure.of]) == figure.value, figure.name
    for part in figure.of:
        works_out(part)


def agree(runs: tuple[Run, ...], most: int = FEW) -> int:
    """How many numbers were held against the JSON; each that is not said says why."""
    said, checked = analysis(runs), 0
    for number_of, run in enumerate(runs):
        for number, case in cases(run, runs, most):
            if case.figure is None:
                assert case.why, (number.name, case.of)
                continue
            works_out(case.figure)
            if case.json:
                root = said if case.json.startswith("comparison") else said["recordings"][number_of]
                assert at(root, case.json) == case.figure.value, (run.path, number.name, case.of)
                checked += 1
    return checked


UNEXPLAINED = {
    r"(windows|files|allocations|flight_recorder|out_of_memory|kernels)\b.*": "told as a file has it",
    r"ranks\[\d+\]\.(rank|device|windows\[\d+\].*|per_step\.steps|devices\[\d+\]\.device)": "which ranks and steps",
    r"ranks\[\d+\]\.events\..*": "what reading met stands beside every number of the rank",
    r"collectives\[\d+\]\.(ranks\[\d+\]|size_class\[\d+\]|group_size)": "which ranks, and between which sizes",
    r"memory\[\d+\]\.(rank|device|step|peak_step)": "which rank, and when",
    r"memory\[\d+\]\.over_time\[\d+\]\..*": "explained by memory.NAME with --step",
    r"memory\[\d+\]\.(alive|allocator|history|actions|failure)\b.*": "told as the allocator's own file has it",
    r"headroom\[\d+\]\.ranks\[\d+\]": "which ranks",
    r"steps\.(count|planned|measured|profiled|compilations|recompilations)": "the notes of step_time count them",
    r"efficiency\.(parameters|peak_flops_per_s|tokens_per_step)": "a factor in the formula of mfu",
    r"devices\[\d+\]\.count": "the notes of devices.FIELD count them",
    r"findings\[\d+\]\.(rank|ranks\[\d+\])": "which ranks",
    r"waiting\.(collectives|matched|spans|residual_ns|unmatched\..*|clocks\..*)": "the notes of waiting.NAME tell them",
    r"waiting\.ranks\[\d+\]\.rank": "which rank",
    r"lateness\[\d+\]\..*": "explained by waiting.late with --rank and --step; a pattern is no number",
    r"(stragglers|slow_steps|input)\[\d+\]\..*": "explained by the finding that it makes, and by step_time --step",
    r"memory_imbalance\..*": "explained by memory.peak of each rank",
    r"idle\[\d+\]\.(rank|steps|longest\..*)": "which rank and steps; idle.longest is from one to the other",
    r"idle\[\d+\]\.per_step\..*": "explained by idle, span and idle.CAUSE.per_step of the rank",
    r"idle\[\d+\]\.step_(waits\..*|late_beside_ns|unseen_beside_ns)": "idle.waits and idle.late_beside, in steps",
    r"launches\[\d+\]\.(rank|span_ns|steps|late_starts)": "as idle of the rank has them",
    r"(operations|scopes|phases)\b.*\b(per_step_(ns|count)|rank_steps)": "explained by NAME.per_step",
    r"critical_path\[\d+\]\.switches": "the pieces of critical_path.by_rank",
    r"operations\.(of|top\[\d+\]\.ranks)": "how many names, and the notes of an operation say which ranks",
    r"scopes\[\d+\]\.of": "how many names",
    r"ddp\.(alike|unmatched|covered_ns|optimizer_steps|ranks\[\d+\]|buckets\[\d+\]\.number)": "in its notes",
    r"fsdp\.(covered_ns|ranks\[\d+\])": "in the formula of fsdp.exposed_share",
    r"xla\.(commands|works|in_commands)": "counts of operations",
    r"xla\.collectives\[\d+\]\.(asynchronous|synchronous|untold|combined|in_commands)": "how the compiler runs them",
    r"xla\.collectives\[\d+\]\.longest\[\d+\]\..*": "explained by operations.NAME",
    r"critical_path\[\d+\]\.((ranks|steps)\[\d+\]|what_ifs\[\d+\]\.bucket_bytes)": "which ranks, steps and sizes",
    r"pipeline\.(stages|micro_batches|chunks)": "factors in the formula of pipeline.ideal",
    r"pipeline\.ranks\[\d+\]\.(rank|steps|(step|compute|rest)_ns)": "which rank and steps; span and compute",
    r"pipeline\.longest\..*": "compute of each rank, and the mean of them",
    r"compilation\.(programs|from_cache|rank|recompiling_steps\[\d+\]|traced\[.*)": "counts, and which steps",
    r"compilation\.recompilations\[\d+\]\.(step|ranks\[\d+\]|stage_ns\..*)": "parts of compilation.again",
}
"""Numbers of ``analyze --json`` that no explanation stands for, and why."""


def leaves(said: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number, with its place by names and indices."""
    if isinstance(said, dict):
        for name, one in said.items():
            yield from leaves(one, f"{path}.{name}" if path else name)
    elif isinstance(said, list):
        for number, one in enumerate(said):
            yield from leaves(one, f"{path}[{number}]")
    elif isinstance(said, int | float) and not isinstance(said, bool):
        yield path, said


def by_index(said: Any, path: str) -> str:
    """``ranks[rank=0].per_step`` as ``ranks[0].per_step``."""
    found = ""
    for name, chosen in _STEP.findall(path):
        if name:
            said, found = said[name], f"{found}.{name}" if found else name
            continue
        at_ = next(n for n, one in enumerate(said) if "=" not in chosen or str(one[chosen.split("=", 1)[0]])
                   == chosen.split("=", 1)[1]) if "=" in chosen else int(chosen)  # fmt: skip
        said, found = said[at_], f"{found}[{at_}]"
    return found


def unexplained(run: Run, runs: tuple[Run, ...]) -> list[str]:
    """The numbers of the JSON that neither an explanation nor a reason stands for."""
    (recording,) = analysis((run,))["recordings"]
    told = {
        by_index(recording, case.json)
        for _, case in cases(run, runs, MOST)
        if case.json and case.figure is not None and not case.json.startswith("comparison")
    }
    return [
        path
        for path, _ in leaves(recording)
        if path not in told and not any(re.fullmatch(pattern, path) for pattern in UNEXPLAINED)
    ]


def tiny() -> tuple[Run, ...]:
    folder = bundled("recordings") / "tiny-4-cpu-ranks"
    return Gallery(folder).at(1 << 62)[1]


@pytest.fixture(scope="module")
def recorded() -> tuple[Run, ...]:
    return tiny()


def test_the_parts_of_every_number_add_up_to_the_json_of_the_bundled_recording(recorded: tuple[Run, ...]) -> None:
    assert agree(recorded) > 800


def test_the_parts_of_every_number_of_a_pipeline_add_up_and_none_is_unexplained() -> None:
    runs = (staged(),)
    assert agree(runs) > 40
    assert unexplained(runs[0], runs) == []


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


def test_the_list_has_an_entry_for_each_number_and_says_all_of_it_in_the_room_there_is() -> None:
    found = explainable((timeline(DRAWN),))
    text = numbers_report(found, ["ddp"], encoding="utf-8")
    listed = [line.split()[0] for line in text.splitlines() if re.match(r"  \S", line)]
    assert listed == [number.name for _, numbers in found for number in numbers]
    assert max(map(len, text.splitlines())) <= 80
    assert [one["name"] for one in json.loads(numbers_json(found))["numbers"]] == listed
    together = " ".join(text.split())
    assert all(" ".join(number.definition.split()) in together for _, numbers in found for number in numbers)
    for group in text.split("\n\n"):
        heads = [re.match(r"  \S+ +(?=\S)", line) for line in group.splitlines()]
        assert len({head.end() for head in heads if head}) <= 1, group


def test_the_list_uses_a_wide_terminal() -> None:
    found = explainable((timeline(DRAWN),))
    with terminal(140):
        lines = numbers_report(found, ["ddp"], encoding="utf-8").splitlines()
    assert 80 < max(map(len, lines)) <= 140
    assert len(lines) < len(numbers_report(found, ["ddp"], encoding="utf-8").splitlines())


def test_what_is_counted_is_said_once_and_in_its_number() -> None:
    calls, steps = Figure("calls in complete steps", 1, "calls"), Figure("steps, over ranks", 1, "steps")
    made_of = Figure(
        "calls in a step", 1.5, "calls", "quotient", (Figure("calls in complete steps", 3, "calls"), steps)
    )
    assert formulas(made_of) == ["1.5 calls in a step = 3 calls in complete steps / 1 step, over ranks"]
    assert formulas(calls) == ["1 call in complete steps"]
    assert formulas(Figure("passes", 1, "passes")) == ["1 pass"]
    assert formulas(Figure("rank 0", 2, "calls")) == ["2 calls rank 0"]
    one = folded(windows=[window([kernel(0, 15, name="gemm"), kernel(20, 29, name="relu")])])
    (found,) = explanations((one,), "operations.gemm")
    assert "made of 1 call:" in explain_report([found], encoding="utf-8")


def test_a_name_that_the_list_cut_can_be_asked_for_as_it_stands_there() -> None:
    of = folded(windows=[window([kernel(0, 15, name="evil\x1b[31m" + "x" * 300)])])
    listed = numbers_report(explainable((of,)), ["x"], encoding="utf-8").splitlines()
    (cut,) = (line.strip() for line in listed if line.startswith("  operations.evil") and line.endswith("…"))
    assert max(map(len, listed)) <= 80
    (found,) = explanations((of,), cut)
    assert [case.figure.value for case in found.cases if case.figure is not None] == [15]


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


def test_every_number_of_the_json_is_explained_or_told_why_not(recorded: tuple[Run, ...]) -> None:
    for run in recorded:
        if run.name == "fsdp":
            assert unexplained(run, recorded) == []


def narrowed(run: Run, runs: tuple[Run, ...], most: int) -> int:
    """How many numbers of one rank and of one step work out; one that stands in the JSON too is that of the JSON."""
    said, checked = analysis((run,))["recordings"][0], 0
    for number in (number for group in groups() for number in group.numbers(run)[:most]):
        steps = sorted(set(number.known_steps(run))) if "step" in number.by else []
        rank = 1 if "rank" in number.by and run.experiment.ranks > 1 else None
        for asked in {(rank, None), (None, steps[-1]) if steps else (rank, None), (rank, steps[-1] if steps else None)}:
            for case in number.cases(Asked(run, runs, *asked)):
                assert case.figure is not None or case.why, (number.name, case.of)
                if case.figure is not None:
                    works_out(case.figure)
                    checked += 1
                if case.figure is not None and case.json and not case.json.startswith("comparison"):
                    assert at(said, case.json) == case.figure.value, (number.name, asked, case.of)
    return checked


def test_numbers_of_one_rank_and_of_one_step_work_out(recorded: tuple[Run, ...]) -> None:
    for run in recorded:
        if run.name == "ddp":
            assert narrowed(run, recorded, FEW // 2) > 300, run.name


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", ["gpu-tl-bertsmall-h100", "mr-torchrec-sst4-a2a", "nccl-hta-nccl-data"])
def test_numbers_of_one_rank_and_step_of_a_real_trace_work_out(shared: Path, name: str) -> None:
    for run in (runs := open_traces([shared / "traces" / name]).runs):
        assert narrowed(run, runs, MOST) > 100


@pytest.mark.slow
def test_every_number_of_every_run_is_explained_or_told_why_not(recorded: tuple[Run, ...]) -> None:
    assert agree(recorded, MOST) > 800
    for run in recorded:
        assert unexplained(run, recorded) == [], run.name


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", CORPUS)
def test_every_number_of_a_real_trace_is_explained_or_told_why_not(shared: Path, name: str) -> None:
    runs = open_traces([shared / "traces" / name]).runs
    agree(runs, MOST)
    for run in runs:
        assert unexplained(run, runs) == [], run.name
