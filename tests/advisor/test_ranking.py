"""What is chosen, given what is forecast: forecasts here are made up, one figure per strategy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from meshscope.advisor import ranking
from meshscope.advisor.answer import Answer, answer, numbered
from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Fit, Forecast, MemoryForecast, TimeForecast
from meshscope.advisor.multipliers import Multipliers
from meshscope.advisor.naming import layout_name, settings, short_name
from meshscope.advisor.pareto import front
from meshscope.advisor.ranking import Advice, advice
from meshscope.advisor.request import Request, posed
from meshscope.advisor.why import why
from meshscope.errors import InputError

GB = 1e9
Made = Callable[[Candidate], tuple[float, float] | None]
"""Step in seconds and memory in GB of a candidate; None where neither is covered."""


def figure(value: float, spread: float = 0.05) -> Figure:
    return Figure(value, value * (1 - spread), value * (1 + spread), "assumed")


def made_up(monkeypatch: pytest.MonkeyPatch, made: Made) -> None:
    """Forecasts as ``made`` has them, on devices of 80 GB."""

    def memory_alone(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> Forecast:
        told = made(candidate)
        if told is None:
            return Forecast(None, None, ("memory: nobody knows",))
        used = figure(told[1] * GB)
        fit = Fit.FITS if used.high <= 80 * GB else Fit.DOES_NOT if used.low > 80 * GB else Fit.TOO_CLOSE
        return Forecast(MemoryForecast({}, used, used, used, 80 * GB, fit), None)

    def timed(
        found: Forecast, architecture: Architecture, candidate: Candidate, cluster: Cluster, multipliers: Multipliers
    ) -> Forecast:
        told = made(candidate)
        assert told is not None
        step_s = told[0]
        time = TimeForecast(
            figure(step_s), step_s * 0.9, step_s * 0.1, 0.0, 0.0, step_s, {"shard": step_s * 0.1}, 0.5, 1e5 / step_s
        )
        return Forecast(found.memory, time)

    monkeypatch.setattr(ranking, "memory_alone", memory_alone)
    monkeypatch.setattr(ranking, "timed", timed)


def asked(**more: object) -> Advice:
    return advice(posed(Request("1.3b", "8xH100", batch=64, **more)).question)  # type: ignore[arg-type]


def by_strategy(**told: tuple[float, float]) -> Made:
    """The same for all candidates of a strategy; others take an hour."""
    return lambda candidate: told.get(candidate.strategy, (3600.0, 10.0))


def test_the_fastest_that_fits_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, by_strategy(ddp=(1.0, 200.0), fsdp=(1.5, 40.0), zero1=(2.0, 40.0)))
    choice = asked().choice
    assert choice is not None
    assert choice.candidate.strategy == "fsdp"


def test_what_is_too_close_to_say_is_shown_and_never_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, by_strategy(zero2=(1.0, 79.0), fsdp=(1.5, 40.0)))
    found = asked()
    assert found.choice is not None
    assert found.choice.candidate.strategy == "fsdp"
    assert [each.candidate.strategy for each in found.close] == ["zero2"]
    assert "Worth a try: zero2 8" in " ".join(why(found))


def test_of_what_is_as_fast_the_plainest_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 5 % of the fastest; 6 % is too much."""
    made_up(monkeypatch, by_strategy(**{"fsdp+tp": (1.0, 40.0), "fsdp": (1.04, 40.0), "ddp": (1.06, 40.0)}))
    found = asked()
    assert found.choice is not None
    assert found.choice.candidate.strategy == "fsdp"
    assert found.fastest is not None
    assert found.fastest.candidate.strategy == "fsdp+tp"


def test_what_predictions_cannot_tell_apart_is_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, by_strategy(fsdp=(1.0, 40.0), zero1=(1.09, 40.0), ddp=(1.12, 40.0)))
    tied = {each.candidate.strategy: each.is_tied for each in asked(strategies=("=fsdp", "=zero1", "=ddp")).ranked}
    assert tied == {"fsdp": True, "zero1": True, "ddp": False}


def test_of_a_strategy_that_does_not_fit_the_nearest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least memory has one sample at a time, everything computed again."""
    made_up(monkeypatch, lambda one: (1.0, 40.0) if one.strategy == "fsdp" else (1.0, 100 * one.micro_batch))
    refused = [each for each in asked().refused if each.candidate.strategy == "ddp"]
    assert [(each.candidate.micro_batch, each.candidate.checkpointing) for each in refused] == [(1, "full")]
    assert [each.memory.fit for each in refused] == [Fit.DOES_NOT]


def test_what_is_not_covered_is_counted_with_its_reason_and_not_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, lambda one: None if one.tensor > 1 else (1.0, 40.0))
    found = asked()
    assert found.cannot_say["memory: nobody knows"] > 0
    assert all(each.candidate.tensor == 1 for each in found.every)


def test_a_layout_is_shown_once_with_its_best_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, lambda one: (2.0 - one.micro_batch / 100, 40.0))
    found = asked()
    names = [layout_name(each.candidate) for each in found.ranked]
    assert len(names) == len(set(names))
    assert {layout_name(each.candidate) for each in found.settings} <= set(names)


def test_another_bucket_size_is_taken_only_where_it_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(one: Candidate) -> tuple[float, float]:
        gain = 0.9 if one.bucket_bytes == 100 * 2**20 else 1.0
        return (gain if one.strategy == "ddp" else 1.2), 40.0

    made_up(monkeypatch, made)
    found = asked()
    assert found.choice is not None
    assert settings(found.choice.candidate).endswith("buckets of 100 MiB")
    made_up(monkeypatch, lambda one: (1.0 if one.strategy == "ddp" else 1.2, 40.0))
    plain = asked()
    assert plain.choice is not None
    assert "buckets" not in settings(plain.choice.candidate)


def answered(monkeypatch: pytest.MonkeyPatch, made: Made) -> Answer:
    made_up(monkeypatch, made)
    return answer(posed(Request("1.3b", "8xH100", batch=64)), with_sensitivities=False)


def test_the_front_is_what_nothing_beats_in_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, by_strategy(ddp=(1.0, 70.0), fsdp=(1.5, 30.0), zero1=(1.6, 50.0), tp=(2.0, 20.0)))
    found = asked(strategies=("=ddp", "=fsdp", "=zero1", "=tp"))
    assert [each.candidate.strategy for each in front(found.ranked)] == ["ddp", "fsdp", "tp"]


def test_nothing_that_fits_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(monkeypatch, lambda _: (1.0, 200.0))
    assert found.advice.choice is None
    assert found.why[0].startswith("Nothing fits 8 devices")
    assert "200 GB" in found.why[0]


def test_a_row_is_found_by_number_name_or_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(monkeypatch, by_strategy(fsdp=(1.0, 40.0), ddp=(1.5, 40.0)))
    assert found.rows[numbered(found, "1") - 1].candidate.strategy == "fsdp"
    assert numbered(found, "ddp 8") == numbered(found, "DDP") == numbered(found, "ddp8")
    tensor = next(at for at, each in enumerate(found.rows, 1) if each.candidate.strategy == "fsdp+tp")
    assert numbered(found, short_name(found.rows[tensor - 1].candidate)) == tensor


@pytest.mark.parametrize("which", ["0", "9999", "nothing", "\x1b[31m", ""])
def test_a_row_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    found = answered(monkeypatch, by_strategy(fsdp=(1.0, 40.0)))
    with pytest.raises(InputError) as refused:
        numbered(found, which)
    assert refused.value.hint
