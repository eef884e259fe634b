"""What kinds of model there are: which options speak to each, and which strategies take which.

Standard library only, as ``options`` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from faults import faults
from refusals import OptionError

if TYPE_CHECKING:
    from options import Options

TRANSFORMER, MOE, RESNET, MLP, OWN = "transformer", "moe", "resnet", "mlp", "own"
ON_TOKENS, ON_IMAGES = (TRANSFORMER, MOE), (RESNET, MLP)

_WORDS = {
    TRANSFORMER: "the transformer",
    MOE: "a mixture of experts",
    RESNET: "ResNet-50",
    MLP: "the MLP",
    OWN: "a model of your own",
}
_SPLIT = (TRANSFORMER,), "it splits the matrices of attention and MLP"
_CUT = (TRANSFORMER,), "it cuts a stack of blocks into stages"
ONLY: dict[str, tuple[tuple[str, ...], str]] = {
    "ep": ((MOE,), "it spreads experts over ranks"),
    "jax-ep": ((MOE,), "it spreads experts over devices"),
    **dict.fromkeys(("tp", "fsdp-tp", "pjit-tp", "pjit-2d"), _SPLIT),
    **dict.fromkeys(("pp-gpipe", "pp-1f1b", "pp-interleaved", "jax-pp"), _CUT),
    "cp": ((TRANSFORMER,), "it splits sequences, and attention over them"),
}
"""Strategies that not every model can be trained under: the families that can, and why no other."""

_DATA = {"text": (ON_TOKENS, "text is for models that take tokens"), "digits": (ON_IMAGES, "digits are images")}
_BYTES, _DIGIT_SIDE = 256, 8


def family(options: Options) -> str:
    """The kind of model that is asked for; with experts a transformer is a mixture of them."""
    if is_own(options.model):
        return OWN
    named = {"resnet50": RESNET, "mlp": MLP}.get(options.model)
    return named or (MOE if options.experts > 1 else TRANSFORMER)


def is_own(model: str) -> bool:
    """Whether ``--model`` names a factory of the user's, ``package.module:factory``."""
    return ":" in model


def has_tokens(options: Options) -> bool:
    """Whether a sample is a sequence of ``--seq`` tokens."""
    return family(options) in ON_TOKENS


def about(options: Options) -> str:
    """A model in a few words: ``4 layers × 256, 64 tokens``."""
    kind = family(options)
    if kind == RESNET:
        return f"ResNet-50, {options.image} × {options.image} pixels, {options.classes} classes"
    if kind == MLP:
        return f"{options.layers} hidden layers × {options.width}, {options.image} × {options.image} pixels"
    experts = f", {options.top_k} of {options.experts} experts" if kind == MOE else ""
    return f"{options.layers} layers × {options.width}{experts}, {options.seq} tokens"


def check_family(options: Options) -> None:
    """OptionError for options that the kind of model cannot have."""
    kind = family(options)
    if kind == OWN:
        _check_name(options.model)
    if kind in ON_IMAGES and options.experts > 1:
        raise OptionError(f"{options.model} has no experts.", "Ask for a transformer with --experts: --model moe.")
    if options.top_k > options.experts:
        raise OptionError(
            f"A token cannot go to {options.top_k} of {options.experts} experts.", "Use a smaller --top-k."
        )
    if kind not in ON_TOKENS and "new-lengths" in faults(options.inject):
        raise OptionError(
            f"new-lengths makes no sense for {_WORDS[kind]}: its samples are no sequences of meshscope's own.",
            "It can be injected where tokens are trained on, for example with --model tiny.",
        )
    _check_data(options, kind)


def check_strategy(options: Options, strategy: str, ranks: int) -> None:
    """OptionError for a model that a strategy cannot train, or not on so many ranks."""
    able, why = ONLY.get(strategy, ((), ""))
    kind = family(options)
    if able and kind not in able:
        raise OptionError(
            f"{strategy} cannot train {_WORDS[kind]}: {why}.",
            f"Use --model {'moe' if able == (MOE,) else 'tiny'} with it, or another strategy.",
        )
    if able == (MOE,) and options.experts % ranks:
        raise OptionError(
            f"{options.experts} experts do not spread evenly over {ranks} ranks.",
            f"Use --experts {-(-options.experts // ranks) * ranks}, or a number of ranks that divides them.",
        )


def _check_name(model: str) -> None:
    module, _, factory = model.partition(":")
    if not factory.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise OptionError(
            f"{model} names no function of a module.", "Write a model of your own as --model package.module:factory."
        )


def _check_data(options: Options, kind: str) -> None:
    able, why = _DATA.get(options.data, ((), ""))
    if able and kind not in able:
        own = "its factory says what it trains on" if kind == OWN else why
        raise OptionError(f"--data {options.data} is not for {_WORDS[kind]}: {own}.", "Leave --data out.")
    if options.data == "text" and options.vocab < _BYTES:
        raise OptionError(f"Text has {_BYTES} tokens, and --vocab is {options.vocab}.", f"Use --vocab {_BYTES}.")
    if options.data == "digits" and (options.image % _DIGIT_SIDE or options.classes < 10):
        raise OptionError(
            f"Digits are {_DIGIT_SIDE} pixels wide and of 10 classes: they fit neither fewer classes nor "
            f"{options.image} pixels.",
            f"Use an --image that is a multiple of {_DIGIT_SIDE}, and 10 --classes or more.",
        )
