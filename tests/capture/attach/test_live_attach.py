"""Jobs that know nothing of meshscope: attached to, measured, and left as they were."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from meshscope.analysis.findings import findings
from meshscope.analysis.flight import flight
from meshscope.analysis.step_split import step_split
from meshscope.recording.entries import TraceWritten
from meshscope.run import Gallery, Run
from meshscope.units import NS_PER_S

JOBS = Path(__file__).parent.parent / "jobs"
LINE = re.compile(r"^step (\d+) loss \S+ at (\S+) took (\S+) ms$", re.MULTILINE)
TOLERANCE = 0.1

pytestmark = [pytest.mark.live]


@dataclass
class Job:
    process: subprocess.Popen[bytes]
    log: Path
    last: Path

    @property
    def steps(self) -> list[tuple[int, float, float]]:
        """(number, unix seconds at its end, seconds) of each step that the job has told of."""
        found = LINE.findall(self.log.read_text())
        return [(int(number), float(at), float(took) / 1000) for number, at, took in found]

    def until(self, step: int, patience_s: float = 60) -> None:
        deadline = time.monotonic() + patience_s
        while not any(number >= step for number, _, _ in self.steps):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def ends_well(self, patience_s: float = 60) -> None:
        """It trains on while nobody watches it, and ends with 0 once it is to."""
        self.until(self.steps[-1][0] + 2)
        self.last.touch()
        assert self.process.wait(patience_s) == 0, self.log.read_text()

    def mean_s(self, from_s: float, to_s: float) -> float:
        """By the job's own log, of the steps that ended within a time."""
        inside = [(at, took) for _, at, took in self.steps if from_s < at <= to_s + took / 2]
        assert len(inside) >= 2, "the window holds steps that the job told of"
        return sum(took for _, took in inside) / len(inside)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    started: list[Job] = []

    def start(*line: str, **environment: str) -> Job:
        log, last = tmp_path / f"job{len(started)}.txt", tmp_path / f"end{len(started)}"
        quiet = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, *line, f"--until={last}"],
                env=os.environ | quiet | environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        started.append(Job(process, log, last))
        return started[-1]

    yield start
    for one in started:
        for process in _family(one.process.pid):
            process.send_signal(signal.SIGKILL)
        one.process.wait()


