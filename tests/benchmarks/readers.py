"""What opening a large trace costs: run by hand, ``python tests/benchmarks/readers.py``; prints figures, asserts none.

Traces of the corpus beside the project, or made ones, are repeated to 50 MB, 250 MB and 1 GB. Every figure is CPU
time of all threads (``process_time``) in a process of its own, after a first reading of a small file that pays for
imports; the least of several runs. Memory is the most anonymous memory of such a process (RssAnon, interpreter and
imports included), less the columns that are kept in the end. HolisticTraceAnalysis runs in the same session where
``--hta-python`` names an interpreter that has it (0.5.0, pandas < 3), with its json parser, in the same way.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import measured
import traces

from meshscope import fast

MB = 1_000_000
SMALL = 200_000


@dataclass(frozen=True)
class Line:
    """One line of the table. ``is_met`` is None where there is no target."""

    what: str
    figure: str
    target: str = ""
    is_met: bool | None = None

    def __str__(self) -> str:
        verdict = {None: "", True: "holds", False: "MISSED"}[self.is_met]
        return f"{self.what:<58}{self.figure:>18}   {self.target:<22}{verdict}"


def at_most(what: str, value: float, unit: str, target: float, digits: int = 2) -> Line:
    return Line(what, f"{value:.{digits}f} {unit}", f"≤ {target:g} {unit}", value <= target)


def at_least(what: str, value: float, unit: str, floor: float, goal: float | None = None) -> Line:
    target = f"≥ {floor:g} {unit}" + (f", goal {goal:g}" if goal else "")
    return Line(what, f"{value:.1f} {unit}", target, value >= floor)


def child(name: str, *arguments: object, is_fast: bool, python: str = sys.executable) -> dict[str, Any]:
    """The figures of one measurement in a fresh process, with the most anonymous memory seen from here."""
    env = os.environ | {fast.SWITCH: "1" if is_fast else "0"}
    command = [python, str(Path(measured.__file__)), name, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, anonymous_bytes(process.pid))
        time.sleep(0.002)
    out = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return json.loads(out.splitlines()[-1]) | {"peak_bytes": peak}


def anonymous_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
    return int(found[0]) * 1024 if found else 0


def kineto(path: Path, small: Path, ways: list[bool], hta_s: float | None) -> list[Line]:
    size = path.stat().st_size
    lines = []
    for is_fast in ways:
        way = "fast" if is_fast else "base"
        runs = 15 if size < 100 * MB else 5 if size < 500 * MB else 2
        took = child("kineto", path, small, runs, is_fast=is_fast)
        held = child("kineto", path, small, 0, is_fast=is_fast)
        name = f"{size / MB:.0f} MB Kineto JSON, {way}: "
        floors = (228, 300) if is_fast else (75, None)
        whole_s = took["read_s"] + took["analyse_s"]
        lines += [
            at_least(f"{name}decoded to columns", size / MB / took["columns_s"], "MB/s", *floors),
            Line(f"{name}load", f"{took['read_s']:.3f} s"),
            Line(f"{name}breakdown and overlap", f"{took['analyse_s']:.3f} s"),
        ]
        if hta_s:
            ratio = (35, 40) if is_fast else (10, None)
            lines.append(at_least(f"{name}all of it against HTA's {hta_s:.2f} s", hta_s / whole_s, "×", *ratio))
        lines.append(beyond_tables(name, held))
    return lines


def packed(path: Path, small: Path, ways: list[bool]) -> list[Line]:
    lines = []
    size = len(gzip.decompress(path.read_bytes()))
    for is_fast in ways:
        took = child("kineto", path, small, 3, is_fast=is_fast)
        name = f"{size / MB:.0f} MB as .json.gz, {'fast' if is_fast else 'base'}: to columns"
        speed = size / MB / took["columns_s"]
        lines.append(at_least(name, speed, "MB/s", 225, 250) if is_fast else Line(name, f"{speed:.1f} MB/s"))
    return lines


def xplane(path: Path, small: Path, ways: list[bool]) -> list[Line]:
    lines = []
    size = path.stat().st_size
    for is_fast in ways:
        took = child("xplane", path, small, 3 if size < 500 * MB else 1, is_fast=is_fast)
        held = child("xplane", path, small, 0, is_fast=is_fast)
        name = f"{size / MB:.0f} MB xplane, {'fast' if is_fast else 'base'}: "
        speed = f"{name}{held['events']} events"
        lines.append(at_least(speed, size / MB / took["read_s"], "MB/s", *((175, 200) if is_fast else (20, None))))
        lines.append(beyond_tables(name, held))
    return lines


def beyond_tables(name: str, held: dict[str, Any]) -> Line:
    beyond = (held["peak_bytes"] - held["tables_bytes"]) / MB
    return at_most(f"{name}memory beyond the tables ({held['tables_bytes'] / MB:.0f} MB)", beyond, "MB", 200, 0)


def overlap(ways: list[bool]) -> list[Line]:
    lines = []
    for is_fast in ways:
        took = child("overlap", 10_000_000, is_fast=is_fast)
        way = "fast" if is_fast else "base"
        lines.append(at_most(f"overlap of 10⁷ spans, {way}", took["arrays_s"], "s", 0.25 if is_fast else 2.5, 3))
        lines.append(Line(f"the same from a table of spans and kinds, {way}", f"{took['table_s']:.3f} s"))
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--hta-python", help="an interpreter that has HolisticTraceAnalysis 0.5.0")
    arguments.add_argument("--sizes", default="50,250,1000", help="MB, separated by commas")
    arguments.add_argument("--hta-up-to", type=int, default=50, help="MB; larger files take it minutes and gigabytes")
    arguments.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[3] / "shared")
    arguments.add_argument("--only", choices=("xplane",), help="no other part of the table")
    chosen = arguments.parse_args()
    ways = [False, True] if find_spec("numba") else [False]
    with tempfile.TemporaryDirectory() as place:
        for line in table(Path(place), chosen, ways):
            print(line, flush=True)


def table(folder: Path, chosen: argparse.Namespace, ways: list[bool]) -> Iterator[Line]:
    """The lines, as they come."""
    if chosen.only:
        yield from xplanes(folder, chosen, ways)
        return
    small, path = folder / "small.json", folder / "large.json"
    traces.tiled_kineto(chosen.shared / "nothing", small, SMALL)
    for megabytes in map(int, chosen.sizes.split(",")):
        made_from = traces.tiled_kineto(chosen.shared, path, megabytes * MB)
        yield Line(f"-- {path.stat().st_size / MB:.0f} MB of {made_from}", "")
        hta_s = None
        if chosen.hta_python and megabytes <= chosen.hta_up_to:
            took = child("hta", path, small, 2, is_fast=False, python=chosen.hta_python)
            hta_s = took["load_s"] + took["analyse_s"]
            figure = f"{took['load_s']:.2f} + {took['analyse_s']:.2f} s"
            yield Line(f"HolisticTraceAnalysis {took['version']}: load, and the two analyses", figure)
        elif chosen.hta_python:
            yield Line(f"HolisticTraceAnalysis is not run above {chosen.hta_up_to} MB", "")
        yield from kineto(path, small, ways, hta_s)
        if megabytes <= 250:
            other = folder / "large.json.gz"
            other.write_bytes(gzip.compress(path.read_bytes(), 5))
            yield from packed(other, small, ways)
            other.unlink()
        path.unlink()
    yield from xplanes(folder, chosen, ways)
    yield from overlap(ways)


def xplanes(folder: Path, chosen: argparse.Namespace, ways: list[bool]) -> Iterator[Line]:
    path, small = folder / "large.xplane.pb", folder / "small.xplane.pb"
    traces.tiled_xplane(chosen.shared / "nothing", small, SMALL)
    for megabytes in map(int, chosen.sizes.split(",")):
        yield Line(f"-- {traces.tiled_xplane(chosen.shared, path, megabytes * MB)}", "")
        yield from xplane(path, small, ways)
        path.unlink()


if __name__ == "__main__":
    main()
