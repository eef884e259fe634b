"""Advice made by hand: eight devices, a handful of candidates, and the sentences that go with them."""

from __future__ import annotations

from dataclasses import replace

import planned

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Fit, Forecast, MemoryForecast, Term, TimeForecast
from meshscope.advisor.question import Question
from meshscope.advisor.ranking import Advice, Counts, Ranked
from meshscope.advisor.rule import Rule
from meshscope.advisor.sensitivity import Sensitivity
from meshscope.ui.advise.answer import Answer
from meshscope.ui.advise.form import Form

LIMIT_BYTES = 80e9


def figure(value: float, off_frac: float = 0.1) -> Figure:
    return Figure(value, value * (1 - off_frac), value * (1 + off_frac), "interpolated", "made by hand")


def memory(used_bytes: float, fit: Fit = Fit.FITS) -> MemoryForecast:
    shares = {"parameters": 0.1, "gradients": 0.1, "optimizer": 0.2, "activations": 0.3, "logits": 0.1,
              "communication": 0.08, "temporaries": 0.02}  # fmt: skip
    parts = {name: figure(used_bytes * frac) for name, frac in shares.items()}
    return MemoryForecast(
        parts, figure(used_bytes * 0.9), figure(used_bytes * 0.95), figure(used_bytes, 0.06), LIMIT_BYTES, fit
    )


def time(step_ms: float, bubble_ms: float = 0.0) -> TimeForecast:
    step_s = step_ms / 1e3
    return TimeForecast(
        step_s=figure(step_s),
        compute_s=step_s * 0.8 - bubble_ms / 1e3,
        exposed_s=step_s * 0.15,
        bubble_s=bubble_ms / 1e3,
        idle_s=step_s * 0.05,
        hidden_s=step_s * 0.2,
        exposed_by={"shard": step_s * 0.15},
        mfu_frac=0.41,
        tokens_per_s=131072 / step_s,
        terms=(Term("forward of a layer", figure(0.004), 24, "24 × 4.00 ms"),),
    )


def ranked(candidate: Candidate, step_ms: float, used_gb: float, *, is_tied: bool = False) -> Ranked:
    bubble_ms = 20.0 if candidate.pipeline > 1 else 0.0
    return Ranked(candidate, Forecast(memory(used_gb * 1e9), time(step_ms, bubble_ms)), is_tied)


def advice() -> Advice:
    fsdp = planned.candidate("fsdp")
    close = Ranked(
        planned.candidate("fsdp", micro_batch=16), Forecast(memory(78e9, Fit.TOO_CLOSE), time(205)), is_tied=True
    )
    refused = Ranked(planned.candidate("ddp", micro_batch=16), Forecast(memory(128e9, Fit.DOES_NOT), None))
    return Advice(
        question=Question(planned.MODEL, planned.cluster(), 2048, 64),
        ranked=(
            ranked(fsdp, 210, 41, is_tied=True),
            ranked(planned.candidate("ddp"), 218, 58, is_tied=True),
            ranked(planned.candidate("tp", shard=4, tensor=2), 251, 37),
            ranked(planned.candidate("pp", shard=4, pipeline=2, accumulate=8, checkpointing="full"), 290, 22),
        ),
        settings=(ranked(replace(fsdp, checkpointing="full"), 260, 28), ranked(replace(fsdp, micro_batch=2), 233, 33)),
        close=(close,),
        refused=(refused,),
        counts=Counts(741, 12, 25, 23),
        cannot_say={"time: no sweep of all_to_all over this link": 3},
    )


def answer(form: Form | None = None, found: Advice | None = None) -> Answer:
    found = found or advice()
    return Answer(
        advice=found,
        rows=(*found.ranked, *found.close, *found.refused),
        why=(
            "fsdp 8, micro-batch 4, no checkpointing: 210 ms a step, 624 152 tokens/s.",
            "16 B of state for each of 1.41 billion parameters are 22.6 GB, of which a device keeps 2.83 GB.",
            "Their intervals overlap, so nobody can tell which is faster: ddp 8.",
        ),
        rules=(
            Rule("replicate first", "20 B × 1.41 B = 28.3 GB < 69 GB", True, "plain data parallelism", False,
                 "ddp 8 takes 218 ms against 210 ms (3.8 % more)", "costmodel"),
            Rule("tensor parallelism", "needs 4 096 tokens, here are 8 192", False, "", None, "", "costmodel"),
            Rule("gathers hide", "1 625 tokens needed, here are 8 192", True, "FSDP", True, "", "costmodel"),
        ),
        front=tuple(found.ranked[at] for at in (0, 2, 3) if at < len(found.ranked)),
        notes=("No sequence was given: 2,048 tokens, as 1.3b is usually trained on.",),
        asked=(form or Form()).asked,
    )  # fmt: skip


def flips(of: Answer) -> tuple[Sensitivity, ...]:
    first, second = of.advice.ranked[:2]
    return (
        Sensitivity("NVLink half as fast", second, first, flips=True),
        Sensitivity("twice the batch", first, first, flips=False),
        Sensitivity("half the memory", None, None, flips=True),
    )


def nothing() -> Answer:
    """Nothing fits, and nothing is close."""
    found = replace(advice(), ranked=(), settings=(), close=(), refused=(), cannot_say={})
    why = ("Nothing fits 8 devices of 80.0 GB: not even the state of the model and the smallest micro-batch do.",)
    return replace(answer(found=found), rows=(), why=why, rules=(), front=())
