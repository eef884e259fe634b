"""A row of a table of published runs, as the model's question: which model, laid how, over which devices.

The columns are those of a table of training runs as people publish them (one line per run, units in the columns'
names). Tables of others lack columns, and write what they have in their own words; what is not stated is taken from
what the same software usually does, and said in ``assumed``. What was measured is never read here: `MEASURED`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from meshscope.advisor import shapes
from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Checkpointing
from meshscope.advisor.cells import flag, number, text, whole
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import Fit
from meshscope.advisor.layouts import Layout, layout
from meshscope.advisor.machines import machine
from meshscope.advisor.memory import memory
from meshscope.advisor.precisions import precision
from meshscope.advisor.remarks import remarked
from meshscope.advisor.stacks import Stack, of, stack

MEASURED = (
    "step_time_s",
    "step_time_source",
    "tokens_per_s_per_gpu",
    "samples_per_s_total",
    "tflops_per_gpu_reported",
    "mfu_pct_reported",
    "hfu_pct_reported",
    "mem_gib_per_gpu",
    "mem_kind",
    "derived_tflops_per_gpu",
    "derived_mfu_pct",
    "derived_flops_per_token_6n_attn",
)
"""Columns that no prediction reads."""

Row = Mapping[str, str]


@dataclass(frozen=True)
class Published:
    """``assumed`` lists what the row does not state, in words: each widens the interval."""

    run_id: str
    source: str
    architecture: Architecture
    candidate: Candidate
    cluster: Cluster
    assumed: tuple[str, ...] = ()


def unmeasured(row: Row) -> dict[str, str]:
    """The row without what was measured."""
    return {name: value for name, value in row.items() if name and name not in MEASURED and value}


def published(row: Row, folder: Path | None = None) -> Published:
    """What the row asks. ``folder`` has the user's own devices. Raises NotCovered with the reason."""
    row = unmeasured(row)
    _refuse(row)
    assumed: list[str] = []
    ran = _stack(row)
    model = _architecture(row, assumed)
    laid = layout(row, ran, assumed)
    if "virtual stages" in assumed and laid.pipeline * laid.virtual > model.layers:
        laid = replace(laid, virtual=1)
    cluster = machine(row, laid.devices, assumed, folder)
    candidate = remarked(_candidate(row, ran, laid, model, assumed), row)
    if not model.is_causal:
        assumed.append("padding")
    if "checkpointing" in assumed:
        candidate = _kept_as_fits(model, candidate, cluster)
    if candidate.devices != cluster.devices:
        raise NotCovered(f"its degrees multiply to {candidate.devices}, but it ran on {cluster.devices} devices")
    return Published(text(row, "run_id"), text(row, "source_key"), model, candidate, cluster, tuple(assumed))


_OTHER_WORK = r"\blora\b|\bsft\b|lora_sft|qlora|\bpeft\b|fine.?tun|\bdpo\b|\brlhf\b|\bgrpo\b"


def is_pretraining(row: Row) -> bool:
    """Whether every parameter is trained on whole samples, as far as the row says."""
    said = " ".join(text(row, name) for name in ("quality_flag", "strategy", "model", "other_opts", "notes", "task"))
    return not re.search(_OTHER_WORK, said.lower())


def _refuse(row: Row) -> None:
    """Work that is no pre-training of a transformer."""
    if not is_pretraining(row):
        raise NotCovered("fine-tuning with adapters or packed samples does other work per token than pre-training")
    arch = text(row, "arch").lower()
    if re.match(r"vision|encdec|diffusion|conv|other|multimodal|rnn", arch):
        raise NotCovered(f"{text(row, 'model') or 'the model'} is no plain transformer ({arch})")


def _stack(row: Row) -> Stack:
    framework, notes, compiled, date = (
        text(row, name) for name in ("framework", "software_notes", "compile", "published_date")
    )
    return stack(framework, notes, compiled, date, f"{text(row, 'other_opts')} {text(row, 'precision')}")


def model_of(row: Row) -> Architecture:
    """The row's model. Raises NotCovered where its shape cannot be told."""
    return _architecture(row, [])


def compute_of(row: Row) -> str:
    """What the row multiplies in."""
    return precision(row, _stack(row), 0, []).compute


