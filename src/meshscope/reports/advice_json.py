"""``meshscope advise --json``: one object (format 1). Times in seconds, sizes in bytes; what is not known is absent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from meshscope.advisor.answer import Answer
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, Term, TimeForecast
from meshscope.advisor.naming import layout_name, settings
from meshscope.advisor.ranking import Ranked
from meshscope.advisor.rule import Rule
from meshscope.advisor.sensitivity import Sensitivity
from meshscope.advisor.why import against_choice
from meshscope.units import printable

FORMAT = 1


def advice_json(found: Answer) -> str:
    """The object as text."""
    return encoded(advice_values(found))


def encoded(values: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(values), indent=1).decode()


def advice_values(found: Answer) -> dict[str, Any]:
    """The same as plain values."""
    counts = found.advice.counts
    return {
        "format": FORMAT,
        "predicted": True,
        "question": _question(found),
        "notes": [printable(note) for note in found.posed.notes],
        "choice": 1 if found.advice.choice else None,
        "why": list(found.why),
        "candidates": [candidate_values(found, number, each) for number, each in enumerate(found.rows, start=1)],
        "pareto": [
            {"layout": layout_name(each.candidate), "settings": settings(each.candidate), "step_time_s": each.step_s,
             "memory_used_bytes": each.memory.used.value}
            for each in found.front
        ],
        "rules": [_rule(each) for each in found.rules],
        "sensitivity": [_sensitivity(each) for each in found.sensitivities],
        "counts": {"legal": counts.legal, "too_large": counts.too_large, "memory_computed": counts.weighed,
                   "time_computed": counts.timed},
        "cannot_say": [{"why": why, "candidates": count} for why, count in found.advice.cannot_say.items()],
    }  # fmt: skip


def _question(found: Answer) -> dict[str, Any]:
    question = found.posed.question
    where, told = question.cluster, question.multipliers.provenance
    return {
        "model": printable(question.architecture.name),
        "parameters": question.architecture.parameters,
        "active_parameters": question.architecture.active_parameters,
        "device": printable(where.device.name),
        "devices": where.devices,
        "devices_per_node": where.per_node,
        "inside": printable(where.inside.name),
        "between": printable(where.between.name) if where.nodes > 1 else None,
        "is_between_assumed": where.is_between_assumed,
        "seq_len": question.seq_len,
        "global_batch": question.global_batch,
        "tokens_per_step": question.tokens_per_step,
        "precision": question.precision or None,
        "frameworks": list(question.frameworks),
        "is_compiled": question.is_compiled,
        "calibrated_on": printable(told.recording) or None,
    }


def candidate_values(found: Answer, number: int, each: Ranked) -> dict[str, Any]:
    """One row."""
    is_choice = each is found.advice.choice
    return {
        "number": number,
        "is_choice": is_choice,
        "is_tied_with_fastest": each.is_tied,
        **laid_values(each.candidate),
        "fits": str(each.memory.fit),
        "memory": memory_values(each.memory),
        "time": time_values(each.time, each.candidate) if each.time else None,
        "against_choice": against_choice(found.advice, each) or None,
        "cannot_say": list(each.forecast.cannot_say),
    }


def laid_values(candidate: Candidate) -> dict[str, Any]:
    """How it is laid out and what is set."""
    return {
        "layout": layout_name(candidate),
        "strategy": candidate.strategy,
        "framework": candidate.framework,
        "software": candidate.stack,
        "mesh": {"replicate": candidate.replicate, "shard": candidate.shard, "tensor": candidate.tensor,
                 "pipeline": candidate.pipeline, "context": candidate.context, "expert": candidate.expert},
        "zero_stage": candidate.zero_stage,
        "schedule": candidate.schedule if candidate.pipeline > 1 else None,
        "virtual_stages": candidate.virtual,
        "micro_batch": candidate.micro_batch,
        "accumulate": candidate.accumulate,
        "checkpointing": candidate.checkpointing,
        "precision": candidate.numerics.name,
        "bucket_bytes": candidate.bucket_bytes if candidate.zero_stage == 0 else None,
        "prefetch": candidate.prefetch if candidate.zero_stage == 3 else None,
    }  # fmt: skip


def memory_values(memory: MemoryForecast) -> dict[str, Any]:
    return {
        "categories": {name: figure_values(figure) for name, figure in memory.categories.items()},
        "allocated_bytes": figure_values(memory.allocated),
        "reserved_bytes": figure_values(memory.reserved),
        "used_bytes": figure_values(memory.used),
        "limit_bytes": memory.limit_bytes,
        "stage": memory.stage,
    }


def time_values(time: TimeForecast, candidate: Candidate) -> dict[str, Any]:
    step_s = time.step_s.value
    return {
        "step_s": figure_values(time.step_s),
        "compute_s": time.compute_s,
        "exposed_s": time.exposed_s,
        "exposed_frac_of_step": time.exposed_s / step_s if step_s else None,
        "bubble_s": time.bubble_s,
        "idle_s": time.idle_s,
        "hidden_s": time.hidden_s,
        "exposed_by": time.exposed_by,
        "tokens_per_s": time.tokens_per_s,
        "mfu_frac": time.mfu_frac,
        "mfu_of": f"dense {candidate.numerics.compute} peak",
    }


def figure_values(figure: Figure) -> dict[str, Any]:
    numbers = {"value": figure.value, "low": figure.low, "high": figure.high}
    known = {name: number for name, number in numbers.items() if math.isfinite(number)}
    return known | {"source": figure.source} | ({"where": printable(figure.where)} if figure.where else {})


def terms_values(terms: Sequence[Term]) -> list[dict[str, Any]]:
    return [
        {"name": term.name, "times": term.times, **figure_values(term.figure), "arithmetic": printable(term.arithmetic)}
        for term in terms
    ]


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "title": rule.title, "threshold": rule.threshold, "holds": rule.holds, "chooses": rule.chooses or None,
        "agrees": rule.agrees, "why": rule.why or None, "source": rule.source,
    }  # fmt: skip


def _sensitivity(each: Sensitivity) -> dict[str, Any]:
    then = each.choice
    return {
        "change": each.change,
        "flips": each.flips,
        "leans": each.leans,
        "choice": None if then is None else layout_name(then.candidate),
        "settings": None if then is None else settings(then.candidate),
        "step_time_s": None if then is None else then.step_s,
        "step_time_of_present_choice_s": None if each.same is None else each.same.step_s,
    }
