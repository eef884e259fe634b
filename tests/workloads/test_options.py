"""Options: what may be asked of a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Import = Callable[[str], ModuleType]

PRESETS = ("tiny", "125m", "350m", "1.3b", "moe", "resnet50", "mlp")

CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "layers": st.integers(1, 200),
        "batch": st.integers(1, 10**6),
        "lr": st.floats(1e-9, 10),
        "seed": st.integers(0, 2**40),
        "precision": st.sampled_from(["fp32", "bf16"]),
        "checkpoint_activations": st.booleans(),
        "reshard": st.booleans(),
        "prefetch": st.integers(1, 8),
        "experts": st.integers(1, 64),
        "image": st.integers(8, 512),
        "data": st.sampled_from(["synthetic", "text", "digits"]),
        "wrap": st.sampled_from(["auto", "Block", "size:5"]),
        "compile": st.booleans(),
        "dropout": st.floats(0, 0.99),
        "bucket_mb": st.floats(0.01, 1000),
        "replicas": st.integers(1, 64),
        "spec": st.sampled_from(["fsdp", "dp", "tp", "fsdp-tp", "cp"]),
        "tensor": st.integers(1, 64),
        "bucket_view": st.booleans(),
        "static_graph": st.booleans(),
        "sync_every_micro_batch": st.booleans(),
        "compress": st.sampled_from(["none", "fp16", "bf16", "powersgd"]),
        "stages": st.integers(1, 64),
        "schedule": st.sampled_from(["none", "gpipe", "1f1b", "interleaved"]),
        "device": st.sampled_from(["auto", "cpu", "cuda", "gpu"]),
    },
)


@given(model=st.sampled_from([*PRESETS, "mine:made"]), changes=CHANGES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_options_survive_the_command_line(workload: Import, model: str, changes: dict[str, Any]) -> None:
    options = workload("options")
    wanted = replace(options.parse(["--model", model]), **changes)
    assert options.parse(options.arguments(wanted)) == wanted


def test_a_command_line_names_only_what_differs_from_the_preset(workload: Import) -> None:
    options = workload("options")
    wanted = replace(options.PRESETS["350m"], width=512, reshard=False)
    assert options.arguments(wanted) == ["--model", "350m", "--width", "512", "--no-reshard"]


def test_a_flag_wins_over_the_preset_wherever_it_stands(workload: Import) -> None:
    options = workload("options")
    assert options.parse(["--layers", "2", "--model", "125m"]).layers == 2
    assert options.parse(["--model", "125m"]).layers == 12
    assert options.parse([]) == options.PRESETS["tiny"]


@pytest.mark.parametrize("model", PRESETS)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_every_preset_can_be_trained_on_a_whole_machine(workload: Import, model: str, ranks: int) -> None:
    options = workload("options")
    assert options.PRESETS[model].model == model
    options.check(options.PRESETS[model], ranks)


@pytest.mark.parametrize(
    ("changes", "ranks", "says", "hints"),
    [
        ({"model": "7b"}, 1, "no model '7b'", "tiny, 125m, 350m, 1.3b"),
        ({"model": "moe", "heads": 3}, 1, "3 heads do not divide a width of 256", "--heads"),
        ({"model": "mine:"}, 1, "mine: names no function", "package.module:factory"),
        ({"experts": 4, "top_k": 5}, 1, "5 of 4 experts", "--top-k"),
        ({"model": "resnet50", "experts": 2}, 1, "resnet50 has no experts", "--model moe"),
        ({"model": "resnet50", "data": "text"}, 1, "text is for models that take tokens", "Leave --data out"),
        ({"data": "text", "vocab": 255}, 1, "256 tokens", "--vocab 256"),
        ({"data": "digits"}, 1, "digits are images", "Leave --data out"),
        ({"model": "mlp", "data": "digits", "image": 12}, 1, "8 pixels wide", "multiple of 8"),
        ({"model": "mlp", "inject": "new-lengths"}, 1, "no sequences", "--model tiny"),
        ({"batch": 8}, 3, "batch of 8 does not divide into 3 ranks", "multiple of 3"),
        ({"batch": 8, "accumulate": 4}, 4, "4 ranks × 4 micro-batches", "multiple of 16"),
        ({"heads": 3}, 1, "3 heads do not divide a width of 256", "--heads"),
        ({"layers": 0}, 1, "--layers 0", "above 0"),
        ({"steps": -1}, 1, "--steps -1", "above 0"),
        ({"lr": float("nan")}, 1, "--lr nan", "above 0"),
        ({"lr": float("inf")}, 1, "--lr inf", "above 0"),
        ({"seed": -1}, 1, "--seed -1", "0 or more"),
        ({"precision": "fp8"}, 1, "--precision fp8", "fp32, bf16"),
        ({"spec": "pp"}, 1, "--spec pp", "fsdp, dp, tp"),
        ({"compress": "int8"}, 2, "--compress int8", "fp16, bf16, powersgd"),
        ({"static_graph": True, "accumulate": 2}, 2, "no_sync", "--sync-every-micro-batch"),
        ({"tensor": 2}, 3, "3 ranks are not groups of 2", "multiple of 2"),
        ({"tensor": 8}, 8, "--heads 4 does not divide among 8 ranks", "--heads as a multiple of 8"),
        ({"tensor": 4, "vocab": 2046}, 4, "--vocab 2046 does not divide among 4", "multiple of 4"),
        ({"tensor": 4, "seq": 62}, 4, "--seq 62 does not divide among 4", "multiple of 4"),
        ({"context": 2, "seq": 66}, 2, "--seq 66 does not divide into 4 pieces", "multiple of 4"),
        ({"tensor": 2, "batch": 3}, 4, "batch of 3 does not divide into 2 × 2 ranks", "multiple of 2"),
        ({"schedule": "zero"}, 2, "--schedule zero", "gpipe"),
        ({"stages": 2}, 2, "2 stages are a pipeline, and this strategy is none", "--stages"),
        ({"schedule": "gpipe"}, 1, "one stage passes nothing on", "two ranks"),
        ({"schedule": "gpipe", "stages": 2}, 4, "2 stages do not take 4 ranks", "--stages"),
        ({"schedule": "1f1b", "stages": 4, "accumulate": 2}, 4, "for each of 4 stages; there are 2", "--accumulate 4"),
        ({"schedule": "interleaved", "stages": 4, "accumulate": 8}, 4, "need 7 blocks or more", "--layers 8"),
        ({"schedule": "interleaved", "stages": 2, "accumulate": 5, "batch": 5}, 2, "into 2 rounds", "--accumulate 4"),
        ({"schedule": "gpipe", "stages": 3, "devices": 3}, 3, "do not divide into 3 stages", "--layers 6"),
        ({"dropout": 1.0}, 1, "--dropout 1.0", "below 1"),
        ({"dropout": float("nan")}, 1, "--dropout nan", "below 1"),
        ({}, 0, "0 ranks", "one rank or more"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_way_out(
    workload: Import, changes: dict[str, Any], ranks: int, says: str, hints: str
) -> None:
    options = workload("options")
    with pytest.raises(options.OptionError) as refused:
        options.check(replace(options.PRESETS["tiny"], **changes), ranks)
    assert says in refused.value.message
    assert hints in refused.value.hint


@pytest.mark.parametrize(
    ("flags", "ranks", "degrees"),
    [
        (["--spec", "tp"], 4, (4, 1, 1)),
        (["--spec", "tp", "--tensor", "4"], 4, (4, 1, 1)),
        (["--spec", "fsdp-tp", "--tensor", "2"], 8, (2, 1, 4)),
        (["--spec", "cp", "--tensor", "2"], 4, (1, 4, 1)),
        (["--tensor", "2"], 4, (1, 1, 4)),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else None,
)
def test_a_strategy_settles_how_many_ranks_share_a_layer_a_sequence_and_the_batch(
    workload: Import, flags: list[str], ranks: int, degrees: tuple[int, int, int]
) -> None:
    """DDP beside a tensor-parallel strategy takes no notice of ``--tensor``."""
    options = workload("options")
    found = options.settled(options.parse(flags), ranks)
    assert (found.tensor, found.context, options.data_ranks(found, ranks)) == degrees
    assert options.settled(found, ranks) == found


@pytest.mark.parametrize(
    ("flags", "ranks", "says", "hints"),
    [
        (["--spec", "tp", "--tensor", "2"], 4, "tp splits every layer over all 4 ranks, not over 2", "fsdp-tp"),
        (["--spec", "fsdp-tp", "--tensor", "4"], 4, "4 ranks are not several groups of 4", "--ranks 8"),
        (["--spec", "fsdp-tp"], 4, "not several groups of 1", "--tensor 2"),
        (["--spec", "fsdp-tp", "--tensor", "2"], 5, "5 ranks are not several groups of 2", "--ranks 4"),
    ],
)
def test_a_degree_that_a_strategy_cannot_have_is_refused_with_a_way_out(
    workload: Import, flags: list[str], ranks: int, says: str, hints: str
) -> None:
    options = workload("options")
    with pytest.raises(options.OptionError) as refused:
        options.settled(options.parse(flags), ranks)
    assert says in refused.value.message
    assert hints in refused.value.hint


def test_ranks_that_share_a_layer_have_the_same_samples_and_count_them_once(workload: Import) -> None:
    options, batches = workload("options"), workload("batches")
    shared = options.settled(options.parse(["--spec", "fsdp-tp", "--tensor", "2"]), 4)
    whole = batches.micro_batches(shared, 3)[0]
    slices = [batches.micro_batches(shared, 3, rank, 4)[0] for rank in range(4)]
    assert [piece.shape[1] for piece in slices] == [4, 4, 4, 4]
    for rank, piece in enumerate(slices):
        assert (piece == whole[:, 4 * (rank // 2) : 4 * (rank // 2) + 4]).all()
    assert [options.samples(shared, rank, 4) for rank in range(4)] == [4, 4, 4, 4]
    assert [options.counted_samples(shared, rank, 4) for rank in range(4)] == [0, 4, 0, 4]
    alone = options.parse([])
    assert [options.counted_samples(alone, rank, 4) for rank in range(4)] == [2, 2, 2, 2]


def test_what_gloo_cannot_do_is_refused_on_cpu_ranks_alone(workload: Import) -> None:
    options = workload("options")
    for how in ("bf16", "powersgd"):
        asked = options.parse(["--compress", how])
        options.check_kind(asked, "gpu")
        with pytest.raises(options.OptionError, match="gloo") as refused:
            options.check_kind(asked, "cpu")
        assert "--compress fp16" in refused.value.hint
    options.check_kind(options.parse(["--compress", "fp16"]), "cpu")


def test_compressed_gradients_are_noted_for_ddp_alone(workload: Import) -> None:
    options = workload("options")
    (note,) = options.notes(options.parse(["--compress", "fp16"]), "ddp")
    assert "half the bytes" in note
    assert "losses are no longer those of one device" in note
    assert options.notes(options.parse(["--compress", "fp16"]), "fsdp") == []
    assert options.notes(options.parse([]), "ddp") == []


def test_an_unknown_preset_of_a_command_line_is_refused_too(workload: Import) -> None:
    options = workload("options")
    with pytest.raises(options.OptionError, match="no model '7b'"):
        options.check(options.parse(["--model", "7b", "--layers", "2"]), 1)


@pytest.mark.parametrize("line", [["--layers", "many"], ["--lay", "2"], ["--precision", "fp8"], ["tiny"], ["--steps"]])
def test_an_unreadable_command_line_is_an_option_error_not_an_exit(workload: Import, line: list[str]) -> None:
    options = workload("options")
    with pytest.raises(options.OptionError) as refused:
        options.parse(line)
    assert refused.value.hint


def test_a_refused_request_ends_in_two_lines_on_stderr(workload: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    options = workload("options")
    monkeypatch.setattr("sys.argv", ["torch_ddp.py", "--batch", "7"])
    with pytest.raises(SystemExit) as ended:
        options.by_hand(lambda asked, watch: options.check(asked, 2), None)
    # A string in SystemExit is printed to stderr and the exit code is 1.
    assert str(ended.value.code).splitlines() == [
        "A batch of 7 does not divide into 2 ranks × 1 micro-batches.",
        "Use a --batch that is a multiple of 2.",
    ]


def test_a_bug_is_not_taken_for_a_refused_request(workload: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    options = workload("options")
    monkeypatch.setattr("sys.argv", ["torch_ddp.py"])
    with pytest.raises(ZeroDivisionError):
        options.by_hand(lambda asked, watch: 1 / 0, None)


COUNT_IN_TORCH = """
import json, torch
from models.torch_models import build
from options import PRESETS
with torch.device("meta"):
    models = {name: build(options) for name, options in PRESETS.items()}
