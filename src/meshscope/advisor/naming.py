"""What a candidate is called: its degrees as people write them, and its settings in a few words."""

from __future__ import annotations

import re

from meshscope.advisor.candidate import Candidate

_STAGES = ("ddp", "zero1", "zero2", "fsdp")


def layout_name(candidate: Candidate) -> str:
    """Strategy and degrees: ``fsdp 8``, ``hsdp 4 × 8``, ``tp 8 × pp 4 × zero1 16``, ``pjit fsdp 4 × tp 2``."""
    degrees = (("tp", candidate.tensor), ("cp", candidate.context), ("pp", candidate.pipeline))
    parts = [f"{word} {degree}" for word, degree in degrees if degree > 1]
    parts += [_data(candidate)] if candidate.data > 1 or (candidate.zero_stage and candidate.context > 1) else []
    parts += [f"ep {candidate.expert}"] if candidate.expert > 1 else []
    joined = " × ".join(parts) or "one device"
    if candidate.framework == "torch" or candidate.strategy == "pmap":
        return joined
    return f"pjit {joined}"


def _data(candidate: Candidate) -> str:
    if candidate.replicate > 1 and candidate.shard > 1:
        return f"hsdp {candidate.replicate} × {candidate.shard}"
    if candidate.strategy == "pmap":
        return f"pmap {candidate.data}"
    word = _STAGES[candidate.zero_stage]
    word = "dp" if candidate.framework == "jax" and word == "ddp" else word
    # Over the ranks of context parallelism alone there is no degree of its own.
    return f"{word} {candidate.data}" if candidate.data > 1 else word


def short_name(candidate: Candidate) -> str:
    """The same for a narrow column: ``tp8×pp4×zero1 16`` is ``tp8×pp4×zero1:16``."""
    joined = re.sub(r"(?<=[a-z]) (?=\d)", "", re.sub(r"(?<=zero[12]) (?=\d)", ":", layout_name(candidate)))
    name = joined.replace(" × ", "×")
    return f"{name} v{candidate.virtual}" if candidate.virtual > 1 else name


def settings(candidate: Candidate) -> str:
    """What may still be turned: ``micro-batch 2 × 4, no checkpointing, interleaved × 2``."""
    micro = f"micro-batch {candidate.micro_batch:g}"
    parts = [f"{micro} × {candidate.accumulate}" if candidate.accumulate > 1 else micro]
    parts += ["no checkpointing" if candidate.checkpointing == "none" else f"{candidate.checkpointing} checkpointing"]
    if candidate.pipeline > 1:
        parts.append(candidate.schedule + (f" × {candidate.virtual}" if candidate.virtual > 1 else ""))
    return ", ".join([*parts, *turned(candidate)])


def turned(candidate: Candidate) -> list[str]:
    """Settings that differ from the framework's own."""
    usual = Candidate.__dataclass_fields__
    found = []
    if candidate.bucket_bytes != usual["bucket_bytes"].default:
        found.append(f"buckets of {candidate.bucket_bytes / 2**20:g} MiB")
    if candidate.prefetch != usual["prefetch"].default:
        found.append(f"{candidate.prefetch} layers gathered ahead")
    return found


def layout_key(candidate: Candidate) -> tuple[str, ...]:
    """Alike for candidates that differ in their settings alone."""
    return (candidate.framework, candidate.strategy, layout_name(candidate))
