"""How far off the advisor is on published runs: per source, with the constants as they are and without that source.

    python tests/benchmarks/advisor.py [TABLE.csv] [--left-out] [--refit]

``--left-out`` fits the constants once per source, without it, and predicts it by them (about a minute). ``--refit``
writes the constants anew. The table is ``../shared/data/published_runs.csv`` unless another is named.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from advisor_fit import Case, cases, fit, left_out, linear, written

from meshscope.advisor.cells import text
from meshscope.advisor.constants import FITTED
from meshscope.advisor.predictions import Predicted, predictions
from meshscope.advisor.published import MEASURED
from meshscope.advisor.scoring import Errors, Row, Score, constant_mfu, errors, score, scores

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = Path(os.environ.get("MESHSCOPE_SHARED", ROOT.parent / "shared")) / "data" / "published_runs.csv"
CONSTANTS = ROOT / "src" / "meshscope" / "advisor" / "data" / "time.toml"
HEAD = ("source", "rows", "timed", "covered", "mean", "p90", "max", "bias", "inside", "const MFU", "roofline", "memory",
        "max", "worst run")  # fmt: skip
WIDTHS = (20, 5, 6, 8, 6, 6, 6, 6, 7, 10, 9, 7, 6, 22)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", type=Path, default=TABLE)
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("--refit", action="store_true")
    chosen = parser.parse_args(arguments)
    rows = list(csv.DictReader(chosen.table.open(encoding="utf-8")))
    if chosen.refit:
        found = cases(rows, ("calib", "dev"))
        CONSTANTS.write_text(written(fit(found, start=FITTED)[0], found), encoding="utf-8")
        print(f"wrote {CONSTANTS}; run again to see what they give")
        return 0
    _print_scores(rows)
    if chosen.left_out:
        _print_left_out(rows)
    return 0


def _print_scores(rows: list[Row]) -> None:
    began = time.process_time()
    predicted = predictions(rows)
    took_s = time.process_time() - began
    shares = constant_mfu([row for row in rows if text(row, "suggested_split") == "calib"])
    print("Errors are shares of what was measured, in percent; constants as frozen.\n")
    _line(HEAD)
    each = scores(rows, predicted, shares)
    for one in each:
        _score(one)
    print()
    for split in ("calib", "dev", "repeat", "extra"):
        chosen = [
            (row, said) for row, said in zip(rows, predicted, strict=True) if text(row, "suggested_split") == split
        ]
        if chosen:
            _score(score(f"all of {split}", chosen, shares))
    judged = [one for one in each if one.time.count]
    worst = max(judged, key=lambda one: one.time.mean_frac)
    print(f"\nworst source: {worst.source}, {_percent(worst.time.mean_frac)} % ({worst.worst_run})")
    _print_beaten(judged)
    _print_impossible(rows, predicted)
    print(f"{len(rows)} rows in {took_s:.1f} s of CPU")


def _print_beaten(judged: Iterable[Score]) -> None:
    lost = [
        one.source
        for one in judged
        if one.time.count > 8 and one.time.mean_frac >= min(_known(one.constant_mfu), _known(one.roofline))
    ]
    print(f"sources of more than 8 rows where a simple rule is better: {', '.join(lost) or 'none'}")


def _known(found: Errors) -> float:
    return found.mean_frac if found.count else math.inf


def _print_impossible(rows: list[Row], predicted: Sequence[Predicted]) -> None:
    flagged = [said.run_id for said in predicted if said.impossible]
    marked = [text(row, "run_id") for row in rows if text(row, "quality_flag") == "IMPLAUSIBLE"]
    print(f"flagged impossible: {', '.join(flagged)}; marked so in the table: {', '.join(marked)}")
    unread = [{name: value for name, value in row.items() if name not in MEASURED} for row in rows]
    same = all(one.step_time_s == other.step_time_s for one, other in zip(predicted, predictions(unread), strict=True))
    print(f"the same predictions without the measured columns: {'yes' if same else 'NO'}")


def _print_left_out(rows: list[Row]) -> None:
    began = time.process_time()
    found = cases(rows, ("calib", "dev"))
    at = linear(found, FITTED)
    print("\nEach source by constants that were fitted without it:\n")
    _line(("source", "rows", "timed", "", "mean", "p90", "max", "bias", "inside"))
    every: list[tuple[Case, bool, float]] = []
    for source, one in left_out(found, at, FITTED).items():
        pairs = [(figure.value, case.measured_s) for case, figure in one.predicted]
        inside = [figure.low <= case.measured_s <= figure.high for case, figure in one.predicted]
        every += [(case, held, figure.value) for (case, figure), held in zip(one.predicted, inside, strict=True)]
        told = errors(pairs)
        _line((source, len(pairs), len(pairs), "", *_errors(told), _percent(sum(inside) / len(inside))))
    told = errors((value, case.measured_s) for case, _, value in every)
    share = sum(held for _, held, _ in every) / len(every)
    _line(("all", len(every), len(every), "", *_errors(told), _percent(share)))
    print(f"{time.process_time() - began:.0f} s of CPU")


def _score(one: Score) -> None:
    _line(
        (one.source, one.rows, one.timed, _percent(one.covered_frac), *_errors(one.time), _percent(one.inside_frac),
         _percent(one.constant_mfu.mean_frac), _percent(one.roofline.mean_frac), _percent(one.allocated.mean_frac),
         _percent(one.allocated.worst_frac), one.worst_run)
    )  # fmt: skip


def _errors(found: Errors) -> tuple[str, ...]:
    return tuple(_percent(each) for each in (found.mean_frac, found.p90_frac, found.worst_frac, found.bias_frac))


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f}"


def _line(cells: Iterable[object]) -> None:
    both = zip(cells, WIDTHS, strict=False)
    print("  ".join(f"{cell!s:<{width}}" if width >= 20 else f"{cell!s:>{width}}" for cell, width in both))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
