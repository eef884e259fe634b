"""``all``: every strategy that this machine can run, and why it cannot run the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from meshscope.capture.combinations import Combination
from meshscope.capture.request import Request
from meshscope.capture.scripts import ALL
from meshscope.discovery import Workload
from meshscope.errors import InputError
from meshscope.experiment import PlannedRun

_FEWEST_RANKS = 2


def is_bystander(request: Request, workload: Workload) -> bool:
    """Whether ``all`` alone brought it in: what cannot run then is left out, where by its name it is refused."""
    return ALL in request.strategies and workload.strategy not in request.strategies


def able(
    request: Request, asked: Sequence[Combination], planned: Callable[[Combination], PlannedRun]
) -> tuple[tuple[Combination, ...], list[PlannedRun], dict[str, str]]:
    """Those that can run, with their runs, and by the names of the others why they cannot.

    What ``all`` brought in may get another number of ranks than was asked for: see ``_tries``. InputError: one that was
    asked for by its name cannot run, or none but single devices can.
    """
    kept: list[Combination] = []
    runs: list[PlannedRun] = []
    refused: dict[str, InputError] = {}
    for one in asked:
        try:
            able, run = _first_able(_tries(request, one), planned)
        except InputError as error:
            if not is_bystander(request, one.workload):
                raise
            refused[one.name] = error
        else:
            kept.append(able)
            runs.append(run)
    if refused and all(run.is_baseline for run in runs):
        raise _in_one(refused)
    return tuple(kept), runs, {name: _why(name, error) for name, error in refused.items()}


def _first_able(
    tries: Sequence[Combination], planned: Callable[[Combination], PlannedRun]
) -> tuple[Combination, PlannedRun]:
    """InputError: why the first of them cannot run, where none can."""
    first, *others = tries
    try:
        return first, planned(first)
    except InputError:
        for one in others:
            try:
                return one, planned(one)
            except InputError:
                continue
        raise


def _tries(request: Request, one: Combination) -> list[Combination]:
    """With as many ranks as the others have, or as it declares to need where that is more. Where nobody asked for a
    number, then also with fewer, the most first: small models have too few layers for long pipelines.

    In a sweep a run has the ranks that it is named by, and nodes share what they have."""
    if not is_bystander(request, one.workload) or request.ranks_each or request.nodes.count > 1:
        return [one]
    least = max(one.workload.min_ranks, _FEWEST_RANKS)
    fewer = range(one.ranks - 1, least - 1, -1) if request.ranks is None else ()
    return [replace(one, ranks=count) for count in (max(one.ranks, one.workload.min_ranks), *fewer)]


def _in_one(refused: dict[str, InputError]) -> InputError:
    """What stands in the way of most."""
    whys = {strategy: _why(strategy, error) for strategy, error in refused.items()}
    why, count = Counter(whys.values()).most_common(1)[0]
    hint = next(error.hint for strategy, error in refused.items() if whys[strategy] == why)
    of = "" if count == len(whys) else f" (so for {count} of {len(whys)} strategies)"
    return InputError(f"No strategy can run so: {why[:1].lower()}{why[1:]}{of}.", hint=hint)


def _why(strategy: str, error: InputError) -> str:
    """The refusal as a clause behind the strategy's name, which it may begin with itself."""
    return error.message.removeprefix(f"{strategy}: ").removeprefix(f"{strategy} ").rstrip(".")


def notes(request: Request, runs: Sequence[PlannedRun], base: int, left_out: dict[str, str]) -> list[str]:
    """Which strategies have more ranks than the others or fewer by the choice of ``all``, and which it leaves out."""
    if ALL not in request.strategies or request.ranks_each:
        return _left_out(left_out)
    apart: dict[int, list[str]] = {}
    for run in runs:
        if run.ranks not in (base, 1):
            apart.setdefault(run.ranks, []).append(run.strategy)
    said = [
        f"{', '.join(names)}: {count} ranks, which they need; the others have {base}."
        if count > base
        else f"{', '.join(names)}: {count} ranks, the most they can have with this model; the others have {base}."
        for count, names in apart.items()
    ]
    return [*said, *_left_out(left_out)]


def _left_out(left_out: dict[str, str]) -> list[str]:
    return [f"{strategy} is left out: {why}." for strategy, why in left_out.items()]
