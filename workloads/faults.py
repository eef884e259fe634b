"""The faults that ``--inject`` puts into a run, to see how each shows: their names, amounts and limits.

``--inject straggler:50,memory-leak`` asks for two. Standard library only, as ``options`` is; ``injecting`` does them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from refusals import OptionError

_ALONE = "it trains on one device, and the fault lies between ranks"
_SINGLES = {"torch-single": _ALONE, "jax-single": _ALONE, "dp": "one process drives all its GPUs"}
_FOR_ONE_SHAPE = "only JAX compiles a program for one shape alone; --compile takes any length after the first other one"
_SHARDED = ("fsdp", "fsdp1", "hsdp")
_TENSOR = ("tp", "fsdp-tp")
_PIPELINES = ("pp-gpipe", "pp-1f1b", "pp-interleaved")
_PJIT = ("pjit", "pjit-dp", "pjit-tp", "pjit-2d")
_JAX = ("pmap", "shard-map", *_PJIT, "shard-map-fsdp", "jax-pp", "jax-ep")
STRATEGIES = ("ddp", "zero1", *_SHARDED, *_TENSOR, "cp", "dp", *_PIPELINES, "ep", *_JAX, "torch-single", "jax-single")
_PLACED = "the compiler places its collectives"
_OTHER_LAYERS = dict.fromkeys((*_PIPELINES, "jax-pp"), "its ranks hold different layers")
_SAME_BATCH = dict.fromkeys(_PIPELINES, "all stages work on the same micro-batches")


@dataclass(frozen=True)
class Kind:
    """One fault. ``words`` name it with its ``amount``; ``effect`` says what happens (``{rank}`` is the last rank).

    ``unit`` is that of the amount, "" for a fault without one. ``not_in`` maps a strategy to why it cannot have it.
    """

    words: str
    effect: str
    unit: str = ""
    default: float = 0.0
    not_in: dict[str, str] = field(default_factory=lambda: dict(_SINGLES))


KINDS: dict[str, Kind] = {
    "straggler": Kind("straggler {amount} ms", "rank {rank} computes longer in every step", "ms", 100.0),
    "slow-input": Kind("slow input {amount} ms", "the first rank's batch comes late in every step", "ms", 100.0, {}),
    "memory-leak": Kind("memory leak {amount} MiB", "every rank keeps that much more after each step", "MiB", 16.0, {}),
    "hang": Kind(
        "hang at step {amount}",
        "rank {rank} stops before the collectives of that step",
        "step",
        10.0,
    ),
    "rank-crash": Kind(
        "rank crash at step {amount}",
        "rank {rank}'s process ends with exit code 70 in that step, without a word to the others",
        "step",
        10.0,
        dict.fromkeys(("dp", *_JAX), "one process drives all its devices, and ends with all of them"),
    ),
    "slow-link": Kind(
        "slow link of {amount} Mbit/s",
        "what rank {rank} sends to the others passes at no more than that",
        "Mbit",
        200.0,
        _SINGLES | dict.fromkeys(_JAX, "its devices are in one process, with no link between them that can be slowed"),
    ),
    "unsynced-gradients": Kind(
        "unsynced gradients",
        "gradients are not averaged, so that every rank trains a model of its own",
        not_in=_SINGLES
        | dict.fromkeys(
            (*_SHARDED, "fsdp-tp", "shard-map-fsdp"), "a rank has its shard's gradients by the reduce-scatter"
        )
        | _OTHER_LAYERS
        | dict.fromkeys(_PJIT, _PLACED),
    ),
    "ragged-batch": Kind(
        "ragged batch",
        "rank {rank} trains on half as many samples",
        not_in=_SINGLES
        | _SAME_BATCH
        | dict.fromkeys(_JAX, "its devices share one array, in slices of one size")
        | dict.fromkeys((*_TENSOR, "cp"), "its ranks share each sample"),
    ),
    "same-key": Kind(
        "same key",
        "all ranks draw the same dropout",
        not_in=_SINGLES
        | _OTHER_LAYERS
        | dict.fromkeys(_PJIT, "its program draws once for the global batch, from one key"),
    ),
    "small-buckets": Kind(
        "small buckets",
        "every gradient is reduced on its own",
        not_in=_SINGLES
        | dict.fromkeys((*_SHARDED, "fsdp-tp"), "it gathers and reduces block by block and has no buckets")
        | {"tp": "it reduces no gradients but those of its norms, in one call"}
        | dict.fromkeys(_PIPELINES, "its stages pass activations on and have no buckets"),
    ),
    "new-lengths": Kind(
        "a new length every {amount} steps",
        "the sequences of each such step are shorter than any before, and the step is compiled again for them",
        "steps",
        5.0,
        dict.fromkeys(
            ("ddp", "zero1", *_SHARDED, *_TENSOR, "cp", "dp", *_PIPELINES, "ep", "torch-single"), _FOR_ONE_SHAPE
        ),
    ),
}


def faults(inject: str) -> dict[str, float]:
    """Name → amount (0 where it takes none) of what ``--inject`` asks for. OptionError: what is no fault."""
    found: dict[str, float] = {}
    for text in filter(None, (part.strip() for part in inject.split(","))):
        name, colon, amount = text.partition(":")
        if name not in KINDS:
            raise OptionError(f"There is no fault {name!r}.", f"There are {', '.join(KINDS)}.")
        if name in found:
            raise OptionError(f"The fault {name} is asked for twice.", "Leave one of them out.")
        found[name] = _amount(name, amount) if colon else KINDS[name].default
    return found


def _amount(name: str, text: str) -> float:
    kind = KINDS[name]
    if not kind.unit:
        raise OptionError(f"{name} takes no amount.", f"Write it as --inject {name}.")
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    is_step, is_whole = kind.unit == "step", kind.unit in ("step", "steps")
    if not 0 <= amount < inf or (amount == 0 and not is_step) or (is_whole and amount != int(amount)):
        what = "a step's number" if is_step else f"a {'whole ' if is_whole else ''}number of {kind.unit} above 0"
        raise OptionError(
            f"{name}:{text} makes no sense: it takes {what}.", f"Write it as --inject {name}:{kind.default:g}."
        )
    return amount


def refuse_misfits(inject: str, strategy: str, ranks: int, *, steps: int, micro_samples: int) -> None:
    """OptionError for a fault that a strategy cannot have, or one that would not show with these ranks and steps.

    ``micro_samples`` are those of one rank in one micro-batch.
    """
    found = faults(inject)
    for name in found:
        why = KINDS[name].not_in.get(strategy, "")
        if not why and ranks < 2 and _is_between_ranks(name):
            why = "it runs on one rank, and the fault lies between ranks"
        if why:
            raise OptionError(f"{name} makes no sense in {strategy}: {why}.", _hint(name))
    for name in ("hang", "rank-crash"):
        if found.get(name, 0) >= steps:
            said = f"{name}:{found[name]:g} is past the last step, {steps - 1}."
            raise OptionError(said, "Use more --steps.")
    if "ragged-batch" in found and micro_samples < 2:
        raise OptionError(
            "A rank with one sample in a micro-batch cannot do with fewer.", "Use a --batch twice as large."
        )


def _hint(name: str) -> str:
    """Where it can be had."""
    able = [strategy for strategy in STRATEGIES if strategy not in KINDS[name].not_in]
    return f"It can be injected into {', '.join(able)}{', on two ranks or more' if _is_between_ranks(name) else ''}."


def _is_between_ranks(name: str) -> bool:
    return KINDS[name].not_in.keys() >= _SINGLES.keys()


def words(inject: str) -> tuple[str, ...]:
    """Each fault in a few words: ``straggler 100 ms``."""
    return tuple(KINDS[name].words.format(amount=f"{amount:g}") for name, amount in faults(inject).items())


def effects(inject: str, ranks: int) -> tuple[str, ...]:
    """What each fault does, as a clause."""
    return tuple(KINDS[name].effect.format(rank=ranks - 1) for name in faults(inject))
