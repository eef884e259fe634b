"""A request that makes no sense is refused before any process starts; one that does becomes a plan."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from meshscope.capture import commands, frameworks, launch, machine, request, scripts, windows
from meshscope.capture.frameworks import Framework
from meshscope.capture.launch import Request, Windows
from meshscope.errors import InputError, LaunchError, MissingPackageError
from meshscope.experiment import Plan

TOY = str(Path(__file__).parent / "toy")
CPU = Framework(version="1")
GPUS = Framework(version="1", platform="gpu", names=("H100",) * 8)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Sets what frameworks find on this machine: CPUs at first. Nothing is really probed, nothing may start."""

    def set_found(torch: Framework = CPU, jax: Framework = CPU, missing: tuple[str, ...] = ()) -> None:
        found = {"torch": torch, "jax": jax}
        monkeypatch.setattr(frameworks, "probe", lambda names: {name: found[name] for name in names})
        monkeypatch.setattr(frameworks, "missing", lambda name: (name,) if name in missing else ())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    set_found()
    monkeypatch.setattr("subprocess.Popen", refuse)
    monkeypatch.chdir(tmp_path)
    return set_found


def _plan(*strategies: str, **asked: object) -> Plan:
    return launch.plan(Request(strategies=strategies, **{"workloads": TOY} | asked))


def _refusal(*strategies: str, **asked: object) -> InputError:
    with pytest.raises(InputError) as refused:
        _plan(*strategies, **asked)
    assert refused.value.hint, "a person is told what to do"
    return refused.value


def test_an_unknown_strategy_brings_the_nearest_name() -> None:
    error = _refusal("toi")
    assert error.message == "There is no strategy 'toi'."
    assert error.hint.startswith("Did you mean toy?")
    assert "Did you mean" not in _refusal("zzzzz").hint


def test_what_a_framework_has_removed_is_refused_with_what_it_became() -> None:
    assert "shard-map" in _refusal("xmap").hint


def test_no_strategy_at_all_is_refused() -> None:
    assert "No strategy" in _refusal().message


def test_an_unknown_preset_is_refused() -> None:
    assert "'huge'" in _refusal("toy", model="huge").message


def test_a_batch_that_ranks_do_not_divide_is_refused() -> None:
    assert "does not divide" in _refusal("toy", ranks=3, batch=8).message


@pytest.mark.parametrize(
    "wrong", [{"ranks": 0}, {"patience_s": 0.0}, {"windows": Windows(active=-1)}, {"windows": Windows(budget_frac=-1)}]
)
def test_numbers_without_meaning_are_refused(wrong: dict) -> None:
    assert _refusal("toy", **wrong)


@pytest.mark.parametrize(("active", "steps"), [(100, 10), (10, 10), (2, 1), (2, 2)])
def test_a_window_that_does_not_fit_into_the_run_is_refused(active: int, steps: int) -> None:
    error = _refusal("toy", steps=steps, windows=Windows(active=active))
    assert error.message.startswith(f"A window of {active} steps does not fit into a run of {steps}")
    assert f"--steps {active + 1} or more" in error.hint


def test_a_window_of_all_steps_but_the_first_is_planned() -> None:
    plan = _plan("toy", steps=10, windows=Windows(active=9))
    assert plan.notes == []
    assert windows.opening(Windows(active=9), 10)


def test_a_run_of_one_step_is_planned_and_says_that_nothing_is_profiled() -> None:
    (note,) = _plan("toy", steps=1).notes
    assert note.startswith("Nothing is profiled")
    assert _plan("toy", steps=1, windows=Windows(active=0)).notes == []


def test_more_ranks_than_gpus_are_refused(here: Callable) -> None:
    here(torch=GPUS)
    error = _refusal("toy", ranks=16, batch=16)
    assert "16 ranks need 16 devices, and there are 8" in error.message
    assert "--ranks 8" in error.hint


def test_more_ranks_than_cores_are_fine() -> None:
    assert _plan("toy", ranks=64, batch=64).ranks == 64


