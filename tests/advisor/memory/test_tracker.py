"""Counted peaks against torch's own tracker of memory: the same step on fake tensors, nothing allocated."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.hardware import cluster
from meshscope.advisor.memory import memory

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

GATED = Architecture("", 6, 1024, 8, 8, 2816, 32000)
PLAIN = Architecture("", 6, 1024, 8, 8, 4096, 32000, is_gated=False)
PURE = Numerics("", "bf16", 2, 2, 4)
MIXED = Numerics("", "bf16", 4, 4, 8, cast_bytes=2)


class RmsNorm(torch.nn.Module):  # type: ignore[misc]
    """As transformers' Llama writes it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):  # type: ignore[no-untyped-def]
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.shape, width = shape, shape.d_model
        self.norms = torch.nn.ModuleList(norm(shape) for _ in range(2))
        self.into = torch.nn.Linear(width, 3 * width, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.first = torch.nn.Linear(width, shape.d_ff, bias=False)
        self.gate = torch.nn.Linear(width, shape.d_ff, bias=False) if shape.is_gated else None
        self.last = torch.nn.Linear(shape.d_ff, width, bias=False)

    def forward(self, x):  # type: ignore[no-untyped-def]
        samples, length, width = x.shape
        split = self.into(self.norms[0](x)).split(width, -1)
        heads = [each.view(samples, length, self.shape.heads, -1).transpose(1, 2) for each in split]
        seen = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(samples, length, width))
        normed = self.norms[1](x)
        first = self.first(normed)
        if self.gate is None:
            return x + self.last(torch.nn.functional.gelu(first))
        return x + self.last(torch.nn.functional.silu(first) * self.gate(normed))


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(shape.vocab, shape.d_model)
        self.blocks = torch.nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = norm(shape)
        self.head = torch.nn.Linear(shape.d_model, shape.vocab, bias=False)

    def forward(self, tokens):  # type: ignore[no-untyped-def]
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def norm(shape: Architecture) -> torch.nn.Module:
    return RmsNorm(shape.d_model) if shape.is_gated else torch.nn.LayerNorm(shape.d_model, bias=False)


@pytest.fixture
def ranks() -> Iterator[int]:
    """Eight of them, seven of which are not there."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    yield 8
    torch.distributed.destroy_process_group()


def tracked(shape: Architecture, samples: int, length: int, *, dtype, is_autocast=False, mesh=None) -> int:  # type: ignore[no-untyped-def]
    """Bytes at the peak of the second step."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    with FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_default_dtype(dtype)
        model = Model(shape)
        torch.set_default_dtype(torch.float32)
        if mesh is not None:
            shard(model, mesh)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        tokens = torch.randint(0, shape.vocab, (samples, length))
        step(model, optimizer, tokens, is_autocast=is_autocast)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            step(model, optimizer, tokens, is_autocast=is_autocast)
    return int(sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values()))


def shard(model, mesh) -> None:  # type: ignore[no-untyped-def]
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def step(model, optimizer, tokens, *, is_autocast: bool) -> None:  # type: ignore[no-untyped-def]
    with torch.autocast("cpu", torch.bfloat16, enabled=is_autocast):
        logits = model(tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
    del logits
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def counted(shape: Architecture, candidate: Candidate) -> float:
    """Without the workspace of a GPU's products, which fake tensors of a CPU have none of."""
    return memory(shape, candidate, cluster(f"{candidate.devices}xH100")).allocated.value - 2 * 32 * 2**20


@pytest.mark.parametrize(("shape", "samples"), [(GATED, 4), (GATED, 16), (PLAIN, 4)])
def test_a_step_in_bf16_peaks_where_torch_says(shape: Architecture, samples: int) -> None:
    candidate = Candidate("", "torch", "torch", 1024, samples, PURE)
    assert counted(shape, candidate) == pytest.approx(tracked(shape, samples, 1024, dtype=torch.bfloat16), rel=0.02)


@pytest.mark.parametrize("shape", [GATED, PLAIN])
def test_a_step_under_autocast_peaks_where_torch_says(shape: Architecture) -> None:
    """A gated model usually has three products before attention; this one's single one saves two casts a layer."""
    candidate = Candidate("", "torch", "torch", 1024, 4, MIXED)
    real = tracked(shape, 4, 1024, dtype=torch.float32, is_autocast=True)
    casts = 6 * 4096 * 2 * 2 * 1024 if shape.is_gated else 0
    assert counted(shape, candidate) - casts == pytest.approx(real, rel=0.03)


@pytest.mark.parametrize(("shape", "samples", "length", "within"), [(GATED, 4, 1024, 0.02), (PLAIN, 4, 1024, 0.02),
                                                                   (GATED, 1, 64, 0.06)])  # fmt: skip
def test_a_step_of_fsdp_peaks_where_torch_says(
    shape: Architecture, samples: int, length: int, within: float, ranks: int
) -> None:
    mesh = torch.distributed.init_device_mesh("cpu", (ranks,))
    candidate = Candidate("", "torch", "fsdp2", length, samples, MIXED, shard=ranks, zero_stage=3)
    real = tracked(shape, samples, length, dtype=torch.float32, mesh=mesh)
    assert counted(shape, candidate) == pytest.approx(real, rel=within)
