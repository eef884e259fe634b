"""The step of CPU ranks by strategy, from the pieces that it is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from meshscope.advisor import cpu_work
from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.cpu_beside import beside, bucketed
from meshscope.advisor.cpu_costs import CpuCosts
from meshscope.advisor.cpu_stages import blocks_of_stages, course, in_flight, turns
from meshscope.advisor.cpu_work import Work

_FLOAT_BYTES = 4.0
_FSDP_CALLS = 130.0
"""Operators that FSDP2 adds for each group of parameters and micro-batch: traces of the bundled transformer, three
groups: 157 more in the forward pass and 229 in the backward pass."""
_DTENSOR_CALLS = 80.0
"""What AdamW costs more for each tensor that is a DTensor, in operators: it dispatches eight through Python, each of
which takes as long as ten plain ones (same traces)."""
_STAGE_CALLS = 120.0
"""What a pipeline's runtime does for a micro-batch on a stage, in operators: it cuts, sends, receives, and calls
autograd for the stage alone."""

Phased = tuple[str, Work]


@dataclass(frozen=True)
class CpuStep:
    """Seconds of the rank that ends last. ``compute + exposed + bubble + launch = step``; ``by_part`` maps (phase,
    part) to seconds alone on the cores, and ``contended_s`` is what transfers beside them added."""

    step_s: float
    compute_s: float
    launch_s: float
    exposed_s: float
    bubble_s: float
    hidden_s: float
    contended_s: float = 0.0
    exposed_by: dict[str, float] = field(default_factory=dict)
    by_part: dict[tuple[str, str], float] = field(default_factory=dict)
    transfers: tuple[tuple[str, float, float], ...] = ()


def cpu_step(model: Architecture, asked: Candidate, costs: CpuCosts) -> CpuStep:
    """Raises NotCovered for what is not modelled of CPU ranks."""
    if asked.framework != "torch":
        raise NotCovered("XLA's programs on a CPU are not modelled: its compiler fuses and schedules as it likes")
    if asked.is_compiled or model.is_mixture:
        raise NotCovered("compiled models and mixtures of experts are not modelled on CPU ranks")
    if asked.checkpointing == "selective":
        raise NotCovered("selective checkpointing is not modelled on CPU ranks")
    if asked.tensor > 1 or asked.context > 1:
        raise NotCovered("tensor and context parallelism are not modelled on CPU ranks")
    if asked.pipeline > 1:
        return _pipelined(model, asked, costs)
    if asked.zero_stage == 3:
        return _sharded(model, asked, costs)
    if asked.zero_stage == 2:
        raise NotCovered("sharded gradients beside whole parameters are not modelled on CPU ranks")
    return _replicated(model, asked, costs)


def _tokens(asked: Candidate) -> float:
    return asked.micro_batch * asked.seq_len


def forward(model: Architecture, asked: Candidate) -> Work:
    """One micro-batch through the whole model."""
    tokens = _tokens(asked)
    blocks = cpu_work.block_forward(model, tokens, asked.seq_len) * model.layers
    return cpu_work.first_forward(model, tokens) + blocks + cpu_work.last_forward(model, tokens)


def backward_pieces(model: Architecture, asked: Candidate) -> list[tuple[Work, float]]:
    """The same backward, in order: each piece with the bytes of the gradients that are ready when it is done."""
    tokens = _tokens(asked)
    block = cpu_work.block_backward(model, tokens, asked.seq_len)
    if asked.checkpointing == "full":
        block = block + cpu_work.block_forward(model, tokens, asked.seq_len)
    block_bytes = _FLOAT_BYTES * model.layer_parameters(is_dense=True)
    ends_bytes = _FLOAT_BYTES * (model.parameters - model.layers * model.layer_parameters(is_dense=True))
    pieces = [(cpu_work.last_backward(model, tokens), 0.0)]
    pieces += [(block, block_bytes)] * model.layers
    return [*pieces, (cpu_work.first_backward(model, tokens), ends_bytes)]


def tensors(model: Architecture) -> float:
    """Of parameters."""
    return cpu_work.TENSORS_PER_BLOCK * model.layers + cpu_work.TENSORS_AT_ENDS


def _micro_batches(model: Architecture, asked: Candidate) -> list[Phased]:
    """All micro-batches but the backward pass of the last one, and what they add to the gradients."""
    ahead = forward(model, asked)
    back = sum((work for work, _ in backward_pieces(model, asked)), Work())
    added = cpu_work.gradient_added(model.parameters, tensors(model))
    found: list[Phased] = [("forward", ahead * asked.accumulate)]
    if asked.accumulate > 1:
        found.append(("backward", (back + added) * (asked.accumulate - 1) + added))
    return found


def _replicated(model: Architecture, asked: Candidate, costs: CpuCosts) -> CpuStep:
    """DDP: buckets of gradients are all-reduced beside the last backward pass. ZeRO-1 then shares out parameters."""
    ranks = asked.data
    pieces = backward_pieces(model, asked)
    sent = bucketed((size_bytes for _, size_bytes in pieces), asked.bucket_bytes)
    timed = [
        (costs.seconds(work), costs.transfer_s("all_reduce", size_bytes, ranks) if size_bytes else 0.0)
        for (work, _), size_bytes in zip(pieces, sent, strict=True)
    ]
    found = beside(timed, costs.contention)
    transfers = [("all_reduce", size, costs.transfer_s("all_reduce", size, ranks)) for size in sent if size]
    done = _micro_batches(model, asked)
    done += [("backward", work) for work, _ in pieces]
    shares = ranks if asked.zero_stage == 1 else 1
    done.append(("optimizer", _stepped(model.parameters / shares, tensors(model) / shares)))
    exposed = {"all_reduce": found.exposed_s} if ranks > 1 else {}
    if shares > 1:
        part_bytes = _FLOAT_BYTES * model.parameters / shares
        transfers += [("broadcast", part_bytes, costs.transfer_s("broadcast", part_bytes, ranks))] * shares
        exposed["broadcast"] = shares * costs.transfer_s("broadcast", part_bytes, ranks)
    if ranks < 2:
        transfers = []
    return _step(costs, done, exposed, transfers, found.hidden_s, found.compute_s - sum(one for one, _ in timed))


def _sharded(model: Architecture, asked: Candidate, costs: CpuCosts) -> CpuStep:
    """FSDP2 on a CPU has no second stream: every gather and every reduction is waited for where it is asked for. Blocks
    are gathered for each pass (unless they stay gathered), the rest once; each micro-batch reduces its gradients."""
    ranks, replicas = asked.shard, asked.replicate
    block_bytes = _FLOAT_BYTES * model.layer_parameters(is_dense=True)
    ends_bytes = _FLOAT_BYTES * model.parameters - model.layers * block_bytes
    passes = 2 if asked.reshards else 1
    groups = [(block_bytes, passes)] * model.layers + [(ends_bytes, 1)]
    exposed: dict[str, float] = defaultdict(float)
    transfers, extra = [], Work()
    for size_bytes, gathers in groups:
        each = [("all_gather", size_bytes, ranks)] * gathers + [("reduce_scatter", size_bytes, ranks)]
        each += [("all_reduce", size_bytes / ranks, replicas)] if replicas > 1 else []
        for kind, size, among in each:
            seconds = costs.transfer_s(kind, size, among)
            exposed[kind] += asked.accumulate * seconds
            transfers.append((kind, size, seconds))
        # In and out of the buffer of a gather, and of a reduction.
        extra += cpu_work.copied((gathers + 1) * size_bytes * (1 + 1 / ranks), _FSDP_CALLS)
    own = model.parameters / ranks
    done = _micro_batches(model, asked)
    done += [("backward", work) for work, _ in backward_pieces(model, asked)]
    done.append(("backward", extra * asked.accumulate))
    done.append(("optimizer", _stepped(own, tensors(model)) + Work(calls=_DTENSOR_CALLS * tensors(model))))
    return _step(costs, done, dict(exposed), transfers * asked.accumulate, 0.0, 0.0)


def _pipelined(model: Architecture, asked: Candidate, costs: CpuCosts) -> CpuStep:
    """Stretches of whole blocks; the token table is in the first and the last, which add up its gradient at the end."""
    if asked.data > 1 or (asked.virtual > 1 and asked.accumulate % asked.pipeline):
        raise NotCovered("pipelines beside data parallelism or of uneven rounds are not modelled on CPU ranks")
    ranks, count, places = asked.pipeline, asked.accumulate, asked.pipeline * asked.virtual
    if model.layers < places - 1:
        raise NotCovered(f"{model.layers} blocks do not fill {places} stretches of a pipeline")
    ahead, back = zip(*(_stretch(model, asked, place) for place in range(places)), strict=True)
    features_bytes = _FLOAT_BYTES * _tokens(asked) * model.d_model
    pass_s = costs.transfer_s("send", features_bytes)
    back = tuple(work + _put_aside(model, asked, place) for place, work in enumerate(back))
    forward_s, backward_s = ([costs.seconds(work) for work in each] for each in (ahead, back))
    found = course(asked.schedule, count, forward_s, backward_s, pass_s, ranks)
    tails = [_rank_step(model, asked, rank) for rank in range(ranks)]
    last = max(range(ranks), key=lambda rank: found.end_s[rank] + costs.seconds(tails[rank]))
    table_bytes = _FLOAT_BYTES * model.vocab * model.d_model
    exposed = {"all_reduce": costs.transfer_s("all_reduce", table_bytes, 2)} if model.is_tied else {}
    own = range(last, places, ranks)
    done: list[Phased] = [("forward", sum((ahead[place] for place in own), Work()) * count)]
    done += [("backward", sum((back[place] for place in own), Work()) * count), ("optimizer", tails[last])]
    messages = sum((place > 0) + (place < places - 1) for place in own)
    transfers = [("send", features_bytes, pass_s)] * (2 * messages * count)
    transfers += [("all_reduce", table_bytes, exposed["all_reduce"])] if exposed else []
    return _step(costs, done, exposed, transfers, 0.0, 0.0, bubble_s=found.end_s[last] - found.busy_s[last])


def _stretch(model: Architecture, asked: Candidate, place: int) -> tuple[Work, Work]:
    """One micro-batch through a stretch of blocks: forward and backward."""
    tokens, places = _tokens(asked), asked.pipeline * asked.virtual
    blocks = blocks_of_stages(model, places)[place]
    runtime = Work(calls=_STAGE_CALLS / 2)
    each = cpu_work.block_forward(model, tokens, asked.seq_len)
    ahead, back = each * blocks + runtime, cpu_work.block_backward(model, tokens, asked.seq_len) * blocks + runtime
    if asked.checkpointing == "full":
        back += each * blocks
    if place == 0:
        ahead += cpu_work.first_forward(model, tokens)
        back += cpu_work.first_backward(model, tokens)
    if place == places - 1:
        ahead += cpu_work.last_forward(model, tokens)
        back += cpu_work.last_backward(model, tokens)
    share = (asked.accumulate - 1) / asked.accumulate
    held, of_tensors = _held(model, places, place)
    return ahead, back + cpu_work.gradient_added(held, of_tensors) * share


def _put_aside(model: Architecture, asked: Candidate, place: int) -> Work:
    """GPipe has all micro-batches in flight at once, 1F1B as many as there are ranks behind it. What is computed again
    is not kept."""
    if asked.checkpointing == "full":
        return Work()
    places = asked.pipeline * asked.virtual
    order = turns(asked.schedule, place % asked.pipeline, asked.pipeline, asked.accumulate, asked.virtual)
    many = in_flight(order)
    kept = cpu_work.put_aside(
        model, _tokens(asked), blocks_of_stages(model, places)[place], is_last=place == places - 1
    )
    return kept * ((many - 1) / many)


def _held(model: Architecture, places: int, place: int) -> tuple[float, float]:
    """Parameters of a stretch, and in how many tensors."""
    blocks = blocks_of_stages(model, places)[place]
    held = float(blocks * model.layer_parameters(is_dense=True))
    of_tensors = float(cpu_work.TENSORS_PER_BLOCK * blocks)
    if place == 0:
        held, of_tensors = held + model.embedding_parameters, of_tensors + 2
    if place == places - 1:
        held, of_tensors = held + model.vocab * model.d_model + model.d_model, of_tensors + 2
    return held, of_tensors


def _rank_step(model: Architecture, asked: Candidate, rank: int) -> Work:
    """The optimizer's step over all that a rank holds."""
    places = asked.pipeline * asked.virtual
    parts = [_held(model, places, place) for place in range(rank, places, asked.pipeline)]
    return _stepped(sum(held for held, _ in parts), sum(of_tensors for _, of_tensors in parts))


def _stepped(parameters: float, of_tensors: float) -> Work:
    return cpu_work.optimizer(parameters, of_tensors) + Work(calls=cpu_work.CALLS["step"])


def _step(
    costs: CpuCosts,
    done: Iterable[Phased],
    exposed: dict[str, float],
    transfers: Iterable[tuple[str, float, float]],
    hidden_s: float,
    contended_s: float,
    *,
    bubble_s: float = 0.0,
) -> CpuStep:
    by_part: dict[tuple[str, str], float] = defaultdict(float)
    for phase, work in done:
        for part, seconds in costs.parts(work).items():
            by_part[phase, part] += seconds
    launch_s = sum(seconds for (_, part), seconds in by_part.items() if part == "launch")
    compute_s = sum(by_part.values()) - launch_s + contended_s
    exposed_s = sum(exposed.values())
    return CpuStep(
        step_s=compute_s + launch_s + exposed_s + bubble_s,
        compute_s=compute_s,
        launch_s=launch_s,
        exposed_s=exposed_s,
        bubble_s=bubble_s,
        hidden_s=hidden_s,
        contended_s=contended_s,
        exposed_by=exposed,
        by_part=dict(by_part),
        transfers=tuple(transfers),
    )
