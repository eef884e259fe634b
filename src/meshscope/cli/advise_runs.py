"""``meshscope advise --runs``: a table of published runs in, a table of predictions out."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

_MOST_BYTES = 256 * 2**20
_MOST_ROWS = 200_000
_NEEDED = "n_gpus"


def predicted(path: Path, *, is_json: bool, with_score: bool, folder: Path | None) -> int:
    """Prints a prediction of every row. Raises InputError for what is no such table."""
    from meshscope.advisor.predictions import predictions

    rows = table_rows(path)
    found = predictions(rows, folder)
    if is_json:
        from meshscope.reports.runs_json import runs_json

        click.echo(runs_json(rows, found, with_score=with_score))
    else:
        from meshscope.reports.runs_text import runs_report

        click.echo(runs_report(rows, found, with_score=with_score))
    return 0


def table_rows(path: Path) -> list[dict[str, str]]:
    """The rows, by the names in the first line; cells beyond them are left out. InputError: it is no such table."""
    from meshscope.errors import InputError

    hint = "Give a CSV file with the columns of published_runs.csv: run_id, model, n_layers, gpu, n_gpus, …"
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is too large for a table of runs.", hint=hint)
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="", strict=False)
        names = [name for name in reader.fieldnames or () if name]
        rows = [{name: row[name] for name in names} for row in reader]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no table: {error}.", hint=hint) from error
    if _NEEDED not in names or len(rows) > _MOST_ROWS:
        what = f"has no column {_NEEDED}" if _NEEDED not in names else f"has more than {_MOST_ROWS:,} rows"
        raise InputError(f"{path} {what}.", hint=hint)
    return rows
