"""A user's own command while it runs: watched, and let be."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from meshscope.capture import causes, processes
from meshscope.capture.cycle import Cycle
from meshscope.capture.own import planning, told
from meshscope.capture.own.output import Output
from meshscope.capture.own.standing import Standing
from meshscope.capture.request import Request
from meshscope.capture.roster import Roster
from meshscope.capture.sensors.sampling import Sampling
from meshscope.errors import MeshscopeError, RecordingError
from meshscope.experiment import Experiment, PlannedRun
from meshscope.recording.entries import Ended, Entry, Log, Phase, RankEnded
from meshscope.recording.journal import Journal
from meshscope.recording.layout import EXPERIMENT, LOGS, create

if TYPE_CHECKING:
    from meshscope.capture.supervisor import Stop

LAUNCHER_LOG = "launcher.txt"
_POLL_S = 0.1
_SETTLE_S = 0.3
# A stop is a Ctrl-C first; a script may want to save what it has.
_PATIENCE_S = ((signal.SIGINT, 15.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


def carried_out(
    recording: Path, request: Request, planned: PlannedRun, stop: Stop, say: Callable[[Entry], None]
) -> Ended:
    """Run the command to its end. ``say`` hears what is worth a line while it runs."""
    return OwnRunning(recording, request, planning.experiment(request, planned), stop, say).run()


@dataclass
class OwnRunning:
    """The command, and the recording that its ranks write."""

    recording: Path
    request: Request
    experiment: Experiment
    stop: Stop
    say: Callable[[Entry], None]
    journal: Journal = field(init=False)
    roster: Roster = field(init=False)
    cycle: Cycle = field(init=False)
    output: Output = field(init=False)
    standing: Standing = field(init=False)
    _asked: int = 0
    _asked_s: float = 0.0
    _trouble: str = ""

    def run(self) -> Ended:
        create(self.recording, self.experiment)
        self.journal = Journal(self.recording, "supervisor", t0_unix_ns=self.experiment.t0_unix_ns)
        self.roster = Roster(self.recording, ranks=0)
        self.cycle = Cycle(self.recording, self.request.windows, self.experiment, self.journal)
        self.standing = Standing(self.recording, self.roster, self.journal)
        self.output = Output(self.recording / LOGS / LAUNCHER_LOG, self.journal)
        self.journal.append(Phase(t_ns=self.journal.now_ns(), rank=-1, phase="launching"))
        self.cycle.open()
        with self.stop.around():
            child = self._started()
            self.stop.begun()
            sampling = Sampling(self.recording, self.experiment.t0_unix_ns, self.roster.pids)
            sampling.start()
            try:
                self._watch(child)
            finally:
                sampling.stop()
        self.stop.exit_code = child.returncode
        return self._close(child.returncode)

    def _started(self) -> subprocess.Popen[bytes]:
        keeps = self.stop.keeps_output
        environment = planning.environment(self.recording, is_unbuffered=keeps)
        if not keeps:
            return subprocess.Popen(self.request.command, env=environment)
        with (self.recording / LOGS / LAUNCHER_LOG).open("ab") as log:
            return subprocess.Popen(
                self.request.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def _watch(self, child: subprocess.Popen[bytes]) -> None:
        while child.poll() is None:
            self._look()
            self.stop.wait(_POLL_S, child)
            if self.stop.is_asked():
                self._end(child)
        # What ranks wrote last, and what they print to a file, may be a moment behind their launcher's end.
        time.sleep(_SETTLE_S if self.roster.members else 0)
        self._look()
        if self.stop.keeps_output and not self._trouble:
            self.output.tell(is_last=True)

    def _look(self) -> None:
        """A recording that can no longer be written (a full disk, a folder that is gone) ends, and not the command."""
        if self._trouble:
            return
        try:
            self._taken_in()
        except (OSError, MeshscopeError) as error:
            self._trouble = f"The recording broke off: {error}"
            self.say(Log(t_ns=self.journal.now_ns(), level="error", text=self._trouble))

    def _taken_in(self) -> None:
        if not (self.recording / EXPERIMENT).exists():
            raise RecordingError(f"{self.recording} is gone.")
        entries = self.roster.fresh(self.journal.now_ns())
        self.cycle.take(entries, self.stop.asks())
        still = self.standing.take(entries, self.journal.now_ns())
        for entry in [*entries, *([still] if still is not None else [])]:
            self.say(entry)
        if self.stop.keeps_output:
            self.output.tell()

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """A person asked for a stop: each signal in turn, once the one before it had its time."""
        now_s = time.monotonic()
        if self._asked and now_s - self._asked_s < _PATIENCE_S[self._asked - 1][1]:
            return
        if self._asked < len(_PATIENCE_S):
            number = _PATIENCE_S[self._asked][0]
            self._asked, self._asked_s = self._asked + 1, now_s
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(child.pid) == child.pid:
                    os.killpg(child.pid, number)  # as a terminal would
                else:
                    child.send_signal(number)
        else:
            processes.end(processes.family(child.pid), patience_s=0)

    def _close(self, code: int) -> Ended:
        """The last entries: how each rank ended as far as that is known, and how the command did."""
        self.roster.fresh(self.journal.now_ns())
        is_known = bool(self.roster.members or self._trouble)
        for text, level in told.unwatched(self.recording, has_ranks=is_known):
            log = Log(t_ns=self.journal.now_ns(), level=level, text=text)
            self.journal.append(log)
            self.say(log)
        outcome, why, rank = self._outcome(code)
        for last in self._last_words(outcome):
            self.journal.append(last)
        ended = Ended(t_ns=self.journal.now_ns(), outcome=outcome, why=why, rank=rank, exit_code=code)
        self.journal.append(ended)
        self.journal.close()
        return ended

    def _outcome(self, code: int) -> tuple[str, str, int]:
        if self.stop.is_asked() or (code and self.stop.heard):
            return "stopped", self.stop.heard or "a stop was asked for", -1
        deaths = [
            causes.Death(member.rank, member.ended.t_ns, member.ended.exit_code, member.ended.why)
            for member in self.roster.members.values()
            if member.ended is not None and member.ended.exit_code
        ]
        if code == 0:
            return "done", "", -1
        if deaths:
            death = causes.first(deaths)
            return "failed", f"rank {death.rank}: {death.text}", death.rank
        last = causes.last_lines(self.recording / LOGS / LAUNCHER_LOG)[-1:] if self.stop.keeps_output else ()
        return "failed", causes.code_text(code) + (f" ({last[0]})" if last else ""), -1

    def _last_words(self, outcome: str) -> list[RankEnded]:
        """Of ranks that left none: those whose end is known, and nobody's guess."""
        codes = {
            member.rank: 0 if outcome == "done" else member.exit_code
            for member in self.roster.members.values()
            if member.ended is None
        }
        return [
            RankEnded(t_ns=self.journal.now_ns(), rank=rank, exit_code=code, why=causes.code_text(code) if code else "")
            for rank, code in codes.items()
            if code is not None
        ]
