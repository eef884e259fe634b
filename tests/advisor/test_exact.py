"""Asking a framework: what is asked of the workloads, and what is made of every way in which an answer can fail."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from meshscope.advisor import exact as module
from meshscope.advisor.asking import Limits, Said, asked
from meshscope.advisor.bundled import bundled
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.exact import exact_memory, exact_of
from meshscope.errors import InputError

FP32 = Numerics("fp32", "fp32", parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8)
PLAIN = Candidate("", "torch", "bundled", seq_len=64, micro_batch=2, numerics=FP32)
MOMENTS_IN_BF16 = dataclasses.replace(FP32, name="bf16 moments", optimizer_bytes=4)
RECORDED = "recordings/tiny-4-cpu-ranks/fsdp/journal/rank0.jsonl"


def laid_out(**degrees: Any) -> Candidate:
    return dataclasses.replace(PLAIN, **degrees)


@pytest.mark.parametrize(
    ("candidate", "devices", "strategy", "flags"),
    [
        (PLAIN, 1, "torch-single", ""),
        (laid_out(replicate=4), 4, "ddp", "--bucket-mb 25.0 --no-bucket-view"),
        (laid_out(replicate=4, accumulate=2), 4, "ddp", "--batch 16 --accumulate 2"),
        (laid_out(shard=4, zero_stage=1), 4, "zero1", ""),
        (laid_out(shard=4, zero_stage=2), 4, "fsdp", "--no-reshard"),
        (laid_out(shard=8, zero_stage=3), 8, "fsdp", "--batch 16"),
        (laid_out(shard=2, replicate=2, zero_stage=3), 4, "hsdp", "--replicas 2"),
        (laid_out(tensor=4), 4, "tp", "--tensor 4"),
        (laid_out(tensor=2, shard=4, zero_stage=3), 8, "fsdp-tp", "--tensor 2"),
        (laid_out(pipeline=2, accumulate=4), 2, "pp-1f1b", "--accumulate 4"),
        (laid_out(pipeline=2, accumulate=4, schedule="gpipe"), 2, "pp-gpipe", "--schedule gpipe"),
        (laid_out(framework="jax", replicate=4), 4, "pjit-dp", "--spec dp"),
        (laid_out(framework="jax", replicate=4, strategy="pmap"), 4, "pmap", ""),
        (laid_out(framework="jax", shard=4, zero_stage=3), 4, "pjit", "--devices 4"),
        (laid_out(framework="jax", tensor=2, shard=2, zero_stage=3), 4, "pjit-2d", "--tensor 2"),
        (laid_out(checkpointing="full", seq_len=128), 1, "torch-single", "--checkpoint-activations"),
        (laid_out(seq_len=128), 1, "torch-single", "--seq 128"),
    ],
)
def test_a_candidate_is_the_workload_that_lays_the_model_out_so(
    candidate: Candidate, devices: int, strategy: str, flags: str
) -> None:
    found = bundled("tiny", candidate, devices)
    assert found.workload.strategy == strategy
    assert flags in " ".join(found.flags)


@pytest.mark.parametrize(
    ("candidate", "devices", "reason"),
    [
        (laid_out(replicate=4), 8, "4 devices, not over 8"),
        (laid_out(context=2), 2, "share a sequence"),
        (laid_out(shard=2, zero_stage=3, checkpointing="selective"), 2, "whole blocks"),
        (laid_out(is_compiled=True), 1, "torch.compile"),
        (laid_out(numerics=MOMENTS_IN_BF16), 1, "unlike bf16 moments"),
        (laid_out(optimizer="lion"), 1, "not lion"),
        (laid_out(tensor=2, replicate=2), 4, "replicated 2 × tensor parallel 2"),
        (laid_out(tensor=2, pipeline=2), 4, "tensor parallel 2 × pipeline 2"),
    ],
)
def test_what_no_workload_does_is_not_answered(candidate: Candidate, devices: int, reason: str) -> None:
    with pytest.raises(NotCovered, match=reason):
        bundled("tiny", candidate, devices)


def test_a_model_without_code_is_not_asked_about() -> None:
    with pytest.raises(NotCovered, match="7b is a shape without code"):
        exact_memory("7b", PLAIN, 1)


def test_what_the_workload_refuses_is_wrong_input() -> None:
    with pytest.raises(InputError, match="heads"):
        exact_memory("tiny", laid_out(tensor=3), 3)


def answered(monkeypatch: pytest.MonkeyPatch, *said: Said) -> list[list[str]]:
    """Answers in the workers' place, one after another, and how each was asked."""
    lines: list[list[str]] = []
    rest = list(said)

    def stand_in(line: list[str], *_: Any) -> Said:
        lines.append(line)
        return rest.pop(0)

    monkeypatch.setattr(module, "asked", stand_in)
    return lines


