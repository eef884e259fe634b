"""The head and the journal of a simulated recording: what its ranks would have told of one step, and of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast, TimeForecast
from meshscope.advisor.simulated_ranks import Drawn
from meshscope.experiment import Experiment, Simulation
from meshscope.recording.entries import Ended, Entry, Log, MemoryMeasured, Phase, RankStarted, StepDone, TraceWritten
from meshscope.units import NS_PER_S, ranges

STEP = 0
PREDICTED = "predicted"
_START_NS = 1_000_000
"""When the step begins after the recording does: so much lies between that a replay shows it beginning."""


def step_ns(time: TimeForecast) -> int:
    """How long the simulated step is: the predicted step, or its last span where that ends later by rounding."""
    return max(round(time.step_s.value * NS_PER_S), max((span.end_ns for span in time.spans), default=0))


def experiment(
    name: str,
    architecture: Architecture,
    candidate: Candidate,
    cluster: Cluster,
    simulation: Simulation,
    *,
    t0_unix_ns: int,
) -> Experiment:
    """The head. The strategy is called *simulated* in its own name, which is what every table and title shows."""
    return Experiment(
        t0_unix_ns=t0_unix_ns,
        strategy=name,
        workload=candidate.strategy,
        title=f"simulated, never run: {described(candidate)}",
        framework=candidate.framework,
        ranks=candidate.devices,
        device_kind=device_kind(cluster),
        model=architecture.name,
        options=_options(architecture, candidate),
        parameters=architecture.parameters,
        flop_per_sample=architecture.flop_per_token(candidate.seq_len) * candidate.seq_len,
        flop_how="6 per multiplied parameter and token, and attention; counted from the model's shape",
        planned_steps=1,
        global_batch=round(candidate.micro_batch * candidate.accumulate * candidate.data),
        sequence_length=candidate.seq_len,
        devices=[cluster.device.name],
        simulated=simulation,
    )


def device_kind(cluster: Cluster) -> str:
    """``gpu`` or ``tpu``; a CPU is ``cpu``."""
    name = cluster.device.name.lower()
    return "cpu" if "cpu" in name else "tpu" if "tpu" in name else "gpu"


def described(candidate: Candidate) -> str:
    """``fsdp on shard 8, micro-batch 4, bf16``: the mesh, the batch, and what is computed again."""
    axes = ("replicate", "shard", "tensor", "pipeline", "context", "expert")
    mesh = " × ".join(f"{axis} {size}" for axis in axes if (size := getattr(candidate, axis)) > 1)
    said = [f"micro-batch {candidate.micro_batch:g}"]
    said += [f"{candidate.accumulate} micro-batches a step"] if candidate.accumulate > 1 else []
    said += [f"ZeRO stage {candidate.zero_stage}"] if candidate.zero_stage else []
    said += [f"{candidate.checkpointing} checkpointing"] if candidate.checkpointing != "none" else []
    return f"{candidate.strategy}{f' on {mesh}' if mesh else ''}, {', '.join(said)}, {candidate.numerics.name}"


def entries(
    drawn: Sequence[Drawn],
    candidate: Candidate,
    cluster: Cluster,
    time: TimeForecast,
    memory: MemoryForecast | None,
    files: dict[int, tuple[str, int]],
) -> dict[str, list[Entry]]:
    """By writer. ``files`` maps a drawn rank to its trace's path in the recording and that file's size in bytes."""
    end_ns = _START_NS + step_ns(time)
    found: dict[str, list[Entry]] = {
        f"rank{one.rank}": list(_of_rank(one, candidate, cluster, memory, files[one.rank], end_ns)) for one in drawn
    }
    said = "Simulated: predicted by a model of cost. Nothing ran, and no number here was measured."
    apart = [f"rank {one.rank} stands for ranks {ranges(one.stands_for)}" for one in drawn if len(one.stands_for) > 1]
    found["supervisor"] = [
        Log(t_ns=0, level="warning", text=said),
        *(Log(t_ns=0, level="info", text=f"Simulated: {text}, which do the same.") for text in apart),
        Ended(t_ns=end_ns + 3, outcome="done"),
    ]
    return found


def _of_rank(
    one: Drawn,
    candidate: Candidate,
    cluster: Cluster,
    memory: MemoryForecast | None,
    file: tuple[str, int],
    end_ns: int,
) -> Iterator[Entry]:
    rank, device = one.rank, one.rank % cluster.per_node
    yield RankStarted(
        t_ns=0, rank=rank, device=device, device_name=cluster.device.name, device_kind=device_kind(cluster), pid=0
    )
    yield Phase(t_ns=0, rank=rank, phase="training", detail="simulated")
    samples = _share(one, candidate)
    yield StepDone(
        t_ns=end_ns,
        rank=rank,
        step=STEP,
        start_ns=_START_NS,
        end_ns=end_ns,
        samples=samples,
        tokens=samples * candidate.seq_len,
        peak_bytes=-1 if memory is None else round(memory.allocated.value),
        reserved_bytes=-1 if memory is None else round(memory.reserved.value),
    )
    yield TraceWritten(
        t_ns=end_ns + 1,
        rank=rank,
        path=file[0],
        format="kineto",
        first_step=STEP,
        end_step=STEP + 1,
        size_bytes=file[1],
    )
    if memory is not None:
        yield _memory(one, device, memory, end_ns)


def _share(one: Drawn, candidate: Candidate) -> int:
    """The samples of a step that a drawn rank counts, so that all drawn ranks together count each sample once.

    A class is a stretch of ranks.
    """
    whole = round(candidate.micro_batch * candidate.accumulate * candidate.data)
    first, end = one.stands_for[0], one.stands_for[-1] + 1
    return whole * end // candidate.devices - whole * first // candidate.devices


def _memory(one: Drawn, device: int, memory: MemoryForecast, end_ns: int) -> MemoryMeasured:
    return MemoryMeasured(
        t_ns=end_ns + 2,
        rank=one.rank,
        device=device,
        step=STEP,
        source=f"a model of memory; nothing was measured (90 % between {_reach(memory.allocated)})",
        categories={name: round(figure.value) for name, figure in memory.categories.items()},
        how=dict.fromkeys(memory.categories, PREDICTED),
        peak_bytes=round(memory.allocated.value),
        peak_how=PREDICTED,
        pool_bytes=round(memory.reserved.value),
        capacity_bytes=round(memory.limit_bytes),
    )


def _reach(figure: Figure) -> str:
    return f"{figure.low / 1e9:.1f} and {figure.high / 1e9:.1f} GB allocated"


def _options(architecture: Architecture, candidate: Candidate) -> dict[str, object]:
    return {
        "layers": architecture.layers,
        "width": architecture.d_model,
        "heads": architecture.heads,
        "vocab": architecture.vocab,
        "seq": candidate.seq_len,
        "batch": round(candidate.micro_batch * candidate.accumulate * candidate.data),
        "micro_batch": candidate.micro_batch,
        "accumulate": candidate.accumulate,
        "precision": candidate.numerics.compute,
        "numerics": candidate.numerics.name,
        "checkpointing": candidate.checkpointing,
        "compile": candidate.is_compiled,
    }
