"""A baseline: the figures of a side in a file, so that later runs can be compared without the recording."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from meshscope.analysis.figures import PARTS, Figures
from meshscope.errors import InputError

FORMAT = 1
KIND = "meshscope baseline"
_HINT = "Save it anew: meshscope compare --save-baseline FILE RECORDING"


class _Head(msgspec.Struct):
    kind: str = ""
    format: int = 0


class _Baseline(msgspec.Struct, kw_only=True):
    kind: str = KIND
    format: int = FORMAT
    runs: list[Figures]


def encoded(runs: Sequence[Figures]) -> bytes:
    """The runs as JSON; what is not known is null."""
    return msgspec.json.encode(_Baseline(runs=list(runs))) + b"\n"


def decoded(content: bytes, name: str) -> tuple[Figures, ...]:
    """The runs of a file called ``name``. Raises InputError for what is damaged or of a later format."""
    try:
        head = msgspec.json.decode(content, type=_Head)
    except msgspec.MsgspecError as error:
        raise InputError(f"{name} is damaged: {error}.", hint=_HINT) from error
    if head.kind != KIND:
        raise InputError(f"{name} is no baseline of meshscope.", hint=_HINT)
    if head.format > FORMAT:
        raise InputError(
            f"{name} has format {head.format}; this meshscope reads up to {FORMAT}.",
            hint="Upgrade it: pip install --upgrade meshscope",
        )
    try:
        runs = msgspec.convert(_known(msgspec.json.decode(content)), _Baseline).runs
    except msgspec.MsgspecError as error:
        raise InputError(f"{name} is damaged: {error}.", hint=_HINT) from error
    for run in runs:
        _refuse_unsound(run, name)
    if not runs:
        raise InputError(f"{name} holds no run.", hint=_HINT)
    return tuple(runs)


def is_baseline(start: bytes) -> bool:
    """Whether a file that starts so says that it is one (the keys are written in this order)."""
    return start.lstrip()[:1] == b"{" and KIND.encode() in start


def _known(plain: Any) -> Any:
    """Null stands for NaN."""
    if isinstance(plain, dict):
        return {name: _known(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_known(value) for value in plain]
    return math.nan if plain is None else plain


def _refuse_unsound(run: Figures, name: str) -> None:
    """Numbers that no run can have: the file was changed by hand, or half of it is another's."""
    per_step = {len(run.step_ns), len(run.data_wait_ns), len(run.others_cores), len(run.idle_cores)}
    per_profiled = {len(values) for work in run.works.works for values in (work.count, work.total_ns)}
    is_sound = (
        len(per_step) == 1
        and all(ns > 0 for ns in run.step_ns)
        and per_profiled <= {len(run.works.steps)}
        and all(value >= 0 for work in run.works.works for value in (*work.count, *work.total_ns))
        and set(run.parts_ns) == set(PARTS)
        and {len(values) for values in run.parts_ns.values()} <= {len(run.works.steps), 0}
        and all(math.isfinite(value) and value >= 0 for values in run.parts_ns.values() for value in values)
        and not run.samples_per_step < 0
    )
    if not is_sound:
        raise InputError(f"{name} is damaged: its numbers do not fit together.", hint=_HINT)
