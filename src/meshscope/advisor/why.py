"""Why the choice is what it is: what a practitioner would say, with the figures of this case."""

from __future__ import annotations

from meshscope.advisor.forecast import MemoryForecast, TimeForecast
from meshscope.advisor.naming import layout_name, settings
from meshscope.advisor.numerics import state_bytes
from meshscope.advisor.ranking import AS_FAST_FRAC, Advice, Ranked, told_apart_frac
from meshscope.advisor.rival import held, slower
from meshscope.units import NS_PER_S, counted, duration, percent, rate, ratio, size

_NAMED = 3
_GROUPS = {
    "shard": "of shards", "replicate": "of replicas", "tensor": "of tensor parallelism", "context": "of slices of "
    "sequences", "expert": "of experts", "experts": "of experts", "pipeline": "between stages",
}  # fmt: skip


def why(advice: Advice) -> tuple[str, ...]:
    """Sentences, the most important first."""
    choice = advice.choice
    if choice is None or choice.time is None:
        return (nothing(advice),)
    said = (
        _chosen(choice, choice.time),
        _needed(advice, choice),
        _exposed(advice, choice, choice.time),
        _bubble(choice, choice.time),
        _kept(choice.memory),
        _fastest(advice, choice),
        _perhaps(advice, choice),
        _ties(advice),
        _next(advice, choice),
    )
    return tuple(sentence for sentence in said if sentence)


def group_name(name: str) -> str:
    """Which communication a group of ranks has: ``shard`` is ``of shards``."""
    return _GROUPS.get(name, name)


def nothing(advice: Advice) -> str:
    """Why there is no choice."""
    question = advice.question
    where = f"{counted(question.cluster.devices, 'device')} of {size(question.cluster.device.memory_bytes)}"
    if advice.close:
        near = advice.close[0]
        return f"Nothing surely fits {where}; {layout_name(near.candidate)} is too close to say: {held(near.memory)}."
    if advice.refused:
        near = min(advice.refused, key=lambda each: each.memory.used.value)
        return f"Nothing fits {where}: {layout_name(near.candidate)} needs least, {held(near.memory)}."
    if advice.counts.legal and advice.counts.too_large == advice.counts.legal:
        return f"Nothing fits {where}: not even the state of the model and the smallest micro-batch do."
    if advice.cannot_say:
        return f"Nothing can be said: {next(iter(advice.cannot_say))}."
    samples = counted(question.global_batch, "sample")
    asked = ", ".join(word.removeprefix("=") for word in question.strategies)
    of = f" of {asked} in {' and '.join(question.frameworks)}" if asked else ""
    micro = f" and micro-batches of {question.micro_batch}" if question.micro_batch else ""
    return f"No layout{of} is legal with {samples} a step{micro} on {where}."


def against_choice(advice: Advice, ranked: Ranked) -> str:
    """Why this one was not chosen, in a few words; "" of the choice itself."""
    if advice.choice is None or ranked is advice.choice:
        return ""
    return slower(ranked, advice.choice) if ranked.time else held(ranked.memory)


def _chosen(choice: Ranked, time: TimeForecast) -> str:
    name = layout_name(choice.candidate)
    step = duration(time.step_s.value * NS_PER_S)
    return f"{name}, {settings(choice.candidate)}: {step} a step, {rate(time.tokens_per_s)} tokens/s."


def _needed(advice: Advice, choice: Ranked) -> str:
    """What stands in the way of the plainer ones, the plainest first."""
    if choice.candidate.strategy in ("ddp", "pmap", "single"):
        return _state_fits(choice)
    plain = next((each for each in advice.refused if each.candidate.strategy in ("ddp", "pmap")), None)
    said = _state(advice, choice)
    if plain is not None:
        said += f" {layout_name(plain.candidate)} would need {size(plain.memory.used.value)}."
    if choice.candidate.tensor * choice.candidate.pipeline * choice.candidate.context > 1:
        said += _uncut(advice, choice)
    return said


def _state(advice: Advice, choice: Ranked) -> str:
    each = state_bytes(choice.candidate.numerics)
    everything = each * advice.question.architecture.parameters
    own = sum(choice.memory.categories[name].value for name in ("parameters", "gradients", "optimizer")
              if name in choice.memory.categories)  # fmt: skip
    return (
        f"{each:g} B of state for each of {advice.question.architecture.parameters / 1e9:.3g} billion parameters are "
        f"{size(everything)}, of which a device keeps {size(own)}."
    )


