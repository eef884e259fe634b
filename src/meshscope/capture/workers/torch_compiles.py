"""What torch.compile compiled, from the records that TorchDynamo keeps of it.

They are read after each step, and only where the script itself has loaded TorchDynamo: a run without torch.compile
pays for one look at ``sys.modules``. ``torch._dynamo.utils.get_compilation_metrics`` is how torch's own tools read
them, and has been there since torch 2.1; its records gained fields, so each is taken where it is there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import Compiled

_MODULE, _RECORDS = "torch._dynamo.utils", "get_compilation_metrics"
_NEITHER = "torch.compile is in use, and this version of torch does not tell what it compiles."
_SIZE = re.compile(r"tensor '(.+?)' size mismatch at index (\d+)\. expected (\S+), actual (\S+)")
_DTYPE = re.compile(r"tensor '(.+?)' dtype mismatch\. expected (\S+), actual (\S+)")
_RANK = re.compile(r"tensor '(.+?)' rank mismatch\. expected (\S+), actual (\S+)")
_STRIDE = re.compile(r"tensor '(.+?)' stride mismatch at index (\d+)\. expected (\S+), actual (\S+)")
_GUARD = re.compile(r"^\d+/\d+: ")
_COMMENT = re.compile(r"\s{2,}# .*$")
_LONGEST = 500


class TorchCompiles:
    """``take`` writes an entry per program that was compiled since it was last called."""

    def __init__(self, journal: RankJournal) -> None:
        self._journal = journal
        self._last: Any = None
        self._has_refused = False

    def take(self, step: int) -> bool:
        """Whether something was compiled. A backward pass belongs to the program of its forward pass."""
        records = self._new()
        programs: dict[object, list[Any]] = {}
        for record in records:
            programs.setdefault(getattr(record, "compile_id", None) or id(record), []).append(record)
        for parts in programs.values():
            self._journal.append(self._entry(parts, step))
        return bool(programs)

    def skip(self) -> None:
        """Leave out what was compiled since: it is part of what the script itself said that it compiles."""
        self._new()

    def _new(self) -> Sequence[Any]:
        ask = self._door()
        records = list(ask()) if ask is not None else []
        if not records:
            return []
        at = next((at for at, record in enumerate(records) if record is self._last), -1)
        if at < 0 and self._last is not None:
            self._journal.log("warning", f"The earliest of more than {len(records)} compilations are not counted.")
        self._last = records[-1]
        return records[at + 1 :]

    def _door(self) -> Callable[[], Iterable[Any]] | None:
        dynamo = sys.modules.get(_MODULE)
        ask: Callable[[], Iterable[Any]] | None = getattr(dynamo, _RECORDS, None)
        if dynamo is not None and ask is None and not self._has_refused:
            self._has_refused = True
            self._journal.log("info", _NEITHER)
        return ask

    def _entry(self, parts: Sequence[Any], step: int) -> Compiled:
        told = next((part for part in parts if getattr(part, "co_name", None)), parts[0])
        reason = str(getattr(told, "recompile_reason", None) or "")
        return Compiled(
            t_ns=self._journal.now_ns(),
            rank=self._journal.rank,
            name=_name(told),
            stage="compile",
            duration_ns=sum(_duration_ns(part) for part in parts),
            step=step,
            is_recompilation=bool(reason),
            reason=_guard(reason),
            changed=changes(reason),
        )


def changes(reason: str) -> tuple[str, ...]:
    """What a guard that failed says of the inputs: ``tokens dim 0: 8 → 7``. () for a guard on something else."""
    said = [f"{name} dim {dim}: {before} → {now}" for name, dim, before, now in _SIZE.findall(reason)]
    said += [f"{name} dtype: {before} → {now}" for name, before, now in _DTYPE.findall(reason)]
    said += [f"{name} number of dims: {before} → {now}" for name, before, now in _RANK.findall(reason)]
    said += [f"{name} stride of dim {dim}: {before} → {now}" for name, dim, before, now in _STRIDE.findall(reason)]
    return tuple(dict.fromkeys(said))


def _guard(reason: str) -> str:
    """The guard alone, without the number of the program that it guards and the stack of the line that set it."""
    first = reason.partition("\n")[0]
    return _COMMENT.sub("", _GUARD.sub("", first)).strip()[:_LONGEST]


def _name(told: Any) -> str:
    """``forward (model.py:12)``: many functions are called forward."""
    name = str(getattr(told, "co_name", None) or "a compiled function")
    path, line = getattr(told, "co_filename", None), getattr(told, "co_firstlineno", None)
    return f"{name} ({str(path).rpartition('/')[2]}:{line})" if path and line else name


def _duration_ns(record: Any) -> int:
    """0 where a record does not say."""
    whole_us = getattr(record, "duration_us", None)
    if isinstance(whole_us, int) and whole_us >= 0:
        return whole_us * 1000
    frame_s = getattr(record, "entire_frame_compile_time_s", None)
    return max(round(frame_s * 1e9), 0) if isinstance(frame_s, float) else 0