def _architecture(row: Row, assumed: list[str]) -> Architecture:
    name, arch = text(row, "model"), text(row, "arch").lower()
    layers, width = whole(row, "n_layers"), whole(row, "d_model")
    size, active = number(row, "params_b"), number(row, "active_params_b")
    is_mixture = "moe" in arch or 0 < active < 0.9 * size
    if not layers or not width:
        return _by_size(row, name, assumed, is_mixture=is_mixture)
    heads = whole(row, "n_heads") or max(1, width // 128)
    is_gated = flag(row, "glu", default=bool(re.search(r"llama|qwen|mistral|gemma|deepseek|mixtral", name.lower())))
    vocab = whole(row, "vocab")
    if not vocab:
        vocab = 50_304
        assumed.append("vocabulary")
    d_ff = whole(row, "d_ff") or (round(8 * width / 3 / 256) * 256 if is_gated else 4 * width)
    found = Architecture(
        name,
        layers,
        width,
        heads,
        whole(row, "n_kv_heads") or heads,
        d_ff,
        vocab,
        is_gated=is_gated,
        is_tied=_is_tied(row, layers, width, d_ff, vocab, is_gated=is_gated),
        is_causal="encoder" not in arch,
        positions=0 if is_gated else whole(row, "seq_len"),
        has_biases=not is_gated and not name.lower().startswith("mpt"),
        stated_parameters=number(row, "params_b") * 1e9,
    )
    return shapes.with_experts(found) if is_mixture else found


def _is_tied(row: Row, layers: int, width: int, d_ff: int, vocab: int, *, is_gated: bool) -> bool:
    """Whichever of the two counts comes closer to the stated number of parameters."""
    stated = number(row, "params_b") * 1e9
    if not stated:
        return not is_gated
    heads = whole(row, "n_heads") or 1
    kv = (whole(row, "n_kv_heads") or heads) / heads
    own = layers * (width * width * (2 + 2 * kv) + (3 if is_gated else 2) * width * d_ff) + vocab * width
    return abs(own - stated) <= abs(own + vocab * width - stated)


def _by_size(row: Row, name: str, assumed: list[str], *, is_mixture: bool) -> Architecture:
    size = number(row, "params_b") * 1e9
    if not size or is_mixture:
        raise NotCovered(f"the shape of {name or 'the model'} is not stated")
    assumed.append("shape")
    return shapes.of_size(name, size, whole(row, "vocab") or 50_304, is_gated=flag(row, "glu", default=False))


def _candidate(row: Row, ran: Stack, laid: Layout, model: Architecture, assumed: list[str]) -> Candidate:
    numerics = precision(row, ran, laid.zero_stage, assumed)
    return Candidate(
        strategy=text(row, "strategy") or laid.name,
        framework=ran.framework,
        stack=ran.name,
        seq_len=laid.seq_len,
        micro_batch=laid.micro_batch,
        numerics=numerics,
        accumulate=laid.accumulate,
        replicate=laid.replicate,
        shard=laid.shard,
        zero_stage=laid.zero_stage,
        tensor=laid.tensor,
        is_sequence_parallel=ran.is_sequence_parallel and laid.tensor > 1 and not _is_early(row),
        pipeline=laid.pipeline,
        virtual=laid.virtual,
        schedule="interleaved" if laid.virtual > 1 else "1f1b",
        context=laid.context,
        expert=laid.expert if model.is_mixture else 1,
        checkpointing=_checkpointing(row, ran, assumed),
        is_compiled=ran.is_compiled,
        is_flash=_is_flash(row, ran),
        is_overlapped=ran.is_overlapped,
        reshards=laid.zero_stage == 3,
        is_bucket_view=ran.is_bucket_view,
    )


def _kept_as_fits(model: Architecture, candidate: Candidate, cluster: Cluster) -> Candidate:
    """As people do it: nothing is computed twice that fits."""
    for kept in _LADDER:
        tried = replace(candidate, checkpointing=kept)
        try:
            if memory(model, tried, cluster).fit != Fit.DOES_NOT:
                return tried
        except NotCovered:
            return candidate
    return replace(candidate, checkpointing="selective" if _keeps_some(candidate) else "full")


def _keeps_some(candidate: Candidate) -> bool:
    """Megatron computes some layers again, XLA's policies name what is kept or sent to the host: rarely all."""
    return of(candidate.stack).is_megatron or candidate.framework == "jax"


_LADDER: tuple[Checkpointing, ...] = ("none", "selective")


def _is_early(row: Row) -> bool:
    """Before sequence parallelism was usual (arXiv 2205.05198, of May 2022), and not said to be used."""
    said = f"{text(row, 'strategy')} {text(row, 'act_ckpt')} {text(row, 'other_opts')}"
    return _is_before(row, 2022, 12) and not re.search(r"\bSP\b|sequence.parallel", said)


def _is_before(row: Row, year: int, month: int) -> bool:
    found = re.match(r"(20\d\d)-(\d\d)", text(row, "published_date"))
    return found is not None and (int(found[1]), int(found[2])) < (year, month)


def _is_flash(row: Row, ran: Stack) -> bool:
    said = f"{text(row, 'notes')} {text(row, 'other_opts')} {text(row, 'software_notes')}".lower()
    if re.search(r"without flash|no flash", said):
        return False
    if _is_before(row, 2022, 12):
        # FlashAttention (arXiv 2205.14135) came into training frameworks from the end of 2022.
        return "flash" in said
    return ran.is_flash or "flash" in said


def _checkpointing(row: Row, ran: Stack, assumed: list[str]) -> Checkpointing:
    said = text(row, "act_ckpt").lower()
    if re.search(r"^(none|no|off|false|0)\b", said):
        return "none"
    if re.search(r"select|every|minimal|offload|partial|attn|block", said):
        return "selective"
    if re.search(r"full|yes|true|on\b|^1$|all", said):
        return "full"
    assumed.append("checkpointing")
    return ran.usual_checkpointing
