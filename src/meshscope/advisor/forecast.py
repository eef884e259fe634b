"""What is predicted of one candidate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from meshscope.advisor.figures import Figure
from meshscope.kinds import Kind


class Fit(StrEnum):
    """``FITS`` is said only where even the upper bound fits."""

    FITS = "fits"
    DOES_NOT = "does not fit"
    TOO_CLOSE = "too close to say"


@dataclass(frozen=True)
class MemoryForecast:
    """Of the device that needs most, at its peak, in bytes. ``categories`` are parts of ``allocated``: parameters,
    gradients, optimizer, activations, logits, communication (buckets, gathered parameters), temporaries.

    ``reserved`` adds what the allocator holds beyond that; ``used`` what is outside of it (context, NCCL's buffers):
    that is compared with the device's memory. ``stage`` is the pipeline stage that needs most.
    """

    categories: dict[str, Figure]
    allocated: Figure
    reserved: Figure
    used: Figure
    limit_bytes: float
    fit: Fit
    stage: int = 0


@dataclass(frozen=True)
class PredictedSpan:
    """One piece of the simulated step. ``rank_class`` stands for all ranks alike (one per pipeline stage, and the late
    one); ``lane`` is a stream; ``group`` the collective's."""

    rank_class: int
    lane: str
    name: str
    kind: Kind
    start_ns: int
    end_ns: int
    size_bytes: int = 0
    group: str = ""
    phase: str = ""


@dataclass(frozen=True)
class TimeForecast:
    """Of one step. ``compute_s`` + ``exposed_s`` + ``bubble_s`` + ``idle_s`` = ``step_s``'s value, of the rank class
    that ends last. ``exposed_by`` says which collectives are exposed, by name; ``hidden_s`` is the communication beside
    compute. ``terms`` are the arithmetic, term by term, in the order of the step."""

    step_s: Figure
    compute_s: float
    exposed_s: float
    bubble_s: float
    idle_s: float
    hidden_s: float
    exposed_by: dict[str, float]
    mfu_frac: float
    tokens_per_s: float
    terms: tuple[Term, ...] = ()
    spans: tuple[PredictedSpan, ...] = ()


@dataclass(frozen=True)
class Term:
    """``figure`` seconds (or bytes) of ``name``, counted ``times`` times; ``arithmetic`` spells it out."""

    name: str
    figure: Figure
    times: float
    arithmetic: str


@dataclass(frozen=True)
class Forecast:
    """``time`` or ``memory`` is None where the model does not cover the question; ``cannot_say`` has the reasons."""

    memory: MemoryForecast | None
    time: TimeForecast | None
    cannot_say: tuple[str, ...] = ()
