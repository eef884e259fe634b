"""What is being asked for on the advise screen: a few words that keys change, and which of them has the keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.numerics import NUMERICS
from meshscope.advisor.presets import is_own
from meshscope.advisor.request import Posed, Request, posed
from meshscope.errors import InputError

FIELDS = ("model", "devices", "sequence", "batch", "precision")
AUTO = "auto"
_NUMBERS = ("sequence", "batch")
_MOST_LETTERS = 160
_MOST_NUMBER = 10**9
_CHOICES = {
    "model": ("125m", "350m", "1.3b", "7b", "8b", "13b", "30b", "70b", "175b", "405b", "mixtral", "671b"),
    "devices": ("1xH100", "8xH100", "8xA100-40GB", "8xA100-80GB", "8xH200", "8xB200", "4x8xH100", "64xH100",
                "512xH100", "4096xH100"),
    "precision": (AUTO, *NUMERICS),
}  # fmt: skip

_NOTHING_MORE = Request("", "")


@dataclass(frozen=True)
class Form:
    """Texts as typed; "" leaves sequence, batch and precision to what is usual.

    ``at`` is the field that has the keys, "" where the candidates have them. ``base`` holds what there is no field for
    (strategies, frameworks, …), ``multipliers`` what is known of the machine.
    """

    model: str = "1.3b"
    devices: str = "8xH100"
    sequence: str = ""
    batch: str = ""
    precision: str = ""
    at: str = ""
    base: Request = _NOTHING_MORE
    multipliers: Multipliers = NEUTRAL

    @property
    def asked(self) -> tuple[str, ...]:
        """What the answer depends on."""
        return tuple(getattr(self, name).strip() for name in FIELDS)


def moved(form: Form, by: int) -> Form:
    """The field above or below; stops at both ends."""
    at = FIELDS.index(form.at) if form.at else 0
    return replace(form, at=FIELDS[min(max(at + by, 0), len(FIELDS) - 1)])


def crossed(form: Form) -> Form:
    """To the fields, or back to the candidates."""
    return replace(form, at="" if form.at else FIELDS[0])


def typed(form: Form, text: str) -> Form:
    """Characters after those that are there; only digits where a number is wanted."""
    if not form.at:
        return form
    kept = "".join(c for c in text if c.isprintable() and (form.at not in _NUMBERS or ("0" <= c <= "9")))
    return _with(form, (getattr(form, form.at) + kept)[:_MOST_LETTERS])


def erased(form: Form, count: int = 1) -> Form:
    """Without the last characters."""
    return _with(form, getattr(form, form.at)[:-count]) if form.at else form


def changed(form: Form, by: int) -> Form:
    """The next of the usual choices, or twice or half of a number."""
    if form.at in _NUMBERS:
        return _with(form, _scaled(getattr(form, form.at), by))
    known = _CHOICES.get(form.at, ())
    if not known:
        return form
    text = getattr(form, form.at).strip() or AUTO
    at = known.index(text) + by if text in known else (0 if by > 0 else -1)
    word = known[at % len(known)]
    return _with(form, "" if word == AUTO else word)


def _scaled(text: str, by: int) -> str:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not number:
        return "1024" if by > 0 else ""
    return str(min(number * 2, _MOST_NUMBER)) if by > 0 else str(number // 2 or "")


def _with(form: Form, text: str) -> Form:
    return replace(form, **{form.at: text})  # type: ignore[arg-type]


def question(form: Form) -> Posed:
    """What the words ask. Raises InputError, which names what is wrong."""
    model, devices, sequence, batch, precision = form.asked
    if is_own(model):
        hint = "Ask on the command line: meshscope advise --model package.module:factory"
        raise InputError("A model of your own has to be counted by its framework first.", hint=hint)
    if not model or not devices:
        raise InputError(f"No {'model' if not model else 'devices'} to ask about.", hint="Such as 1.3b and 8xH100.")
    request = replace(
        form.base,
        model=model,
        devices=devices,
        seq_len=_number("sequence", sequence),
        batch=_number("batch", batch),
        precision="" if precision == AUTO else precision,
    )
    return posed(request, form.multipliers)


def asking(request: Request, multipliers: Multipliers = NEUTRAL) -> Form:
    """The form that says what a request says; what it has no field for is kept."""
    return Form(
        model=request.model,
        devices=request.devices,
        sequence=str(request.seq_len or ""),
        batch=str(request.batch or ""),
        precision=request.precision,
        base=request,
        multipliers=multipliers,
    )


def _number(field: str, text: str) -> int:
    if not text:
        return 0
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= _MOST_NUMBER:
        raise InputError(f"{field}: {text!r} is no number from 1 to {_MOST_NUMBER:,}.", hint="Type digits alone.")
    return number
