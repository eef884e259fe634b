"""One measurement in a process of its own; the last line of output is JSON. For ``readers.py`` beside it.

Nothing of meshscope is imported for HolisticTraceAnalysis, whose interpreter need not have it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def least(times: int, work: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some runs."""
    took = []
    for _ in range(times):
        begun = time.process_time()
        result = work()
        took.append(time.process_time() - begun)
        del result
    return min(took)


def kineto(path: str, small: str, runs: str) -> dict[str, Any]:
    """With no runs the file is read once and held, for its memory to be looked at."""
    from meshscope.analysis import breakdown, overlap
    from meshscope.readers import kineto, kineto_columns

    def analysed() -> Any:
        (window,) = kineto.read(Path(path))
        begun = time.process_time()
        breakdown.measure(window)
        overlap.measure(window)
        took.append(time.process_time() - begun)
        return window

    took: list[float] = []
    kineto.read(Path(small))
    if runs == "0":
        return {"tables_bytes": tables_bytes(analysed().spans)}
    columns_s = least(int(runs), lambda: kineto_columns.columns(Path(path)))
    read_s = least(int(runs), lambda: kineto.read(Path(path)))
    for _ in range(int(runs)):
        analysed()
    return {"columns_s": columns_s, "read_s": read_s, "analyse_s": min(took)}


def tables_bytes(spans: Any) -> int:
    """What the columns hold; one that repeats a single value holds that."""
    from meshscope.spans import COLUMNS

    columns = [getattr(spans, name) for name in COLUMNS]
    return sum(column.itemsize if column.strides == (0,) else column.nbytes for column in columns)


def xplane(path: str, small: str, runs: str) -> dict[str, Any]:
    """With no runs the file is read once and held, for its memory to be looked at."""
    from meshscope.readers import xplane

    xplane.read(Path(small))
    if runs == "0":
        windows = xplane.read(Path(path))
        return {"tables_bytes": sum(tables_bytes(window.spans) for window in windows), "events": windows[0].counts.read}
    return {"read_s": least(int(runs), lambda: xplane.read(Path(path)))}


def overlap(count: str) -> dict[str, Any]:
    """Half of the spans are compute, half communication; as in a table, all are in order of their start."""
    import numpy as np

    from meshscope.intervals import union
    from meshscope.spans import Kind, span_table

    random_ = np.random.default_rng(0)
    n = int(count)
    start_ns = np.cumsum(random_.integers(0, 2000, n))
    end_ns = start_ns + random_.integers(1, 3000, n)
    is_compute = random_.random(n) < 0.5
    kind = np.where(is_compute, Kind.COMPUTE, Kind.COLLECTIVE).astype(np.uint8)
    spans = span_table(start_ns=start_ns, end_ns=end_ns, kind=kind)
    a = start_ns[is_compute], end_ns[is_compute]
    b = start_ns[~is_compute], end_ns[~is_compute]
    union(a[0][:9], a[1][:9]) & union(b[0][:9], b[1][:9])
    arrays_s = least(3, lambda: (union(*a) & union(*b)).total_ns)
    table_s = least(3, lambda: (spans.busy(Kind.COMPUTE) & spans.busy(Kind.COLLECTIVE)).total_ns)
    return {"arrays_s": arrays_s, "table_s": table_s}


def hta(path: str, small: str, runs: str) -> dict[str, Any]:
    logging.disable(logging.CRITICAL)
    from importlib.metadata import version

    from hta.trace_analysis import TraceAnalysis  # its parser is json unless it is told otherwise

    load_s, analyse_s = [], []
    for one in [small, *[path] * int(runs)]:
        begun = time.process_time()
        found = TraceAnalysis(trace_files={0: one}, trace_dir=os.path.dirname(one))
        load_s.append(time.process_time() - begun)
        begun = time.process_time()
        found.get_temporal_breakdown(visualize=False)
        found.get_comm_comp_overlap(visualize=False)
        analyse_s.append(time.process_time() - begun)
        del found
    return {"load_s": min(load_s[1:]), "analyse_s": min(analyse_s[1:]), "version": version("HolisticTraceAnalysis")}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
