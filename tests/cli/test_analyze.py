"""``meshscope analyze``: with a user's rules, and with the rules told."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import IO

import pytest

HOSTILE = "evil\x1b[31m\u202e" + "x" * 300


def kernel(name: str, start_us: int, dur_us: int) -> dict[str, object]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start_us, "dur": dur_us, "pid": 0, "tid": 7, "args": {}}


def trace(folder: Path) -> Path:
    events = [kernel("our_ring", 0, 10), kernel("gemm", 5, 10), kernel(HOSTILE, 15, 5)]
    path = folder / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def rules(folder: Path) -> Path:
    path = folder / "rules.toml"
    path.write_text(
        '[[kernels]]\npattern = "our_ring"\nkind = "collective"\ncollective = "all_reduce"\nname = "ring"\n'
    )
    return path


def run(*line: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name not in ("MESHSCOPE_CONFIG", "XDG_CONFIG_HOME")}
    return subprocess.run(
        [sys.executable, "-m", "meshscope", *map(str, line)],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
        env=known | {"XDG_CONFIG_HOME": str(cwd / "none"), "PYTHONIOENCODING": "utf-8"} | environ,
    )  # fmt: skip


def collective_ns(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["recordings"][0]["ranks"][0]["breakdown"]["collective_ns"])


def test_a_users_rules_take_effect_by_option_variable_or_folder(tmp_path: Path) -> None:
    path, file = trace(tmp_path), rules(tmp_path)
    (tmp_path / "meshscope").mkdir()
    (tmp_path / "meshscope" / "config.toml").write_bytes(file.read_bytes())
    plain = ("analyze", path, "--json")
    assert collective_ns(run(*plain, cwd=tmp_path)) == 0
    assert collective_ns(run(*plain, "--config", file, cwd=tmp_path)) == 10_000
    assert collective_ns(run("--config", file, *plain, cwd=tmp_path)) == 10_000
    assert collective_ns(run(*plain, cwd=tmp_path, MESHSCOPE_CONFIG=str(file))) == 10_000
    assert collective_ns(run(*plain, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))) == 10_000


def test_a_file_that_cannot_be_used_is_two_lines_and_exit_code_one(tmp_path: Path) -> None:
    path = trace(tmp_path)
    (tmp_path / "bad.toml").write_text('[[kernels]]\npattern = "("\nkind = "copy"\n')
    done = run("analyze", path, "--config", "bad.toml", cwd=tmp_path)
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.toml: rule 1" in first
    assert second.startswith("  ")


def test_help_is_given_whatever_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[")
    done = run("--help", cwd=tmp_path, MESHSCOPE_CONFIG="bad.toml")
    assert done.returncode == 0


def test_kernels_says_as_text_which_rule_took_which_names(tmp_path: Path) -> None:
    done = run("analyze", trace(tmp_path), "--kernels", "--config", rules(tmp_path), cwd=tmp_path)
    assert "collective all_reduce, by «ring»: 1 span of 1 name, 10.0 µs, 50.0 %" in done.stdout
    assert "compute, by «everything else»: 2 spans of 2 names, 15.0 µs, 75.0 %" in done.stdout
    assert "in % of the rank's 20.0 µs of device work" in " ".join(done.stdout.split())
    assert not {"\x1b", "\u202e"} & set(done.stdout)
    assert max(len(line) for line in done.stdout.splitlines() if "rank0.json" not in line) <= 80


def test_kernels_says_the_same_as_json(tmp_path: Path) -> None:
    path, file = trace(tmp_path), rules(tmp_path)
    (recording,) = json.loads(run("analyze", path, "--kernels", "--json", "--config", file, cwd=tmp_path).stdout)[
        "recordings"
    ]
    ((rank),) = recording["kernels"]
    assert (rank["rank"], rank["busy_ns"]) == (0, 20_000)
    ring, rest = rank["groups"]
    assert ring == {
        "kind": "collective", "collective": "all_reduce", "rule": "ring", "count": 1, "busy_ns": 10_000,
        "names": [{"name": "our_ring", "count": 1, "busy_ns": 10_000}],
    }  # fmt: skip
    assert [name["name"] for name in rest["names"]] == ["gemm", HOSTILE]
    (without,) = json.loads(run("analyze", path, "--json", cwd=tmp_path).stdout)["recordings"]
    assert "kernels" not in without


def test_files_of_one_run_given_one_by_one_are_one_recording_and_a_bad_one_costs_nothing(tmp_path: Path) -> None:
    for rank in range(2):
        about = {"distributedInfo": {"rank": rank, "world_size": 4}, "baseTimeNanoseconds": 1_790_000_000_000_000_000}
        (tmp_path / f"r{rank}.json").write_text(json.dumps(about | {"traceEvents": [kernel("gemm", rank, 10)]}))
    (tmp_path / "notes.txt").write_text("nothing")
    done = run("analyze", "r0.json", "r1.json", "notes.txt", "nowhere", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    (recording,) = said["recordings"]
    assert [rank["rank"] for rank in recording["ranks"]] == [0, 1]
    assert recording["files"] == ["r0.json", "r1.json"]
    assert {"what": "ranks", "why": "ranks 2–3 of 4 are not here"} in recording["cannot_say"]
    assert [refused["path"] for refused in said["refused"]] == ["nowhere", "notes.txt"]
    assert "ranks 2–3 of 4 are not here" in run("analyze", ".", cwd=tmp_path).stdout


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("analyze", "pipe", cwd=tmp_path)
    assert done.returncode == 1
    assert "is a pipe" in done.stderr


def test_doctor_says_where_rules_come_from(tmp_path: Path) -> None:
    from meshscope import config
    from meshscope.cli.checkup import rules as checked

    before = config.current()
    assert "built-in" in checked().text or before.source
    config.use(config.settings(rules(tmp_path)))
    try:
        assert checked().text == f"1 rule of yours from {tmp_path / 'rules.toml'}"
    finally:
        config.use(before)


@pytest.mark.parametrize(("columns", "most"), [(20, 40), (50, 50), (132, 80)])
def test_a_report_is_wrapped_for_the_terminal_that_it_is_written_to(tmp_path: Path, columns: int, most: int) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "meshscope", "analyze", str(trace(tmp_path))]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environ) as child:
        os.close(theirs)
        with open(ours, "rb", buffering=0) as terminal:
            shown = b"".join(iter(lambda: _written(terminal), b"")).decode()
        assert child.wait() == 0
    prose = re.findall(r"^  where a step goes.*?(?=\r\n    rank)", shown, re.DOTALL | re.MULTILINE)[0].split("\r\n")
    assert max(len(line) for line in prose) <= most
    assert len(prose) == {20: 7, 50: 5, 132: 4}[columns]


def _written(terminal: IO[bytes]) -> bytes:
    try:
        return terminal.read(65536)
    except OSError:  # how Linux says that nobody writes to a terminal any more
        return b""
