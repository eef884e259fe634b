"""What a terminal can show is told from its environment, and options overrule it."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem

from meshscope.cli.options import draws
from meshscope.errors import InputError
from meshscope.ui.look import Depth, Look, look
from meshscope.ui.palette import BESIDE, BYTES, GROUND, INKS, RAISED, TEXTURES, TIMES, styles, texture


@pytest.mark.parametrize(
    ("environ", "depth"),
    [
        ({"TERM": "xterm-256color"}, Depth.ANSI256),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Depth.TRUECOLOR),
        ({"TERM": "xterm-kitty"}, Depth.ANSI256),
        ({"TERM": "xterm"}, Depth.ANSI16),
        ({"TERM": "linux"}, Depth.ANSI16),
        ({"TERM": "dumb"}, Depth.NONE),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, Depth.NONE),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, Depth.ANSI256),
    ],
)
def test_colours_are_those_the_terminal_says_it_has(environ: dict[str, str], depth: Depth) -> None:
    assert look(environ).depth is depth


@pytest.mark.parametrize(
    ("environ", "is_ascii"),
    [
        ({"TERM": "xterm-256color", "LANG": "de_DE.UTF-8"}, False),
        ({"TERM": "xterm-256color", "LANG": "C.utf8"}, False),
        ({"TERM": "xterm-256color", "LC_ALL": "C", "LANG": "de_DE.UTF-8"}, True),
        ({"TERM": "xterm-256color", "LANG": "POSIX"}, True),
        ({"TERM": "xterm-256color", "LANG": "de_DE.ISO-8859-1"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux", "LANG": "de_DE.UTF-8"}, True),
        ({"TERM": "vt100"}, True),
    ],
)
def test_ascii_is_for_locales_and_fonts_without_blocks(environ: dict[str, str], *, is_ascii: bool) -> None:
    assert look(environ).is_ascii is is_ascii


def test_an_output_that_is_not_utf8_needs_ascii() -> None:
    assert look({"TERM": "xterm-256color"}, encoding="ISO-8859-1").is_ascii


def test_options_overrule_the_environment() -> None:
    poor = {"TERM": "linux", "NO_COLOR": "1"}
    assert look(poor, is_ascii=False, colours="256", theme="light") == Look(False, Depth.ANSI256, False)


def test_a_light_background_is_seen_where_the_terminal_tells() -> None:
    assert not look({"TERM": "xterm-256color", "COLORFGBG": "0;15"}).is_dark
    assert look({"TERM": "xterm-256color", "COLORFGBG": "15;0"}).is_dark


@pytest.mark.parametrize("given", [{"colours": "many"}, {"theme": "pink"}])
def test_what_does_not_exist_is_refused_with_what_does(given: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        look({}, **given)  # type: ignore[arg-type]
    assert "Choose one of" in refused.value.hint


def _colours() -> list[str]:
    inks = [GROUND, RAISED, *INKS.values()]
    return [c for ink in inks for c in (ink.dark, ink.light, ink.dark_ground, ink.light_ground) if c]


@pytest.mark.parametrize("colour", sorted(set(_colours())))
def test_every_colour_is_one_of_the_256_so_that_both_depths_show_the_same(colour: str) -> None:
    exact = Color.parse(colour).triplet
    shown = Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT)
    assert exact is not None
    assert shown.number is not None
    # Rich rounds light greys to the neighbouring one of the 24.
    most = 10 if len(set(exact)) == 1 else 0
    assert max(abs(a - b) for a, b in zip(shown.get_truecolor(), exact, strict=True)) <= most


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


WORDS = ("text", "strong", "quiet", "accent", "key", "good", "warn", "bad", "chosen", "match", "picked")
FAINT = ("faint", "idle", "heat0")


@pytest.mark.parametrize("side", ["dark", "light"])
@pytest.mark.parametrize(("role", "least"), [*((role, 4.5) for role in WORDS), *((role, 3.0) for role in FAINT)])
def test_words_can_be_read_on_both_backgrounds(role: str, least: float, side: str) -> None:
    """WCAG 2.2: 4.5 for text, 3 for what is less than that; on the ground that the role itself paints, if any."""
    ground = getattr(INKS[role], f"{side}_ground") or getattr(GROUND, side)
    assert _contrast(getattr(INKS[role], side), ground) >= least


@pytest.mark.parametrize("is_ascii", [False, True])
def test_no_two_meanings_of_time_share_a_texture(*, is_ascii: bool) -> None:
    given = Look(is_ascii=is_ascii)
    textures = {texture(name, given) for name in TIMES}
    assert len(textures) == len(TIMES)


def test_every_texture_has_a_colour_and_ascii_stays_ascii() -> None:
    assert set(TEXTURES) <= set(INKS)
    assert all(texture(name, Look(is_ascii=True)).isascii() for name in TEXTURES)


@pytest.mark.parametrize("role", sorted(INKS))
def test_without_colour_no_role_has_one(role: str) -> None:
    found = styles(Look(depth=Depth.NONE))[role]
    assert found is None or (found.color is None and found.bgcolor is None)


@pytest.mark.parametrize("role", sorted(INKS))
def test_with_sixteen_colours_the_background_is_the_terminals_own(role: str) -> None:
    found = styles(Look(depth=Depth.ANSI16))[role]
    assert found is None or (found.bgcolor is None and (found.color is None or found.color.number is not None))


@pytest.mark.parametrize("given", [Look(), Look(is_ascii=True)], ids=["blocks", "ascii"])
def test_each_kind_of_memory_has_a_texture_of_its_own_that_no_time_has(given: Look) -> None:
    names = (*BYTES, *TIMES, *BESIDE)
    assert len({texture(name, given) for name in names}) == len(names)
    assert set(names) == set(TEXTURES)


SERVED = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}


def test_a_browser_shows_everything_whatever_terminal_its_server_has() -> None:
    assert look(SERVED | {"TERM": "dumb", "LC_ALL": "C"}, encoding="ascii") == Look(depth=Depth.TRUECOLOR)
    assert look(SERVED | {"NO_COLOR": "1"}).depth is Depth.NONE
    assert look(SERVED, colours="16").depth is Depth.ANSI16


def test_there_is_somebody_before_a_browser_though_no_stream_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    assert not draws(headless=False)
    monkeypatch.setenv("TEXTUAL_DRIVER", SERVED["TEXTUAL_DRIVER"])
    assert draws(headless=False)
    assert not draws(headless=True)