def test_a_gpu_that_is_asked_for_and_not_there_is_refused() -> None:
    from_toy = _refusal("toy", options=("--device", "cuda"))
    assert "finds no GPU" in from_toy.message


def test_a_framework_that_is_missing_names_the_extra(here: Callable) -> None:
    here(missing=("jax",))
    with pytest.raises(MissingPackageError) as refused:
        _plan("toy", "jax-toy")
    assert "meshscope[jax]" in refused.value.hint


def test_a_framework_that_is_broken_says_how(here: Callable) -> None:
    here(torch=Framework(error="ImportError: libcudart.so.12: cannot open shared object file"))
    with pytest.raises(MissingPackageError, match="libcudart"):
        _plan("toy")


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "plan.json").write_text("{}")
    assert "holds a run already" in _refusal("toy", out=str(tmp_path / "old")).message


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file" in _refusal("toy", out=str(tmp_path / "file")).message
    with pytest.raises(LaunchError, match="Nothing can be written"):
        _plan("toy", out=str(tmp_path / "file" / "below"))


def test_single_means_the_baselines_on_one_rank_each() -> None:
    plan = _plan("toy", "single", ranks=4)
    assert [(run.strategy, run.ranks, run.is_baseline) for run in plan.runs] == [
        ("toy", 4, False),
        ("toy-single", 1, True),
    ]


def test_a_strategy_named_twice_runs_once() -> None:
    assert [run.strategy for run in _plan("toy", "jax-toy", "toy").runs] == ["toy", "jax-toy"]


def test_ranks_default_to_the_gpus_or_to_a_few_cpu_ranks(here: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: (0, 1))
    assert _plan("toy").ranks == 4
    monkeypatch.setattr(machine, "cores", lambda: (0,))
    assert _plan("toy").ranks == 2
    here(torch=GPUS)
    assert _plan("toy").ranks == 8


def test_a_framework_left_on_the_cpu_is_planned_there_with_a_note(here: Callable) -> None:
    here(torch=GPUS)
    plan = _plan("toy", "jax-toy", ranks=4)
    assert {run.strategy: run.device_kind for run in plan.runs} == {"toy": "gpu", "jax-toy": "cpu"}
    (note,) = plan.notes
    assert "shown, never ranked" in note
    assert "pip install 'meshscope[cuda]'" in note
    assert _plan("toy", ranks=4).notes == []


def test_a_plan_carries_all_that_its_supervisor_needs() -> None:
    asked = Request(strategies=("toy",), workloads=TOY, steps=7, windows=Windows(wait=9), options=("--width", "32"))
    stored = msgspec.json.decode(msgspec.json.encode(launch.plan(asked)), type=Plan)
    settled = request.from_plain(stored.request)
    assert (settled.ranks, settled.steps, settled.windows.wait) == (stored.ranks, 7, 9)
    head = commands.experiment(settled, stored.runs[0])
    assert (head.planned_steps, head.global_batch, head.sequence_length, head.parameters) == (7, 8, 8, 1024)
    assert head.command[0] == "torchrun"
    assert head.command[-2:] == ["--width", "32"] or "--width" in head.command


def test_ranks_share_the_cores_and_a_baseline_gets_one_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "cores", lambda: tuple(range(16)))
    plan = _plan("toy", "toy-single", "jax-toy", ranks=4)
    settled = request.from_plain(plan.request)
    four, one, jax = (commands.command(settled, run, tmp_path) for run in plan.runs)
    assert (four.environment["OMP_NUM_THREADS"], four.cores) == ("4", ())
    assert (one.environment["OMP_NUM_THREADS"], one.cores) == ("4", (0, 1, 2, 3))
    assert jax.environment["JAX_NUM_CPU_DEVICES"] == "4"
    assert "OMP_NUM_THREADS" not in jax.environment or jax.environment["OMP_NUM_THREADS"] != "4"


