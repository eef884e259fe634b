"""Options of the command line come before what is remembered, and that before what the environment tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshscope.cli.screen import _options


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings in force: light, ASCII, 8 looks a second."""
    path = tmp_path / "screens.json"
    path.write_text(json.dumps({"theme": "light", "is_ascii": True, "fps": 8.0}))
    for name, value in (("MESHSCOPE_SETTINGS", str(path)), ("TERM", "xterm-256color"), ("LANG", "C.UTF-8")):
        monkeypatch.setenv(name, value)
    for name in ("LC_ALL", "LC_CTYPE", "COLORFGBG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return path


def test_without_options_it_is_as_it_was_left(kept: Path) -> None:
    found = _options()
    assert (found.look.is_dark, found.look.is_ascii, found.fps) == (False, True, 8.0)


def test_options_come_first_and_change_nothing_that_is_remembered(kept: Path) -> None:
    before = kept.read_bytes()
    found = _options(theme="dark", is_ascii=False, fps=2.0, no_mouse=True)
    assert (found.look.is_dark, found.fps, found.has_mouse) == (True, 2.0, False)
    assert kept.read_bytes() == before


def test_auto_asks_the_terminal_again(kept: Path) -> None:
    assert _options(theme="auto").look.is_dark


def test_blocks_that_were_chosen_elsewhere_are_not_forced_on_a_poor_font(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.write_text('{"is_ascii": false}')
    monkeypatch.setenv("TERM", "linux")
    assert _options().look.is_ascii


def test_where_nothing_is_remembered_the_usual_holds(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHSCOPE_SETTINGS", "off")
    found = _options()
    assert (found.look.is_dark, found.fps) == (True, 4.0)
