"""The real program in poor terminals: a readable screen, kept as text, in no more than what that terminal can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import made
import pytest
import tmux
from tmux import MESHSCOPE, Tmux

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not tmux.is_here(), reason="tmux is not installed")]

ENVIRONS = {
    "locale-c": "LC_ALL=C TERM=xterm",
    "linux": "LC_ALL=C.UTF-8 TERM=linux",
    "screen": "LC_ALL=C.UTF-8 TERM=screen-256color",
    "no-color": "LC_ALL=C.UTF-8 TERM=xterm-256color NO_COLOR=1",
}
SIZES = [(80, 24), (120, 40)]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    found = Tmux(tmp_path_factory.mktemp("tmux"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    made.write(folder)
    return folder


def shown(shell: Tmux, recording: Path, environ: str, size: tuple[int, int]) -> tuple[str, bytes]:
    """The screen of the ended recording, and every byte that was written for it."""
    output = shell.place / "output"
    output.unlink(missing_ok=True)
    shell.resize(*size)
    shell.ask("pipe-pane", "-O", f"cat > {output}")
    shell.start([*MESHSCOPE, "watch", str(recording)], environ=environ)
    shell.wait_for("450")
    drawn = shell.settled()
    shell.type("q")
    assert shell.end() == 0
    shell.ask("pipe-pane")
    content = output.read_bytes()
    begun, over = content.index(b"\x1b[?1049h"), content.index(b"\x1b[?1049l")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", content[begun:over]


def colours(content: bytes) -> set[bytes]:
    """How many colours the parameters of its styles ask for: ``38;2`` truecolor, ``38;5`` 256, else one of 16."""
    return {kind for kind in (b"38;2;", b"48;2;", b"38;5;", b"48;5;") if kind in content}


def check(name: str, drawn: str, content: bytes) -> None:
    assert "450" in drawn
    if name in ("locale-c", "linux"):
        assert drawn.isascii()
        assert content.isascii()
        assert colours(content) == set()
    elif name == "screen":
        assert colours(content) == {b"38;5;", b"48;5;"}
    else:
        assert colours(content) == set()
        assert not any(b"\x1b[%dm" % number in content for number in (*range(30, 38), *range(90, 98)))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ENVIRONS)
def test_a_poor_terminal_shows_a_readable_screen(
    shell: Tmux, recording: Path, snapshot: Callable[[str, str], None], name: str, size: tuple[int, int]
) -> None:
    drawn, content = shown(shell, recording, ENVIRONS[name], size)
    check(name, drawn, content)
    snapshot(f"terminal-{name}-{size[0]}x{size[1]}", drawn)


def test_the_start_screen_under_the_c_locale_is_ascii_too(shell: Tmux) -> None:
    output = shell.place / "output"
    shell.resize(80, 24)
    shell.ask("pipe-pane", "-O", f"cat > {output}")
    shell.start(list(MESHSCOPE), environ=ENVIRONS["locale-c"])
    shell.wait_for("[ start ]")
    shell.type("o")
    shell.wait_for("tab completes")
    shell.type("Escape")
    shell.wait_until(lambda: "tab completes" not in shell.screen(), "the end of the question")
    shell.type("?")
    shell.wait_for("more or fewer ranks")
    shell.type("Escape")
    shell.wait_until(lambda: "more or fewer ranks" not in shell.screen(), "the end of the help")
    shell.type("q")
    assert shell.end() == 0
    shell.ask("pipe-pane")
    content = output.read_bytes()
    assert content[content.index(b"\x1b[?1049h") : content.index(b"\x1b[?1049l")].isascii()