def said(**answer: Any) -> Said:
    return Said(f"{json.dumps(answer)}\n".encode(), "", 0)


@pytest.mark.parametrize(
    ("heard", "kind", "words"),
    [
        (
            Said(b"", "", 137, "memory"),
            NotCovered,
            "fsdp on 2 devices: torch on fake tensors itself needs more than 8 GiB",
        ),
        (Said(b"", "", -9, "time"), NotCovered, "took more than 600 s"),
        (Said(b"", "Killed \x1b[31mby hand", -9), NotCovered, "failed: Killed �.31mby hand"),
        (Said(b"no JSON\n", "", 3), NotCovered, "exit code 3"),
        (said(untold="shapes depend on numbers"), NotCovered, "shapes depend on numbers"),
        (said(error="nothing to train", hint="Give it parameters."), InputError, "fsdp: nothing to train"),
    ],
)
def test_every_end_of_a_worker_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, heard: Said, kind: type[Exception], words: str
) -> None:
    answered(monkeypatch, heard)
    with pytest.raises(kind, match=words):
        exact_of("fsdp", ("--model", "tiny"), 2)


def test_parts_at_the_peak_add_up_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"parameters": 5, "buffers": 1, "gradients": 2, "buckets": 3, "optimizer": 10, "batch": 1,
             "activations": 20, "gathered": 4, "communication": 2, "temporaries": 7}  # fmt: skip
    answered(monkeypatch, said(sizes={"parameters": 5}, at_peak=parts, peak_bytes=55, peak_in="backward"))
    found = exact_of("fsdp", ("--model", "tiny"), 2)
    assert {name: figure.value for name, figure in found.categories.items()} == {
        "parameters": 6, "gradients": 2, "optimizer": 10, "activations": 20, "communication": 9, "temporaries": 8,
    }  # fmt: skip
    assert found.peak is not None
    assert found.peak.value == sum(figure.value for figure in found.categories.values())
    assert (found.peak.low, found.peak.high) == (pytest.approx(49.5), pytest.approx(60.5))
    assert (found.categories["optimizer"].low, found.categories["optimizer"].high) == (10, 10)
    assert (found.peak.source, found.sizes["parameters"].source) == ("framework", "framework")


def test_of_a_pipeline_the_stage_that_needs_most_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = answered(monkeypatch, said(peak_bytes=10), said(peak_bytes=12))
    assert exact_of("pp-1f1b", ("--model", "tiny"), 4).rank == 3
    assert [line[line.index("--rank") + 1] for line in lines] == ["0", "3"]


def test_of_zero1_the_rank_with_most_of_the_state_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, said(peak_bytes=10, most_state_rank=1), said(peak_bytes=11, most_state_rank=1))
    assert exact_of("zero1", ("--model", "tiny"), 2).rank == 1


def test_what_xlas_cpu_compiler_needs_beside_the_arguments_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, said(sizes={"arguments": 100, "cpu_temporaries": 900}))
    found = exact_of("pjit", ("--model", "tiny"), 2)
    assert found.sizes.keys() == {"arguments"}
    assert found.sizes["arguments"].source == "compiler"
    assert (found.peak, found.categories, found.cpu_temporaries_bytes) == (None, {}, 900)


def test_a_process_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    kept = tmp_path / "pid"
    found = asked(["/bin/sh", "-c", f"sleep 60 & echo $! > {kept}; wait"], {}, Limits(patience_s=0.2))
    assert found.over == "time"
    state = Path(f"/proc/{int(kept.read_text())}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_a_process_that_takes_too_much_memory_is_ended() -> None:
    program = "import time; x = bytearray(b'1') * 2**26; time.sleep(30)"
    assert asked([sys.executable, "-S", "-c", program], {}, Limits(30.0, 2**25)).over == "memory"


def test_its_last_words_are_kept() -> None:
    found = asked([sys.executable, "-c", "import sys; print(1); sys.exit('first\\nlast')"], {}, Limits(30.0))
    assert (found.output, found.words, found.exit_code, found.over) == (b"1\n", "last", 1, "")


@pytest.mark.live
def test_fake_tensors_take_what_the_bundled_recording_of_four_ranks_measured(root: Path) -> None:
    journal = [json.loads(line) for line in (root / RECORDED).read_text().splitlines()]
    newest = [entry for entry in journal if entry.get("type") == "memory"][-1]
    found = exact_of("fsdp", ("--model", "tiny", "--layers", "2"), 4)
    exact = {name: found.sizes[name].value for name in ("parameters", "gradients", "optimizer", "activations")}
    assert exact == {name: newest["categories"][name] for name in exact}
