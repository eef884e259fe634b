"""One strategy, from its first process to the last entry of its recording."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from meshscope.capture import causes, peers, processes
from meshscope.capture.commands import Command
from meshscope.capture.cycle import Cycle
from meshscope.capture.request import Request
from meshscope.capture.roster import Roster
from meshscope.capture.sensors.sampling import Sampling
from meshscope.capture.stability import Stability
from meshscope.capture.watchdog import Watchdog
from meshscope.experiment import Experiment
from meshscope.recording.control import Ask
from meshscope.recording.entries import Ended, Log, Phase
from meshscope.recording.journal import Journal
from meshscope.recording.layout import LOGS, create

LAUNCHER_LOG = "launcher.txt"
_POLL_S = 0.1
_SETTLE_S = 0.5
_PARTING_S = 30.0


@dataclass
class Running:
    """One strategy's ranks while they run.

    ``asks`` gives what watchers asked for since the last look, ``is_stopping`` whether everything must end.
    """

    recording: Path
    request: Request
    experiment: Experiment
    command: Command
    asks: Callable[[], list[Ask]]
    is_stopping: Callable[[], bool]
    journal: Journal = field(init=False)
    roster: Roster = field(init=False)
    cycle: Cycle = field(init=False)
    watchdog: Watchdog = field(init=False)
    stability: Stability = field(init=False)

    def run(self) -> Ended:
        """Until the ranks are done, one failed or a stop was asked for; nothing of it runs on afterwards."""
        create(self.recording, self.experiment)
        self.journal = Journal(self.recording, "supervisor", t0_unix_ns=self.experiment.t0_unix_ns)
        own = self.experiment.own_ranks
        self.roster = Roster(self.recording, len(own), own.start)
        self.cycle = Cycle(self.recording, self.request.windows, self.experiment, self.journal)
        self.watchdog = Watchdog(
            self.recording,
            self.roster,
            self.request,
            self.journal,
            has_flight=self.experiment.framework == "torch",
            look=lambda: self._take(()),
            elsewhere=lambda: peers.waited_for(self.experiment, self.roster),
        )
        self.stability = Stability(self.recording, self.experiment, self.journal)
        self.journal.append(Phase(t_ns=self.journal.now_ns(), rank=-1, phase="launching"))
        for fault in self.experiment.faults:
            text = f"injected: {fault}; this is no clean run"
            self.journal.append(Log(t_ns=self.journal.now_ns(), level="warning", text=text))
        self.cycle.open()
        self.stability.open()
        child = processes.started(self.command, self.recording / LOGS / LAUNCHER_LOG)
        sampling = Sampling(self.recording, self.experiment.t0_unix_ns, self.roster.pids)
        sampling.start()
        try:
            ended = self._watch(child)
        finally:
            self._end_all(child)
            sampling.stop()
        return self._close(ended, child.returncode)

    def _watch(self, child: subprocess.Popen[bytes]) -> Ended | None:
        """How it ended where that is clear at once; None where the ranks' own ends must tell."""
        parting_since: float | None = None
        while True:
            self._look()
            if self.is_stopping():
                return Ended(t_ns=0, outcome="stopped", why="a stop was asked for")
            if child.poll() is not None:
                return None
            if self.roster.is_broken:
                self._settle(child)
                return None
            stuck = self._hung()
            if stuck:
                return stuck
            if self.roster.is_over:
                parting_since = parting_since or time.monotonic()
                if time.monotonic() - parting_since > _PARTING_S:
                    return None
            time.sleep(_POLL_S)

    def _look(self) -> None:
        self._take(self.asks())

    def _take(self, asks: Iterable[Ask]) -> None:
        fresh = self.roster.fresh(self.journal.now_ns())
        self.cycle.take(fresh, list(asks))
        self.stability.take(fresh, self.cycle.training.windows)

    def _settle(self, child: subprocess.Popen[bytes]) -> None:
        """Give the peers of a rank that failed, and the launcher, a moment to say what they know."""
        deadline = time.monotonic() + _SETTLE_S
        while time.monotonic() < deadline and child.poll() is None:
            self.roster.fresh(self.journal.now_ns())
            time.sleep(0.02)

    def _hung(self) -> Ended | None:
        stuck = self.watchdog.stuck()
        if stuck is None:
            return None
        rank, why = stuck
        return Ended(t_ns=0, outcome="failed", rank=rank, why=f"rank {rank} hangs: {why}" if rank >= 0 else why)

    def _end_all(self, child: subprocess.Popen[bytes]) -> None:
        processes.end([*self.roster.processes(), *processes.family(child.pid)])
        child.wait()

    def _close(self, ended: Ended | None, launcher_code: int) -> Ended:
        """The last entries: one for each rank that had none of its own, and how it all ended."""
        self.stability.take(self.roster.fresh(self.journal.now_ns()), self.cycle.training.windows)
        ended = ended or causes.ended(self.roster, self.recording / LOGS, launcher_code)
        ended = peers.named(self.experiment, self.roster, ended)
        for last in causes.last_words(self.roster, self.recording / LOGS, ended, self.journal.now_ns()):
            self.journal.append(last)
        final = Ended(t_ns=self.journal.now_ns(), outcome=ended.outcome, why=ended.why, rank=ended.rank)
        self.journal.append(final)
        self.journal.close()
        return final
