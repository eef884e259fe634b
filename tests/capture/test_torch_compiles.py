"""What is taken from TorchDynamo's records of its compilations, and that nothing is where it was never loaded."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.capture.workers.torch_compiles import TorchCompiles, changes
from meshscope.recording.entries import Compiled, Entry, Log
from meshscope.recording.journal import Tail

SIZE = "0/0: tensor 'tokens' size mismatch at index 0. expected 8, actual 7"
GUARD = "0/1: way == 'plain'       # return SCALES[way]  # toy.py:6 in forward\nUser stack trace:\n  File \"toy.py\""


@pytest.fixture
def dynamo(monkeypatch: pytest.MonkeyPatch) -> deque[Any]:
    """TorchDynamo as it looks from outside: a module that hands out its last records, here at most four."""
    kept: deque[Any] = deque(maxlen=4)
    module = ModuleType("torch._dynamo.utils")
    module.get_compilation_metrics = lambda: list(kept)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", module)
    return kept


def forward(number: str = "0/0", duration_us: int = 2000, **about: Any) -> SimpleNamespace:
    return SimpleNamespace(
        compile_id=number, co_name="forward", co_filename="/home/me/model.py", co_firstlineno=12,
        duration_us=duration_us, **{"recompile_reason": None} | about,
    )  # fmt: skip


def backward(number: str = "0/0", duration_us: int = 500) -> SimpleNamespace:
    return SimpleNamespace(compile_id=number, co_name=None, duration_us=duration_us, recompile_reason=None)


def watched(folder: Path) -> tuple[TorchCompiles, Any]:
    journal = RankJournal(folder, 1, t0_unix_ns=0)

    def written() -> list[Entry]:
        return [entry for path in folder.glob("journal/*.jsonl") for entry in Tail(path).read()]

    return TorchCompiles(journal), written


def test_a_backward_pass_belongs_to_the_program_of_its_forward_pass(tmp_path: Path, dynamo: deque[Any]) -> None:
    compiles, written = watched(tmp_path)
    dynamo += [forward(), backward()]
    assert compiles.take(3)
    (entry,) = written()
    assert isinstance(entry, Compiled)
    assert (entry.rank, entry.step, entry.stage) == (1, 3, "compile")
    assert entry.name == "forward (model.py:12)"
    assert entry.duration_ns == 2_500_000
    assert not entry.is_recompilation


def test_each_record_is_taken_once_and_a_failed_guard_says_what_changed(tmp_path: Path, dynamo: deque[Any]) -> None:
    compiles, written = watched(tmp_path)
    dynamo.append(forward())
    compiles.take(0)
    assert not compiles.take(1)
    dynamo += [forward("0/1", recompile_reason=SIZE), forward("0/2", recompile_reason=GUARD)]
    assert compiles.take(2)
    _, size, guard = written()
    assert (size.is_recompilation, size.changed) == (True, ("tokens dim 0: 8 → 7",))
    assert (guard.changed, guard.reason) == ((), "way == 'plain'")


def test_what_the_script_times_itself_is_not_counted_again(tmp_path: Path, dynamo: deque[Any]) -> None:
    compiles, written = watched(tmp_path)
    dynamo.append(forward())
    compiles.skip()
    assert not compiles.take(0)
    assert written() == []


def test_records_that_were_pushed_out_are_said_to_be_missing(tmp_path: Path, dynamo: deque[Any]) -> None:
    compiles, written = watched(tmp_path)
    dynamo.append(forward())
    compiles.take(0)
    dynamo.extend(forward(f"{number}/0") for number in range(1, 6))
    compiles.take(1)
    assert [entry.text for entry in written() if isinstance(entry, Log)] == [
        "The earliest of more than 4 compilations are not counted."
    ]
    assert sum(isinstance(entry, Compiled) for entry in written()) == 5


def test_a_torch_that_keeps_no_records_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", ModuleType("torch._dynamo.utils"))
    compiles, written = watched(tmp_path)
    assert not any(compiles.take(step) for step in range(3))
    assert [entry.text for entry in written()] == [
        "torch.compile is in use, and this version of torch does not tell what it compiles."
    ]


def test_a_record_with_fewer_fields_still_counts(tmp_path: Path, dynamo: deque[Any]) -> None:
    """As torch before 2.5 writes it: without a duration of its own, and without a reason."""
    compiles, written = watched(tmp_path)
    dynamo.append(SimpleNamespace(co_name="forward", entire_frame_compile_time_s=0.25))
    compiles.take(0)
    (entry,) = written()
    assert (entry.name, entry.duration_ns, entry.is_recompilation) == ("forward", 250_000_000, False)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (SIZE, ("tokens dim 0: 8 → 7",)),
        ("0/2: tensor 'L['x']' dtype mismatch. expected Float, actual Double", ("L['x'] dtype: Float → Double",)),
        ("0/4: tensor 'x' rank mismatch. expected 2, actual 3", ("x number of dims: 2 → 3",)),
        ("0/4: tensor 'x' stride mismatch at index 1. expected 1, actual 8", ("x stride of dim 1: 1 → 8",)),
        (f"{SIZE}\n{SIZE}", ("tokens dim 0: 8 → 7",)),
        (GUARD, ()),
        ("", ()),
    ],
)  # fmt: skip
def test_a_guard_on_an_input_says_from_what_to_what(reason: str, said: tuple[str, ...]) -> None:
    assert changes(reason) == said


def test_looking_for_compilations_loads_nothing_of_torch(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from meshscope.capture.workers.rank_journal import RankJournal\n"
        "from meshscope.capture.workers.torch_compiles import TorchCompiles\n"
        "compiles = TorchCompiles(RankJournal(pathlib.Path(sys.argv[1]), 0, t0_unix_ns=0))\n"
        "assert not compiles.take(0)\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'torch']\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
