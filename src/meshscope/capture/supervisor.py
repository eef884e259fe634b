"""``python -m meshscope.capture.supervisor FOLDER``: carries a plan out, strategy by strategy.

Ends everything it started on a stop asked for in ``control/``, on SIGTERM and on SIGINT; a closed terminal (SIGHUP)
means nothing to it. Exit code: 0 when every strategy ended well or a stop was asked for, 1 when one failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from meshscope.capture import commands, machine
from meshscope.capture.own import running as own
from meshscope.capture.request import Request, from_plain
from meshscope.capture.running import Running
from meshscope.errors import MeshscopeError
from meshscope.experiment import Plan, PlannedRun
from meshscope.recording.control import Ask, Asked
from meshscope.recording.entries import Ended, Entry, Log, Phase, RankStarted
from meshscope.recording.journal import Journal
from meshscope.recording.layout import read_plan


class Stop:
    """Whether everything must end, and who said so."""

    def __init__(self, folder: Path) -> None:
        self._asked = Asked(folder)
        self.reason = ""

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _heard(self, number: int, _: types.FrameType | None) -> None:
        self.reason = self.reason or signal.Signals(number).name

    def asks(self) -> list[Ask]:
        """What watchers asked for since the last call; a stop among it is remembered."""
        fresh = self._asked.new()
        for ask in fresh:
            if ask.what == "stop":
                self.reason = self.reason or ask.reason or "a watcher asked for it"
        return fresh

    def is_asked(self) -> bool:
        return bool(self.reason)

    # What a user's own command needs; ``own.passing`` is the same for a command in the foreground.

    keeps_output = True
    heard = ""
    exit_code: int | None = None

    def around(self) -> AbstractContextManager[None]:
        return nullcontext()

    def begun(self) -> None:
        return

    def wait(self, seconds: float, child: subprocess.Popen[bytes]) -> None:
        del child
        time.sleep(seconds)


def supervise(folder: Path, stop: Stop | None = None, say: Callable[[Entry], None] = lambda _: None) -> int:
    """Carry out the plan in ``folder``. The exit code. ``say`` hears what a user's own command shows."""
    plan = read_plan(folder)
    if plan is None:
        print(f"{folder} has no plan.json", file=sys.stderr)
        return 1
    stop = stop or Stop(folder)
    stop.listen()
    journal = Journal(folder, "supervisor", t0_unix_ns=plan.t0_unix_ns)
    journal.append(
        RankStarted(
            t_ns=journal.now_ns(), rank=-1, device=-1, device_name=machine.host(), device_kind="host", pid=os.getpid()
        )
    )
    for note in plan.notes:
        journal.append(Log(t_ns=journal.now_ns(), level="warning", text=note))
    ends = _all(folder, plan, stop, journal, say)
    ended = _summed(ends, stop, journal.now_ns())
    journal.append(ended)
    journal.close()
    return 1 if ended.outcome == "failed" else 0


def _all(folder: Path, plan: Plan, stop: Stop, journal: Journal, say: Callable[[Entry], None]) -> dict[str, Ended]:
    request = from_plain(plan.request)
    ends: dict[str, Ended] = {}
    for planned in plan.runs:
        stop.asks()
        if stop.is_asked():
            break
        journal.append(Phase(t_ns=journal.now_ns(), rank=-1, phase="launching", detail=planned.strategy))
        ended = ends[planned.strategy] = _one(folder, request, planned, stop, say)
        level = "error" if ended.outcome == "failed" else "info"
        text = f"{planned.strategy}: {ended.outcome}" + (f", {ended.why}" if ended.why else "")
        journal.append(Log(t_ns=journal.now_ns(), level=level, text=text))
    return ends


def _one(folder: Path, request: Request, planned: PlannedRun, stop: Stop, say: Callable[[Entry], None]) -> Ended:
    recording = folder / planned.folder
    try:
        if request.command:
            return own.carried_out(recording, request, planned, stop, say)
        running = Running(
            recording=recording,
            request=request,
            experiment=commands.experiment(request, planned),
            command=commands.command(request, planned, recording),
            asks=stop.asks,
            is_stopping=stop.is_asked,
        )
        return running.run()
    except (MeshscopeError, OSError) as error:
        # The folder went away or the disk is full: the strategies after it may still be told about.
        return Ended(t_ns=0, outcome="failed", why=f"{type(error).__name__}: {error}")


def _summed(ends: dict[str, Ended], stop: Stop, now_ns: int) -> Ended:
    failed = {strategy: ended for strategy, ended in ends.items() if ended.outcome == "failed"}
    if stop.is_asked():
        return Ended(t_ns=now_ns, outcome="stopped", why=stop.reason)
    if not failed:
        return Ended(t_ns=now_ns, outcome="done")
    why = "; ".join(f"{strategy}: {ended.why}" for strategy, ended in failed.items())
    rank = next(iter(failed.values())).rank
    return Ended(t_ns=now_ns, outcome="failed", why=why, rank=rank)


if __name__ == "__main__":
    sys.exit(supervise(Path(sys.argv[1])))
