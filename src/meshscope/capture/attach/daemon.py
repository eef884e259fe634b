"""``python -m meshscope.capture.attach.daemon FOLDER``: records jobs that somebody else started, as the plan says.

A stop that is asked for in ``control/``, SIGTERM and SIGINT detach; a closed terminal (SIGHUP) means nothing to it.
Exit code: 0, or 1 where a job gave no trace at all.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from meshscope.capture import machine
from meshscope.capture.attach.attached import Attached
from meshscope.capture.attach.kineto_socket import KinetoSocket
from meshscope.capture.attach.planning import Attach, by_job, experiment, from_plan
from meshscope.capture.supervisor import Stop
from meshscope.errors import MeshscopeError
from meshscope.experiment import Plan
from meshscope.recording.entries import Ended, Log, RankStarted
from meshscope.recording.journal import Journal
from meshscope.recording.layout import read_plan

_POLL_S = 0.1


def attend(folder: Path) -> int:
    """Attach as the plan in ``folder`` says, until that is over. The exit code."""
    plan = read_plan(folder)
    if plan is None:
        print(f"{folder} has no plan.json", file=sys.stderr)
        return 1
    stop = Stop(folder)
    stop.listen()
    journal = Journal(folder, "supervisor", t0_unix_ns=plan.t0_unix_ns)
    now_ns = journal.now_ns()
    journal.append(
        RankStarted(t_ns=now_ns, rank=-1, device=-1, device_name=machine.host(), device_kind="host", pid=os.getpid())
    )
    for note in plan.notes:
        journal.append(Log(t_ns=now_ns, level="warning", text=note))
    ended = _attended(folder, plan, stop)
    journal.append(Ended(t_ns=journal.now_ns(), outcome=ended.outcome, why=ended.why))
    journal.close()
    return 1 if ended.outcome == "failed" else 0


def _attended(folder: Path, plan: Plan, stop: Stop) -> Ended:
    asked = from_plan(plan)
    sockets: dict[str, KinetoSocket] = {}
    jobs: list[Attached] = []
    try:
        for place in dict.fromkeys(target.socket_dir for target in asked.targets if target.door == "kineto"):
            sockets[place] = KinetoSocket(place)
        jobs = _opened(folder, plan, asked, sockets)
        _watch(jobs, stop)
    except (MeshscopeError, OSError) as error:
        # Told on the screen; whoever started this is not there to catch it.
        return Ended(t_ns=0, outcome="failed", why=_words(error))
    finally:
        ends = [job.close(is_left=stop.is_asked()) for job in jobs]
        for socket in sockets.values():
            socket.close()
    failed = next((end for end in ends if end.outcome == "failed"), None)
    return failed or ends[0]


def _opened(folder: Path, plan: Plan, asked: Attach, sockets: dict[str, KinetoSocket]) -> list[Attached]:
    jobs = []
    for planned, targets in zip(plan.runs, by_job(asked.targets).values(), strict=True):
        job = Attached(folder / planned.folder, experiment(planned, targets), targets, asked, sockets)
        job.open()
        jobs.append(job)
    return jobs


def _watch(jobs: list[Attached], stop: Stop) -> None:
    while not stop.is_asked() and not all(job.is_over for job in jobs):
        asks = stop.asks()
        for job in jobs:
            job.look(asks)
        time.sleep(_POLL_S)


def _words(error: MeshscopeError | OSError) -> str:
    return f"{error.message} {error.hint}".strip() if isinstance(error, MeshscopeError) else str(error)


if __name__ == "__main__":
    sys.exit(attend(Path(sys.argv[1])))
