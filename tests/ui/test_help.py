"""The help tells of every panel what it draws, and every key of every screen is told somewhere."""

from __future__ import annotations

import re
from typing import Any

import made
import pytest
from rich.cells import cell_len
from textual.binding import Binding
from textual.screen import Screen

from meshscope.discovery import discover
from meshscope.run import Gallery
from meshscope.ui import fitting, header, progress
from meshscope.ui.keybar import Grip
from meshscope.ui.look import Look
from meshscope.ui.marks import table
from meshscope.ui.panel import Frame, Panel
from meshscope.ui.scene import Scene, Stance
from meshscope.ui.screens import compare, dialog, start
from meshscope.ui.screens.help import panel_lines
from meshscope.ui.screens.traces import Traces
from meshscope.ui.screens.watch import Watch

PANELS = discover("meshscope.ui.panels", "PANEL", Panel)
NAMES = [panel.name for panel in PANELS]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> list[Scene]:
    folder = tmp_path_factory.mktemp("made") / "run"
    made.write(folder, made.SIX)
    now = made.T0 + 300 * made.S
    plan, runs = Gallery(folder).at(now)
    stance = Stance(now_unix_ns=now, start_unix_ns=made.T0)
    return [Scene(plan, runs, stance, name) for name in ("ddp", "pmap")]


