"""Nothing outlives its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from meshscope.capture import guard, lifeline

SLEEP = "import time; print('up', flush=True); time.sleep(60)"

# A parent that starts a guarded child, prints its process id, and waits to be killed.
PARENT = """
import os, subprocess, sys, time
from meshscope.capture import guard
child = subprocess.Popen(guard.command(os.getpid(), [sys.executable, "-c", sys.argv[1]]), stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def _dies_within(pid: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a_guarded_command_dies_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, SLEEP], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert psutil.pid_exists(child)
    parent.kill()
    parent.wait()
    assert _dies_within(child, 5)


def test_a_guard_whose_parent_is_gone_already_starts_nothing() -> None:
    done = subprocess.run(
        guard.command(2**22 - 5, [sys.executable, "-c", "print('started')"]),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")


def test_the_command_takes_the_guard_s_place_and_knows_it() -> None:
    code = f"import os; print(os.environ['{lifeline.PARENT_VARIABLE}'], os.getpid())"
    done = subprocess.run(
        guard.command(os.getpid(), [sys.executable, "-c", code]), capture_output=True, text=True, timeout=30, check=True
    )
    told, own = done.stdout.split()
    assert told == own


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no core affinity")
def test_a_guard_binds_its_command_to_cores() -> None:
    first = min(os.sched_getaffinity(0))
    line = guard.command(
        os.getpid(), [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"], cores=(first,)
    )
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == str({first})


WITHOUT_KERNEL = "from meshscope.capture import lifeline; lifeline.asks_kernel = lambda: False; "


def test_without_the_kernel_s_help_a_thread_looks_after_the_parent() -> None:
    child = WITHOUT_KERNEL + "import os, time; lifeline.tie_to(os.getppid()); print('up', flush=True); time.sleep(60)"
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert _dies_within(pid, 5)


def test_without_the_kernel_s_help_a_guard_stays_and_passes_signals_and_codes_on() -> None:
    code = WITHOUT_KERNEL + (
        f"import os, sys; from meshscope.capture import guard; "
        f"sys.exit(guard.main(['--parent', str(os.getppid()), '--', sys.executable, '-c', {SLEEP!r}]))"
    )
    waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert waiting.stdout is not None
    waiting.stdout.readline()
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(10) != 0


def test_a_rank_starts_no_thread_before_it_blocks_the_signal_for_its_flight_recorder() -> None:
    """numpy's BLAS starts some where a rank has several cores: the signal would end a rank instead of asking it."""
    code = "import sys, meshscope.capture.workers.start; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
