"""Users' own scripts, unmodified, under ``meshscope run -- COMMAND``: what is recorded, and what is left alone."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.memory import memory
from meshscope.analysis.overlap import overlap
from meshscope.capture import launch
from meshscope.capture.own import planning
from meshscope.capture.request import Request
from meshscope.recording.control import Ask, ask
from meshscope.recording.entries import (
    Checked,
    Compiled,
    Ended,
    Log,
    RankEnded,
    Sampled,
    StacksTaken,
    StepDone,
    TraceWritten,
)
from meshscope.recording.journal import Tail
from meshscope.reports.analysis_json import analysis_json
from meshscope.run import Gallery, Run

pytestmark = pytest.mark.live

SCRIPTS = Path(__file__).parent / "scripts"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


@dataclass
class Recorded:
    """One command that has run under meshscope."""

    folder: Path
    code: int
    stdout: str
    stderr: str
    _run: list[Run] = field(default_factory=list)

    @property
    def run(self) -> Run:
        if not self._run:
            _, runs = Gallery(self.folder).at(time.time_ns())
            self._run = list(runs)
        [run] = self._run
        return run

    def entries(self, kind: type, rank: int | None = None) -> list:
        paths = Path(self.run.path).joinpath("journal").glob("*.jsonl")
        found = [entry for path in sorted(paths) for entry in Tail(path).read() if isinstance(entry, kind)]
        found.sort(key=lambda entry: entry.t_ns)
        return [entry for entry in found if rank is None or entry.rank == rank]

    def steps(self, rank: int = 0) -> list[int]:
        return [entry.step for entry in self.entries(StepDone, rank)]


def _line(folder: Path, *command: str) -> list[str]:
    return [sys.executable, "-m", "meshscope", "run", "--headless", "--out", str(folder), "--", *command]


def _environment(**more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "MESHSCOPE_SETTINGS": "off"} | more


@pytest.fixture
def under(tmp_path: Path) -> Callable[..., Recorded]:
    """Runs a command to its end, without a screen."""

    def run(*command: str, given: str = "", **more: str) -> Recorded:
        folder = tmp_path / "run"
        child = subprocess.Popen(
            _line(folder, *command), env=_environment(**more), text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            stdout, stderr = child.communicate(given, timeout=200)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # the command is in the group of whoever watches it
            raise
        return Recorded(folder, child.returncode, stdout, stderr)

    return run


def test_a_script_has_its_input_output_and_path_to_itself_and_its_steps_are_counted(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "endings.py"), "echo", given="a line\n")
    assert done.code == 0, done.stderr
    assert done.stdout == "trained ['echo'] scripts\nread a line\n"
    assert "to stderr\n" in done.stderr
    # Four updates: the first one's beginning nobody told.
    assert done.steps() == [1, 2, 3]
    assert done.run.experiment.title == "one torch process (seen)"
    assert done.run.experiment.parameters == 8 * 8 + 8
    assert [(end.outcome, end.exit_code) for end in done.entries(Ended)] == [("done", 0)]
    assert [end.exit_code for end in done.entries(RankEnded)] == [0]


@pytest.mark.slow
def test_an_unmodified_ddp_script_is_recorded_whole(under: Callable) -> None:
    done = under(*TORCHRUN, str(SCRIPTS / "ddp.py"), "--epochs", "3")
    assert done.code == 0, done.stderr
    assert done.stdout.count("epoch ") == 3
    run = done.run
    assert (run.experiment.strategy, run.experiment.title) == ("ddp.py", "DDP (seen)")
    told = json.loads(analysis_json([run]))["recordings"][0]
    assert told["seen"] == {"strategy": "ddp", "title": "DDP (seen)"}
    assert {"what": "steps.first_ns", "why": "nothing tells when the first step began"} in told["cannot_say"]
    assert (run.experiment.approach, run.experiment.framework, run.experiment.ranks) == ("ddp", "torch", 2)
    assert run.experiment.parameters == 64 * 256 + 256 + 256 * 10 + 10
    for rank in (0, 1):
        # 320 samples in batches of 8 over 2 ranks: 20 a pass.
        assert done.steps(rank) == list(range(1, 60))
        own = done.entries(StepDone, rank)
        assert all(0 <= entry.data_wait_ns < entry.end_ns - entry.start_ns for entry in own)
        assert all(entry.cpu_ns > 0 for entry in own)
        assert [entry.step for entry in own if entry.is_profiled] == [4, 5, 6]
    traces = done.entries(TraceWritten)
    assert {(trace.rank, trace.first_step, trace.end_step) for trace in traces} == {(0, 5, 6), (1, 5, 6)}
    assert [window.steps for window in run.windows] == [(5,), (5,)] or all(len(w.steps) == 1 for w in run.windows)
    [found] = [one for one in overlap(run) if one.name == "all_reduce"]
    assert found.size_bytes == 4 * run.experiment.parameters
    [first, second] = memory(run)
    held = {category.name: category.size_bytes for category in first.categories}
    weights = 4 * run.experiment.parameters
    assert held["parameters"] == weights
    assert held["gradients"] == 2 * weights, "this DDP keeps its buckets beside the gradients"
    assert held["optimizer"] == weights, "one momentum per weight"
    assert second.peak_bytes is not None
    assert second.peak_bytes >= 4 * weights
    checks = done.entries(Checked)
    assert len({(check.step, check.parameters) for check in checks}) == 1
    assert len(checks) == 2
    assert {entry.device for entry in done.entries(Sampled)} >= {"host", "rank 0", "rank 1"}
    assert all(rank.total.busy_ns > 0 for rank in breakdown(run))


@pytest.mark.slow
def test_the_optimizers_record_is_whole_in_the_trace(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "accumulating.py"))
    assert done.code == 0, done.stderr
    assert done.steps() == list(range(1, 12)), "four micro-batches are one step"
    [window] = done.run.windows
    names = [window.spans.names[code] for code in window.spans.name]
    assert sum(name == "Optimizer.step#SGD.step" for name in names) == 1
    assert sum(name == "aten::linear" for name in names) == 4


@pytest.mark.slow
def test_two_optimizers_count_by_the_one_that_steps_first_and_both_are_accounted_for(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "gan.py"))
    assert done.code == 0, done.stderr
    assert done.steps() == list(range(1, 20)), "two updates of the critic a round, ten rounds"
    [rank] = memory(done.run)
    held = {category.name: category.size_bytes for category in rank.categories}
    critic, generator = 8 * 16 + 16 + 16 + 1, 4 * 8 + 8
    assert held["parameters"] == 4 * (critic + generator)
    # Adam: two moments a weight and a counter a tensor, of four and of two tensors.
    assert held["optimizer"] == 8 * (critic + generator) + 4 * (4 + 2)


@pytest.mark.slow
def test_of_an_optimizer_that_is_none_of_torchs_the_first_within_counts(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "megatronlike.py"))
    assert done.code == 0, done.stderr
    assert done.steps() == list(range(1, 12)), "twelve updates, of two optimizers each"


@pytest.mark.slow
def test_a_script_under_accelerate_is_recorded_by_its_updates(under: Callable) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    launcher = (sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2")
    settled = ("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
    done = under(*launcher, *settled, str(SCRIPTS / "accelerated.py"))
    assert done.code == 0, done.stderr
    assert (done.run.experiment.strategy, done.run.experiment.title) == ("accelerated.py", "DDP (seen)")
    # 320 samples in batches of 8 over 2 ranks, twice, two micro-batches an update.
    assert [done.steps(rank) for rank in (0, 1)] == [list(range(1, 20))] * 2


@pytest.mark.slow
def test_a_script_under_deepspeed_is_recorded_by_its_engines_updates(under: Callable) -> None:
    pytest.importorskip("deepspeed", reason="deepspeed is not installed")
    launcher = (sys.executable, "-m", "deepspeed.launcher.runner", "--num_accelerators", "2", "--master_port", "29617")
    done = under(*launcher, str(SCRIPTS / "deepspeeded.py"), DS_ACCELERATOR="cpu")
    assert done.code == 0, done.stderr
    assert "updates 20" in done.stdout
    assert done.run.experiment.title == "DeepSpeed (seen)"
    assert [done.steps(rank) for rank in (0, 1)] == [list(range(1, 20))] * 2, "two parameter groups are one update"


@pytest.mark.slow
def test_ranks_that_stand_still_tell_where_and_nothing_of_theirs_is_ended(under: Callable) -> None:
    done = under(*TORCHRUN, str(SCRIPTS / "stalls.py"), "--wait", "14")
    assert done.code == 0, done.stderr
    assert done.steps(0) == done.steps(1) == list(range(1, 40))
    assert "Ranks 0–1 ended no step for 1" in done.stderr
    assert "rank 1 is in fetch (stalls.py:" in done.stderr
    assert "Ranks 0–1 are no longer without a step." in [log.text for log in done.entries(Log)]
    assert {taken.rank for taken in done.entries(StacksTaken)} == {0, 1}
    told = json.loads(analysis_json([done.run]))["recordings"][0]
    assert "hang" not in [one["code"] for one in told["findings"]], "it went on"


@pytest.mark.slow
def test_a_rank_that_stands_still_while_another_steps_on_is_named(under: Callable) -> None:
    done = under(*TORCHRUN, str(SCRIPTS / "stalls.py"), "--wait", "14", "--alone")
    assert done.code == 0, done.stderr
    assert "while rank 0 still steps. Rank 1 is in fetch (stalls.py:" in done.stderr


@pytest.mark.slow
def test_another_launcher_is_as_good_which_only_numbers_its_tasks(under: Callable, tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    task = "SLURM_PROCID=$n SLURM_LOCALID=$n SLURM_NTASKS=2"
    srun.write_text(
        f'#!/bin/sh\nfor n in 0 1; do {task} "$@" & pids="$pids $!"; done\nfor p in $pids; do wait $p; done\n'
    )
    srun.chmod(0o755)
    done = under(str(srun), sys.executable, str(SCRIPTS / "endings.py"), "none")
    assert done.code == 0, done.stderr
    assert (done.steps(0), done.steps(1)) == ([1, 2, 3], [1, 2, 3])
    assert done.run.experiment.title == "several ranks, no wrapper seen"
    assert done.run.experiment.ranks == 2


@pytest.mark.slow
def test_fsdp2_is_seen(under: Callable) -> None:
    done = under(*TORCHRUN, str(SCRIPTS / "fsdp2.py"))
    assert done.code == 0, done.stderr
    run = done.run
    assert (run.experiment.title, run.experiment.approach, run.experiment.ranks) == ("FSDP2 (seen)", "fsdp", 2)
    assert run.experiment.parameters == 3 * (2 * 64 * 128 + 128 + 64)
    assert {one.name for one in overlap(run)} == {"all_gather", "reduce_scatter"}
    sizes = [{c.name: c.size_bytes for c in rank.categories}["parameters"] for rank in memory(run)]
    assert sum(sizes) == 4 * run.experiment.parameters


@pytest.mark.slow
def test_ranks_that_a_script_spawns_itself_are_found_by_their_group(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "spawned.py"))
    assert done.code == 0, done.stderr
    assert done.run.experiment.title == "DDP (seen)"
    assert done.steps(0) == done.steps(1) == list(range(1, 12))
    pids = {start.rank: start.pid for start in done.run.ranks}
    assert len(set(pids.values())) == 2
    assert {trace.rank for trace in done.run.traces} == {0, 1}


@pytest.mark.slow
def test_a_plain_jax_script_is_recorded_by_its_own_annotations(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "plain_jax.py"), "40", JAX_NUM_CPU_DEVICES="2", JAX_PLATFORMS="cpu")
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("loss ")
    run = done.run
    assert (run.experiment.framework, run.experiment.title) == ("jax", "JAX on 2 devices (seen)")
    # From annotation to annotation: the last of forty is not followed by another.
    assert done.steps() == list(range(39))
    assert [(start.rank, start.device_kind) for start in run.ranks] == [(0, "cpu"), (1, "cpu")]
    [trace] = run.traces
    assert (trace.first_step, trace.end_step, trace.format) == (5, 6, "xplane")
    # The script numbers its steps from 100; the trace's are those of the journal.
    assert {step for window in run.windows for step in window.steps} == {5}
    compiled = done.entries(Compiled)
    assert any(entry.function == "update" and entry.stage == "compile" and entry.step == 0 for entry in compiled)
    assert not any(entry.is_recompilation for entry in compiled)


@pytest.mark.slow
def test_a_jax_loop_without_annotations_can_mark_its_steps(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "marked_jax.py"), JAX_PLATFORMS="cpu")
    assert (done.code, done.stdout) == (0, "done\n"), done.stderr
    assert done.steps() == list(range(20))
    assert {(entry.samples, entry.tokens) for entry in done.entries(StepDone)} == {(32, 64)}
    assert {step for window in done.run.windows for step in window.steps} == {5}
    [again] = [entry for entry in done.entries(Compiled) if entry.is_recompilation and entry.function == "update"]
    assert again.step == 12
    assert any("float32[32,64] → float32[31,64]" in change for change in again.changed)


@pytest.mark.slow
def test_steps_can_be_marked_where_no_optimizer_tells_them(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "marked.py"))
    assert done.code == 0, done.stderr
    assert done.stdout == "done True\n"
    assert done.steps() == list(range(12)), "record() tells the first one's beginning"
    assert {(entry.loss, entry.samples) for entry in done.entries(StepDone)} == {(0.5, 4)}
    assert {step for window in done.run.windows for step in window.steps} == {5}


@pytest.mark.slow
def test_a_step_that_is_compiled_is_left_alone_and_goes_uncounted(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "compiled.py"))
    assert (done.code, done.stdout) == (0, "trained torch.Size([1, 4])\n")
    # Of twelve compiled updates none, of the three that are not compiled all.
    assert done.steps() == [1, 2]
    ours = [entry.name for entry in done.entries(Compiled) if "own_" in entry.name or "torch_memory" in entry.name]
    assert ours == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code", "why"),
    [("crash", 1, "rank 0: ValueError: the loss is no number"), ("three", 3, "it ended with exit code 3")],
)
def test_a_script_that_fails_fails_as_ever(under: Callable, how: str, code: int, why: str) -> None:
    done = under(sys.executable, str(SCRIPTS / "endings.py"), how)
    assert done.code == code
    assert done.stdout == f"trained ['{how}'] scripts\n"
    [ended] = done.entries(Ended)
    assert (ended.outcome, ended.exit_code, ended.why) == ("failed", code, why)
    assert ("Traceback" in done.stderr) == (how == "crash")
    assert done.steps() == [1, 2, 3]


@pytest.mark.slow
def test_a_recording_that_goes_away_takes_no_script_along(under: Callable) -> None:
    done = under(sys.executable, str(SCRIPTS / "endings.py"), "erase")
    assert done.code == 0
    assert done.stdout == "trained ['erase'] scripts\nand on\n"
    assert "Traceback" not in done.stderr
    assert "meshscope: The recording broke off: " in done.stderr


@pytest.mark.slow
def test_a_script_whose_torch_cannot_be_imported_goes_its_own_way(under: Callable) -> None:
    broken = os.pathsep.join([str(SCRIPTS / "broken"), os.environ.get("PYTHONPATH", "")])
    done = under(sys.executable, str(SCRIPTS / "broken_import.py"), PYTHONPATH=broken)
    assert (done.code, done.stdout) == (5, "without torch: libtorch.so: cannot open shared object file\n")
    assert "No process of the command imported torch or JAX" in done.stderr
    assert "Traceback" not in done.stderr


@dataclass
class Started:
    """One command under way in a terminal of its own."""

    process: subprocess.Popen[bytes]
    terminal: IO[bytes]
    folder: Path
    said: bytes = b""

    def until(self, word: bytes, patience_s: float = 60) -> None:
        deadline = time.monotonic() + patience_s
        os.set_blocking(self.terminal.fileno(), False)
        while word not in self.said:
            assert time.monotonic() < deadline, self.said.decode(errors="replace")
            self.said += self._read()
            time.sleep(0.05)

    def ended(self, patience_s: float = 60) -> int:
        deadline = time.monotonic() + patience_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said.decode(errors="replace")
            self.said += self._read()
            time.sleep(0.05)
        self.said += self._read()
        return self.process.returncode

    def _read(self) -> bytes:
        try:
            return self.terminal.read(65536) or b""
        except OSError:  # the other end is closed
            return b""


@pytest.fixture
def in_terminal(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Starts a command under meshscope as the foreground of a terminal, without a screen."""
    started: list[Started] = []

    def start(*command: str) -> Started:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            _line(tmp_path / "run", *command), env=_environment(), stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # no other way
        )  # fmt: skip
        os.close(theirs)
        one = Started(process, os.fdopen(ours, "r+b", buffering=0), tmp_path / "run")
        started.append(one)
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()
        one.terminal.close()