def _state_fits(choice: Ranked) -> str:
    if choice.candidate.data == 1:
        return ""
    return "The whole state fits on every device, so that nothing has to be gathered."


def _uncut(advice: Advice, choice: Ranked) -> str:
    """Why data parallelism alone would not do."""
    alone = ("fsdp", "hsdp", "zero2", "zero1", "ddp", "pmap", "pjit-fsdp", "pjit-hsdp")
    ranked = next((each for each in advice.ranked if each.candidate.strategy in alone), None)
    if ranked is not None:
        return f" Without cutting the model, {slower(ranked, choice)}."
    refused = next((each for each in (*advice.close, *advice.refused) if each.candidate.strategy in alone), None)
    if refused is not None:
        return f" Without cutting the model, {layout_name(refused.candidate)} needs {held(refused.memory)}."
    if advice.question.global_batch % advice.question.cluster.devices:
        samples = counted(advice.question.global_batch, "sample")
        return f" {samples} do not give every one of {advice.question.cluster.devices:,} devices its own."
    return ""


def _exposed(advice: Advice, choice: Ranked, time: TimeForecast) -> str:
    if advice.question.cluster.devices < 2:
        return ""
    each = choice.candidate.micro_batch * advice.question.seq_len / choice.candidate.context
    step = time.step_s.value
    if not time.exposed_s and not time.hidden_s:
        return "No communication shows in its step."
    part = duration(time.exposed_s * NS_PER_S)
    said = f"With {each:,.0f} tokens in a micro-batch, {part} ({percent(ratio(time.exposed_s, step))} of the step) "
    worst = max(time.exposed_by.items(), key=lambda item: item[1], default=("", 0.0))
    named = f", most of it {group_name(worst[0])}" if worst[1] > 0 and len(time.exposed_by) > 1 else ""
    hidden = f"; {duration(time.hidden_s * NS_PER_S)} hide beside compute" if time.hidden_s else ""
    return f"{said}of communication stay exposed{named}{hidden}."


def _bubble(choice: Ranked, time: TimeForecast) -> str:
    if choice.candidate.pipeline < 2:
        return ""
    step = time.step_s.value
    stages = counted(choice.candidate.pipeline, "stage")
    micro = counted(choice.candidate.accumulate, "micro-batch", "micro-batches")
    part = duration(time.bubble_s * NS_PER_S)
    return f"{stages} with {micro} leave a bubble of {part} ({percent(ratio(time.bubble_s, step))} of the step)."


def _kept(memory: MemoryForecast) -> str:
    used = memory.used
    return f"It takes {size(used.low)} to {size(used.high)} of a device's {size(memory.limit_bytes)}."


def _fastest(advice: Advice, choice: Ranked) -> str:
    fastest = advice.fastest
    if fastest is None or fastest is choice:
        return ""
    ahead = percent(1 - ratio(fastest.step_s, choice.step_s))
    return (
        f"{layout_name(fastest.candidate)} ({settings(fastest.candidate)}) is {ahead} ahead; below "
        f"{percent(AS_FAST_FRAC)} the plainer one is taken."
    )


def _perhaps(advice: Advice, choice: Ranked) -> str:
    """What would be surely faster, if only it fitted."""
    likely = (each for each in advice.close if each.memory.used.value <= each.memory.limit_bytes)
    near = min(likely, key=lambda each: each.step_s, default=None)
    if near is None or near.step_s * (1 + AS_FAST_FRAC) > choice.step_s:
        return ""
    gain = percent(1 - ratio(near.step_s, choice.step_s))
    return (
        f"Worth a try: {layout_name(near.candidate)} ({settings(near.candidate)}) would take {gain} less, but whether "
        f"it fits is too close to say: {held(near.memory)}."
    )


def _ties(advice: Advice) -> str:
    tied = advice.tied
    if not tied:
        return ""
    names = ", ".join(layout_name(each.candidate) for each in tied[:_NAMED])
    more = f" and {len(tied) - _NAMED} more" if len(tied) > _NAMED else ""
    near = percent(told_apart_frac(advice.question))
    return f"Too near to tell (within {near} of the fastest): {names}{more}."


def _next(advice: Advice, choice: Ranked) -> str:
    """The first that is surely behind."""
    behind = next((each for each in advice.ranked[1:] if not each.is_tied), None)
    return f"Surely behind: {slower(behind, choice)}." if behind is not None else ""
