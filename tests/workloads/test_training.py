"""Training: every strategy of a framework learns the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# In fp32 the loss of every step agrees over the strategies of one framework to this share of itself: the same sums
# are taken in another order, and AdamW passes that on. Also with accumulation and with checkpointed activations.
LOSS_TOLERANCE = 1e-5
# Torch and JAX agree on the loss of the same weights to this share.
FRAMEWORK_TOLERANCE = 1e-5

SMALL = ("--device", "cpu", "--layers", "2", "--width", "64", "--vocab", "512", "--seq", "32", "--steps", "8")
TINY = ("--device", "cpu", "--steps", "4")
TINY_PARAMETERS = 3_688_704


TORCH = ("torch_ddp", "torch_zero1", "torch_fsdp", "torch_fsdp1", "torch_tp", "torch_cp")
PARALLEL = (*TORCH, "jax_pmap", "jax_shard_map", "jax_shard_map_fsdp", "jax_pjit")

Train = Callable[..., Any]


@pytest.mark.live
def test_ddp_trains_with_at_least_four_buckets(train: Train) -> None:
    trained = train("torch_ddp", 2, *TINY)
    assert len(trained.ranks) == 2
    assert all(rank["buckets"] >= 4 for rank in trained.ranks)
    assert trained.losses[-1] < trained.losses[0] - 0.5
    assert trained.ranks[0]["losses"] != trained.ranks[1]["losses"]


@pytest.mark.live
def test_pjit_trains_and_shards_parameters_and_optimizer_state(train: Train) -> None:
    trained = train("jax_pjit", 2, *TINY)
    (process,) = trained.ranks
    assert trained.losses[-1] < trained.losses[0] - 0.5
    assert process["parameters"] == TINY_PARAMETERS / 2
    # Parameters and AdamW's two moments of them, fp32, half of each on a device; a batch is next to nothing.
    assert process["arguments"] == pytest.approx(3 * 4 * TINY_PARAMETERS / 2, rel=1e-3)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "ranks", "share"),
    [
        *((script, 2, 1) for script in ("torch_ddp", "torch_zero1", "jax_pmap", "jax_shard_map")),
        *((script, 1, 1) for script in ("torch_single", "jax_single")),
        ("torch_fsdp", 2, 2),
        ("torch_fsdp1", 2, 2),
    ],
)
def test_a_rank_holds_its_share_of_the_parameters(train: Train, script: str, ranks: int, share: int) -> None:
    for rank in train(script, ranks, *TINY).ranks:
        assert rank["parameters"] == TINY_PARAMETERS / share


@pytest.mark.live
@pytest.mark.slow
def test_ranks_that_share_layers_each_hold_the_norms_and_a_part_of_all_else(train: Train) -> None:
    norms = (2 * 4 + 1) * 256
    for rank in train("torch_tp", 2, *TINY).ranks:
        assert rank["parameters"] == (TINY_PARAMETERS - norms) / 2 + norms


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("script", [*PARALLEL, "torch_single", "jax_single"])
def test_a_watch_is_told_everything_in_order(train: Train, script: str) -> None:
    for rank in train(script, 1 if script.endswith("single") else 2, *TINY).ranks:
        steps = [told for number in range(4) for told in (f"step {number}", "batch", "loss")]
        assert rank["told"] == ["started", *steps, "finished"]


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(("script", "ranks"), [("jax_single", 1), ("jax_pmap", 2), ("jax_pjit", 2)])
def test_checkpointed_activations_leave_the_compiler_less_to_keep(train: Train, script: str, ranks: int) -> None:
    """XLA's CPU compiler, left to itself, undoes it to the byte."""
    sizes = ("--layers", "6", "--vocab", "64", "--batch", "16", "--steps", "1")
    kept, again = (train(script, ranks, *sizes, *flags).ranks[0] for flags in ((), ("--checkpoint-activations",)))
    assert again["temporaries"] < 0.6 * kept["temporaries"]


