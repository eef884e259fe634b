"""Batches: images, text, digits and a user's own, which every strategy sees alike."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

Import = Callable[[str], ModuleType]

PLAIN = """
import numpy as np
X, Y = np.arange(12.0).reshape(6, 2), np.arange(6)
def init(key): return None
def loss(params, x, y): return 0.0
def made(): return init, loss, {"x": X, "named": [Y, "kept"]}
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's in the current folder."""
    (tmp_path / "mine_plain.py").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_plain", raising=False)


@pytest.mark.parametrize("line", ["--model resnet50 --image 16", "--model tiny --data text", "--model mine_plain:made"])
@pytest.mark.usefixtures("mine")
def test_ranks_together_see_the_global_batch_once(workload: Import, line: str) -> None:
    options, batches = workload("options"), workload("batches")
    asked = replace(options.parse(line.split()), batch=8, accumulate=2)
    slices = [batches.micro_batches(asked, 3, rank, 2) for rank in range(2)]
    whole = batches.micro_batches(replace(asked, accumulate=1), 3)
    for number, part in enumerate(whole):
        both = [one[number].reshape(4, *part.shape[2:]) for one in slices]
        assert np.array_equal(np.concatenate(both), part[0])
    assert not all(map(np.array_equal, whole, batches.micro_batches(replace(asked, accumulate=1), 4)))


def test_images_are_of_the_size_and_the_classes_that_were_asked_for(workload: Import) -> None:
    options, batches = workload("options"), workload("batches")
    images, classes = batches.micro_batches(
        options.parse(["--model", "mlp", "--image", "8", "--classes", "5", "--batch", "200"]), 0
    )
    assert images.shape == (1, 200, 8, 8, 3)
    assert (images.dtype, classes.dtype) == (np.float32, np.int32)
    assert set(classes.ravel()) == {0, 1, 2, 3, 4}
    common, rare = ((classes == shown).sum() for shown in (0, 4))
    assert common > 2 * rare
    assert images[classes == 4].mean() > images[classes == 0].mean() + 0.5


def test_text_is_the_bytes_of_pythons_own_manual(workload: Import) -> None:
    from pydoc_data.topics import topics

    options, batches = workload("options"), workload("batches")
    (tokens,) = batches.micro_batches(options.parse(["--data", "text"]), 0)
    text = "\n".join(topics[name] for name in sorted(topics)).encode()
    for sample in tokens[0]:
        assert bytes(sample.astype(np.uint8)) in text


def test_digits_are_scikit_learns_drawn_larger(workload: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.arange(64.0).reshape(1, 8, 8) % 17
    found = SimpleNamespace(images=drawn, target=np.array([7]))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", SimpleNamespace(load_digits=lambda: found))
    options, batches = workload("options"), workload("batches")
    asked = options.parse(["--model", "mlp", "--data", "digits", "--image", "16", "--batch", "2"])
    images, classes = batches.micro_batches(asked, 0)
    assert classes.tolist() == [[7, 7]]
    assert np.allclose(images[0, 0, ::2, ::2, 1], drawn[0] / 8 - 1)
    assert np.array_equal(images[0, 0, ::2, ::2], images[0, 0, 1::2, 1::2])


def test_digits_without_scikit_learn_name_what_brings_it(workload: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    options, batches = workload("options"), workload("batches")
    with pytest.raises(workload("refusals").OptionError, match="needs scikit-learn") as refused:
        batches.micro_batches(options.parse(["--model", "mlp", "--data", "digits"]), 0)
    assert "meshscope[data]" in refused.value.hint


@pytest.mark.usefixtures("mine")
def test_the_rows_of_a_users_batch_come_one_after_the_other_and_again(workload: Import) -> None:
    options, batches = workload("options"), workload("batches")
    asked = options.parse(["--model", "mine_plain:made", "--batch", "4"])
    numbers = [batches.micro_batches(asked, step)[1].ravel().tolist() for step in range(3)]
    assert numbers == [[0, 1, 2, 3], [4, 5, 0, 1], [2, 3, 4, 5]]


@pytest.mark.usefixtures("mine")
def test_a_users_batch_keeps_its_form(workload: Import) -> None:
    own = workload("own")
    form = own.batch("mine_plain:made")
    new = own.rebuilt(form, iter(["first", "second"]))
    assert new == {"x": "first", "named": ("second", "kept")}


def _refused(workload: Import, name: str) -> Any:
    with pytest.raises(workload("refusals").OptionError) as refused:
        workload("own").made(name)
    return refused.value


def test_what_a_users_code_raises_names_its_file_and_line(
    workload: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_bad.py").write_text("import json\n\ndef made():\n    return json.loads('{')\n")
    (tmp_path / "mine_unread.py").write_text("x = 1\ndef made(:\n")
    (tmp_path / "mine_needs.py").write_text("import no_such_package_of_anybody\n")
    assert "mine_bad.py:4: JSONDecodeError" in _refused(workload, "mine_bad:made").message
    assert "mine_unread.py:2: SyntaxError" in _refused(workload, "mine_unread:made").message
    assert "mine_needs.py:1: ModuleNotFoundError: No module named" in _refused(workload, "mine_needs:made").message
    missing = _refused(workload, "no_such_module_of_anybody:made")
    assert missing.message.startswith("There is no module no_such_module_of_anybody")
    assert str(tmp_path) in missing.message
    assert all(len(_refused(workload, f"mine_bad:{name}").hint.splitlines()) == 1 for name in ("made", "nothing"))


def test_modules_of_the_user_may_have_the_names_of_the_workloads_own(
    workload: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens.py").write_text("WHOSE = 'mine'\n")
    (tmp_path / "mine_named.py").write_text("import tokens\ndef made():\n    return tokens.WHOSE, 1\n")
    monkeypatch.chdir(tmp_path)
    ours = workload("tokens")
    assert workload("own").made("mine_named:made") == ("mine", 1)
    assert sys.modules["tokens"] is ours
