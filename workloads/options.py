"""What a training run may be asked for: the presets, the flags, and what makes no sense.

Standard library only, so that a launcher can check a request without loading torch or JAX.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from math import inf
from typing import Any, NoReturn, TypeVar

import families
import faults
import pipelines
import sizes
from degrees import check_degrees, data_ranks, settled
from refusals import OptionError
from variants import check_kind, check_variant, notes

__all__ = [
    "PRESETS", "OptionError", "Options", "arguments", "by_hand", "check", "check_kind", "data_ranks", "notes", "parse",
    "settled",
]  # fmt: skip

Watch = TypeVar("Watch")


def _option(about: str, *choices: str, default: Any) -> Any:
    return field(default=default, metadata={"help": about, "choices": choices})


@dataclass(frozen=True)
class Options:
    """One training run. The defaults are those of the preset ``tiny``; every field is also a flag."""

    model: str = _option(
        "preset that gives the other defaults (tiny, 125m, 350m, 1.3b, moe, resnet50, mlp), or a factory of your own, "
        "package.module:factory",
        default="tiny",
    )
    layers: int = _option("transformer blocks, or hidden layers of the MLP", default=4)
    width: int = _option("features per token, per hidden layer, or per pixel after ResNet's stem", default=256)
    heads: int = _option("attention heads; they divide the width", default=4)
    vocab: int = _option("distinct tokens", default=2048)
    seq: int = _option("tokens per sample", default=64)
    experts: int = _option("MLPs per block, of which a router picks some for each token; 1 for no mixture", default=1)
    top_k: int = _option("experts that a token goes to", default=1)
    image: int = _option("pixels along a side of an image", default=32)
    classes: int = _option("classes of images", default=10)
    batch: int = _option("samples per step over all ranks together", default=8)
    steps: int = _option("training steps", default=60)
    lr: float = _option("learning rate of AdamW", default=1e-3)
    seed: int = _option("seed of the initial parameters and of the tokens", default=1337)
    precision: str = _option("what matrices are multiplied in; parameters stay fp32", "fp32", "bf16", default="fp32")
    dropout: float = _option("share of each block's output that is dropped in training; 0 for none", default=0.0)
    checkpoint_activations: bool = _option(
        "compute each block again in the backward pass, to save memory", default=False
    )
    accumulate: int = _option("micro-batches per step, one after another", default=1)
    bucket_mb: float = _option("DDP: gradients gathered into one all-reduce, MiB", default=3.0)
    bucket_view: bool = _option("DDP: gradients lie in the buckets, not beside them", default=True)
    static_graph: bool = _option("DDP: the same parameters are used in every step", default=False)
    compress: str = _option(
        "DDP: what gradients are all-reduced as, which changes the losses", "none", "fp16", "bf16", "powersgd",
        default="none",
    )  # fmt: skip
    sync_every_micro_batch: bool = _option("DDP: average gradients after each micro-batch, not once", default=False)
    reshard: bool = _option("FSDP: free a block's gathered parameters after its forward pass", default=True)
    prefetch: int = _option("FSDP2: blocks gathered ahead of the one that runs", default=1)
    replicas: int = _option("FSDP: groups of ranks that each hold the whole model; above 1 it is HSDP", default=1)
    tensor: int = _option("tp, fsdp-tp: ranks that share each layer; tp takes all", default=1)
    context: int = _option("cp: ranks that share each sequence; cp takes all", default=1)
    spec: str = _option(
        "parameters sharded (fsdp), replicated (dp), split within layers (tp) or both (fsdp-tp), or sequences (cp)",
        *("fsdp", "dp", "tp", "fsdp-tp", "cp"),
        default="fsdp",
    )
    stages: int = _option("pipeline: stages, one on each rank; a pipeline's script takes all of its ranks", default=1)
    schedule: str = _option(
        "pipeline: the order in which a stage takes its micro-batches, which are those of --accumulate",
        *("none", *pipelines.SCHEDULES),
        default="none",
    )
    devices: int = _option("JAX: devices of this process; torch counts its processes instead", default=1)
    device: str = _option(
        "where to train; auto takes GPUs if there are any", "auto", "cpu", "cuda", "gpu", default="auto"
    )
    compile: bool = _option("torch: compile the model with torch.compile", default=False)
    wrap: str = _option(
        "torch: the modules that FSDP gathers one by one: auto, a class's name, or size:MILLIONS of parameters",
        default="auto",
    )
    data: str = _option(
        "where samples come from: drawn at random, Python's own manual as bytes, or scikit-learn's digits",
        "synthetic",
        "text",
        "digits",
        default="synthetic",
    )
    inject: str = _option(
        f"faults to put in, as NAME or NAME:AMOUNT with commas between: {', '.join(faults.KINDS)}",
        default="",
    )


_GPT = Options(vocab=50304, seq=1024, batch=32, lr=3e-4, precision="bf16", bucket_mb=25.0)

PRESETS: dict[str, Options] = {
    "tiny": Options(),
    "125m": replace(_GPT, model="125m", layers=12, width=768, heads=12),
    "350m": replace(_GPT, model="350m", layers=24, width=1024, heads=16),
    "1.3b": replace(_GPT, model="1.3b", layers=24, width=2048, heads=16, lr=2e-4),
    "moe": Options(model="moe", experts=8, top_k=2),
    "resnet50": Options(model="resnet50", width=64, image=64, classes=1000, batch=16),
    "mlp": Options(model="mlp", width=1024, batch=64),
}


def parse(argv: Sequence[str] | None = None) -> Options:
    """The options of a command line (``sys.argv`` by default). OptionError: an unknown flag or an unreadable value.

    An unknown preset passes here, with the numbers of ``tiny``, and is refused by :func:`check`. So has a model of the
    user's own, of which steps, batch and learning rate are all that it makes use of.
    """
    given = vars(_parser().parse_args(argv))
    return _with_faults(replace(_preset(given.get("model", "tiny")), **given))


def _preset(model: str) -> Options:
    return PRESETS.get(model) or replace(PRESETS["tiny"], model=model)


def _with_faults(options: Options) -> Options:
    """What a fault asks of the other options: buckets that hold one gradient, and dropout where keys should matter."""
    asked = faults.faults(options.inject)
    changes: dict[str, float] = {}
    if "small-buckets" in asked:
        changes["bucket_mb"] = 2**-20
    if "same-key" in asked and not options.dropout:
        changes["dropout"] = 0.1
    return replace(options, **changes)  # type: ignore[arg-type]  # both are floats


def arguments(options: Options) -> list[str]:
    """The shortest command line that :func:`parse` reads back as these options."""
    preset = _preset(options.model)
    line = ["--model", options.model]
    for option in fields(Options):
        value = getattr(options, option.name)
        if value != getattr(preset, option.name):
            line += _flags(option, value)
    return line


def check(options: Options, ranks: int, strategy: str = "") -> None:
    """Refuses what cannot be trained on ``ranks`` ranks, before anything is started. OptionError says what and why.

    With the name of a ``strategy`` it also refuses faults that make no sense there.
    """
    if options.model not in PRESETS and not families.is_own(options.model):
        hint = f"The presets are {', '.join(PRESETS)}; a model of your own is package.module:factory."
        raise OptionError(f"There is no model {options.model!r}.", hint)
    _check_values(options)
    families.check_family(options)
    if ranks < 1:
        raise OptionError(f"{ranks} ranks cannot train anything.", "Ask for one rank or more.")
    if families.has_tokens(options) and options.width % options.heads:
        raise OptionError(
            f"{options.heads} heads do not divide a width of {options.width}.",
            "Choose --heads so that --width is a multiple of it.",
        )
    check_degrees(options, ranks)
    slices = data_ranks(options, ranks)
    if options.batch % (slices * options.accumulate):
        among = f"{slices} ranks" if slices == ranks else f"{slices} × {ranks // slices} ranks"
        raise OptionError(
            f"A batch of {options.batch} does not divide into {among} × {options.accumulate} micro-batches.",
            f"Use a --batch that is a multiple of {slices * options.accumulate}.",
        )
    check_variant(options)
    pipelines.check(options, ranks)
    if options.replicas > 1:
        _check_replicas(options, ranks)
    if strategy:
        check_strategy(options, strategy, ranks)
        check_faults(options, strategy, ranks)


def _check_replicas(options: Options, ranks: int) -> None:
    if ranks % options.replicas or ranks // options.replicas < 2:
        raise OptionError(
            f"{options.replicas} replicas of at least two shards each do not make {ranks} ranks.",
            f"Ask for {2 * options.replicas} ranks, or a multiple of {options.replicas} above it.",
        )


def check_faults(options: Options, strategy: str, ranks: int) -> None:
    """Refuses faults that a strategy cannot have. OptionError says why, and where they can be injected."""
    micro_samples = options.batch // (data_ranks(options, ranks) * options.accumulate)
    faults.refuse_misfits(options.inject, strategy, ranks, steps=options.steps, micro_samples=micro_samples)


def check_strategy(options: Options, strategy: str, ranks: int) -> None:
    """Refuses a model that a strategy cannot train. OptionError says why."""
    families.check_strategy(options, strategy, ranks)


def fault_words(options: Options) -> list[str]:
    """What ``--inject`` puts in, each in a few words."""
    return list(faults.words(options.inject))


def fault_effects(options: Options, ranks: int) -> list[str]:
    """What each of them does to a run on ``ranks`` ranks."""
    return list(faults.effects(options.inject, ranks))


def samples(options: Options, rank: int = 0, ranks: int = 1) -> int:
    """Samples of one rank in one step, in ``accumulate`` micro-batches of one size."""
    micro = options.batch // (data_ranks(options, ranks) * options.accumulate)
    if rank == ranks - 1 and "ragged-batch" in faults.faults(options.inject):
        micro //= 2
    return micro * options.accumulate


def counted_samples(options: Options, rank: int = 0, ranks: int = 1) -> int:
    """The samples that a rank adds to those of the run: what several ranks train on together counts on the last one."""
    together = ranks // data_ranks(options, ranks)
    return samples(options, rank, ranks) if rank % together == together - 1 else 0


def parameter_count(options: Options) -> int:
    """Trainable numbers in the model; 0 where only the model itself can tell. A tied embedding counts once."""
    return sizes.parameters(options)


def flop_per_sample(options: Options) -> tuple[int, str]:
    """What training on a sample computes, and how that is counted; (0, "") where it is counted in another way."""
    return sizes.flop_per_sample(options)


def about(options: Options) -> str:
    """A model in a few words."""
    return families.about(options)


def sequence_length(options: Options) -> int:
    """Tokens of a sample; 0 where samples are no sequences."""
    return options.seq if families.has_tokens(options) else 0


def by_hand(train: Callable[[Options, Watch], Any], watch: Watch) -> None:
    """Trains as the command line says. A request that cannot be met ends in two lines on stderr and exit code 1."""
    try:
        train(parse(), watch)
    except OptionError as refused:
        sys.exit(f"{refused.message}\n{refused.hint}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{message[:1].upper()}{message[1:]}.", "--help lists every option.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(allow_abbrev=False, argument_default=argparse.SUPPRESS, description="Train a small model.")
    for option in fields(Options):
        flag, about = _flag(option), option.metadata["help"]
        if isinstance(option.default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=about)
        else:
            choices = option.metadata["choices"] or None
            parser.add_argument(flag, type=type(option.default), choices=choices, help=about)
    return parser


def _flag(option: Field[Any]) -> str:
    return f"--{option.name.replace('_', '-')}"


def _flags(option: Field[Any], value: Any) -> list[str]:
    if isinstance(value, bool):
        return [_flag(option) if value else f"--no-{_flag(option)[2:]}"]
    return [_flag(option), str(value)]


def _check_values(options: Options) -> None:
    for option in fields(Options):
        value, choices = getattr(options, option.name), option.metadata["choices"]
        if choices and value not in choices:
            raise OptionError(f"{_flag(option)} {value} is unknown.", f"Choose one of {', '.join(choices)}.")
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and option.name not in ("seed", "dropout")
            and not 0 < value < inf
        ):
            raise OptionError(f"{_flag(option)} {value} makes no sense.", f"{_flag(option)} must be a number above 0.")
    faults.faults(options.inject)
    if not 0 <= options.dropout < 1:
        raise OptionError(f"--dropout {options.dropout} makes no sense.", "--dropout is a share from 0 to below 1.")
    if options.seed < 0:
        raise OptionError(f"--seed {options.seed} is negative.", "Use a seed of 0 or more.")