def test_a_recording_says_how_many_cores_its_run_may_use(here: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: tuple(range(16)))
    plan = _plan("toy", "toy-single", "jax-toy", ranks=4)
    settled = request.from_plain(plan.request)
    assert [commands.experiment(settled, run).cores for run in plan.runs] == [16, 4, 16]
    assert {commands.experiment(settled, run).host_cores for run in plan.runs} == {os.cpu_count()}
    here(torch=GPUS)
    plan = _plan("toy-single", ranks=4)
    assert commands.experiment(request.from_plain(plan.request), plan.runs[0]).cores == 16, "a GPU's host is not shared"


BUNDLED = {"workloads": "", "ranks": 2}


def test_a_fault_is_in_the_title_the_notes_and_the_head_of_the_recording() -> None:
    asked = ("--inject", "straggler:60,slow-input:5")
    plan = _plan("ddp", "pmap", options=asked, **BUNDLED)
    for run in plan.runs:
        assert run.title.endswith(", with injected straggler 60 ms and slow input 5 ms")
        head = commands.experiment(request.from_plain(plan.request), run)
        assert head.faults == ["straggler 60 ms", "slow input 5 ms"]
        assert head.title == run.title
    assert [note.partition(":")[0] for note in plan.notes] == ["ddp", "pmap"]
    assert "rank 1 computes longer in every step" in plan.notes[0]
    assert plan.notes[0].endswith("This is no clean run.")


def test_a_clean_plan_tells_of_no_fault() -> None:
    plan = _plan("ddp", **BUNDLED)
    assert plan.notes == []
    assert "injected" not in plan.runs[0].title
    assert commands.experiment(request.from_plain(plan.request), plan.runs[0]).faults == []


def test_one_strategy_that_cannot_have_a_fault_stops_all_before_anything_starts() -> None:
    error = _refusal("ddp", "fsdp", options=("--inject", "unsynced-gradients"), **BUNDLED)
    assert error.message.startswith("fsdp: unsynced-gradients makes no sense in fsdp: ")
    assert error.hint.startswith("It can be injected into ddp, zero1, ")
    assert error.hint.endswith(", on two ranks or more.")
    error = _refusal("ddp", "single", options=("--inject", "straggler"), **BUNDLED)
    assert error.message.startswith("torch-single: straggler makes no sense in torch-single: ")


def test_a_model_that_a_strategy_cannot_train_is_refused() -> None:
    error = _refusal("ddp", "ep", **BUNDLED)
    assert error.message == "ep: ep cannot train the transformer: it spreads experts over ranks."
    assert error.hint == "Use --model moe with it, or another strategy."
    assert _plan("ep", model="moe", **BUNDLED).runs[0].flop_how.startswith("6 × the ")


def test_scripts_that_know_no_fault_are_planned_as_ever() -> None:
    plan = _plan("toy")
    assert commands.experiment(request.from_plain(plan.request), plan.runs[0]).faults == []


def test_what_options_import_from_their_folder_is_under_no_plain_name_afterwards() -> None:
    import sys

    scripts.options_module.cache_clear()
    _plan("ddp", **BUNDLED)
    assert not {"faults", "pipelines", "refusals"} & sys.modules.keys()
    assert not any(entry.endswith("workloads") for entry in sys.path)


def test_more_ranks_than_cores_still_leave_each_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: (0, 1))
    assert machine.threads_per_rank(4) == 1
    assert machine.share_of_cores(4) == (0,)


