"""Whether a published step time is possible at all: ``1.3b 8xA100 256x512 180ms``.

MODEL N×DEVICE BATCH×SEQ TIME, in any order and case: a preset or a number of parameters, devices, the global batch in
samples and the sequence length in tokens, and the time of a step. A precision may be added; bf16 is assumed, or fp16
where the device has no bf16.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from meshscope.analysis.model_flops import Flops, Shape, flops, least_flops
from meshscope.analysis.peaks import DEVICES, PRECISIONS, Device, device
from meshscope.errors import InputError

IMPOSSIBLE, UNHEARD_OF, POSSIBLE = "impossible", "faster than any measured", "possible"
EXAMPLE = '--claim "1.3b 8xA100 256x512 180ms"'

_MOST = 1e15

_USUAL_CEILING_FRAC = 0.85
"""Of a datasheet's peak: what the best matrix products reach on the devices where somebody measured them, at most."""

_MOST_ROUNDED_FRAC = 0.05
"""By how much a model is smaller than it is called, at most: 7b have 6.7, 30b more than 30 (published models)."""

_SCALE = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_MODEL = re.compile(r"(\d+(?:\.\d+)?)([kmbt])")
_PAIR = re.compile(r"(\d+)x(\d+)")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|µs|ms|sec|s)(?:/step)?")
_MANY = re.compile(r"(\d+)x(.+)")
_MANY_AFTER = re.compile(r"(.+)x(\d+)")
_BARE_CARDS = ("3090", "4090")
_NOISE = ("params", "parameters", "per", "step", "a", "on", "batch", "seq", "in")


@dataclass(frozen=True)
class Claim:
    """``batch`` samples of ``seq`` tokens in ``time_s`` on ``count`` devices. ``shape`` is all that is known of the
    model: a mere number of parameters tells no layers, and so no attention, and may have been rounded.
    """

    text: str
    model: str
    shape: Shape
    count: int
    device: Device
    batch: int
    seq: int
    time_s: float
    precision: str
    is_precision_assumed: bool

    @property
    def tokens(self) -> int:
        return self.batch * self.seq


@dataclass(frozen=True)
class Bound:
    """The least time for a step at some rate: ``flop`` (of all tokens) over ``rate`` (of all devices)."""

    counted: Flops
    flop: float
    flops_per_s: float
    time_s: float


@dataclass(frozen=True)
class Judgement:
    """``bound`` is by the usual count of FLOPs, ``least`` by what cannot be left out, both at the datasheet's peak.

    ``ceiling`` is by the usual count at the best rate ever measured on the device, or, where nobody published one in
    this precision (``is_ceiling_assumed``), at 85 % of the peak. ``mfu_frac`` is the claim's share of the peak.
    ``verdict``: impossible (below ``least``), faster than any measured (at or above it, but below what the ceiling
    needs), possible.
    """

    claim: Claim
    verdict: str
    bound: Bound
    least: Bound
    ceiling: Bound
    is_ceiling_assumed: bool
    mfu_frac: float


def judgement(claim: Claim) -> Judgement:
    """The claim against the device's ceilings."""
    peak = claim.device.peak_flops_per_s[claim.precision]
    usual, least = flops(claim.shape, claim.seq), least_flops(claim.shape, claim.seq)
    bound, floor = _bound(claim, usual, peak), _bound(claim, least, peak)
    measured = claim.device.measured_flops_per_s if claim.precision in ("bf16", "fp16") else 0.0
    ceiling = measured or _USUAL_CEILING_FRAC * peak
    slowest_s = _bound(claim, least, ceiling).time_s
    verdict = IMPOSSIBLE if claim.time_s < floor.time_s else UNHEARD_OF if claim.time_s < slowest_s else POSSIBLE
    return Judgement(
        claim, verdict, bound, floor, _bound(claim, usual, ceiling), not measured, bound.time_s / claim.time_s
    )


def _bound(claim: Claim, counted: Flops, flops_per_s: float) -> Bound:
    flop, rate = counted.per_token * claim.tokens, flops_per_s * claim.count
    return Bound(counted, flop, rate, flop / rate)


def claim(text: str, presets: Mapping[str, Shape]) -> Claim:
    """Reads a claim. ``presets`` maps names of models to their shapes. Raises InputError: what is missing or unread."""
    words = _words(text)
    found = _Parts(presets)
    for word in words:
        if not found.take(word):
            raise InputError(f"The claim's {word!r} means nothing here.", hint=_grammar(presets))
    return found.claim(text)


