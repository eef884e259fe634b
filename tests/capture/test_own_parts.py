"""The parts of watching a user's own command, each by itself."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import timeit
from pathlib import Path

import msgspec
import pytest

import meshscope
from meshscope import marking
from meshscope.analysis.steps import steps
from meshscope.capture.own import planning, told
from meshscope.capture.own.output import Output
from meshscope.capture.own.passing import Passing
from meshscope.capture.request import Request
from meshscope.capture.roster import Roster
from meshscope.capture.workers import own_rank
from meshscope.capture.workers.own_journal import OwnJournal
from meshscope.errors import InputError, LaunchError
from meshscope.experiment import Experiment
from meshscope.recording.control import Ask, ask
from meshscope.recording.entries import Log, MemoryMeasured, RankStarted, Recognized, StepDone
from meshscope.recording.journal import Journal, Tail
from meshscope.reports.measured_text import measured_lines
from meshscope.run import fold

HEAD = Experiment(t0_unix_ns=0, strategy="train.py", title="", framework="", ranks=0, device_kind="cpu", model="")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("torchrun --nproc_per_node 2 train.py --lr 1", "train.py"),
        ("python -u dir/fit.py", "fit.py"),
        ("python -m torch.distributed.run --nproc-per-node 2 -m package.main", "package.main"),
        ("accelerate launch --num_processes 2 train.py", "train.py"),
        ("srun -n 4 python train.py", "train.py"),
        ("/usr/bin/python3.11", "python3.11"),
        ("./run.sh --fast", "run.sh"),
    ],
)
def test_a_run_is_called_after_its_script(line: str, name: str) -> None:
    assert planning.name_of(tuple(line.split())) == name


def test_a_command_that_there_is_not_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no command 'torchrunn'"):
        planning.plan(Request(strategies=(), out=str(tmp_path / "run"), command=("torchrunn", "x.py")))
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InputError, match="holds a run already"):
        planning.plan(Request(strategies=(), out=str(tmp_path), command=(sys.executable, "x.py")))
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.json"]


def test_the_environment_is_the_users_but_for_the_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    found = planning.environment(tmp_path, is_unbuffered=False)
    changed = {name for name in found if found[name] != os.environ.get(name)}
    assert found["PYTHONPATH"] == f"{planning.HOOK}{os.pathsep}/mine"
    assert changed <= {"PYTHONPATH", "KINETO_LOG_LEVEL"} | {name for name in found if name.startswith("MESHSCOPE_")}
    assert "PYTHONSAFEPATH" not in changed


@pytest.mark.parametrize(
    ("known", "place"),
    [
        ({}, (0, 1, 0)),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, (5, 8, 1)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1"}, (3, 4, 1)),
        ({"RANK": "x", "WORLD_SIZE": "8"}, (0, 1, 0)),
        ({"RANK": "9", "WORLD_SIZE": "8"}, (0, 1, 0)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, (1, 2, 1)),
    ],
)
def test_a_rank_is_where_its_launcher_says(known: dict[str, str], place: tuple[int, int, int]) -> None:
    found = own_rank.place(known)
    assert (found.rank, found.ranks, found.local_rank) == place


def test_a_rank_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_rank.RECORDING, str(tmp_path))
    (tmp_path / "logs").mkdir()
    (tmp_path / "experiment.json").write_bytes(msgspec.json.encode(HEAD))
    assert own_rank.enlist(3) is not None
    assert own_rank.enlist(3) is None
    assert [text for text, _ in told.unwatched(tmp_path, has_ranks=True)] == [
        "a second process says that it is rank 3: only the first is recorded"
    ]


def test_what_fails_once_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_rank.RECORDING, str(tmp_path))
    (tmp_path / "logs").mkdir()
    calls, dropped = [], []

    def fails(number: int) -> None:
        calls.append(number)
        raise ZeroDivisionError(number)

    quiet = own_rank.harmless(fails, on_failure=lambda: dropped.append(True))
    quiet(1)
    quiet(2)
    assert (calls, dropped) == ([1], [True])
    [(text, level)] = told.unwatched(tmp_path, has_ranks=True)
    assert text.startswith(f"ZeroDivisionError: 1 at {__file__}:")
    assert level == "warning"


def test_why_nothing_was_recorded_is_said(tmp_path: Path) -> None:
    log = tmp_path / "logs" / told.HOOK_LOG
    log.parent.mkdir()

    def said(*lines: str) -> list[str]:
        log.write_text("".join(f"{pid} {line}\n" for pid, line in enumerate(lines)))
        return [text for text, _ in told.unwatched(tmp_path, has_ranks=False)]

    assert said() == [told._NO_PYTHON]
    assert said("started: python", "started: python") == [told._NO_FRAMEWORK]
    assert said("started: python", "imported: torch") == [told._NO_STEP["torch"]]
    assert said("imported: torch", "imported: jax") == [told._NO_STEP["torch"], told._NO_STEP["jax"]]
    assert told.unwatched(tmp_path, has_ranks=True) == []
    refused = "refused: /a b/python cannot be watched: {}"
    assert said(refused.format("msgspec is not installed for it"))[1:] == [
        "To have it watched: '/a b/python' -m pip install msgspec"
    ]
    assert len(said(refused.format("it is Python 3.9, and meshscope needs 3.11 or later"))) == 1


def _step(number: int) -> StepDone:
    return StepDone(t_ns=number, rank=0, step=number, start_ns=number, end_ns=number + 1)


def test_short_steps_are_written_together_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.2, 0.21, 0.22, 0.35, 0.36])
    monkeypatch.setattr("meshscope.capture.workers.own_journal.time.monotonic", lambda: next(clock))
    journal = OwnJournal(tmp_path, 0, t0_unix_ns=0)
    tail = Tail(tmp_path / "journal" / "rank0.jsonl")
    seen = []
    for entry in (_step(0), _step(1), _step(2), _step(3), Log(t_ns=9, level="info", text="x")):
        journal.append(entry)
        seen.append(len(tail.read()))
    # The first at once; two wait until a tenth of a second has passed; anything but a step goes at once.
    assert seen == [1, 0, 0, 3, 1]


def test_ranks_join_a_roster_when_they_announce_themselves(tmp_path: Path) -> None:
    roster = Roster(tmp_path, ranks=0)
    assert (roster.pids(), roster.is_over) == ({}, False)
    journal = Journal(tmp_path, "rank2", t0_unix_ns=0)
    journal.append(_step(0))  # of a rank that nobody has announced
    journal.append(RankStarted(t_ns=1, rank=2, device=0, device_name="cpu", device_kind="cpu", pid=os.getpid()))
    roster.fresh(now_ns=2)
    assert roster.pids() == {2: os.getpid()}


def test_a_run_is_what_its_ranks_recognized_whatever_the_order() -> None:
    said = [
        Recognized(
            t_ns=10 - rank, rank=rank, framework="torch", ranks=2, device_kind="gpu", seen="ddp", title=f"DDP {rank}",
            parameters=5 + rank, versions={"torch": "2"},
        )
        for rank in (0, 1)
    ]  # fmt: skip
    for order in itertools.permutations(said):
        head = fold(HEAD, order).experiment
        assert (head.framework, head.ranks, head.device_kind, head.title) == ("torch", 2, "gpu", "DDP 0")
        assert (head.strategy, head.approach, head.parameters) == ("train.py", "ddp", 5)
        assert head.versions == {"torch": "2"}
    assert fold(HEAD, said, now_ns=8).experiment == HEAD
    assert HEAD.approach == "train.py"


def test_a_first_step_without_a_beginning_has_no_time() -> None:
    assert math.isnan(steps(fold(HEAD, [_step(number) for number in (1, 2, 3)])).first_ns)
    assert steps(fold(HEAD, [_step(number) for number in (0, 1, 2)])).first_ns == 1


def test_memory_of_no_known_category_is_told_by_what_is_in_use() -> None:
    measured = MemoryMeasured(t_ns=1, rank=0, device=0, step=1, source="", categories={}, how={}, in_use_bytes=97_324)
    lines = measured_lines(fold(HEAD, [measured]))
    assert lines[-1].strip() == "rank 0's memory: 97.3 kB in use between two steps"
    assert not any("()" in line for line in lines)


def test_output_is_told_line_by_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "supervisor", t0_unix_ns=0)
    tail = Tail(tmp_path / "journal" / "supervisor.jsonl")
    path = tmp_path / "launcher.txt"
    output = Output(path, journal)
    output.tell()
    path.write_bytes(b"one\n 10%\r 50%\r100%\r\n\nhalf")
    output.tell()
    assert [entry.text for entry in tail.read()] == ["one", "100%"]
    with path.open("ab") as file:
        file.write(b" and whole\n" + b"".join(b"line %d\n" % number for number in range(30)) + b"rest")
    output.tell()
    texts = [entry.text for entry in tail.read()]
    assert texts[0] == "… 11 lines more, in launcher.txt"
    assert texts[1:] == [f"line {number}" for number in range(10, 30)]
    output.tell(is_last=True)
    assert [entry.text for entry in tail.read()] == ["rest"]


def test_marks_do_nothing_where_nobody_hears_them() -> None:
    assert marking._watch is None
    before = timeit.timeit("pass", number=200_000)
    cost_s = timeit.timeit("step()", globals={"step": meshscope.step}, number=200_000) - before
    assert cost_s / 200_000 < 2e-6
    with meshscope.record():
        meshscope.step(loss=1.0)


def test_importing_the_marks_imports_nothing_else() -> None:
    heavy = "('msgspec', 'click', 'torch', 'jax', 'numpy')"
    found = f"sorted(name for name in sys.modules if 'meshscope' in name or name in {heavy})"
    code = f"import sys, meshscope; meshscope.step(); print({found})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['meshscope', 'meshscope.marking']\n"


SLEEPS = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: sys.exit(number))
print("up", flush=True)
time.sleep(20)
"""

