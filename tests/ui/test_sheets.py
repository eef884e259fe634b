"""What a panel draws as a table: the numbers of ``analyze --json``, and the files and the text they become."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

from meshscope.cli.opening import open_paths
from meshscope.discovery import discover
from meshscope.reports.analysis_json import analysis
from meshscope.run import Gallery
from meshscope.ui.exporting import Subject, as_csv, as_json, as_tabs, file_name
from meshscope.ui.panel import Panel
from meshscope.ui.saving import SavingError, save
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.sheet import Sheet, chosen, sheet

PANELS = {panel.name: panel for panel in discover("meshscope.ui.panels", "PANEL", Panel)}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("made") / "run"
    made.write(folder, made.FOUR)
    now = made.T0 + 200 * made.S
    plan, runs = Gallery(folder).at(now)
    return Scene(plan, runs, Stance(now_unix_ns=now, start_unix_ns=made.T0), "fsdp")


@pytest.fixture(scope="module")
def said(scene: Scene) -> dict[str, Any]:
    return analysis(scene.runs)


def of(scene: Scene, name: str) -> list[dict[str, Any]]:
    """A panel's rows by column, without what is not known."""
    given = table(scene, name)
    return [{key: cell for key, cell in zip(given.columns, row, strict=True) if cell is not None} for row in given.rows]


def table(scene: Scene, name: str) -> Sheet:
    panel = PANELS[name]
    assert panel.data is not None
    return panel.data(panel.question(scene))


def recording(said: dict[str, Any], strategy: str = "fsdp") -> dict[str, Any]:
    return next(one for one in said["recordings"] if one["strategy"] == strategy)


@pytest.mark.parametrize("name", sorted(PANELS))
def test_every_panel_is_a_table_whose_rows_fill_their_columns(scene: Scene, name: str) -> None:
    given = table(scene, name)
    assert given.columns
    assert len(set(given.columns)) == len(given.columns)
    for part in (given, *(more for _, more in given.more)):
        assert all(len(row) == len(part.columns) for row in part.rows)
        assert not any(isinstance(cell, float) and not math.isfinite(cell) for row in part.rows for cell in row)


@pytest.mark.parametrize("name", sorted(PANELS))
def test_every_panel_is_a_table_before_there_is_a_run(name: str) -> None:
    assert not [row for row in table(Scene(None, ()), name).rows if any(cell is not None for cell in row)]


def test_the_split_is_the_breakdown_of_analyze(scene: Scene, said: dict[str, Any]) -> None:
    rows = of(scene, "split")
    assert len(rows) == 2 * made.RANKS
    for rank in recording(said)["ranks"]:
        mine = {row["over"]: row for row in rows if row["rank"] == rank["rank"]}
        assert {key: mine["windows"][key] for key in rank["breakdown"]} == rank["breakdown"]
        stepped = {key: value for key, value in rank["per_step"].items() if key != "steps"}
        assert {key: mine["step"][key] for key in stepped} == stepped


def test_the_strategies_are_the_comparison_of_analyze(scene: Scene, said: dict[str, Any]) -> None:
    rows = of(scene, "comparison")
    assert [row["strategy"] for row in rows] == list(made.FOUR)
    for row, told in zip(rows, said["comparison"]["strategies"], strict=True):
        same = ("strategy", "ranked", "samples_per_s", "median_ns", "exposed_frac", "peak_bytes", "peak_how")
        assert {key: row[key] for key in same} == {key: told[key] for key in same}
        assert {key: row[f"share_{key}_frac"] for key in told["shares"]} == told["shares"]
        assert ("compile_ns" in row) == ("compile_ns" in told)
    assert dict(table(scene, "comparison").about)["leader"] == said["comparison"]["leader"] == "ddp"


def test_the_steps_are_those_of_analyze(scene: Scene, said: dict[str, Any]) -> None:
    given = table(scene, "steptime")
    told = recording(said)["steps"]
    about = {key: value for key, value in given.about if value is not None}
    assert about == told
    assert len(given.rows) == told["count"] == made.STEPS
    durations = [row[given.columns.index("duration_ns")] for row in given.rows if not row[2]]
    assert all(isinstance(ns, int) for ns in durations)


def test_the_memory_is_that_of_analyze(scene: Scene, said: dict[str, Any]) -> None:
    rows = of(scene, "memory")
    for rank in recording(said)["memory"]:
        mine = {row["what"]: row for row in rows if row["rank"] == rank["rank"]}
        assert mine["peak"]["size_bytes"] == rank["peak_bytes"]
        assert {name: mine[name]["size_bytes"] for name in rank["categories"]} == {
            name: one["bytes"] for name, one in rank["categories"].items()
        }


def test_the_sensors_are_those_of_analyze_and_the_readings_come_along(scene: Scene, said: dict[str, Any]) -> None:
    rows = of(scene, "devices")
    told = {(one["device"], one["field"]): one for one in recording(said)["devices"]}
    assert rows
    for row in rows:
        assert {key: row[key] for key in ("count", "mean", "max", "last")} == {
            key: told[row["device"], row["field"]][key] for key in ("count", "mean", "max", "last")
        }
    ((name, readings),) = table(scene, "devices").more
    assert name == "readings"
    assert len(readings.rows) == sum(row["count"] for row in rows)


