"""Replicas, batches and random keys, by the fingerprints in the journal."""

from __future__ import annotations

from collections.abc import Callable

from asked import codes, only, said
from drawn import run, steps
from msgspec.structs import replace

from meshscope.recording.entries import Checked


def checks(
    of: Callable[[int, int], dict[str, object]], *, ranks: int = 2, at: tuple[int, ...] = (0, 10, 20)
) -> list[Checked]:
    """``of(rank, step)`` gives the fields of each check."""
    return [
        Checked(**({"t_ns": step + 1, "rank": rank, "step": step, "parameters": 5.0} | of(rank, step)))  # type: ignore[arg-type]
        for step in at
        for rank in range(ranks)
    ]


def test_gradients_that_differ_between_replicas_drift_apart() -> None:
    found = only("ranks-drift", run(checks(lambda rank, _: {"gradients": 0.1 * rank + 1.0})))
    assert found.is_grave
    assert "the sum of gradients differs between ranks in 3 of 3 checks, first at step 0" in said(found)
    assert "rank 0 1, rank 1 1.1" in said(found)


def test_parameters_that_begin_to_differ_are_told_with_the_step() -> None:
    found = only("ranks-drift", run(checks(lambda rank, step: {"parameters": 5.0 + (rank if step >= 10 else 0)})))
    assert "parameters differs between ranks in 2 of 3 checks, first at step 10" in said(found)


def test_a_rank_whose_gradients_are_no_number_drifts() -> None:
    assert codes(run(checks(lambda rank, _: {"gradients": float("nan") if rank else 1.0}))) == ["ranks-drift"]


def test_replicas_that_agree_to_a_millionth_do_not_drift() -> None:
    assert codes(run(checks(lambda rank, _: {"gradients": 1.0 + 1e-8 * rank}))) == []


def test_shards_differ_by_design() -> None:
    for strategy in ("fsdp", "pjit", "my own"):
        assert codes(run(checks(lambda rank, _: {"parameters": float(rank)}), strategy=strategy)) == []


def mesh(apart: dict[str, float], column: str = "replicas") -> list[Checked]:
    """Four ranks, of which 0 and 1, and 2 and 3, hold some parameters together; the odd one's sum is ``apart``."""

    def of(rank: int, _: int) -> dict[str, object]:
        held = "0,1" if rank < 2 else "2,3"
        return {"parameters": float(rank), column: {held: 7.0 + rank // 2 + apart.get(held, 0.0) * (rank % 2)}}

    return checks(of, ranks=4)


def test_on_a_mesh_only_ranks_that_hold_the_same_must_agree() -> None:
    assert codes(run(mesh({}), strategy="fsdp-tp")) == []
    found = only("ranks-drift", run(mesh({"2,3": 0.5}), strategy="fsdp-tp"))
    assert said(found).count("differs") == 1
    assert "the sum of parameters that ranks 2–3 hold the same of differs between ranks in 3 of 3 checks" in said(found)
    assert "rank 2 8, rank 3 8.5" in said(found)
    assert "redistribute" in found.fix


def test_gradients_that_each_holder_has_a_part_of_drift_too() -> None:
    found = only("ranks-drift", run(mesh({"0,1": 0.5}, "gradient_replicas"), strategy="tp"))
    assert "the sum of gradients that ranks 0–1 hold the same of differs" in said(found)


def test_a_rank_that_counts_no_samples_shares_those_of_another() -> None:
    """Of ranks that share their layers one counts the samples of all; of the ones that count, each has as many."""
    shared = [replace(one, samples=8 if one.rank else 0) for one in steps([100.0] * 4)]
    assert "ragged-batch" not in codes(run(shared))


def test_a_rank_with_fewer_samples_makes_a_ragged_batch() -> None:
    found = only("ragged-batch", run(checks(lambda rank, _: {"batch_shape": (1, 4 - rank, 65)})))
    assert "batches differ between ranks in 3 of 3 checks, first at step 0: rank 0: 1×4×65; rank 1: 1×3×65" in said(
        found
    )


def test_samples_of_steps_tell_it_as_well() -> None:
    odd = [replace(one, samples=8 + one.rank) for one in steps([100.0] * 4)]
    assert "samples differ between ranks in 4 of 4 steps" in said(only("ragged-batch", run(odd)))


def test_batches_that_change_from_step_to_step_alike_are_not_ragged() -> None:
    assert codes(run(checks(lambda _, step: {"batch_shape": (1, 4, 65 + step)}))) == []


def test_ranks_that_draw_from_one_random_state_have_the_same_key() -> None:
    found = only("same-key", run(checks(lambda _, step: {"rng": f"state {step}"})))
    assert found.is_grave
    assert "all 2 ranks have the same random state in 3 checks" in said(found)


def test_a_random_state_that_nobody_draws_from_is_no_finding() -> None:
    assert codes(run(checks(lambda *_: {"rng": "never moves"}))) == []


def test_ranks_with_states_of_their_own_are_no_finding() -> None:
    assert codes(run(checks(lambda rank, step: {"rng": f"{rank} {step}"}))) == []


def test_one_rank_alone_shares_its_key_with_nobody() -> None:
    assert codes(run(checks(lambda _, step: {"rng": f"{step}"}, ranks=1))) == []


def test_a_key_of_jax_counts_where_the_model_has_a_dropout() -> None:
    same = checks(lambda *_: {"rng": "the key"})
    about = {"strategy": "pmap", "framework": "jax"}
    assert codes(run(same, **about)) == []
    assert codes(run(same, **about, options={"dropout": 0.0})) == []
    assert codes(run(same, **about, options={"dropout": 0.1})) == ["same-key"]