PASSES = """
import os, signal, subprocess, sys
from pathlib import Path
from meshscope.capture.own.passing import Passing
passing = Passing(Path(sys.argv[1]))
with passing.around():
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdout=subprocess.PIPE)
    child.stdout.readline()
    passing.begun()
    os.kill(os.getpid(), int(sys.argv[3]))
    while child.poll() is None:
        passing.wait(0.1, child)
print(passing.heard, child.returncode, signal.getsignal(signal.SIGINT) is signal.default_int_handler,
      sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_us_alone_is_passed_on_and_ends_nobody_else(tmp_path: Path, number: signal.Signals) -> None:
    line = [sys.executable, "-c", PASSES, str(tmp_path), SLEEPS, str(int(number))]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, start_new_session=True, check=False)
    assert done.stdout == f"{number.name} {int(number)} True []\n", done.stderr


def test_a_key_of_the_terminal_is_not_passed_on_twice(tmp_path: Path) -> None:
    passing = Passing(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", SLEEPS], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    passing._hear(signal.SIGINT, child, is_ours=False)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.3)
    child.kill()
    child.wait()
    assert passing.heard == "SIGINT"


def test_a_stop_that_a_watcher_asks_for_is_heard(tmp_path: Path) -> None:
    passing = Passing(tmp_path)
    passing.listen()
    assert passing.asks() == []
    ask(tmp_path, Ask(what="stop"))
    passing.asks()
    assert passing.is_asked()