@pytest.mark.parametrize(("text", "expected"), [("max 100000", 1 << 20), ("150000 100000", 2), ("50000 100000", 1)])
def test_a_container_s_quota_bounds_the_cores(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert machine._quota(tmp_path / "cpu.max") == expected
    assert machine._quota(tmp_path / "absent") == 1 << 20


def test_tensor_parallelism_takes_all_ranks_or_as_many_as_are_asked_for() -> None:
    """DDP beside it takes no notice: its ranks have samples of their own."""
    plan = _plan("ddp", "fsdp-tp", workloads="", ranks=8, options=("--tensor", "4"))
    heads = [commands.experiment(request.from_plain(plan.request), run) for run in plan.runs]
    assert [head.options["tensor"] for head in heads] == [1, 4]
    plan = _plan("tp", workloads="", ranks=4)
    (head,) = (commands.experiment(request.from_plain(plan.request), run) for run in plan.runs)
    assert (head.options["tensor"], head.command[-4:]) == (4, ["--tensor", "4", "--spec", "tp"])


@pytest.mark.parametrize(
    ("strategy", "ranks", "options", "says"),
    [
        ("tp", 1, (), "tp cannot run on 1 ranks"),
        ("fsdp-tp", 2, (), "fsdp-tp cannot run on 2 ranks"),
        ("tp", 8, (), "tp: --heads 4 does not divide among 8 ranks"),
        ("tp", 4, ("--tensor", "2"), "tp: tp splits every layer over all 4 ranks"),
        ("fsdp-tp", 4, ("--tensor", "4"), "fsdp-tp: 4 ranks are not several groups of 4"),
        ("ddp", 2, ("--compress", "powersgd"), "ddp: Over gloo"),
        ("dp", 2, (), "dp runs on GPUs only"),
    ],
)
def test_what_a_strategy_cannot_do_is_refused_with_a_way_out(
    strategy: str, ranks: int, options: tuple[str, ...], says: str
) -> None:
    assert _refusal(strategy, workloads="", ranks=ranks, options=options).message.startswith(says)


def test_one_process_that_drives_all_gpus_is_one_rank_beside_many(here: Callable) -> None:
    here(torch=GPUS)
    assert {run.strategy: run.ranks for run in _plan("dp", "ddp", workloads="").runs} == {"dp": 1, "ddp": 8}


def test_compressed_gradients_are_noted_beside_those_that_are_not(here: Callable) -> None:
    (note,) = _plan("ddp", "fsdp", options=("--compress", "fp16"), **BUNDLED).notes
    assert note == (
        "ddp: gradients are sent as fp16, in half the bytes, so that its losses are no longer those of one device."
    )


def test_a_sweep_is_a_run_for_every_combination_with_a_name_and_a_folder_of_its_own() -> None:
    plan = _plan("toy", "single", ranks_each=(1, 2), batch_each=(8, 16))
    assert [(run.strategy, run.ranks, run.batch) for run in plan.runs] == [
        ("toy ranks 1 batch 8", 1, 8),
        ("toy ranks 1 batch 16", 1, 16),
        ("toy ranks 2 batch 8", 2, 8),
        ("toy ranks 2 batch 16", 2, 16),
        ("toy-single batch 8", 1, 8),
        ("toy-single batch 16", 1, 16),
    ]
    assert plan.runs[2].folder == "toy-ranks-2-batch-8"
    assert plan.ranks == 2
    asked = request.from_plain(plan.request)
    heads = [commands.experiment(asked, run) for run in plan.runs]
    assert [head.global_batch for head in heads] == [8, 16, 8, 16, 8, 16]
    assert {head.base_strategy for head in heads} == {"toy", "toy-single"}
    assert "--batch" in commands.command(asked, plan.runs[1], Path("r")).line


def test_a_combination_that_cannot_be_trained_is_refused_before_any_of_them_starts() -> None:
    error = _refusal("toy", ranks_each=(1, 3), batch_each=(8,))
    assert "8" in error.message
    assert "3" in error.message


def test_a_cpu_rank_of_a_small_run_has_no_more_cores_than_one_of_a_large_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: tuple(range(8)))
    plan = _plan("toy", ranks_each=(1, 2, 4))
    asked = request.from_plain(plan.request)
    assert [commands.command(asked, run, Path("r")).cores for run in plan.runs] == [(0, 1), (0, 1, 2, 3), ()]
    assert [commands.experiment(asked, run).threads_per_rank for run in plan.runs] == [2, 2, 2]
    assert any("share of one of 4 ranks in every run: 2 cores" in note for note in plan.notes)
    assert not _plan("toy", ranks=4).notes