VARIANTS = ((), ("--accumulate", "2"), ("--checkpoint-activations",), ("--accumulate", "2", "--checkpoint-activations"))
SCHEDULES = ("gpipe", "1f1b", "interleaved")
PIPELINES = (
    *((schedule, ("--accumulate", "4", "--layers", "4")) for schedule in SCHEDULES),
    ("1f1b", ("--accumulate", "2", "--checkpoint-activations")),
    ("gpipe", ("--accumulate", "1")),
)
MATRIX = [
    *((single, 1, flags) for single in ("torch_single", "jax_single") for flags in VARIANTS[1:]),
    *((script, 2, flags) for script in PARALLEL for flags in VARIANTS),
    *((script, 4, ()) for script in PARALLEL),
    *((script, 2, ("--no-reshard",)) for script in ("torch_fsdp", "torch_fsdp1")),
    ("torch_fsdp", 2, ("--prefetch", "2", "--layers", "4")),
    *(("torch_tp", 4, ("--tensor", "2", *flags)) for flags in (*VARIANTS, ("--no-reshard",))),
    *(("torch_ddp", 2, (flag, "--accumulate", "2")) for flag in ("--no-bucket-view", "--sync-every-micro-batch")),
    *(("torch_ddp", 2, ("--static-graph", *flags)) for flags in (VARIANTS[0], VARIANTS[2])),
    *(("torch_fsdp", 4, ("--replicas", "2", *flags)) for flags in VARIANTS),
    *(("jax_pjit", 4, ("--spec", "dp", *flags)) for flags in (VARIANTS[0], VARIANTS[-1])),
    *(("jax_pjit", 4, ("--spec", "tp", *flags)) for flags in (VARIANTS[0], VARIANTS[-1])),
    *(("jax_pjit", 4, ("--spec", "fsdp-tp", "--tensor", "2", *flags)) for flags in (VARIANTS[0], VARIANTS[-1])),
    *(("torch_pipeline", 2, ("--schedule", schedule, *flags)) for schedule, flags in PIPELINES),
    *(("torch_pipeline", 3, ("--schedule", schedule, "--accumulate", "8", "--layers", "5")) for schedule in SCHEDULES),
    *(
        ("jax_pipeline", 2, flags)
        for flags in (("--accumulate", "8"), ("--accumulate", "4", "--checkpoint-activations"))
    ),
    ("jax_pipeline", 4, ("--accumulate", "2", "--layers", "4")),
]


def _named(value: object) -> str:
    return "".join(value) or "plain" if isinstance(value, tuple) else str(value)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(("script", "ranks", "flags"), MATRIX, ids=_named)
def test_the_loss_curve_is_that_of_a_single_device(
    train: Train, script: str, ranks: int, flags: tuple[str, ...]
) -> None:
    model = flags[flags.index("--layers") :][:2] if "--layers" in flags else ()
    single = train(f"{script.partition('_')[0]}_single", 1, *SMALL, *model)
    assert single.losses[-1] < single.losses[0]
    np.testing.assert_allclose(train(script, ranks, *SMALL, *flags).losses, single.losses, rtol=LOSS_TOLERANCE)


@pytest.mark.live
@pytest.mark.slow
def test_a_stage_holds_its_blocks_and_both_ends_the_embedding(train: Train) -> None:
    """tiny: a block has 12 · 256² + 2 · 256 parameters, the embedding 2048 · 256, positions 64 · 256, a norm 256."""
    first, last = train("torch_pipeline", 2, *TINY, "--schedule", "1f1b", "--accumulate", "4").ranks
    blocks, embedding = 2 * (12 * 256**2 + 2 * 256), 2048 * 256
    assert first["parameters"] == blocks + embedding + 64 * 256
    assert last["parameters"] == blocks + embedding + 256
    assert np.isnan(first["losses"]).all()
    assert np.isfinite(last["losses"]).all()
    assert first["told"] == last["told"]


@pytest.mark.live
@pytest.mark.slow
def test_devices_of_a_mesh_hold_their_share_of_the_matrices(train: Train) -> None:
    """tiny: matrices and the embedding are split; positions (16384) and nine norms (2304) are whole on each."""
    small = 64 * 256 + 9 * 256
    (process,) = train("jax_pjit", 4, *TINY, "--spec", "tp").ranks
    assert process["parameters"] == (TINY_PARAMETERS - small) / 4 + small
    (process,) = train("jax_pjit", 4, *TINY, "--spec", "fsdp-tp", "--tensor", "2").ranks
    assert process["parameters"] == (TINY_PARAMETERS - small) / 4 + small / 2


