"""Models of a user's own, as the frameworks see them: what they are, what wraps them, and what is no model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FACTS = """
import json, os, sys
sys.path.remove("")
os.chdir(sys.argv[1])
import own_facts
found = {name: own_facts.main(sys.argv[2], 2, ["--model", name]) for name in sys.argv[3:]}
"""
TOLD = "print(json.dumps(found))"

UNITS = """
from torch import nn
from models.torch_units import wrapped
from refusals import OptionError

class Inner(nn.Sequential): pass
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = Inner(nn.Linear(width, width), nn.Linear(width, width))

model = nn.Sequential(nn.Embedding(100, 8), nn.ModuleList([Block(8), Block(8), Block(64)]), nn.Linear(64, 1))
names = {module: name for name, module in model.named_modules()}

def picked(policy):
    try:
        return [names[module] for module in wrapped(model, policy)]
    except OptionError as refused:
        return [refused.message, refused.hint]

asked = ("auto", "Inner", "Linear", "size:0.004", "size:1", "Nope", "size:many")
print(json.dumps([found, {policy: picked(policy) for policy in asked}]))
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(__file__).with_name("factories")


@pytest.fixture(scope="module")
def in_torch(need: Callable[..., None], elsewhere: Callable[..., Any], folder: Path) -> Any:
    """What is said of factories, and what each policy wraps: importing torch once is enough."""
    need("torch")
    names = ("with_a_loss", "of_named_inputs", "raises", "returns_a_list", "returns_no_model", "gives_no_loss",
             "has_ragged_batch", "not_a_function", "of_functions")  # fmt: skip
    asked = (*(f"mine:{name}" for name in names), "models:made")
    return elsewhere(FACTS + UNITS, str(folder), "torch", *asked)


def test_torch_says_what_a_factory_makes_or_why_it_is_no_model(in_torch: Any) -> None:
    found, _ = in_torch
    good = found["mine:with_a_loss"]
    assert good["parameters"] == 2 * (16 * 32 + 32 + 32 * 16 + 16) + 17
    # Six for each weight, but four for those of the first layer, whose inputs need no gradients. Two layers, then one.
    assert good["flop_per_sample"] == 6 * (4 * 16 * 32 + 16) - 2 * 16 * 32
    assert found["mine:of_named_inputs"]["flop_per_sample"] == 4 * 8 * 4
    assert found["models:made"]["parameters"] == 5
    says = {
        "raises": "mine:raises failed at mine.py:",
        "returns_a_list": "returns a list.",
        "returns_no_model": "returns an int first, where a torch.nn.Module is needed.",
        "gives_no_loss": "gives a tensor of [4, 3], which is no loss.",
        "has_ragged_batch": "arrays of 3 and 8 rows.",
        "not_a_function": "not_a_function is no function in mine.",
        "of_functions": "where a torch.nn.Module is needed.",
    }
    for name, words in says.items():
        refused = found[f"mine:{name}"]
        assert words in refused["error"], name
        assert refused["hint"]
        assert "\n" not in refused["error"] + refused["hint"]


def test_jax_says_what_a_factory_makes_or_why_it_is_no_model(
    need: Callable[..., None], elsewhere: Callable[..., Any], folder: Path
) -> None:
    need("jax", "flax")
    names = ("of_functions", "of_flax", "loops", "returns_no_model", "raises", "breaks_in_loss")
    found = elsewhere(FACTS + TOLD, str(folder), "jax", *(f"mine:{name}" for name in names))
    assert found["mine:of_functions"]["parameters"] == 16 * 32 + 32
    products = 6 * (16 * 32 + 32) - 2 * 16 * 32
    assert products <= found["mine:of_functions"]["flop_per_sample"] < 1.25 * products
    assert found["mine:of_flax"]["parameters"] == 16 * 32 + 32 + 32 + 1
    assert "flop_per_sample" not in found["mine:loops"]
    assert "the loss loops (scan)" in found["mine:loops"]["why"]
    assert "where a flax module or an init function is needed" in found["mine:returns_no_model"]["error"]
    assert "mine:raises failed at mine.py:" in found["mine:raises"]["error"]
    assert "loss of mine:breaks_in_loss failed at mine.py:" in found["mine:breaks_in_loss"]["error"]


def test_a_policy_picks_what_is_wrapped(in_torch: Any) -> None:
    _, found = in_torch
    assert found["auto"] == ["1.0", "1.1", "1.2"]
    assert found["Inner"] == ["1.0.inner", "1.1.inner", "1.2.inner"]
    assert len(found["Linear"]) == 7
    # Each of the wide block's layers has 64 × 65 numbers; nothing else has four thousand.
    assert found["size:0.004"] == ["1.2.inner.0", "1.2.inner.1"]
    assert found["size:1"] == []
    assert found["Nope"] == ["The model has no module of a class Nope to wrap.",
                             "It has Block, Embedding, Inner, Linear, ModuleList."]  # fmt: skip
    assert found["size:many"][0] == "--wrap size:many makes no sense."
