"""Following an attached job without a screen: what is done, line by line, and how a person leaves."""

from __future__ import annotations

import click

from meshscope.recording.entries import TraceWritten
from meshscope.run import Gallery, Run
from meshscope.units import printable, size


class Told:
    """Prints what stands in the journals and was not printed before."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._logs: dict[str, int] = {}
        self._traces: dict[str, int] = {}

    def look(self, now_unix_ns: int) -> None:
        _, runs = self._gallery.at(now_unix_ns)
        for run in runs:
            for entry in run.logs[self._logs.get(run.name, 0) :]:
                click.echo(_line(run, entry.rank, entry.text))
            for trace in run.traces[self._traces.get(run.name, 0) :]:
                click.echo(_line(run, trace.rank, _written(trace)))
            self._logs[run.name], self._traces[run.name] = len(run.logs), len(run.traces)


def _written(trace: TraceWritten) -> str:
    return f"trace of {size(trace.size_bytes)}: {trace.path}"


def _line(run: Run, rank: int, text: str) -> str:
    return printable(f"{run.name}  {f'rank {rank}  ' if rank >= 0 else ''}{text}")
