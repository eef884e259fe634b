"""``meshscope advise``: answers, forms, filters, tables of runs, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from meshscope import cli

QUICK = ("--no-sensitivity", "--strategy", "=ddp,=fsdp,fsdp+tp")
_NAMES = (
    "run_id,source_key,framework,model,n_layers,d_model,n_heads,n_kv_heads,d_ff,glu,vocab,seq_len,gpu,gpu_mem_gb,n_gpus,"
    "gpus_per_node,n_nodes,strategy,fsdp_shard,zero_stage,tp,pp,cp,act_ckpt,precision,micro_batch_per_dp_rank,grad_accum,"
    "step_time_s"
)
_LAST = "8192,H100-80GB,80,8,8,1,FSDP2,8,3,1,1,1,full,bf16,1,1,{measured}"
ROWS = f"""{_NAMES}
one,here,torchtitan,llama3-8b,32,4096,32,8,14336,1,128256,{_LAST}
two,here,torchtitan,no-such-shape,,,,,,,,{_LAST}
"""


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Advise = Callable[..., Done]


@pytest.fixture
def advise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Advise:
    """The command, in this process, in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)

    def run(*line: str | Path) -> Done:
        with pytest.raises(SystemExit) as left:
            cli.main(["advise", *map(str, line)])
        said = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Done(left.value.code, said.out, said.err)

    return run


