"""Figures of runs, made from step times: what a comparison sees of a recording."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from meshscope.analysis.figures import PARTS, Figures
from meshscope.analysis.works import Work, Works

MS = 1_000_000


def measured(steps_ms: Iterable[float], **about: Any) -> Figures:
    """A run on GPU ranks whose unprofiled steps took so long; ``about`` replaces what else is known of it."""
    step_ns = tuple(round(ms * MS) for ms in steps_ms)
    count = len(step_ns)
    known: dict[str, Any] = {
        "strategy": "ddp", "title": "ddp", "framework": "torch", "device_kind": "gpu", "ranks": 2, "model": "tiny",
        "global_batch": 8, "sequence_length": 64, "outcome": "done", "host": "here", "devices": ("A100",), "cores": 2,
        "options": {"layers": "2", "lr": "0.1"}, "versions": {"torch": "2.13"}, "step_ns": step_ns,
        "samples_per_step": 8.0, "data_wait_ns": (-1,) * count, "others_cores": (math.nan,) * count,
        "idle_cores": (math.nan,) * count, "finished_steps": count + 5, "parts_ns": dict.fromkeys(PARTS, ()),
        "works": Works((), 0, ()), "works_left_ns": 0.0, "peak_bytes": -1, "peak_how": "",
    }  # fmt: skip
    return Figures(**(known | about))


def noisy(seed: int, *, median_ms: float = 50.0, steps: int = 60, noise: float = 0.02, phi: float = 0.5) -> list[float]:
    """Steps around a median whose logarithms follow one another: an AR(1) process of standard deviation ``noise``."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(0, noise * math.sqrt(1 - phi**2), steps)
    log = rng.normal(0, noise)
    found = []
    for shock in drawn.tolist():
        log = phi * log + shock
        found.append(median_ms * math.exp(log))
    return found


def work(name: str, total_ms: Iterable[float], *, count: Iterable[float] = (), kind: str = "compute") -> Work:
    total_ns = tuple(ms * MS for ms in total_ms)
    return Work(kind, name, tuple(float(calls) for calls in count) or (1.0,) * len(total_ns), total_ns)


def works(*rows: Work) -> Works:
    return Works(tuple(range(5, 5 + len(rows[0].total_ns))), 2, rows)
