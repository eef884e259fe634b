"""Counted memory beside published memory: ``python tests/benchmarks/advisor_memory.py [TABLE.csv] [--rows]``.

Prints per source and split: rows, mean absolute and greatest error as a share of what was measured, and how often the
90 % interval holds it; allocated and reserved apart. Rows that differ in the length of accumulation alone count once;
what a paper computed rather than measured is left out. Asserts nothing.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure
from meshscope.advisor.memory import memory
from meshscope.advisor.published import published

GIB = 2**30
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Compared:
    run_id: str
    group: tuple[str, str, str]
    measured_gib: float
    figure: Figure

    @property
    def error_frac(self) -> float:
        return self.figure.value / GIB / self.measured_gib - 1

    @property
    def is_held(self) -> bool:
        return self.figure.low <= self.measured_gib * GIB <= self.figure.high


def compared(row: dict[str, str]) -> Iterator[Compared]:
    """One of each kind of memory that the row states."""
    asked = published(row)
    forecast = memory(asked.architecture, asked.candidate, asked.cluster)
    kind, measured = row["mem_kind"], float(row["mem_gib_per_gpu"])
    source, split = row["source_key"], row["suggested_split"]
    reserved = re.search(r"max reserved ([\d.]+) GiB", kind)
    if "reserved" in kind and not reserved:
        yield Compared(row["run_id"], (source, split, "reserved"), measured, forecast.reserved)
        return
    yield Compared(row["run_id"], (source, split, "allocated"), measured, forecast.allocated)
    if reserved:
        yield Compared(row["run_id"], (source, split, "reserved"), float(reserved[1]), forecast.reserved)


def distinct(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    left_out = {"run_id", "source_where", "grad_accum", "global_batch_seqs", "tokens_per_step", "step_time_s"}
    kept = {}
    for row in rows:
        shape = {
            k: v for k, v in row.items() if k not in left_out and not re.search(r"per_s|derived|tflops|pct|notes", k)
        }
        kept.setdefault(tuple(shape.values()), row)
    return list(kept.values())


def summary(name: tuple[str, str, str], found: list[Compared]) -> str:
    errors = [abs(each.error_frac) for each in found]
    held = sum(each.is_held for each in found)
    words = f"MAPE {100 * sum(errors) / len(errors):5.2f} %  max {100 * max(errors):5.2f} %"
    return f"{name[0]:20} {name[1]:17} {name[2]:10} {len(found):3} rows  {words}  in interval {held}/{len(found)}"


def line(each: Compared) -> str:
    low, value, high = (size / GIB for size in (each.figure.low, each.figure.value, each.figure.high))
    counted = f"{value:8.2f} counted ({low:.2f} to {high:.2f})  {100 * each.error_frac:+6.2f} %"
    return f"{each.run_id:24} {each.group[2]:10} {each.measured_gib:8.2f} measured, {counted}"


def main() -> None:
    paths = [each for each in sys.argv[1:] if not each.startswith("-")]
    folder = Path(os.environ.get("MESHSCOPE_SHARED", ROOT.parent / "shared"))
    path = Path(paths[0]) if paths else folder / "data" / "published_runs.csv"
    with path.open(encoding="utf-8", newline="") as file:
        stated = [row for row in csv.DictReader(file) if row["mem_gib_per_gpu"]]
    rows = distinct([row for row in stated if row["quality_flag"] != "analytic_not_measured"])
    groups: dict[tuple[str, str, str], list[Compared]] = {}
    for row in rows:
        try:
            found = list(compared(row))
        except NotCovered as refused:
            print(f"{row['run_id']}: {refused.reason}")
            continue
        for each in found:
            groups.setdefault(each.group, []).append(each)
            if "--rows" in sys.argv:
                print(line(each))
    for name, many in sorted(groups.items()):
        print(summary(name, many))


if __name__ == "__main__":
    main()
