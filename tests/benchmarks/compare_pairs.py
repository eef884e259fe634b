"""How often ``compare`` is right on this machine: ``python tests/benchmarks/compare_pairs.py [STRATEGY] [PAIRS]``.

Records the same thing twice and then with a batch that comes a fifth of a step late, one after another, and counts the
verdicts: of the same thing (a false alarm is faster or slower) and of the late batch (slower is right). The first
two are compared as recorded; so are all pairs of runs, which were made further apart.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from meshscope.analysis.change import change
from meshscope.analysis.figures import Figures, figures
from meshscope.run import Gallery

SLEEP_FRAC = 0.2
STEPS = 60

Triple = tuple[Figures, Figures, Figures]


def record(folder: Path, strategy: str, *more: str, ranks: int = 2) -> Figures:
    """A short run of a small model, without a screen."""
    size = ("--layers", "2", "--steps", str(STEPS), "--ranks", str(ranks))
    line = [sys.executable, "-m", "meshscope", "run", strategy, *size, "--headless", "--out", str(folder), *more]
    subprocess.run(line, check=True, capture_output=True, timeout=600)
    _, (run,) = Gallery(folder).at(time.time_ns())
    return figures(run)


def triple(folder: Path, strategy: str) -> Triple:
    """A run, the same again, and one whose batches come late by a fifth of the second one's median step."""
    first, second = record(folder / "a", strategy), record(folder / "b", strategy)
    late_ms = SLEEP_FRAC * statistics.median(second.step_ns) / 1e6
    return first, second, record(folder / "late", strategy, "--inject", f"slow-input:{late_ms:.1f}")


def verdicts(triples: list[Triple]) -> dict[str, Counter[str]]:
    """Counts of verdicts, by which pairs."""
    same = [run for first, second, _ in triples for run in (first, second)]
    late = [run for *_, run in triples]
    pairs = {
        "the same, one after another": [(first, second) for first, second, _ in triples],
        "a fifth late, one after another": [(second, run) for _, second, run in triples],
        "the same, any two": list(itertools.permutations(same, 2)),
        "a fifth late, any two": list(itertools.product(same, late)),
    }
    return {name: Counter(change([a], [b]).verdict for a, b in found) for name, found in pairs.items()}


def main(strategy: str = "ddp", pairs: str = "20") -> None:
    triples: list[Triple] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(pairs)):
            triples.append(triple(Path(folder) / str(number), strategy))
            first, second, late = triples[-1]
            medians = ", ".join(f"{statistics.median(run.step_ns) / 1e6:.1f}" for run in triples[-1])
            told = change([first], [second]).verdict, change([second], [late]).verdict
            print(f"{number}: {medians} ms: {' / '.join(told)}", flush=True)
    for name, found in verdicts(triples).items():
        print(f"{name}: {dict(found)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
