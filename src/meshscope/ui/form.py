"""What is being asked for on the start screen: a value that keys change, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.capture.request import Request
from meshscope.ui.launching import Model, Offer
from meshscope.ui.remembered import Remembered

FIELDS = ("model", "ranks", "steps", "batch")
START = "start"
_STEP = {"ranks": 1, "steps": 10, "batch": 8}
_MOST_DIGITS = 6


@dataclass(frozen=True)
class Form:
    """``chosen`` are strategies; ``ranks``, ``steps`` and ``batch`` are digits as typed, "" leaving it to the plan.

    ``at`` is the row under the cursor: a strategy, one of FIELDS, START, or ``recording N``.
    """

    offers: tuple[Offer, ...]
    models: tuple[Model, ...]
    recordings: int = 0
    chosen: frozenset[str] = frozenset()
    model: str = "tiny"
    ranks: str = ""
    steps: str = ""
    batch: str = ""
    at: str = START

    @property
    def rows(self) -> tuple[str, ...]:
        """Every row the cursor can stand on, from top to bottom."""
        shelf = tuple(f"recording {number}" for number in range(self.recordings))
        return (*(offer.strategy for offer in self.offers), *FIELDS, START, *shelf)

    @property
    def recording(self) -> int | None:
        """The recording under the cursor."""
        return int(self.at.removeprefix("recording ")) if self.at.startswith("recording ") else None

    def request(self) -> Request:
        numbers = {name: int(text) for name in ("ranks", "steps", "batch") if (text := getattr(self, name))}
        strategies = tuple(offer.strategy for offer in self.offers if offer.strategy in self.chosen)
        return Request(strategies=strategies, model=self.model, **numbers)  # type: ignore[arg-type]


def first(offers: tuple[Offer, ...], models: tuple[Model, ...], recordings: int) -> Form:
    """The usual strategies are chosen, as far as they can run here."""
    able = frozenset(offer.strategy for offer in offers if offer.is_usual and not offer.why_not)
    form = Form(offers, models, recordings, able, models[0].name if models else "tiny")
    return form if able or not recordings else replace(form, at="recording 0")


def moved(form: Form, by: int) -> Form:
    rows = form.rows
    return replace(form, at=rows[min(max(rows.index(form.at) + by, 0), len(rows) - 1)])


def crossed(form: Form) -> Form:
    """To the recordings, or back to what can be started."""
    if form.recording is not None:
        return replace(form, at=START)
    return replace(form, at="recording 0") if form.recordings else form


def toggled(form: Form) -> Form:
    """Pick or unpick the strategy under the cursor; one that cannot run here stays unpicked."""
    offer = next((offer for offer in form.offers if offer.strategy == form.at), None)
    if offer is None or offer.why_not:
        return form
    return replace(form, chosen=form.chosen ^ {offer.strategy})


def changed(form: Form, by: int) -> Form:
    """The value under the cursor, one further or back; a number below its first step is left to the plan."""
    if form.at == "model" and form.models:
        names = [model.name for model in form.models]
        at = names.index(form.model) if form.model in names else 0
        return replace(form, model=names[(at + by) % len(names)])
    if form.at in _STEP:
        step = _STEP[form.at]
        number = int(getattr(form, form.at) or 0) + by * step
        return _with(form, str(number) if number > 0 else "")
    return form


def typed(form: Form, digit: str) -> Form:
    """A digit after those that are there."""
    if form.at not in _STEP:
        return form
    text = (getattr(form, form.at) + digit).lstrip("0")
    return _with(form, text[:_MOST_DIGITS])


def erased(form: Form) -> Form:
    return _with(form, getattr(form, form.at)[:-1]) if form.at in _STEP else form


def _with(form: Form, text: str) -> Form:
    return replace(form, **{form.at: text})  # type: ignore[arg-type]


def recalled(form: Form, before: Remembered) -> Form:
    """As it was when a run was last started from it, as far as this machine still offers that."""
    able = {offer.strategy for offer in form.offers if not offer.why_not}
    chosen = frozenset(before.strategies or ()) & able
    if not chosen:
        return form
    models = [model.name for model in form.models]
    sizes = {name: getattr(before, name).lstrip("0") for name in _STEP}
    model = before.model if before.model in models else form.model
    return replace(form, chosen=chosen, model=model or form.model, **sizes)


def kept(form: Form) -> dict[str, object]:
    """What ``recalled`` needs, as :class:`~meshscope.ui.remembered.Remembered` has it."""
    strategies = [offer.strategy for offer in form.offers if offer.strategy in form.chosen]
    return {"strategies": strategies, "model": form.model, **{name: getattr(form, name) for name in _STEP}}