SAME_WEIGHTS = """
import json, jax, numpy as np, optax, torch
jax.config.update("jax_platforms", "cpu")
from options import parse
from tokens import micro_batches
from models import flax_transformer, torch_transformer

options = parse("--layers 2 --width 64 --vocab 512 --seq 32".split())
model = torch_transformer.Transformer(options)
optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1)
twin = flax_transformer.Transformer(options)
adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)

def copied(path, leaf):
    *owners, kind = [key.key for key in path[1:]]
    name = ".".join(owner.replace("_", ".", owner.startswith("blocks_")) for owner in owners)
    weight = model.state_dict()[name + ".weight"].numpy().copy()
    return weight.T if kind == "kernel" else weight

shapes = jax.eval_shape(twin.init, jax.random.key(0), micro_batches(options, 0)[0])
params = jax.tree_util.tree_map_with_path(copied, shapes)
state = adamw.init(params)
pairs = []
for step in range(4):
    tokens = micro_batches(options, step)[0]
    optimizer.zero_grad()
    loss = model(torch.from_numpy(tokens).long())
    loss.backward()
    optimizer.step()
    twin_loss, gradients = jax.value_and_grad(twin.apply)(params, tokens)
    updates, state = adamw.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
    pairs.append((float(loss), float(twin_loss)))

drawn = jax.tree.leaves_with_path(twin.init(jax.random.key(1), tokens))
stds = {jax.tree_util.keystr(path, simple=True, separator="."): float(leaf.std()) for path, leaf in drawn}
fresh = torch_transformer.Transformer(options)
print(json.dumps({"pairs": pairs, "flax": stds, "torch": {n: float(p.std()) for n, p in fresh.named_parameters()}}))
"""


@pytest.mark.live
@pytest.mark.slow
def test_torch_and_jax_train_the_same_model(
    need: Callable[..., None], elsewhere: Callable[..., dict[str, Any]]
) -> None:
    """From the same weights the losses agree, step after step, and both draw weights of the same spread."""
    need("torch", "jax")
    seen = elsewhere(SAME_WEIGHTS)
    ours, theirs = zip(*seen["pairs"], strict=True)
    np.testing.assert_allclose(ours, theirs, rtol=FRAMEWORK_TOLERANCE)
    for name, spread in seen["flax"].items():
        owner, _, kind = name.removeprefix("params.").replace("blocks_", "blocks.").rpartition(".")
        assert kind in ("kernel", "embedding", "scale")
        assert seen["torch"][f"{owner}.weight"] == pytest.approx(spread, rel=0.1), name


@pytest.mark.live
@pytest.mark.slow
def test_compressed_gradients_learn_something_near(train: Train) -> None:
    single = train("torch_single", 1, *SMALL)
    compressed = train("torch_ddp", 2, *SMALL, "--compress", "fp16")
    assert not np.allclose(compressed.losses, single.losses, rtol=1e-7)
    np.testing.assert_allclose(compressed.losses, single.losses, rtol=1e-3)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "ranks"),
    [("torch_single", 1), ("jax_single", 1), *((script, 2) for script in PARALLEL)],
)
def test_bf16_learns_too(train: Train, script: str, ranks: int) -> None:
    exact = train(f"{script.partition('_')[0]}_single", 1, *SMALL)
    np.testing.assert_allclose(train(script, ranks, *SMALL, "--precision", "bf16").losses, exact.losses, rtol=1e-3)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("script", ["torch_single", "torch_ddp", "torch_fsdp"])
def test_a_compiled_model_learns_the_same(train: Train, script: str) -> None:
    single = train("torch_single", 1, *SMALL)
    compiled = train(script, 1 if script == "torch_single" else 2, *SMALL, "--compile")
    np.testing.assert_allclose(compiled.losses, single.losses, rtol=LOSS_TOLERANCE)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["jax_pmap.py", "--devices", "3"], "A batch of 8 does not divide into 3 ranks × 1 micro-batches."),
        (["jax_pjit.py", "--model", "7b"], "There is no model '7b'."),
        (["jax_single.py", "--devices", "2"], "This script trains on one device, not on 2."),
        (["torch_ddp.py"], "This script is one of several ranks, and nothing has started the others."),
        (["torch_single.py", "--heads", "5"], "5 heads do not divide a width of 256."),
        (
            ["torch_dp.py", "--device", "cpu"],
            "DataParallel drives two GPUs or more from one process; --device cpu leaves it none.",
        ),
    ],
)
def test_a_script_refuses_in_two_lines(root: Path, need: Callable[..., None], command: list[str], says: str) -> None:
    need(command[0].partition("_")[0])
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, str(root / "workloads" / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first == says
    assert second
