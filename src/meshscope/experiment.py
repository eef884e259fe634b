"""What ran on what: the unchanging head of a recording, and the plan of a comparison."""

from __future__ import annotations

from typing import Any

import msgspec

FORMAT = 1


class Simulation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """That nobody ran this: what predicted it, and for what.

    ``by`` is the program and its version, ``constants`` the version of the frozen constants that its cost model stands
    on, ``cluster`` the machine that it is a prediction for. ``step_low_ns`` to ``step_high_ns`` bound 90 % of the
    step times to expect (0: not told). ``stands_for`` maps each rank that is drawn to the ranks that are like it, as
    text (``"0": "0–7"``), where not all are drawn.
    """

    by: str
    constants: str = ""
    cluster: str = ""
    step_low_ns: int = 0
    step_high_ns: int = 0
    stands_for: dict[str, str] = {}


class Experiment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``experiment.json``, written once before the first rank starts.

    ``device_kind`` is ``"cpu"``, ``"gpu"`` or ``"tpu"`` as planned; ``options`` are the workload's own
    (model, batch, steps, …); ``threads_per_rank`` is 0 where the framework decides. ``cores`` are those that the run
    may use, of the ``host_cores`` that the machine has (0: not recorded). ``faults`` were put in on purpose, each in a
    few words: what such a run shows is theirs. ``seen`` is the strategy that was recognized in a user's own script,
    whose ``strategy`` is its name; "" for a workload and until it is recognized. ``is_attached``: somebody
    else started it, and only its traces tell of its steps; its ``ranks`` are 0 where only they tell of those too.
    ``flop_per_sample`` is what training on a sample computes (0: not told), ``flop_how`` how that was counted, and
    ``flop_why`` why it could not be. In a sweep ``strategy`` names the run (``ddp ranks 2``) and ``workload`` the
    strategy that it is a run of; else ``workload`` is "" (see ``base_strategy``). With ``stable_frac`` the run ends, at
    ``planned_steps`` at the latest, once the interval of its median step is as narrow. Of a run on several ``nodes``
    this is the recording of one, number ``node_rank``; those that met at the same ``rendezvous`` are of one run, whose
    ``ranks`` are those of all of them, numbered node by node; ``hosts`` names their machines once
    the recordings of all are joined. ``simulated`` says that all of it was predicted and nothing measured; None for
    what ran.
    """

    t0_unix_ns: int
    strategy: str
    title: str
    framework: str
    ranks: int
    device_kind: str
    model: str
    workload: str = ""
    options: dict[str, Any] = {}
    parallel_lines: int = 0
    parameters: int = 0
    flop_per_sample: float = 0.0
    flop_how: str = ""
    flop_why: str = ""
    is_baseline: bool = False
    planned_steps: int = 0
    global_batch: int = 0
    sequence_length: int = 0
    threads_per_rank: int = 0
    cores: int = 0
    host_cores: int = 0
    host: str = ""
    versions: dict[str, str] = {}
    devices: list[str] = []
    command: list[str] = []
    faults: list[str] = []
    seen: str = ""
    is_attached: bool = False
    stable_frac: float = 0.0
    nodes: int = 1
    node_rank: int = 0
    rendezvous: str = ""
    hosts: list[str] = []
    simulated: Simulation | None = None
    format: int = FORMAT

    @property
    def base_strategy(self) -> str:
        """The strategy itself, whatever the run is called beside others."""
        return self.workload or self.strategy

    @property
    def approach(self) -> str:
        """The strategy as rules know it: ddp, fsdp, …, whether a workload declares it or a script shows it."""
        return self.seen or self.base_strategy

    @property
    def own_ranks(self) -> range:
        """The ranks that this recording is of."""
        each = self.ranks // self.nodes if self.nodes > 1 else self.ranks
        return range(self.node_rank * each, self.node_rank * each + each)


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One strategy of a plan; its recording is the folder ``folder`` beside ``plan.json``.

    ``ranks`` is its own number (a baseline has one); ``devices`` names the accelerators, none on CPU. ``workload`` is
    as in :class:`Experiment`; ``batch`` is 0 where the request says it for all; ``rendezvous`` is where its nodes meet.
    ``parameters`` and ``flop_*`` are those of :class:`Experiment`.
    """

    strategy: str
    title: str
    framework: str
    folder: str
    device_kind: str = "cpu"
    is_baseline: bool = False
    ranks: int = 0
    workload: str = ""
    batch: int = 0
    rendezvous: str = ""
    devices: list[str] = []
    parameters: int = 0
    flop_per_sample: float = 0.0
    flop_how: str = ""
    flop_why: str = ""

    @property
    def base_strategy(self) -> str:
        """The strategy itself, whatever the run is called beside others."""
        return self.workload or self.strategy


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``plan.json`` of a comparison: what will run, in order. ``request`` is all the supervisor needs.

    ``left_out`` maps strategies that ``all`` brought in and that cannot run here to the reason. ``is_simulated``: its
    recordings are predictions, and nothing ran.
    """

    t0_unix_ns: int
    runs: list[PlannedRun]
    ranks: int
    model: str
    request: dict[str, Any] = {}
    notes: list[str] = []
    left_out: dict[str, str] = {}
    is_simulated: bool = False
    format: int = FORMAT
