"""Rows of other people's tables: what they ask, what is assumed, what is refused, and what is never read."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.plausibility import is_impossible
from meshscope.advisor.predictions import prediction, predictions
from meshscope.advisor.published import MEASURED, published

ROW = {
    "run_id": "one",
    "source_key": "somebody",
    "framework": "torchtitan/FSDP2",
    "model": "llama3-8b",
    "arch": "dense",
    "params_b": "8.03",
    "n_layers": "32",
    "d_model": "4096",
    "n_heads": "32",
    "n_kv_heads": "8",
    "d_ff": "14336",
    "glu": "1",
    "vocab": "128256",
    "seq_len": "8192",
    "gpu": "H100-80GB",
    "n_gpus": "64",
    "gpus_per_node": "8",
    "n_nodes": "8",
    "inter_node_gbps_per_gpu": "400",
    "strategy": "FSDP2+TP4",
    "fsdp_shard": "16",
    "zero_stage": "3",
    "tp": "4",
    "act_ckpt": "selective-op",
    "precision": "bf16",
    "compile": "torch.compile",
    "micro_batch_per_dp_rank": "2",
    "grad_accum": "1",
    "global_batch_seqs": "32",
    "tokens_per_step": "262144",
    "step_time_s": "2.5",
    "tokens_per_s_per_gpu": "1638",
    "mem_gib_per_gpu": "50",
}


def row(**changed: str) -> dict[str, str]:
    return ROW | changed


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in ROW.items() if name not in names}


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> list[dict[str, str]]:
    shared: Path = request.getfixturevalue("shared")
    return list(csv.DictReader((shared / "data" / "published_runs.csv").open(encoding="utf-8")))


def test_a_row_says_its_model_layout_and_devices():
    asked = published(ROW)
    assert asked.architecture.parameters == pytest.approx(8.03e9, rel=0.001)
    assert (asked.candidate.shard, asked.candidate.tensor, asked.candidate.zero_stage) == (16, 4, 3)
    assert (asked.candidate.micro_batch, asked.candidate.accumulate) == (2, 1)
    assert asked.candidate.checkpointing == "selective"
    assert (asked.cluster.devices, asked.cluster.nodes) == (64, 8)
    assert asked.cluster.between.bytes_per_s == 50e9
    assert asked.assumed == ()


def test_what_was_measured_changes_no_prediction():
    other = row(**dict.fromkeys(MEASURED, "9e9"))
    assert prediction(other).step_time_s == prediction(without(*MEASURED)).step_time_s == prediction(ROW).step_time_s


@pytest.mark.shared
def test_no_row_of_the_table_is_predicted_from_what_it_measured(table: list[dict[str, str]]):
    some = table[::70]
    unread = [{name: value for name, value in each.items() if name not in MEASURED} for each in some]
    swapped = [each | {name: other[name] for name in MEASURED} for each, other in zip(some, some[::-1], strict=True)]
    expected = [each.step_time_s for each in predictions(some)]
    assert [each.step_time_s for each in predictions(unread)] == expected
    assert [each.step_time_s for each in predictions(swapped)] == expected


def test_degrees_are_read_from_the_strategy_where_columns_lack():
    asked = published(row(tp="", zero_stage="", fsdp_shard="", strategy="ZeRO-1 + TP2 + PP4", n_gpus="64"))
    laid = asked.candidate
    assert (laid.zero_stage, laid.tensor, laid.pipeline, laid.shard) == (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("missing", "assumed"),
    [
        (("micro_batch_per_dp_rank", "grad_accum"), "micro-batch"),
        (("act_ckpt",), "checkpointing"),
        (("inter_node_gbps_per_gpu",), "network"),
        (("precision",), "precision"),
        (("vocab",), "vocabulary"),
    ],
)
def test_what_is_not_stated_is_assumed_said_and_widens_the_interval(missing: tuple[str, ...], assumed: str):
    bare = prediction(without(*missing))
    assert assumed in bare.assumed
    assert bare.step_time_s is not None
    full = prediction(ROW).step_time_s
    assert full is not None
    assert bare.step_time_s.high / bare.step_time_s.value > full.high / full.value


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gpu": "Unobtainium-9"}, "no description of the device"),
        ({"gpu": ""}, "the device is not stated"),
        ({"n_gpus": ""}, "number of devices"),
        ({"seq_len": "", "tokens_per_step": ""}, "length of a sequence"),
        ({"arch": "vision"}, "no plain transformer"),
        ({"strategy": "FSDP + LoRA"}, "fine-tuning"),
        ({"tp": "7"}, "do not divide"),
        ({"pp": "64", "tp": "1", "fsdp_shard": "", "vp": "9999"}, "do not fill"),
        ({"grad_accum": "99999999", "global_batch_seqs": "", "tokens_per_step": ""}, "unheard of"),
        ({"n_layers": "99999999"}, "unheard of"),
        ({"precision": "fp8", "gpu": "A100-80GB"}, "fp8"),
        ({"arch": "moe", "model": "nobody-knows-8x9b"}, "experts"),
    ],
)
def test_what_cannot_be_said_has_a_reason(changed: dict[str, str], reason: str):
    found = prediction(row(**changed))
    assert found.step_time_s is None
    assert reason in found.cannot_say


@pytest.mark.parametrize("hostile", ["\x1b[31m", "nan", "inf", "-1", "1e400", "0x10", "8 (or 16)", "٣", "a" * 5000])
@pytest.mark.parametrize("column", ["n_layers", "n_gpus", "seq_len", "tp", "micro_batch_per_dp_rank", "params_b"])
def test_whatever_stands_in_a_cell_there_is_an_answer_or_a_reason(column: str, hostile: str):
    found = prediction(row(**{column: hostile}))
    assert found.step_time_s is not None or found.cannot_say


def test_an_empty_row_is_refused_with_a_reason():
    with pytest.raises(NotCovered):
        published({})


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("HF Trainer + accelerate", "torch"),
        ("DeepSpeed 0.14", "deepspeed"),
        ("nanotron", "nanotron"),
        ("litgpt", "torch"),
        ("PyTorch DDP (NGC 21.11)", "apex"),
        ("Megatron-Core 0.8", "megatron-te"),
        ("MaxText on GPU", "maxtext"),
        ("JAX 0.4.23 pmap", "pax"),
        ("something new", "torch"),
    ],
)
def test_software_is_known_by_the_words_it_is_called_with(framework: str, stack: str):
    assert published(row(framework=framework, compile="")).candidate.stack == stack


def test_a_claim_above_what_the_device_multiplies_is_impossible_and_one_below_is_not():
    # 8.03e9 parameters: 5.5e10 FLOP per token, of which 794.5 TFLOP/s of the best matrix products do 14 500 a second.
    assert prediction(row(tokens_per_s_per_gpu="16000")).impossible
    assert not prediction(row(tokens_per_s_per_gpu="12000")).impossible


@pytest.mark.shared
def test_only_the_impossible_rows_of_the_table_are_flagged(table: list[dict[str, str]]):
    flagged = {each["run_id"] for each in table if is_impossible(each)}
    assert flagged == {each["run_id"] for each in table if each["quality_flag"] == "IMPLAUSIBLE"}
