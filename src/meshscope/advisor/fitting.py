"""Few factors from few measurements: least squares of logarithms, robust, with a prior for each factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meshscope.advisor.multipliers import Multipliers

Floats = npt.NDArray[np.float64]
Predict = Callable[[Multipliers], Mapping[str, float]]

_ROUNDS = 25
_STEP = 1e-3
_HUBER = 2.0
"""Residuals beyond as many of their widths pull with their sign alone (Huber 1964)."""
_LEAST_S = 1e-7
"""Of shorter times no ratio is formed."""


@dataclass(frozen=True)
class Observed:
    """``seconds`` of what the model calls ``name``, known up to a factor of about ``1 ± width_frac``."""

    name: str
    seconds: float
    width_frac: float


@dataclass(frozen=True)
class Fitted:
    """``residuals`` maps each observation to measured over predicted, less one."""

    multipliers: Multipliers
    residuals: dict[str, float]


def fitted(predict: Predict, observed: tuple[Observed, ...], priors: Mapping[str, float]) -> Fitted:
    """The most likely factors: each lies within a factor of about ``1 ± priors[name]`` around 1 before anything was
    measured, those without a prior are not touched. Gauss-Newton with reweighting, damped; what the model predicts
    need not be smooth in them, so the best round stands.
    """
    names = list(priors)
    usable = tuple(one for one in observed if one.seconds > _LEAST_S)
    at, best, least = np.zeros(len(names)), np.zeros(len(names)), np.inf
    for _ in range(_ROUNDS):
        residual, slope = _linear(predict, usable, names, at)
        loss = _loss(residual, at, priors, names)
        if loss < least:
            best, least = at, loss
        step = _step(residual, slope, at, priors, names)
        if np.abs(step).max(initial=0.0) < _STEP:
            break
        at = at + np.clip(step, -0.7, 0.7)
    found = _multipliers(names, best)
    told = predict(found)
    gaps = {one.name: one.seconds / max(told.get(one.name, 0.0), _LEAST_S) - 1 for one in usable}
    return Fitted(found, gaps)


def _multipliers(names: list[str], logs: Floats) -> Multipliers:
    factors = {name: float(np.exp(value)) for name, value in zip(names, logs, strict=True)}
    return replace(Multipliers(), **factors)  # type: ignore[arg-type]  # each is a float


def _residual(predict: Predict, usable: tuple[Observed, ...], names: list[str], at: Floats) -> Floats:
    told = predict(_multipliers(names, at))
    logs = [np.log(one.seconds / max(told.get(one.name, 0.0), _LEAST_S)) / one.width_frac for one in usable]
    return np.array(logs, dtype=np.float64)


def _linear(predict: Predict, usable: tuple[Observed, ...], names: list[str], at: Floats) -> tuple[Floats, Floats]:
    residual = _residual(predict, usable, names, at)
    slope = np.zeros((len(usable), len(names)))
    for column in range(len(names)):
        moved = at.copy()
        moved[column] += 0.02
        slope[:, column] = (_residual(predict, usable, names, moved) - residual) / 0.02
    return residual, slope


def _weights(residual: Floats) -> Floats:
    size = np.abs(residual)
    found: Floats = np.where(size <= _HUBER, 1.0, _HUBER / np.maximum(size, 1e-9))
    return found


def _loss(residual: Floats, at: Floats, priors: Mapping[str, float], names: list[str]) -> float:
    size = np.abs(residual)
    robust = np.where(size <= _HUBER, size**2, 2 * _HUBER * size - _HUBER**2)
    widths = np.array([np.log1p(priors[name]) for name in names])
    return float(robust.sum() + ((at / widths) ** 2).sum())


def _step(residual: Floats, slope: Floats, at: Floats, priors: Mapping[str, float], names: list[str]) -> Floats:
    weight = _weights(residual)[:, None]
    widths = np.array([np.log1p(priors[name]) for name in names])
    normal = slope.T @ (weight * slope) + np.diag(1 / widths**2)
    pull = -slope.T @ (weight[:, 0] * residual) - at / widths**2
    found: Floats = np.linalg.solve(normal, pull)
    return found