print(json.dumps({name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}))
"""

COUNT_IN_JAX = """
import json, jax
jax.config.update("jax_platforms", "cpu")
from models.flax_models import build
from options import PRESETS
def count(options):
    shapes = jax.eval_shape(build(options).init, jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))
print(json.dumps({name: count(options) for name, options in PRESETS.items()}))
"""


@pytest.mark.parametrize(
    ("framework", "program"), [("torch", COUNT_IN_TORCH), ("jax", COUNT_IN_JAX)], ids=["torch", "jax"]
)
def test_a_preset_has_the_parameters_it_is_named_after(
    workload: Import,
    need: Callable[..., None],
    elsewhere: Callable[..., dict[str, int]],
    framework: str,
    program: str,
) -> None:
    need(framework)
    options = workload("options")
    built = elsewhere(program)
    assert built == {name: options.parameter_count(preset) for name, preset in options.PRESETS.items()}
    assert built["tiny"] == 3_688_704
    # With group norms it has as many as with batch norms, which are those of the paper.
    assert built["resnet50"] == 25_557_032
    assert built["125m"] == pytest.approx(125e6, rel=0.02)
    assert built["350m"] == pytest.approx(350e6, rel=0.02)
    assert built["1.3b"] == pytest.approx(1.3e9, rel=0.02)
