"""meshscope changed on disk under a screen that runs: a line says so, and everything that is loaded goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import made
import pytest

from meshscope.ui.asking import Asking
from meshscope.ui.later import ChangedError, later, loading
from meshscope.ui.panel import Panel
from meshscope.ui.scene import Scene

Staged = Callable[..., Any]


def test_what_cannot_be_loaded_is_told_and_what_can_is_given() -> None:
    said: list[str] = []
    assert later(lambda: 3, said.append) == 3
    assert said == []

    def load() -> object:
        from meshscope.units import a_name_of_another_version  # type: ignore[attr-defined]

        return a_name_of_another_version

    assert later(load, said.append) is None
    assert said == ["meshscope was changed on disk; restart it for this screen."]
    with pytest.raises(ChangedError, match="cannot import name 'a_name_of_another_version'"), loading():
        load()
    with pytest.raises(ZeroDivisionError), loading():
        _ = 1 / 0  # a bug stays one


def test_a_panel_that_cannot_load_what_it_asks_says_so_in_its_place() -> None:
    def question(_: Scene) -> object:
        raise ModuleNotFoundError("No module named 'meshscope.analysis.gone'")

    panel = Panel("x", "x", 1, "", question, lambda *_: [])
    answered = Asking(panel)._answered(0, Scene(None, ()))
    assert isinstance(answered.error, ChangedError)
    assert answered.error.hint == "Restart it for this."


@pytest.mark.parametrize(
    ("key", "module"),
    [("c", "meshscope.ui.screens.strategies"), ("t", "meshscope.ui.screens.timeline"),
     ("t", "meshscope.analysis.lanes"), ("enter", "meshscope.ui.screens.explained"),
     ("enter", "meshscope.analysis.explaining")],
)  # fmt: skip
async def test_a_screen_survives_an_upgrade(
    folder: Path, staged: Staged, monkeypatch: pytest.MonkeyPatch, key: str, module: str
) -> None:
    async with staged(folder, at_ns=20 * made.S) as stage:
        if key == "enter":
            await stage.press("1", "e")
        monkeypatch.setitem(sys.modules, module, ModuleType(module))  # of another version: it lacks every name
        await stage.press(key)
        assert "meshscope was changed on disk" in stage.text()
        assert stage.app.is_running
        await stage.press("escape", "5")
        assert stage.watch._focused == "memory"
