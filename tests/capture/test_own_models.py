"""A model of the user's own is asked what it is before a run, and the answer stands in the plan and the recording."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from meshscope.capture import commands, frameworks, launch, own_models, request, scripts
from meshscope.capture.frameworks import Framework
from meshscope.capture.launch import Request
from meshscope.discovery import bundled
from meshscope.errors import InputError
from meshscope.experiment import Plan
from meshscope.recording.layout import read_experiment

FACTORIES = Path(__file__).parent.parent / "workloads" / "factories"


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled workloads with another way to ask a model: it prints what the file says that this gives."""
    folder = tmp_path / "workloads"
    shutil.copytree(bundled("workloads"), folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / own_models.SCRIPT).write_text(
        "from pathlib import Path\nprint(Path(__file__).with_name('said').read_text())"
    )
    monkeypatch.setattr(frameworks, "probe", lambda names: {name: Framework(version="1") for name in names})
    monkeypatch.setattr(frameworks, "missing", lambda _: ())
    monkeypatch.chdir(tmp_path)
    own_models._asked.cache_clear()
    return folder


def _plan(folder: Path, said: object) -> Plan:
    (folder / "said").write_text(said if isinstance(said, str) else json.dumps(said))
    return launch.plan(Request(strategies=("ddp",), model="pack.mine:made", ranks=2, workloads=str(folder)))


def test_what_a_model_says_of_itself_stands_at_the_head_of_the_recording(answers: Path) -> None:
    plan = _plan(answers, {"parameters": 1234, "flop_per_sample": 5e9, "how": "by a counter"})
    head = commands.experiment(request.from_plain(plan.request), plan.runs[0])
    assert (head.parameters, head.flop_per_sample, head.flop_how, head.flop_why) == (1234, 5e9, "by a counter", "")
    assert (head.model, head.sequence_length, head.global_batch) == ("pack.mine:made", 0, 8)
    assert Path(plan.request["out"]).name.endswith("-pack.mine-made")


def test_why_a_model_could_not_be_counted_is_kept(answers: Path) -> None:
    (run,) = _plan(answers, {"parameters": 12, "why": "its loss loops"}).runs
    assert (run.parameters, run.flop_per_sample, run.flop_why) == (12, 0, "its loss loops")


def test_a_factory_that_is_none_to_train_is_refused_in_its_own_words(answers: Path) -> None:
    with pytest.raises(InputError) as refused:
        _plan(answers, {"error": "it fails at mine.py:3.", "hint": "Mend it."})
    assert (refused.value.message, refused.value.hint) == ("ddp: it fails at mine.py:3.", "Mend it.")


def test_an_answer_that_cannot_be_read_leaves_the_model_uncounted(answers: Path) -> None:
    (run,) = _plan(answers, "no JSON").runs
    assert (run.parameters, run.flop_per_sample) == (0, 0)
    assert run.flop_why == "exit code 0"


def test_a_folder_that_cannot_ask_leaves_it_uncounted(answers: Path) -> None:
    (answers / own_models.SCRIPT).unlink()
    (run,) = _plan(answers, {}).runs
    assert run.flop_why.endswith(f"has no {own_models.SCRIPT}")


def test_bundled_models_are_counted_without_asking(answers: Path) -> None:
    (answers / "said").write_text("never read")
    known = scripts.workloads(Request(strategies=("ddp",), workloads=str(answers)))
    module = scripts.options_module(answers)
    mlp = own_models.asked(known["ddp"], "mlp", module.PRESETS["mlp"], 2)
    assert mlp.flop_per_sample == 6 * (3 * 32 * 32 * 1024 + 3 * 1024 * 1024 + 1024 * 10)
    assert own_models.asked(known["ddp"], "tiny", module.PRESETS["tiny"], 2).flop_per_sample == 0


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "model"), [("fsdp", "models:made"), ("pjit", "mine:of_functions")])
def test_a_users_model_is_recorded_with_its_own_figures(strategy: str, model: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "meshscope", "run", strategy, "--model", model, "--ranks", "2", "--steps", "12",
               "--device", "cpu", "--headless", "--out", str(tmp_path / "run")]  # fmt: skip
    done = subprocess.run(
        command, cwd=FACTORIES, env=os.environ, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    head = read_experiment(tmp_path / "run" / strategy)
    assert head.parameters == {"models:made": 5, "mine:of_functions": 544}[model]
    assert head.flop_per_sample > 0
    assert "model FLOPs:" in done.stdout
    assert "tokens/s" not in done.stdout
