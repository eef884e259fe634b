"""What is not known of the memory, and why."""

from __future__ import annotations

from collections.abc import Iterator

from meshscope.analysis.memory import CATEGORIES, RankMemory, memory
from meshscope.analysis.traced_memory import WINDOW_ONLY, traced_memory
from meshscope.run import Run
from meshscope.units import size

Doubt = tuple[str, str]

_NO_PEAK = {
    "cpu": "no measurement saw it: on a CPU rank it takes a profiled window that traces memory",
    "jax": "neither the allocator nor XLA's plan of the step told it",
    "gpu": "the allocator did not tell it",
}
_OTHERS = {
    "gradients": "no optimizer update was seen, before which they are summed",
    "activations": "no step's saved tensors were counted (under torch.compile they cannot be)",
}
_COUNTED = {"reserved_bytes": "pool_bytes", "in_use_bytes": "in_use_bytes"}


def memory_doubts(run: Run) -> tuple[Doubt, ...]:
    """(what, why), where it is so for some ranks only with their numbers."""
    ranks = memory(run)
    if not ranks:
        return (("memory", _nothing_why(run)),)
    found: dict[Doubt, list[int]] = {}
    for rank in ranks:
        for doubt in _of_rank(run, rank) if rank.record is None else ():
            found.setdefault(doubt, []).append(rank.rank)
    return tuple((what, _of(numbers, len(ranks)) + why) for (what, why), numbers in found.items())


def _nothing_why(run: Run) -> str:
    if run.experiment.strategy:
        return "nothing was measured"
    if traced_memory(run):
        return f"{WINDOW_ONLY}; its totals within them are told as allocations"
    alone = run.records and not run.windows
    return "no allocator's account is among the files" if alone else "a trace alone does not say"


def _of(numbers: list[int], ranks: int) -> str:
    if len(numbers) == ranks:
        return ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(str(number) for number in numbers)}: "


def _of_rank(run: Run, rank: RankMemory) -> Iterator[Doubt]:
    is_jax = run.experiment.framework == "jax"
    if rank.peak_bytes is None:
        yield "memory.peak_bytes", _NO_PEAK["jax" if is_jax else "cpu" if _is_on_cpu(run, rank) else "gpu"]
    for name, attribute in _COUNTED.items():
        if getattr(rank, attribute) is None:
            yield f"memory.{name}", "the device's allocator does not count it"
    known = {category.name for category in rank.categories}
    for name in CATEGORIES:
        if name not in known:
            yield f"memory.{name}", _jax_why(name, known) if is_jax else _torch_why(name, rank)


def _is_on_cpu(run: Run, rank: RankMemory) -> bool:
    kinds = [started.device_kind for started in run.ranks if started.rank == rank.rank]
    return (kinds[-1] if kinds else run.experiment.device_kind) == "cpu"


def _jax_why(name: str, known: set[str]) -> str:
    if name in ("gradients", "activations"):
        where = "they never leave the compiled program"
        return f"{where}: they are inside its temporaries" if "temporaries" in known else where
    return "XLA told no plan of the step" if name == "temporaries" else "not measured"


def _torch_why(name: str, rank: RankMemory) -> str:
    if name != "temporaries":
        return _OTHERS.get(name, "not measured")
    of = "they are what the peak holds beyond the other categories"
    others = {category.name: category.size_bytes for category in rank.categories}
    lacking = [other for other in CATEGORIES if other not in others and other != name]
    if rank.peak_bytes is None or lacking:
        return f"{of}, and {'the peak is' if rank.peak_bytes is None else f'{lacking[0]} are'} not known"
    beyond = sum(others[other] for other in CATEGORIES if other in others) - rank.peak_bytes
    if beyond > 0:
        return f"{of}, which were not all alive at the peak: together they are {size(beyond)} above it"
    return f"{of}, and the newest measurement saw no peak"
