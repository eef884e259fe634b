"""What a machine at hand does to predicted costs: few factors, fitted to one recording, never to one prediction."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Provenance:
    """Who measured, when, on what. ``residual_frac`` is what the fit left unexplained of a step (the half width of the
    interval that 90 % of steps lie in); ``steps`` how many steps it was fitted to. Empty and 0: nothing was."""

    recording: str = ""
    made_at: str = ""
    machine: str = ""
    strategy: str = ""
    steps: int = 0
    residual_frac: float = 0.0


@dataclass(frozen=True)
class Multipliers:
    """Each is positive and multiplies a predicted duration (above 1: slower than the cost tables say); 1 leaves it.

    ``matmul``, ``attention``, ``memory_bound``: the device's work by what bounds it. ``launch``: what the host adds per
    operation. ``collective_bandwidth``, ``collective_latency``: the part of a collective that grows with its size, and
    the part that does not. ``contention``: how much longer compute takes while communication is under way beside it.
    ``step_tail``: what happens once a step beside the model (the optimizer, the loop, the wait for data).
    """

    matmul: float = 1.0
    attention: float = 1.0
    memory_bound: float = 1.0
    launch: float = 1.0
    collective_bandwidth: float = 1.0
    collective_latency: float = 1.0
    contention: float = 1.0
    step_tail: float = 1.0
    provenance: Provenance = Provenance()

    @property
    def factors(self) -> dict[str, float]:
        """By name."""
        return {each.name: float(getattr(self, each.name)) for each in fields(self) if each.name != "provenance"}

    @property
    def is_neutral(self) -> bool:
        """Nothing was measured: costs stay as the tables have them."""
        return all(factor == 1.0 for factor in self.factors.values())


NEUTRAL = Multipliers()
