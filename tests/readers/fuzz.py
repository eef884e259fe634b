"""Reads damaged traces by the thousand: ``python tests/readers/fuzz.py --cases 100000``.

A case fails when anything but a TraceError gets out, when it takes more than its time, or when an answer is not sound
(tests/readers/support/sound.py). ``--only N`` reads one case and shows how it fails; ``--keep DIR`` saves what fails.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from mutations import case
from sound import check

PATIENCE_S = 5.0
_REPORTED = 8  # one case in so many is drawn as text and JSON as well


class TooSlow(BaseException):
    """A case took longer than its time."""


@contextmanager
def limited(patience_s: float) -> Iterator[None]:
    """Raises TooSlow inside when its time is up."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooSlow

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, patience_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def failure(seed: int, number: int, folder: Path, told: Counter[str]) -> str:
    """Why a case fails; "" when it does not. Counts what became of it."""
    name, content = case(seed, number)
    path = folder / name
    path.write_bytes(content)
    try:
        with limited(PATIENCE_S):
            told[check(path, and_reports=number % _REPORTED == 0)] += 1
    except (Exception, TooSlow) as error:  # noqa: BLE001  # whatever gets out is the finding
        told["failed"] += 1
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {str(error)[:200]}"
    finally:
        path.unlink()
    return ""


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cases", type=int, default=100_000)
    asked.add_argument("--first", type=int, default=0, help="number of the first case")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", type=int, help="read this case and let it fail")
    asked.add_argument("--keep", type=Path, help="folder for the files that fail")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only is not None:
            name, content = case(options.seed, options.only)
            (Path(folder) / name).write_bytes(content)
            print(check(Path(folder) / name))
            return 0
        return run(options, Path(folder))


def run(options: argparse.Namespace, folder: Path) -> int:
    told: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    began = time.monotonic()
    for number in range(options.first, options.first + options.cases):
        why = failure(options.seed, number, folder, told)
        if why:
            kinds[why.split(": ")[0]] += 1
            print(f"case {number}: {why}", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                name, content = case(options.seed, number)
                (options.keep / f"{options.seed}-{number}-{name}").write_bytes(content)
    counts = ", ".join(f"{told[outcome]} {outcome}" for outcome in ("read", "refused", "failed"))
    print(f"{options.cases} cases in {time.monotonic() - began:.0f} s: {counts}")
    for kind, count in kinds.most_common():
        print(f"  {count} × {kind}")
    return 1 if told["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