def _grammar(presets: Mapping[str, Shape]) -> str:
    return (
        f"Write it like {EXAMPLE}: a number of parameters or a model ({', '.join(presets)}), count and device in one "
        f"word, batch x sequence length, the step's time in us, ms or s; a precision may be {', '.join(PRECISIONS)}."
    )


def _words(text: str) -> list[str]:
    """Lower case, one word per part: what belongs together is often written apart (``8 x A100``, ``180 ms``)."""
    plain = re.sub(r"[×*]", "x", text.lower().strip())
    plain = re.sub(r"(tpu|rtx|geforce|nvidia|amd|instinct|tesla)[ -]*(?=[a-z\d])", "", plain)
    plain = re.sub(r"(?<=[\da-z]) *\bx\b *(?=[\da-z])", "x", plain)
    plain = re.sub(r"(?<=\d) +(?=(us|µs|ms|sec|s|k|m|b|t)\b)", "", plain)
    return [word for word in re.split(r"[\s,;@]+", plain) if word and word not in _NOISE]


class _Parts:
    """The parts of a claim as words are taken, each once."""

    def __init__(self, presets: Mapping[str, Shape]) -> None:
        self._presets = presets
        self._model: tuple[str, Shape] | None = None
        self._devices: tuple[int, Device] | None = None
        self._tokens: tuple[int, int] | None = None
        self._time_s: float | None = None
        self._precision = ""

    def take(self, word: str) -> bool:
        return any(take(word) for take in (self._take_precision, self._take_time, self._take_model,
                                           self._take_tokens, self._take_devices))  # fmt: skip

    def _take_precision(self, word: str) -> bool:
        if word not in PRECISIONS or self._precision:
            return False
        self._precision = word
        return True

    def _take_time(self, word: str) -> bool:
        found = _TIME.fullmatch(word)
        if found is None or self._time_s is not None:
            return False
        self._time_s = _number(found[1]) * _SECONDS[found[2]]
        return True

    def _take_model(self, word: str) -> bool:
        if self._model is not None:
            return False
        found = _MODEL.fullmatch(word)
        if word in self._presets:
            self._model = word, self._presets[word]
        elif found is not None:
            scale = _SCALE[found[2]]
            digit, size = 10.0 ** -len(found[1].partition(".")[2]), _number(found[1])
            self._model = word, Shape(size * scale, uncounted=min(digit / 2, _MOST_ROUNDED_FRAC * size) * scale)
        return self._model is not None

    def _take_tokens(self, word: str) -> bool:
        found = _PAIR.fullmatch(word)
        if found is None or self._tokens is not None or (found[2] in _BARE_CARDS and self._devices is None):
            return False
        self._tokens = int(_number(found[1])), int(_number(found[2]))
        return True

    def _take_devices(self, word: str) -> bool:
        if self._devices is not None:
            return False
        before, after = _MANY.fullmatch(word), _MANY_AFTER.fullmatch(word)
        count, name = (before[1], before[2]) if before else (after[2], after[1]) if after else ("1", word)
        known = device(name)
        if known is None:
            if before or after:
                names = ", ".join(known.name for known in DEVICES)
                raise InputError(f"There is no datasheet here for the device {name!r}.", hint=f"Known are {names}.")
            return False
        self._devices = int(_number(count)), known
        return True

    def claim(self, text: str) -> Claim:
        missing = [
            name
            for name, part in (
                ("the model (1.3b)", self._model),
                ("the devices (8xA100)", self._devices),
                ("batch and sequence length (256x512)", self._tokens),
                ("the time of a step (180ms)", self._time_s),
            )
            if part is None
        ]
        if missing or not (self._model and self._devices and self._tokens and self._time_s is not None):
            raise InputError(f"The claim lacks {', '.join(missing)}.", hint=f"Write it like {EXAMPLE}.")
        (model, shape), (count, known), (batch, seq) = self._model, self._devices, self._tokens
        precision = self._precision or next(iter(known.peak_flops_per_s))
        if precision == "fp32" and "tf32" in known.peak_flops_per_s:
            precision = "tf32"  # Frameworks may multiply fp32 in tf32: the claim gets the faster of the two.
        if precision not in known.peak_flops_per_s:
            raise InputError(
                f"The datasheet of {known.name} has no {precision}.",
                hint=f"It has {', '.join(known.peak_flops_per_s)}.",
            )
        return Claim(text, model, shape, count, known, batch, seq, self._time_s, precision, not self._precision)


def _number(digits: str) -> float:
    value = float(digits)
    if not 0 < value < _MOST:
        raise InputError(f"{digits} makes no sense in a claim.", hint=f"Write it like {EXAMPLE}.")
    return value