def test_the_findings_are_those_of_analyze(scene: Scene, said: dict[str, Any]) -> None:
    rows, told = of(scene, "findings"), recording(said)["findings"]
    assert [row["code"] for row in rows] == [one["code"] for one in told]
    assert [row.get("cost_ns") for row in rows] == [one["cost_ns"] for one in told]


def test_each_kind_of_collective_is_at_full_precision(scene: Scene) -> None:
    rows = of(scene, "overlap")
    assert rows
    assert all(math.isclose(row["hidden_ns"] + row["exposed_ns"], row["busy_ns"]) for row in rows)


def test_traces_by_themselves_are_what_analyze_says_of_them(tmp_path: Path) -> None:
    made.write(tmp_path / "run", ("ddp",))
    (path,) = sorted((tmp_path / "run" / "ddp" / "traces").glob("*rank0*"))[:1]
    runs = open_paths((path,)).runs
    alone = Scene(None, runs, selected=runs[0].name, is_of_traces=True)
    (told,) = analysis(runs)["recordings"][0]["ranks"]
    (row,) = of(alone, "traces")
    times = {key: value for key, value in told["per_step"].items() if key != "steps"}
    assert {key: row[key] for key in times} == times
    (file,) = of(alone, "files")
    assert file["events"] == told["events"]["read"]
    assert file["file"] == path.name


# What becomes of a sheet

MADE = sheet(
    ("rank", "wait_ns", "exposed_frac", "size_bytes", "name", "is_bad"),
    [
        (0, 1_234_567, 0.123456789, 10_700_000, "all_reduce", True),
        (1, math.nan, None, np.int64(5), "=cmd|' /C calc'!A0\x1b[2J", False),
    ],
    about={"step_ns": np.float64(7.5), "unknown": math.inf},
    more={"late": sheet(("rank", "late_frac"), [(0, 0.5)])},
)


def test_csv_holds_every_digit_and_what_is_not_known_is_empty() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(MADE))))
    assert rows[0] == {
        "rank": "0", "wait_ns": "1234567", "exposed_frac": "0.123456789", "size_bytes": "10700000",
        "name": "all_reduce", "is_bad": "true",
    }  # fmt: skip
    assert (rows[1]["wait_ns"], rows[1]["exposed_frac"], rows[1]["size_bytes"]) == ("", "", "5")


def test_text_of_a_trace_runs_in_no_spreadsheet_and_steers_nothing() -> None:
    text = as_csv(MADE)
    assert "\x1b" not in text
    assert list(csv.reader(io.StringIO(text)))[2][4].startswith("'=cmd")
    assert "\x1b" not in as_json(MADE, Subject("split", "where"))


def test_json_says_what_its_rows_are_of_and_leaves_out_what_is_not_known() -> None:
    told = json.loads(as_json(MADE, Subject("split", "where a step goes", "ddp", "steps 40–41", "so far")))
    assert {key: told[key] for key in ("format", "panel", "of", "stands_on", "caveat")} == {
        "format": 1, "panel": "split", "of": "ddp", "stands_on": "steps 40–41", "caveat": "so far",
    }  # fmt: skip
    assert told["rows"][0]["exposed_frac"] == 0.123456789
    assert set(told["rows"][1]) == {"rank", "size_bytes", "name", "is_bad"}
    assert told["about"] == {"step_ns": 7.5}
    assert told["late"]["rows"] == [{"rank": 0, "late_frac": 0.5}]


def test_the_clipboard_gets_what_a_person_reads_with_tabs_between() -> None:
    heads, first, second = as_tabs(MADE)
    assert heads == "rank\twait\texposed\tsize\tname\tis bad"
    assert first == "0\t1.23 ms\t12.3 %\t10.7 MB\tall_reduce\tyes"
    assert second.split("\t")[1:4] == ["–", "–", "5 B"]
    assert "\x1b" not in second


def test_the_selected_row_is_that_of_a_rank_a_place_or_a_name_and_else_all() -> None:
    given = sheet(("rank", "x"), [(0, 1), (1, 2), (1, 3)])
    assert [row[1] for row in chosen(given, rank=1).rows] == [2, 3]
    assert [row[1] for row in chosen(given, at=0).rows] == [1]
    named = sheet(("strategy", "x"), [("ddp", 1), ("fsdp", 2)])
    assert [row[1] for row in chosen(named, name="fsdp").rows] == [2]
    assert chosen(named, name="nobody").rows == named.rows
    assert chosen(given).rows == given.rows


def test_a_file_is_named_after_what_it_holds_and_stays_in_the_folder() -> None:
    name = file_name(Subject("split", "", "../../etc/pass wd\n"), "csv", 0.0)
    assert name.startswith("meshscope-split-etc-pass-wd-19")
    assert "/" not in name
    assert file_name(Subject("traces", ""), "json", 0.0).startswith("meshscope-traces-all-")
    assert len(file_name(Subject("split", "", "x" * 500), "csv", 0.0)) < 100


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    assert save("a.csv", "1", tmp_path).name == "a.csv"
    assert save("a.csv", "2", tmp_path).name == "a-2.csv"
    assert (tmp_path / "a.csv").read_text() == "1"
    (tmp_path / "b.csv").symlink_to(tmp_path / "elsewhere")
    assert save("b.csv", "3", tmp_path).name == "b-2.csv"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_written_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(SavingError) as refused:
        save("a.csv", "1", tmp_path / "gone")
    assert "a.csv cannot be written" in refused.value.message
    assert "\n" not in refused.value.message