def _family(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return []


@pytest.fixture
def quick_kineto(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Processes that ask the daemon every second instead of every five, at a socket of this test's own."""
    path = tmp_path / "kineto.conf"
    path.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    # A socket's name has room for 107 bytes, of which libkineto takes 53.
    with tempfile.TemporaryDirectory(prefix="k") as sockets:
        yield {"KINETO_USE_DAEMON": "1", "KINETO_CONFIG": str(path), "KINETO_IPC_SOCKET_DIR": sockets}


def _torchrun(script: str, *flags: str) -> tuple[str, ...]:
    elastic = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    return (*elastic, str(JOBS / script), *flags)


def _attach(*words: str, out: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "meshscope", "attach", *words, "--headless", "--out", str(out)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


def _run(folder: Path) -> Run:
    _, (found,) = Gallery(folder).at(time.time_ns())
    return found


def _agrees(run: Run, job: Job) -> None:
    """What was measured of a step is what the job's own log says of the same steps."""
    split = step_split(run)
    assert split is not None
    t0_s = run.experiment.t0_unix_ns / NS_PER_S
    bounds = [edge for window in run.windows if window.rank == 0 for edge in (window.step_ns / NS_PER_S).ravel()]
    own_s = job.mean_s(t0_s + min(bounds), t0_s + max(bounds))
    assert split.span_ns / NS_PER_S == pytest.approx(own_s, rel=TOLERANCE), (run.windows[0].steps, job.steps[-40:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_jax_job_is_measured_as_its_own_log_says_and_ends_well(job, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="JAX's profiler server speaks gRPC: pip install 'meshscope[attach]'")
    port = _free_port()
    training = job(str(JOBS / "jax_job.py"), f"--port={port}", JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="2")
    training.until(3)
    done = _attach(f"localhost:{port}", "--window=0.8", out=tmp_path / "run")
    assert done.returncode == 0, done.stderr

    run = _run(tmp_path / "run")
    assert {window.rank for window in run.windows} == {0, 1}
    assert run.experiment.ranks == 2, "as the traces tell"
    assert all(window.steps for window in run.windows), "the job marks its steps"
    assert "attached: 1 process of jax_job.py" in done.stdout
    assert "A step takes" in done.stdout
    _agrees(run, training)
    training.ends_well()


@pytest.mark.slow
def test_an_unmodified_ddp_job_is_measured_as_its_own_log_says_and_ends_well(
    job, quick_kineto: dict[str, str], tmp_path: Path
) -> None:
    training = job(*_torchrun("torch_job.py"), **quick_kineto)
    training.until(3)
    done = _attach(str(training.process.pid), "--window=2", "--every=1", "--windows=2", out=tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr

    run = _run(tmp_path / "run")
    assert sorted({window.rank for window in run.windows}) == [0, 1]
    assert len([entry for entry in run.traces if isinstance(entry, TraceWritten)]) == 4, "two windows of two ranks"
    assert next(window.steps for window in run.windows if window.rank == 0)[0] in (0, 1)
    shared = set.intersection(*({step for w in run.windows if w.rank == rank for step in w.steps} for rank in (0, 1)))
    assert shared, "ranks number their steps alike"
    assert run.ended is not None
    assert run.ended.outcome == "done"
    assert "from the end of one optimizer step" in " ".join(done.stdout.split())
    assert not (tmp_path / "run" / "attached" / "arriving").exists()
    _agrees(run, training)
    training.ends_well()


@pytest.mark.slow
def test_ctrl_c_detaches_and_the_job_ends_as_if_nobody_had_come(
    job, quick_kineto: dict[str, str], tmp_path: Path
) -> None:
    training = job(*_torchrun("torch_job.py"), **quick_kineto)
    training.until(3)
    line = [sys.executable, "-m", "meshscope", "attach", str(training.process.pid), "--headless", "--windows=99"]
    watching = subprocess.Popen(
        [*line, "--every=2", "--window=0.5", "--out", str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list((tmp_path / "run" / "attached" / "traces").glob("rank1*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    watching.send_signal(signal.SIGINT)
    out, _ = watching.communicate(timeout=30)
    assert watching.returncode == 0, out
    assert "detached: the job goes on" in out
    assert training.process.poll() is None
    training.ends_well()


@pytest.mark.slow
def test_a_worker_server_gives_traces_stacks_and_the_flight_recorder(job, tmp_path: Path) -> None:
    training = job(*_torchrun("torch_job.py", "--worker-server"))
    training.until(3)
    ports = re.findall(r"serves on (\d+)", training.log.read_text())
    done = _attach(*(f"127.0.0.1:{port}" for port in ports), "--window=2", out=tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr

    run = _run(tmp_path / "run")
    assert sorted({window.rank for window in run.windows}) == [0, 1]
    assert sorted({entry.rank for entry in run.stacks}) == [0, 1]
    assert any("torch_job.py" in frame for entry in run.stacks for frame in entry.threads[0])
    found = flight(run)
    assert found is not None
    assert found.ranks == (0, 1)
    assert any(call.collective == "all_reduce" for record in found.records for call in record.calls)
    assert not [one for one in findings(run) if one.code == "hang"], "a rank that has called just now does not hang"
    _agrees(run, training)
    training.ends_well()


@pytest.mark.slow
def test_who_attaches_to_a_job_that_hangs_is_told_which_rank_and_where(job, tmp_path: Path) -> None:
    training = job(*_torchrun("torch_job.py", "--worker-server", "--hang-at=4"))
    training.until(3)
    ports = re.findall(r"serves on (\d+)", training.log.read_text())
    time.sleep(12)
    done = _attach(*(f"127.0.0.1:{port}" for port in ports), "--window=0.5", out=tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr

    (found,) = [one for one in findings(_run(tmp_path / "run")) if one.code == "hang"]
    said = " ".join(found.evidence)
    assert found.ranks == (1,)
    assert "not done: all_reduce" in said
    assert "rank 1 stood in wait_for_data (torch_job.py:" in said
    assert training.process.poll() is None, "it is left as it was"