def test_the_choice_comes_first_with_its_reason_and_the_rules_beside_it(advise: Advise, tmp_path: Path) -> None:
    done = advise("--model", "7b", "--devices", "8xH100", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("llama-2-7b, 6.74 B parameters · 8 × H100")
    said = " ".join(done.stdout.split())
    assert "Predicted; nothing was measured here." in said
    assert "fsdp 8, micro-batch" in said
    assert (
        "does not fit, with the layout and settings that need least: 5 ddp 8" in said
        or "ddp 8, full checkpointing" in said
    )
    assert "Rules of thumb, beside the computed choice:" in said
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_object_with_every_candidate(advise: Advise) -> None:
    found = json.loads(advise("--model", "7b", "--devices", "8xH100", "--json", *QUICK).stdout)
    first = found["candidates"][0]
    assert (found["format"], found["predicted"], found["choice"]) == (1, True, 1)
    assert (first["is_choice"], first["strategy"], first["fits"]) == (True, "fsdp", "fits")
    time = first["time"]
    assert time["step_s"]["low"] < time["step_s"]["value"] < time["step_s"]["high"]
    parts = time["compute_s"] + time["exposed_s"] + time["bubble_s"] + time["idle_s"]
    assert parts == pytest.approx(time["step_s"]["value"], rel=1e-6)
    assert time["mfu_of"] == "dense bf16 peak"
    held = first["memory"]
    assert sum(each["value"] for each in held["categories"].values()) == pytest.approx(held["allocated_bytes"]["value"])
    assert [each["strategy"] for each in found["candidates"] if each["fits"] == "does not fit"] == ["ddp"]


def test_markdown_has_tables_and_escapes_what_comes_from_outside(advise: Advise) -> None:
    done = advise("--model", "layers=2,d_model=256", "--devices", "8xH100", "--markdown", *QUICK)
    assert done.stdout.startswith("# own shape on 8 × H100")
    assert "|---|" in done.stdout
    assert "d\\_ff 768" in done.stdout


def test_one_candidate_is_explained_term_by_term(advise: Advise) -> None:
    """4 B of each of 6.74 billion parameters over 8 ranks are 3.37 GB."""
    done = advise("--model", "7b", "--devices", "8xH100", "--explain", "fsdp", *QUICK)
    said = " ".join(done.stdout.split())
    assert "3.37 GB = 4 B × 6.74 B parameters / 8 ranks" in said
    assert "= step" in said
    assert "FLOP in bf16" in said


@pytest.mark.parametrize(
    ("line", "what", "todo"),
    [
        (("--model", "foo", "--devices", "8xH100"), "no model 'foo'", "llama-2-7b"),
        (("--model", "7b", "--devices", "8xH1OO"), "No device is known as", "Known:"),
        (("--model", "7b", "--devices", "8xH100", "--strategy", "fdsp"), "no strategy 'fdsp'", "Did you mean fsdp?"),
        (("--model", "7b", "--devices", "8xH100", "--precision", "int3"), "no precision 'int3'", "bf16-mixed"),
        (("--model", "7b", "--devices", "8xH100", "--software", "x"), "no software 'x'", "torchtitan"),
        (("--model", "7b", "--devices", "8xH100", "--explain", "zz", *QUICK), "No candidate is called", "fsdp 8"),
        (("--runs", "nothere.csv"), "cannot be read", "published_runs.csv"),
        (("--runs", __file__), "has no column n_gpus", "published_runs.csv"),
        (("--against", "nothere"), "does not exist", "Give a recording"),
        (("--model", "7b", "--devices", "8xH100", "--hardware", "nothere"), "nothere is no folder", "TOML"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_two_lines(line: tuple[str, ...], what: str, todo: str, advise: Advise) -> None:
    done = advise(*line)
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert what in first
    assert todo in second


@pytest.mark.parametrize(
    "line", [(), ("--model", "7b"), ("--score", "--model", "7b", "--devices", "8xH100"), ("--batch", "0"),
             ("--model", "7b", "--devices", "8xH100", "--json", "--markdown")],
)  # fmt: skip
def test_usage_is_exit_code_two(line: tuple[str, ...], advise: Advise) -> None:
    done = advise(*line)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_nothing_that_fits_is_an_answer(advise: Advise) -> None:
    done = advise("--model", "405b", "--devices", "8xH100")
    assert done.returncode == 0
    assert "Nothing fits 8 devices of" in done.stdout


def test_a_table_of_runs_is_answered_row_by_row_and_what_was_measured_is_not_read(
    advise: Advise, tmp_path: Path
) -> None:
    answers = []
    for measured in ("2.0", "200.0"):
        table = tmp_path / "runs.csv"
        table.write_text(ROWS.replace("{measured}", measured), encoding="utf-8")
        answers.append(json.loads(advise("--runs", table, "--json").stdout))
    assert [{**row, "impossible": None} for row in answers[0]["rows"]] == [
        {**row, "impossible": None} for row in answers[1]["rows"]
    ]
    one, two = answers[0]["rows"]
    assert list(one) == ["run_id", "step_time_s", "step_time_low_s", "step_time_high_s", "mem_allocated_gib",
                         "mem_reserved_gib", "fits", "impossible", "cannot_say"]  # fmt: skip
    assert one["step_time_low_s"] < one["step_time_s"] < one["step_time_high_s"]
    assert one["cannot_say"] is None
    assert (two["step_time_s"], two["run_id"]) == (None, "two")
    assert "shape" in two["cannot_say"]


def test_a_table_that_cannot_be_read_is_one_object_too(advise: Advise) -> None:
    found = json.loads(advise("--runs", "nothere.csv", "--json").stdout)
    assert (found["rows"], len(found["refused"])) == ([], 1)


def test_a_score_says_how_far_off_and_of_how_much(advise: Advise, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(ROWS.replace("{measured}", "2.0"), encoding="utf-8")
    found = json.loads(advise("--runs", table, "--json", "--score").stdout)
    (source,) = found["score"]["sources"]
    assert (found["score"]["covered_frac"], source["covered_frac"]) == (0.5, 0.5)
    off = found["rows"][0]["step_time_s"] / 2.0 - 1
    assert source["time"]["bias_frac"] == pytest.approx(off)
    assert source["time"]["mape_frac"] == pytest.approx(abs(off))


def test_prediction_stands_beside_measurement(root: Path, advise: Advise) -> None:
    done = advise("--against", root / "recordings" / "tiny-4-cpu-ranks")
    assert done.returncode == 0
    assert "ddp (tiny, 4 × CPU)" in done.stdout
    assert "measured" in done.stdout


@pytest.mark.slow
def test_what_a_recording_says_of_the_machine_goes_into_the_answer(root: Path, advise: Advise) -> None:
    recording = root / "recordings" / "tiny-4-cpu-ranks"
    line = ("--model", "tiny", "--devices", "2xcpu", "--batch", "8", "--strategy", "=fsdp", "--no-sensitivity")
    done = advise(*line, "--calibration", recording)
    assert (done.returncode, "calibrated on" in " ".join(done.stdout.split())) == (0, True)


def test_help_names_the_options_and_loads_nothing() -> None:
    code = (
        "import sys\nfrom meshscope import cli\n"
        "try: cli.main(['advise', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'textual', 'msgspec', 'torch', 'jax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--explain" in done.stdout
