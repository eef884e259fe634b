"""Kinds of the rows of a Kineto file with device events: categories first, kernels by what they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind, is_any
from meshscope.readers.growing import filled
from meshscope.readers.kineto_columns import COPY, KERNEL, RUNTIME, Columns
from meshscope.readers.told import Told, by_name, is_undecided, renamed
from meshscope.readers.windows import WORK

HOST = ("cpu_op", "operator", "user_annotation", "python_function", "", *RUNTIME)


def told(columns: Columns, is_device: npt.NDArray[np.bool_]) -> Told:
    """A kernel whose trace says which collective it is is one, whatever its name; sync records are no device work."""
    base = by_name(columns.name, columns.names, is_device & columns.is_of(KERNEL), kinds.KERNELS)
    kind, rule = base.kind, base.rule
    kind[is_device & columns.is_of(COPY)] = Kind.COPY
    kind[columns.is_of(HOST)] = Kind.HOST
    kind[is_launch(columns, is_device)] = Kind.LAUNCH
    recorded = np.flatnonzero(is_device & columns.is_of(KERNEL) & (columns.collective >= 0) & is_undecided(base))
    if not len(recorded):
        return base
    kind[recorded], rule[recorded] = Kind.COLLECTIVE, len(base.rules)
    names = [kinds.collective(columns.collectives[number]) for number in columns.collective[recorded].tolist()]
    cited = Told(kind, rule, base.collective, (*base.rules, kinds.RECORDED), base.collectives)
    return renamed(cited, recorded, names)


def is_launch(columns: Columns, is_device: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Runtime calls whose correlation a device event carries."""
    wanted = columns.correlation[is_device]
    found = columns.is_of(RUNTIME)
    found[found] = np.isin(columns.correlation[found], wanted[wanted > 0])
    return found


def launches(correlation: npt.NDArray[np.int64], kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """The row of each device row's launch, −1 where it is not in the file; shape (n,)."""
    device = np.flatnonzero(is_any(kind, WORK) & (correlation > 0))
    link = filled(len(kind), np.int64, -1)
    link[device] = launches_of(device, correlation, kind)
    return link


def launches_of(
    rows: npt.NDArray[np.int64], correlation: npt.NDArray[np.int64], kind: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """The row of the launch of each of some device rows, −1 where it is not in the file; shape (len(rows),)."""
    launch = np.flatnonzero(kind == Kind.LAUNCH)
    if not len(launch):
        return np.full(len(rows), -1, dtype=np.int64)
    launch = launch[np.argsort(correlation[launch], kind="stable")]
    wanted = correlation[rows]
    at = np.minimum(np.searchsorted(correlation[launch], wanted), len(launch) - 1)
    is_same = (correlation[launch[at]] == wanted) & (wanted > 0)
    return np.where(is_same, launch[at], -1)