@pytest.mark.slow
def test_ctrl_c_reaches_the_script_once_and_its_code_is_kept(in_terminal: Callable) -> None:
    running = in_terminal(sys.executable, str(SCRIPTS / "endings.py"), "tidy")
    running.until(b"to stderr")
    running.terminal.write(b"\x03")
    assert running.ended() == 7
    assert running.said.count(b"tidied up") == 1
    _, [run] = Gallery(running.folder).at(time.time_ns())
    assert run.ended is not None
    assert (run.ended.outcome, run.ended.why, run.ended.exit_code) == ("stopped", "SIGINT", 7)


@pytest.mark.slow
def test_a_script_that_ignores_ctrl_c_runs_to_its_end(in_terminal: Callable) -> None:
    running = in_terminal(sys.executable, str(SCRIPTS / "endings.py"), "deaf")
    running.until(b"to stderr")
    running.terminal.write(b"\x03")
    assert running.ended() == 0
    _, [run] = Gallery(running.folder).at(time.time_ns())
    assert run.ended is not None
    assert run.ended.outcome == "done"


@pytest.mark.slow
def test_sigterm_to_meshscope_reaches_the_script(in_terminal: Callable) -> None:
    running = in_terminal(sys.executable, str(SCRIPTS / "endings.py"), "tidy")
    running.until(b"to stderr")
    running.process.send_signal(signal.SIGTERM)
    assert running.ended() == 7
    assert running.said.count(b"tidied up") == 1


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Callable[..., tuple[Path, int]]]:
    """Starts a command as a screen does: by a supervisor in a session of its own."""
    pids: list[int] = []

    def start(*command: str) -> tuple[Path, int]:
        plan = planning.plan(Request(strategies=(), out=str(tmp_path / "run"), command=command))
        folder = Path(plan.request["out"])
        pids.append(launch.start(folder, plan))
        return folder, pids[-1]

    yield start
    for pid in pids:
        if launch.is_running(pid):
            os.killpg(pid, signal.SIGKILL)


def _until(holds: Callable[[], object], patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_behind_a_screen_output_is_kept_and_a_stop_is_a_ctrl_c(behind: Callable) -> None:
    folder, pid = behind(sys.executable, str(SCRIPTS / "endings.py"), "tidy")
    output = folder / "endings" / "logs" / "launcher.txt"
    _until(lambda: output.exists() and "to stderr" in output.read_text())
    ask(folder, Ask(what="stop"))
    _until(lambda: not launch.is_running(pid))
    assert output.read_text() == "trained ['tidy'] scripts\nto stderr\ntidied up\n"
    _, [run] = Gallery(folder).at(time.time_ns())
    assert run.ended is not None
    assert (run.ended.outcome, run.ended.exit_code) == ("stopped", 7)
    said = [entry.text for entry in run.logs if isinstance(entry, Log)]
    assert [text for text in said if text in output.read_text()] == output.read_text().splitlines()
