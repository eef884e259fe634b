"""``meshscope compare`` and ``analyze --claim``: exit codes that a build can rely on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from meshscope.cli import group, main

sys.path.insert(0, str(Path(__file__).parent.parent / "analysis" / "support"))
from measured import measured, noisy

from meshscope.reports.baseline import encoded


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of baselines: a, the same again, slower, and one of too few steps."""
    (tmp_path / "a.json").write_bytes(encoded([measured(noisy(1))]))
    (tmp_path / "same.json").write_bytes(encoded([measured(noisy(2))]))
    (tmp_path / "slower.json").write_bytes(encoded([measured(noisy(2, median_ms=75))]))
    (tmp_path / "few.json").write_bytes(encoded([measured([50.0] * 3)]))
    (tmp_path / "cut.json").write_bytes(encoded([measured(noisy(1))])[:700])
    return tmp_path


def code(*line: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        main(["compare", *line])
    return int(leaving.value.code or 0)


def printed(*line: str) -> Result:
    return CliRunner().invoke(group, ["compare", *line], standalone_mode=False)


@pytest.mark.parametrize(
    ("b", "asked", "exit_code"),
    [
        ("same.json", [], 0),
        ("slower.json", [], 0),
        ("same.json", ["--fail-on", "step_time>15%"], 0),
        ("slower.json", ["--fail-on", "step_time>15%"], 3),
        ("slower.json", ["--fail-on", "step_time>15%,memory>1GB"], 3),
        ("slower.json", ["--fail-on", "step_time>90%", "--fail-on", "throughput<-5%"], 3),
        ("same.json", ["--fail-on", "step_time>1%"], 4),
        ("few.json", ["--fail-on", "step_time>15%"], 4),
        ("same.json", ["--fail-on", "memory>1GB"], 4),
        ("slower.json", ["--fail-on", "step_time>lots"], 2),
        ("slower.json", ["--fail-on", "speed>5%"], 2),
        ("nothere.json", [], 1),
        ("cut.json", [], 1),
    ],
)
def test_a_build_can_tell_a_failure_from_not_knowing(files: Path, b: str, asked: list[str], exit_code: int) -> None:
    assert code(str(files / "a.json"), str(files / b), *asked) == exit_code


def test_a_damaged_baseline_is_two_lines_on_stderr(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code(str(files / "cut.json"), str(files / "a.json")) == 1
    said = capsys.readouterr()
    assert said.out == ""
    what, todo = said.err.splitlines()
    assert "cut.json is damaged" in what
    assert "--save-baseline" in todo


def test_a_strategy_that_only_one_side_has_cannot_be_judged(files: Path) -> None:
    runs = [measured(noisy(1)), measured(noisy(2), strategy="fsdp", title="fsdp")]
    (files / "two.json").write_bytes(encoded(runs))
    line = [str(files / "two.json"), str(files / "same.json"), "--fail-on", "step_time>15%"]
    assert code(*line) == 4


def test_repeats_are_taken_together(files: Path) -> None:
    said = printed(str(files / "a.json"), "--also-a", str(files / "same.json"), str(files / "slower.json"), "--json")
    (found,) = json.loads(said.stdout)["comparisons"]
    assert "120 steps in 2 runs (A)" in found["basis"][0]


def test_without_b_there_is_nothing_to_compare_but_a_baseline_to_save(files: Path) -> None:
    assert code(str(files / "a.json")) == 2
    assert code(str(files / "a.json"), "--save-baseline", str(files / "new.json")) == 0
    assert (files / "new.json").read_bytes() == (files / "a.json").read_bytes()
    assert code(str(files / "a.json"), "--save-baseline", str(files / "no" / "such" / "x.json")) == 0
    assert code(str(files / "a.json"), "--save-baseline", str(files / "a.json" / "x.json")) == 1


def test_a_baseline_takes_the_place_of_a_baseline_and_of_nothing_else(files: Path) -> None:
    kept = files / "kept.txt"
    kept.write_text("notes")
    os.mkfifo(files / "pipe")
    (files / "link.json").symlink_to(files / "same.json")
    (files / "out").symlink_to("/proc/self/fd/1")
    for name in ("kept.txt", "pipe", "out", "."):
        assert code(str(files / "a.json"), "--save-baseline", str(files / name)) == 1
    assert kept.read_text() == "notes"
    assert (files / "pipe").is_fifo()
    assert (files / "out").is_symlink()
    assert code(str(files / "a.json"), "--save-baseline", str(files / "link.json")) == 0
    assert (files / "link.json").is_symlink()
    assert (files / "same.json").read_bytes() == (files / "a.json").read_bytes()


def test_json_is_one_object_also_where_nothing_could_be_done(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code("--json", str(files / "cut.json"), str(files / "a.json")) == 1
    said = capsys.readouterr()
    (refused,) = json.loads(said.out)["refused"]
    assert "cut.json is damaged" in refused["why"]
    assert "cut.json is damaged" in said.err


def test_an_empty_path_is_no_path(files: Path) -> None:
    assert code(str(files / "a.json"), "") == 2


def test_the_bundled_recording_is_the_same_as_itself(root: Path, tmp_path: Path) -> None:
    plan = root / "recordings" / "tiny-4-cpu-ranks" / "plan.json"
    saved = tmp_path / "base.json"
    assert code(str(plan.parent), "--save-baseline", str(saved)) == 0
    found = json.loads(printed(str(saved), str(plan.parent), "--json").stdout)
    assert {pair["strategy"] for pair in found["comparisons"]} >= {"ddp", "fsdp", "pmap", "pjit"}
    assert {pair["verdict"] for pair in found["comparisons"]} == {"no difference"}
    assert all(pair["quantities"]["step_time"]["change"] == 0 for pair in found["comparisons"])
    assert not any(work["how"] for pair in found["comparisons"] for work in pair["works"])


def test_one_path_twice_is_answered_and_fails_no_build(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "copy.json").write_bytes((files / "few.json").read_bytes())
    asked = ["--fail-on", "step_time>1%,exposed>1%,memory>1%"]
    for other in ("few.json", "copy.json"):
        assert code(str(files / "few.json"), str(files / other), *asked) == 0
        said = capsys.readouterr()
        assert said.out.startswith("ddp: no difference: the same recording twice.\n")
        assert said.out.count("does not hold") == 3
        assert ("A and B are one path" in said.err) == (other == "few.json")
    assert code(str(files / "few.json"), str(files / "copy.json"), "--fail-on", "step_time>1ms") == 3


def test_a_claim_needs_no_path_and_prints_one_object_as_json() -> None:
    said = CliRunner().invoke(group, ["analyze", "--claim", "1.3b 8xA100 256x512 180ms", "--json"],
                              standalone_mode=False)  # fmt: skip
    found = json.loads(said.stdout)
    assert found["verdict"] == "impossible"
    assert 410e6 < found["bound_ns"] < 460e6


def test_a_claim_that_cannot_be_read_is_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["analyze", "--claim", "fast!"])
    assert leaving.value.code == 1
    assert len(capsys.readouterr().err.splitlines()) == 2
