"""Leaves a torch rank's flight recorder in the recording when the supervisor asks: the calls that it is stuck in."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from meshscope.capture.calls import newest, waits_in
from meshscope.capture.workers import stalls
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import FlightWritten
from meshscope.recording.layout import FLIGHT, write_whole

_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")


def listen(recording: Path, journal: RankJournal) -> None:
    """Call from the main thread before any other is started; see :func:`stalls.listen`."""
    stalls.listen(recording, journal, dump)


def dump(recording: Path, journal: RankJournal) -> None:
    """Write the dump and tell of it; a rank that has not begun to communicate has none."""
    content = _content()
    if content is None:
        return
    path = f"{FLIGHT}/flight_record_rank{journal.rank}.pickle"
    write_whole(recording / path, content)
    found = pickle.loads(content)
    entry = FlightWritten(
        t_ns=journal.now_ns(), rank=journal.rank, path=path, newest=newest(found), waits_in=waits_in(found)
    )
    journal.append(entry)


def dump_where_on(recording: Path, journal: RankJournal) -> None:
    """As :func:`dump`, where the script records calls anyhow: with gloo, or by a variable that its user has set."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return
    if "nccl" not in dist.get_backend() or any(os.environ.get(name, "0") not in ("", "0") for name in _VARIABLES):
        dump(recording, journal)


def _content() -> bytes | None:
    """The recorder's pickle. gloo always records, NCCL since TORCH_FR_BUFFER_SIZE was set for it."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return None
    from torch._C import _distributed_c10d as c10d

    name = "_dump_nccl_trace" if "nccl" in dist.get_backend() else "_dump_fr_trace"
    recorder = getattr(c10d, name, None)
    return None if recorder is None else bytes(recorder())


def stuck_in() -> str:
    """The collective that this rank is in now, or failed in; "" where nothing tells."""
    content = _content()
    return "" if content is None else waits_in(pickle.loads(content))
