"""How far off the costs of single operations are, on points that were left out of the fit.

``python tests/benchmarks/advisor_costs.py`` takes about a minute. It reads the published sweeps in ``MESHSCOPE_SHARED``
(or ``../shared``) and the matrix products beside this file (``matmul_openxla.csv``: openxla/xla's matmul table, read
from jax-cuda12-pjrt 0.10.2; products of 1e9 operations and more). That table's fp8 on H100 is left out: some of it lies
above the peak. Fits are done again without what is left out.
"""

from __future__ import annotations

import csv
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.costs import bus
from meshscope.advisor.costs.collective import collective
from meshscope.advisor.costs.matmul import Fit, fit, machine, matmul, seconds
from meshscope.advisor.costs.sweeps import Sweep, mean_s, monotone
from meshscope.advisor.hardware import cluster, device
from meshscope.advisor.tables import table

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = Path(os.environ.get("MESHSCOPE_SHARED", ROOT.parent / "shared")) / "data"
MIB = 1 << 20
FOLDS = 4
NAMES = {"A100-SXM": "A100", "H100-SXM": "H100", "A100-SXM4-40GB": "A100-40GB", "TPU7x (per chiplet device)": "TPU7x"}
DESCRIBED = ("A100", "A100-PCIe", "H100", "H200", "B200", "B300", "GB200", "MI300X", "TPU7x")
OLD = "unknown (A100-era cluster, 4 nodes)"
Point = tuple[float, float]


def lowest(of: Callable[[np.ndarray], float], begin: Sequence[float], rounds: int = 300) -> np.ndarray:
    """Where a function is least, by a simplex that walks, reaches and shrinks (Nelder and Mead 1965)."""
    corners = [np.array(begin, float)]
    corners += [corners[0] + 0.3 * axis for axis in np.eye(len(begin))]
    heights = [of(corner) for corner in corners]
    for _ in range(rounds):
        order = np.argsort(heights)
        corners, heights = [corners[i] for i in order], [heights[i] for i in order]
        away = np.mean(corners[:-1], axis=0) - corners[-1]
        best = (of(corners[-1] + 2.0 * away), 2.0)
        if best[0] < heights[0]:
            best = min(best, (of(corners[-1] + 3.0 * away), 3.0))
        elif best[0] >= heights[-2]:
            best = (of(corners[-1] + 0.5 * away), 0.5)
        if best[0] < heights[-1]:
            corners[-1], heights[-1] = corners[-1] + best[1] * away, best[0]
            continue
        for i in range(1, len(corners)):
            corners[i] = corners[0] + 0.5 * (corners[i] - corners[0])
            heights[i] = of(corners[i])
    return corners[int(np.argmin(heights))]


def said(name: str, off: Sequence[float], more: str = "") -> None:
    """One line: the mean, nine in ten, the largest of the errors, and which way they lean."""
    errors = np.abs(off)
    print(
        f"  {name:58} {len(off):4}  mean {100 * errors.mean():5.1f} %  p90 {100 * np.quantile(errors, 0.9):5.1f} %"
        f"  max {100 * errors.max():5.1f} %  bias {100 * np.mean(off):+5.1f} %  {more}"
    )


def curve_s(known: np.ndarray, sizes: np.ndarray, factor: float) -> np.ndarray:
    """alpha + f S / B (1 + (S0 / S)^p)."""
    begun, rate, half, power = np.exp(known)
    return begun + factor * sizes / rate * (1 + (half / sizes) ** power)


def curve(points: Sequence[Point], factor: float, begin: Sequence[float] | None = None) -> np.ndarray:
    sizes, times = np.array(points).T

    def off(known: np.ndarray) -> float:
        if not -3 < known[3] < 0.3:
            return 1e3
        weights = np.where(sizes >= MIB, 1.0, 0.25)
        return float(np.mean(weights * np.abs(np.log(curve_s(known, sizes, factor) / times))))

    found = [math.log(times.min()), math.log(factor * sizes[-1] / times[-1])]
    starts = [begin] if begin is not None else [[*found, math.log(4e6), -0.7], [*found, math.log(1e6), -0.1]]
    return min((lowest(off, start, 400) for start in starts), key=off)


def table_s(points: Sequence[Point], size: float) -> float:
    sizes, times = np.array(points).T
    return float(np.exp(np.interp(math.log(size), np.log(sizes), np.log(monotone(list(times))))))


def sweeps() -> dict[tuple[str, ...], list[Point]]:
    """All-reduces of the shared table, by GPU, ranks, nodes and source; seconds by size."""
    found: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    with (SHARED / "collective_bandwidth.csv").open() as file:
        for row in csv.DictReader(file):
            if row["collective"] == "all_reduce" and row["size_bytes"] and float(row["size_bytes"]) >= 32768:
                source = row["source_url"].split("/")[3] + ", " + row["source_where"][:22]
                key = (row["gpu"], row["n_gpus"], row["n_nodes"], row["inter_gbs_uni_per_gpu"], source, row["algo"])
                found[key].append((float(row["size_bytes"]), float(row["time_us"]) * 1e-6))
    return {key: sorted(points) for key, points in found.items() if len(points) >= 15}


