"""What is missing of the memory is told with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from drawn import run

from meshscope.analysis.doubts import doubt_words
from meshscope.analysis.memory_doubts import memory_doubts
from meshscope.recording.entries import MemoryMeasured
from meshscope.records import MemoryRecord

FOUR = {"parameters": 10, "gradients": 10, "optimizer": 20, "activations": 5}
JAX = {"parameters": 10, "optimizer": 20, "temporaries": 30}


def measured(sizes: dict[str, int], *, rank: int = 0, peak: int = -1, counted: int = 7) -> MemoryMeasured:
    return MemoryMeasured(
        t_ns=1, rank=rank, device=rank, step=1, source="s", categories=sizes, how=dict.fromkeys(sizes, "exact"),
        peak_bytes=peak, pool_bytes=counted, in_use_bytes=counted,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "peak", "why"),
    [
        (FOUR, -1, "and the peak is not known"),
        (FOUR, 40, "which were not all alive at the peak: together they are 5 B above it"),
        ({**FOUR, "activations": 5, "optimizer": 0}, 40, "and the newest measurement saw no peak"),
        ({name: FOUR[name] for name in ("parameters", "gradients", "optimizer")}, 60, "and activations are not known"),
    ],
)
def test_torchs_temporaries_are_missing_for_a_reason(sizes: dict[str, int], peak: int, why: str) -> None:
    said = dict(memory_doubts(run([measured(sizes, peak=peak)], device_kind="cpu")))
    assert said["memory.temporaries"] == f"they are what the peak holds beyond the other categories, {why}"
    assert ("memory.peak_bytes" in said) == (peak < 0)


def test_a_peak_is_missing_for_its_own_reason() -> None:
    def why(**about: str) -> str:
        return dict(memory_doubts(run([measured(FOUR)], **about)))["memory.peak_bytes"]

    assert "a profiled window that traces memory" in why(device_kind="cpu")
    assert why(device_kind="gpu") == "the allocator did not tell it"
    assert "XLA's plan" in why(framework="jax")


def test_jaxs_gradients_and_activations_are_inside_its_temporaries() -> None:
    said = dict(memory_doubts(run([measured(JAX, peak=60)], framework="jax")))
    why = "they never leave the compiled program: they are inside its temporaries"
    assert said == {"memory.gradients": why, "memory.activations": why}


def test_what_only_some_ranks_lack_names_them() -> None:
    entries = [measured(FOUR | {"temporaries": 1}, rank=rank, peak=46 if rank else -1, counted=9) for rank in (0, 1)]
    ((what, why),) = memory_doubts(run(entries))
    assert (what, why) == ("memory.peak_bytes", "rank 0: the allocator did not tell it")


def test_what_no_allocator_counts_is_told() -> None:
    said = dict(memory_doubts(run([measured(FOUR | {"temporaries": 1}, peak=46, counted=-1)])))
    assert set(said) == {"memory.reserved_bytes", "memory.in_use_bytes"}


def test_nothing_measured_is_told_once() -> None:
    assert memory_doubts(run()) == (("memory", "nothing was measured"),)
    assert memory_doubts(run(strategy="")) == (("memory", "a trace alone does not say"),)


@pytest.mark.parametrize(("peak_bytes", "begins"), [(5, "memory.peak_bytes is not exact"), (None, "cannot say")])
def test_a_peak_that_is_shown_is_called_inexact_and_not_unknown(peak_bytes: int | None, begins: str) -> None:
    doubt = ("memory.peak_bytes", "the history begins with 3 B held")
    record = MemoryRecord(kind="", source="s.pickle", peak_bytes=peak_bytes, cannot_say=(doubt,))
    of = replace(run([], strategy=""), records=(record,))
    assert doubt_words(of, doubt).startswith(begins)
