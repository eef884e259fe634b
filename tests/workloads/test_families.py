"""Kinds of model: which strategies take which, what they are called, and how much they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

Import = Callable[[str], ModuleType]


def test_a_model_is_of_the_kind_that_its_name_or_its_experts_say(workload: Import) -> None:
    options, families = workload("options"), workload("families")
    kinds = {name: families.family(preset) for name, preset in options.PRESETS.items()}
    assert kinds == {
        **dict.fromkeys(("tiny", "125m", "350m", "1.3b"), "transformer"),
        "moe": "moe",
        "resnet50": "resnet",
        "mlp": "mlp",
    }
    assert families.family(options.parse(["--model", "tiny", "--experts", "4"])) == "moe"
    assert families.family(options.parse(["--model", "mine:made"])) == "own"


@pytest.mark.parametrize("strategy", ["ep", "jax-ep"])
@pytest.mark.parametrize(
    ("line", "ranks", "says"),
    [
        (["--model", "moe"], 2, ""),
        (["--model", "tiny"], 2, "cannot train the transformer"),
        (["--model", "resnet50"], 2, "cannot train ResNet-50"),
        (["--model", "mine:made"], 2, "cannot train a model of your own"),
        (["--model", "moe", "--experts", "6", "--batch", "16"], 4, "6 experts do not spread evenly over 4 ranks"),
    ],
)
def test_experts_are_spread_where_there_are_some_for_every_rank(
    workload: Import, strategy: str, line: list[str], ranks: int, says: str
) -> None:
    options = workload("options")
    if not says:
        options.check(options.parse(line), ranks, strategy)
        return
    with pytest.raises(options.OptionError, match=says) as refused:
        options.check(options.parse(line), ranks, strategy)
    assert refused.value.hint


def test_heads_need_not_divide_what_has_none(workload: Import) -> None:
    options = workload("options")
    options.check(options.parse(["--model", "resnet50", "--width", "6"]), 2)
    options.check(options.parse(["--model", "mlp", "--width", "6", "--heads", "5"]), 2)


def test_only_sequences_have_a_length(workload: Import) -> None:
    options = workload("options")
    lengths = {name: options.sequence_length(preset) for name, preset in options.PRESETS.items()}
    assert (lengths["tiny"], lengths["moe"], lengths["resnet50"], lengths["mlp"]) == (64, 64, 0, 0)
    assert options.sequence_length(options.parse(["--model", "mine:made"])) == 0


def test_a_model_is_told_in_a_few_words(workload: Import) -> None:
    options = workload("options")
    assert options.about(options.PRESETS["tiny"]) == "4 layers × 256, 64 tokens"
    assert options.about(options.PRESETS["moe"]) == "4 layers × 256, 2 of 8 experts, 64 tokens"
    assert options.about(options.PRESETS["resnet50"]) == "ResNet-50, 64 × 64 pixels, 1000 classes"
    assert options.about(options.PRESETS["mlp"]) == "4 hidden layers × 1024, 32 × 32 pixels"


def test_resnet_50_computes_what_is_published_of_it(workload: Import) -> None:
    """4.09 billion multiply-adds forward at 224 pixels (torchvision's figure, whose stride is in the 3 × 3 too)."""
    options = workload("options")
    flop, how = options.flop_per_sample(replace(options.PRESETS["resnet50"], image=224))
    assert flop / 6 == pytest.approx(4.09e9, rel=0.001)
    assert "forward" in how


def test_what_only_the_model_can_tell_is_not_worked_out(workload: Import) -> None:
    options = workload("options")
    own = options.parse(["--model", "mine:made"])
    assert (options.parameter_count(own), options.flop_per_sample(own)) == (0, (0, ""))
    assert options.flop_per_sample(options.PRESETS["tiny"]) == (0, "")


COUNTED = """
import json, torch
from torch.utils.flop_counter import FlopCounterMode
from batches import micro_batches
from models.torch_models import build, on_device
from options import parse

def counted(line):
    options = parse(line.split())
    model = build(options)
    micro_batch = [part[0] for part in on_device(micro_batches(options, 0), torch.device("cpu"))]
    with FlopCounterMode(display=False) as counter:
        model(*micro_batch).backward()
    of = counter.get_flop_counts()["Global"]
    products = sum(flop for op, flop in of.items() if "attention" not in str(op))
    return products / options.batch

resnet = counted("--model resnet50 --width 8 --image 32 --classes 10 --batch 2")
mlp = counted("--model mlp --width 16 --image 8 --batch 2")
moe = counted("--model moe --layers 2 --width 32 --heads 2 --vocab 64 --seq 16 --batch 2")
print(json.dumps([resnet, mlp, moe]))
"""


@pytest.mark.slow
def test_formulas_agree_with_the_frameworks_counter(
    workload: Import, need: Callable[..., None], elsewhere: Callable[..., Any]
) -> None:
    """To the operation: of the first layer nobody needs the gradients of its inputs, the images."""
    need("torch")
    options, sizes = workload("options"), workload("sizes")
    resnet, mlp, moe = elsewhere(COUNTED)
    asked = options.parse(["--model", "resnet50", "--width", "8", "--image", "32", "--classes", "10"])
    assert resnet == options.flop_per_sample(asked)[0] - 2 * next(sizes.convolutions(asked)).multiply_adds
    asked = options.parse(["--model", "mlp", "--width", "16", "--image", "8"])
    assert mlp == options.flop_per_sample(asked)[0] - 2 * 3 * 8 * 8 * 16
    asked = options.parse(["--model", "moe", "--layers", "2", "--width", "32", "--vocab", "64", "--seq", "16"])
    # Norms and positions multiply no matrix; attention is counted apart.
    multiplied = sizes.active_parameters(asked) - (16 + 2 * 2 + 1) * 32
    assert moe == 6 * multiplied * 16
    assert options.flop_per_sample(asked)[0] == (6 * sizes.active_parameters(asked) + 6 * 2 * 32 * 16) * 16