def left_out_sizes() -> None:
    print("\nAll-reduce, 1 MiB and more, one size left out of its own sweep (the ends stay)")
    every: dict[str, list[float]] = {"table": [], "curve": []}
    for key, points in sweeps().items():
        factor = bus.factor("all_reduce", int(key[1]))
        whole = curve(points, factor)
        by: dict[str, list[float]] = {"table": [], "curve": []}
        for i in range(1, len(points) - 1):
            size, time_s = points[i]
            if size < MIB:
                continue
            rest = points[:i] + points[i + 1 :]
            by["table"].append(table_s(rest, size) / time_s - 1)
            known = curve(rest, factor, whole)
            by["curve"].append(float(curve_s(known, np.array([size]), factor)[0]) / time_s - 1)
        for how, off in by.items():
            said(f"{key[0][:20]} {key[2]}x{int(key[1]) // int(key[2])}, {key[4]}: {how}", off)
            every[how] += off
    for how, off in every.items():
        said(f"all sweeps: {how}", off)


def left_out_sources() -> None:
    print("\nAll-reduce within a node, 1 MiB and more, by what others timed on the same link and ranks")
    shipped = defaultdict(list)
    for entry in table("sweeps")["sweep"]:
        sweep = Sweep(entry["first_kib"] * 1024.0, monotone([us * 1e-6 for us in entry["us"]]), entry["where"])
        shipped[entry["link"], entry["kind"], entry["ranks"]].append(sweep)
    for (link, kind, ranks), several in shipped.items():
        for sweep in several if len(several) > 1 else []:
            others = [other for other in several if other is not sweep]
            sizes = [sweep.first_bytes * 2**i for i in range(len(sweep.times_s))]
            off = [mean_s(others, s) / sweep.time_s(s) - 1 for s in sizes if s >= MIB]
            said(f"{link} {kind} {ranks}: {sweep.where[:34]}", off)


def between_nodes() -> None:
    print("\nAll-reduce over nodes, 1 MiB and more: the frozen constants, by source")
    by: dict[str, list[float]] = defaultdict(list)
    inside: dict[str, list[bool]] = defaultdict(list)
    with (SHARED / "collective_bandwidth.csv").open() as file:
        for row in csv.DictReader(file):
            nodes, ranks = int(row["n_nodes"]), int(row["n_gpus"])
            if nodes < 2 or not row["size_bytes"] or float(row["size_bytes"]) < MIB or "problem" in row["notes"]:
                continue
            name = "A100" if row["gpu"] == OLD else NAMES.get(row["gpu"], row["gpu"])
            is_efa = any(
                word in row["source_url"] + row["source_where"] + row["notes"] for word in ("aws", "EFA", "p5en")
            )
            rate = float(row["inter_gbs_uni_per_gpu"] or 12.5) * 8
            kind = "EFA" if is_efa else "InfiniBand"
            made = cluster(f"{nodes}x{ranks // nodes}x{name}@{kind} {rate:g}", Path("nowhere"))
            figure = collective(made, row["collective"], float(row["size_bytes"]), ranks)
            source = f"{name} {nodes}x{ranks // nodes} {kind} {rate:g}, {row['source_where'][:26]}, {row['algo'][:8]}"
            took_s = float(row["time_us"]) * 1e-6
            by[source].append(figure.value / took_s - 1)
            inside[source].append(figure.low <= took_s <= figure.high)
    for source, off in by.items():
        said(source, off, f"in its interval {100 * np.mean(inside[source]):.0f} %")


def over_efa() -> dict[str, tuple[Cluster, list[Point]]]:
    """The sweeps over EFA, from 1 MiB on."""
    found = {}
    for (gpu, ranks, nodes, rate, _, _), points in sweeps().items():
        if int(nodes) > 1 and gpu != OLD:
            text = f"{nodes}x{int(ranks) // int(nodes)}x{NAMES.get(gpu, gpu)}@EFA {float(rate) * 8:g}"
            found[text] = (cluster(text, Path("nowhere")), [point for point in points if point[0] >= MIB])
    return found


