"""Compilations as they happen, from ``jax.monitoring``, and why one was needed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from meshscope.capture.workers.jax_checks import SUM_NAME
from meshscope.capture.workers.jax_inputs import Inputs
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import Compiled

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_SHORT_NS = 1_000_000


class Compiles:
    """Writes an entry per stage of every compilation of a millisecond or more; a trace within a trace counts once.

    ``step`` is the step under way, ``what`` what the script says it is compiling, which is then the entry's name.
    ``on_first`` is called once a compilation shows that JAX has its devices. From the first step on every
    compilation of a function that was compiled before is a recompilation, and JAX is asked what changed.
    """

    def __init__(self, journal: RankJournal, *, on_first: Callable[[], None]) -> None:
        self._journal = journal
        self._on_first: Callable[[], None] | None = on_first
        self._seen: set[str] = set()
        self._traces: list[Compiled] = []
        self._inputs = Inputs()
        self._is_from_cache = False
        self.step = -1
        self.what = ""
        self.has_compiled = False
        jax.monitoring.register_event_duration_secs_listener(self._heard)
        jax.monitoring.register_event_listener(self._happened)

    def explain(self) -> None:
        """From now on JAX gives reasons."""
        self._inputs.explain()

    def _happened(self, event: str, **_: Any) -> None:
        if event == _CACHE_HIT:
            self._is_from_cache = True

    def _heard(self, event: str, duration_s: float, **about: Any) -> None:
        stage, name = _STAGES.get(event), str(about.get("fun_name", ""))
        if stage is None or SUM_NAME in name:
            return
        self.has_compiled = True
        if self._on_first is not None and stage != "trace":
            first, self._on_first = self._on_first, None
            first()
        entry = self._entry(name, stage, round(duration_s * 1e9))
        if stage == "trace":
            self._traces = [*(trace for trace in self._traces if not _holds(entry, trace)), entry]
            return
        self.flush()
        if stage == "compile":
            self._seen.add(name)
        self._append(entry)

    def flush(self) -> None:
        """Write the traces that no later one turned out to hold."""
        for trace in self._traces:
            self._append(trace)
        self._traces = []

    def _entry(self, name: str, stage: str, duration_ns: int) -> Compiled:
        is_program = stage == "compile"
        is_again = is_program and self.step >= 0 and name in self._seen
        reason, changed = self._inputs.compiled(name) if is_program else ("", ())
        is_from_cache = is_program and self._is_from_cache
        # JAX says that it found the program before it says how long that took.
        self._is_from_cache = self._is_from_cache and not is_program
        return Compiled(
            t_ns=self._journal.now_ns(),
            rank=self._journal.rank,
            name=self.what or name,
            stage=stage,
            duration_ns=duration_ns,
            step=self.step,
            is_recompilation=is_again,
            reason=reason,
            changed=changed if is_again else (),
            is_from_cache=is_from_cache,
        )

    def _append(self, entry: Compiled) -> None:
        if entry.duration_ns >= _SHORT_NS:
            self._journal.append(entry)


def _holds(outer: Compiled, inner: Compiled) -> bool:
    return outer.t_ns - outer.duration_ns <= inner.t_ns - inner.duration_ns