def headings(panel: Panel, scene: Scene, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the tables of a panel write above their columns."""
    found: set[str] = set()
    row = table.row

    def seen(columns: Any, content: Any) -> Any:
        found.update(place.column.heading.strip() for place in columns)
        return row(columns, content)

    for module in (table, __import__(panel.draw.__module__, fromlist=["row"])):
        if hasattr(module, "row"):
            monkeypatch.setattr(module, "row", seen)
    panel.draw(panel.question(scene), Frame(*size, look=Look(), selected=scene.selected))
    return found - {""}


@pytest.mark.parametrize("panel", PANELS, ids=NAMES)
def test_every_panel_says_of_itself_what_it_shows(panel: Panel) -> None:
    assert panel.help is not None, "give its Panel a help; see ui/about"
    assert panel.data is not None, "give its Panel its data; see ui/about"
    assert panel.help.what.endswith(".")
    assert panel.help.columns
    assert panel.help.states


@pytest.mark.parametrize("panel", PANELS, ids=NAMES)
def test_the_help_names_every_heading_that_a_panel_draws(
    panel: Panel, scenes: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert panel.help is not None
    told = " ".join(f"{name} {words}" for name, words in panel.help.columns)
    for scene in scenes:
        for size in ((37, 12), (71, 14), (118, 30), (200, 40)):
            drawn = {_without_unit(heading) for heading in headings(panel, scene, size, monkeypatch)}
            missing = {heading for heading in drawn if heading not in told}
            assert not missing


def _without_unit(heading: str) -> str:
    """The unit that a column chose for its numbers stands behind its name."""
    name, _, unit = heading.rpartition(" ")
    return name if name in ("p50", "p95", "mean", "launch") and unit in ("ns", "µs", "ms", "s") else heading


WORDS_OF = {
    # Panels that write their headings themselves: the words that stand in their drawing.
    "split": ("ms profiled", "ms traced", "compute", "hidden", "exposed", "idle", "exp %"),
    "steptime": ("median", "p95", "first", "compiling", "profiled", "samples/s", "tokens/s", "loss", "waits for data"),
    "memory": ("peak", "parameters", "gradients", "optimizer", "activations", "temporaries", "exact", "headroom"),
    "devices": ("util", "memory", "power", "cpu", "rss", "temp", "clock", "max"),
    "waiting": ("step", "wait, sum", "transfer ms", "holds up ms", "last", "late by"),
    "files": ("rank", "file", "events"),
    "traces": ("trace", "of", "ranks", "profiled", "step", "traced", "exposed", "idle", "events"),
}


@pytest.mark.parametrize("name", sorted(WORDS_OF))
def test_the_help_names_what_a_panel_writes_itself(name: str) -> None:
    panel = next(panel for panel in PANELS if panel.name == name)
    assert panel.help is not None
    named = [key for key, _ in panel.help.columns]
    assert all(any(word in key for key in named) or word in " ".join(w for _, w in panel.help.columns)
               for word in WORDS_OF[name])  # fmt: skip


SHARES = re.compile(r"\bshares?\b")


@pytest.mark.parametrize("panel", PANELS, ids=NAMES)
def test_every_share_says_what_it_is_a_share_of(panel: Panel) -> None:
    assert panel.help is not None
    for name, words in panel.help.columns:
        if SHARES.search(words):
            assert re.search(r"shares? (of|a character)|add up to one step|share of|shares of", words), name


@pytest.mark.parametrize("width", [36, 60, 100])
@pytest.mark.parametrize("panel", PANELS, ids=NAMES)
def test_the_help_fits_whatever_room_it_has(panel: Panel, width: int) -> None:
    for line in panel_lines(panel, width, Look()):
        assert sum(cell_len(text) for text, _ in line) <= width


# Keys

LISTED = {
    Watch: dialog.KEYS,
    Traces: dialog.TRACE_KEYS,
    start.Start: start._HELP,
    compare.Compare: compare.KEYS,
}
SPELT = {
    "question_mark": "?", "less_than_sign": "<", "greater_than_sign": ">", "comma": ",", "full_stop": ".",
    "pageup": "pgup", "pagedown": "pgdn", "up": "↑", "down": "↓", "left": "←", "right": "→", "escape": "esc",
    "plus": "+", "minus": "−", "slash": "/", "left_square_bracket": "[", "right_square_bracket": "]",
    "apostrophe": "'", "shift+left": "with shift", "shift+right": "with shift", "shift+tab": "tab",
}  # fmt: skip
PLAIN = ("?", "ctrl+c", "ctrl+q")  # in every footer, or what every program does


def bindings(screen: type[Screen[Any]]) -> dict[str, list[str]]:
    """The keys of every action, those of its bases too."""
    found: dict[str, list[str]] = {}
    for kind in screen.__mro__:
        for binding in kind.__dict__.get("BINDINGS", ()):
            if kind.__module__.startswith("meshscope"):
                assert isinstance(binding, Binding)
                keys = [key.strip() for key in binding.key.split(",")]
                found.setdefault(binding.action, []).extend(SPELT.get(key, key) for key in keys)
    return found


@pytest.mark.parametrize("screen", LISTED, ids=lambda screen: screen.__name__)
def test_every_key_that_does_something_is_told(screen: type[Screen[Any]]) -> None:
    text = " ".join(f"{keys} {words}" for keys, words in LISTED[screen]).replace("arrows", "↑↓ ←→")
    text = re.sub(r"([↑↓←→])", r" \1 ", text)
    words = set(re.sub(r"[…;,()]", " ", text).split())
    digits = screen in (Watch, Traces)
    untold = {
        action: keys
        for action, keys in bindings(screen).items()
        if not any(key in words or key in PLAIN or (" " in key and key in text) for key in keys)
        and not (digits and action.startswith("focus_number"))
    }
    assert not untold


def said(line: Any) -> str:
    return "".join(text for text, _ in line)


@pytest.mark.parametrize("look", [Look(), Look(is_ascii=True)], ids=["blocks", "ascii"])
@pytest.mark.parametrize("width", [80, 120, 220])
def test_footers_fit_and_name_what_is_needed_most(width: int, look: Look) -> None:
    for is_paused in (False, True):
        for is_running in (False, True):
            stance = Stance(is_paused=is_paused, is_live=is_running)
            foot = said(
                header.footer(stance, width, look, is_running=is_running, is_small=False, grip=Grip(findings=3))
            )
            assert cell_len(foot) <= width
            assert "…" not in foot
            assert all(word in foot for word in ("? help", "q quit", "tab panel", "findings(3)"))
            assert ("p profile now" if is_running else "e explain") in foot
    foot = said(progress.footer(width, look, runs=3, is_small=False, grip=Grip(findings=3)))
    assert cell_len(foot) <= width
    assert all(word in foot for word in ("? help", "q quit", "tab panel", "findings(3)"))
    foot = said(fitting.keys(start._KEYS, width, look))
    assert cell_len(foot) <= width
    assert all(word in foot for word in ("? help", "q quit", "enter go"))


def test_a_wide_footer_names_copying_and_saving_too() -> None:
    foot = said(header.footer(Stance(), 220, is_running=False, is_small=False))
    assert "y copy  x export  s save" in foot


def test_the_keys_of_the_help_fit_eighty_columns() -> None:
    for keys in (dialog.KEYS, dialog.TRACE_KEYS, compare.KEYS, start._HELP):
        assert all(max(cell_len(key), 12) + 2 + cell_len(words) <= 76 for key, words in keys)


def test_no_panel_shares_its_number_on_a_screen() -> None:
    for of in ("recording", "traces"):
        numbers = [panel.number for panel in PANELS if of in panel.of]
        assert len(set(numbers)) == len(numbers)


def test_no_line_of_help_holds_a_line_break() -> None:
    for panel in PANELS:
        for line in panel_lines(panel, 60, Look(is_ascii=True)):
            assert "\n" not in said(line)