def network_left_out() -> None:
    print("\nAll-reduce over EFA, 1 MiB and more: efficiency, S0, p and a step's latency fitted without this sweep")
    every = over_efa()

    def errors(made: Cluster, points: list[Point], known: np.ndarray) -> list[float]:
        between = replace(
            made.between, efficiency=1 / (1 + math.exp(-known[0])), half_bytes=math.exp(known[1]),
            power=math.exp(known[2]), latency_s=math.exp(known[3]),
        )  # fmt: skip
        laid = replace(made, between=between)
        return [collective(laid, "all_reduce", size, made.devices).value / time_s - 1 for size, time_s in points]

    for left, (made, points) in every.items():
        kept = [other for text, other in every.items() if text != left]

        def off(known: np.ndarray, kept: list[tuple[Cluster, list[Point]]] = kept) -> float:
            if not -3 < known[2] < 0.2:
                return 1e3
            each = [float(np.mean(np.abs(errors(*other, known)))) for other in kept]
            return float(np.mean(each)) + 0.05 * abs(known[0] - 2.9)

        said(left, errors(made, points, lowest(off, [2.9, math.log(2e7), -0.5, math.log(2e-5)], 200)))


def products() -> dict[tuple[str, str, str], np.ndarray]:
    """m, n, k, count and seconds, by device, compute type and source."""
    found: dict[tuple[str, str, str], list[tuple[float, ...]]] = defaultdict(list)
    with (SHARED / "gemm_efficiency.csv").open() as file:
        for row in csv.DictReader(file):
            name = NAMES.get(row["gpu"], row["gpu"])
            dies = 2 if name == "TPU7x" else 1
            source = "MAMF" if "MAMF" in row["source_where"] else row["source_url"].split("/")[3]
            m, n, k = (int(row[key]) for key in "mnk")
            found[name, row["dtype"].split()[0], source].append(
                (m * dies, n, k, 1, 2.0 * m * n * k / (float(row["tflops"]) * 1e12))
            )
    with (ROOT / "tests" / "benchmarks" / "matmul_openxla.csv").open() as file:
        for row in csv.DictReader(file):
            m, n, k, count = (int(row[key]) for key in ("m", "n", "k", "count"))
            took_s = 2.0 * m * n * k * count / (float(row["tflops"]) * 1e12)
            found[row["device"], row["compute"], "openxla"].append((m, n, k, count, took_s))
    return {key: np.array(points, float) for key, points in found.items()}


def refitted(name: str, compute: str, points: np.ndarray) -> Fit:
    """The family's constants anew, from these products alone."""
    spec = device(name, Path("nowhere"))
    frozen = fit(spec.family, compute)
    on = machine(spec, compute, frozen)
    has_throttle = frozen.throttle_flop > 0

    def made(known: np.ndarray) -> Fit:
        share, begun, half, small = known[:4]
        changed = replace(
            frozen,
            share=math.exp(share),
            begun_s=math.exp(begun),
            half_k=math.exp(half),
            small_tile=1 / (1 + math.exp(-small)),
        )
        if not has_throttle:
            return changed
        return replace(changed, throttle_share=1 / (1 + math.exp(-known[4])), throttle_flop=math.exp(known[5]))

    def off(known: np.ndarray) -> float:
        shape = made(known)
        each = [abs(math.log(seconds(shape, on, m / spec.dies, n, k, count) / t)) for m, n, k, count, t in points]
        near = 0.001 * ((known[1] + 12.7) ** 2 + (known[2] - 5.5) ** 2 + (known[3] - 3) ** 2)
        return float(np.mean(each)) + near

    begin = [math.log(frozen.share), math.log(frozen.begun_s), math.log(frozen.half_k), 2.6]
    return made(lowest(off, begin + ([0.7, math.log(frozen.throttle_flop)] if has_throttle else []), 120))


def matrix_products() -> None:
    print(f"\nMatrix products: frozen constants, and left out (one in {FOLDS}; of eight, each once)")
    for (name, compute, source), points in sorted(products().items()):
        if name not in DESCRIBED:
            continue
        spec = device(name, Path("nowhere"))
        figures = [matmul(spec, m, n, k, compute, count) for m, n, k, count, _ in points]
        frozen = [figure.value / t - 1 for figure, t in zip(figures, points[:, 4], strict=True)]
        inside = np.mean([figure.low <= t <= figure.high for figure, t in zip(figures, points[:, 4], strict=True)])
        said(f"{name} {compute}, {source}: frozen", frozen, f"in its interval {100 * inside:.0f} %")
        if len(points) < 8:
            continue
        folds = len(points) if len(points) < 20 else FOLDS
        shuffled = np.random.default_rng(0).permutation(len(points))
        out: list[float] = []
        for fold in range(folds):
            kept, left = np.delete(shuffled, np.s_[fold::folds]), shuffled[fold::folds]
            shape = refitted(name, compute, points[kept])
            on = machine(spec, compute, shape)
            out += [seconds(shape, on, m / spec.dies, n, k, c) / t - 1 for m, n, k, c, t in points[left]]
        said(f"{name} {compute}, {source}: left out", out)


def main() -> None:
    if not SHARED.is_dir():
        sys.exit(f"The published sweeps are not at {SHARED}; set MESHSCOPE_SHARED.")
    left_out_sizes()
    left_out_sources()
    between_nodes()
    network_left_out()
    matrix_products()


if __name__ == "__main__":
    main()
