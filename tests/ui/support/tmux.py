"""A shell in a tmux server of its own: a real terminal that can be typed into, resized and asked for its modes."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

PATIENCE_S = 20.0
PROMPT = "ready>"
CRASHING, BUSY = (Path(__file__).parent / name for name in ("crashing.py", "busy.py"))
_NUMBERS = itertools.count()

# What a program may leave switched on, as tmux tells it.
_FLAGS = ("alternate_on", "mouse_any_flag", "cursor_flag", "keypad_flag", "keypad_cursor_flag", "insert_flag")

MESHSCOPE = (sys.executable, "-m", "meshscope")


def is_here() -> bool:
    return shutil.which("tmux") is not None


class Tmux:
    """``bash`` at a prompt in ``place``; ``close`` ends the server and all that runs in it."""

    def __init__(self, place: Path, *, size: tuple[int, int] = (100, 30)) -> None:
        self.place = place
        self.name = f"meshscope-test-{os.getpid()}-{next(_NUMBERS)}"
        (place / "inputrc").write_text("set enable-bracketed-paste off\n")
        (place / "bashrc").write_text(f"PS1='{PROMPT} '\n")
        width, height = size
        # Nothing of the outer terminal is to be seen inside.
        hidden = ("TMUX", "TMUX_PANE", "COLORTERM", "NO_COLOR", "LC_ALL", "TERM_PROGRAM", "COLORFGBG")
        self._environ = {key: value for key, value in os.environ.items() if key not in hidden}
        self._environ |= {"LANG": "C.UTF-8", "INPUTRC": str(place / "inputrc"), "HISTFILE": ""}
        shell = ["bash", "--noprofile", "--rcfile", str(place / "bashrc")]
        self.ask("new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(place), shlex.join(shell))
        self.wait_for(PROMPT)

    def ask(self, *arguments: str) -> str:
        """What a tmux command answers."""
        command = ["tmux", "-u", "-L", self.name, "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self._environ, check=True, capture_output=True, text=True).stdout

    # What is on the screen

    def screen(self) -> str:
        return self.ask("capture-pane", "-p")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"{what} never came:\n{self.screen()}"
            time.sleep(0.05)

    def wait_for(self, text: str) -> None:
        self.wait_until(lambda: text in self.screen(), repr(text))

    def settled(self) -> str:
        """The screen once it has stayed the same for half a second."""
        last, since, end = self.screen(), time.monotonic(), time.monotonic() + PATIENCE_S
        while time.monotonic() - since < 0.5:
            assert time.monotonic() < end, f"it never stands still:\n{last}"
            time.sleep(0.1)
            if (now := self.screen()) != last:
                last, since = now, time.monotonic()
        return last

    def modes(self) -> dict[str, str]:
        told = self.ask("display-message", "-p", " ".join(f"#{{{flag}}}" for flag in _FLAGS)).split()
        return dict(zip(_FLAGS, told, strict=True))

    # What is typed

    def type(self, *keys: str) -> None:
        self.ask("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        self.ask("resize-window", "-x", str(width), "-y", str(height))

    def shell(self, line: str) -> None:
        """Type a command at the prompt, on an empty screen."""
        self.ask("send-keys", "-l", "clear; " + line)
        self.type("Enter")

    def start(self, command: Sequence[str], *, environ: str = "") -> None:
        """Run a command between two looks at the line discipline; its exit status is said at its end."""
        for left in self._programs():  # by a test that has failed
            left.kill()
            self.wait_for(PROMPT)
        line = f"stty -a > before; {environ} {shlex.join(command)}; echo exit=$?; stty -a > after; touch over"
        (self.place / "over").unlink(missing_ok=True)
        self.shell(line)

    @property
    def program(self) -> psutil.Process:
        """What runs in front of the shell."""
        return self._programs()[0]

    def _programs(self) -> list[psutil.Process]:
        shell = psutil.Process(int(self.ask("display-message", "-p", "#{pane_pid}")))
        return [child for child in shell.children() if child.status() != psutil.STATUS_ZOMBIE]

    def end(self) -> int:
        """The exit status of what was started, once the shell is back."""
        self.wait_until((self.place / "over").exists, "the end")
        self.wait_for(PROMPT)
        told = [line for line in self.screen().splitlines() if line.startswith("exit=")]
        return int(told[-1].removeprefix("exit="))

    def stray(self) -> str:
        """What stands in the input of the shell unasked: on its line, or still to be read."""
        line = self.screen().rstrip("\n").splitlines()[-1].removeprefix(PROMPT).strip()
        self.type("C-u")
        kept = self.place / "stray"
        kept.unlink(missing_ok=True)
        self.shell("IFS= read -r -s -d '' -t 0.3 -n 4096 stray; printf %s \"$stray\" > kept; mv kept stray")
        self.wait_until(kept.exists, "what was read")
        return line + kept.read_text()

    def is_paste_bracketed(self) -> bool:
        """Whether what is pasted would come between marks."""
        self.shell("cat -v")
        self.wait_until(lambda: self.ask("display-message", "-p", "#{pane_current_command}").strip() == "cat", "cat")
        self.ask("set-buffer", "pasted")
        self.ask("paste-buffer", "-p")
        self.wait_for("pasted")
        is_marked = "200~" in self.screen()
        self.type("C-c")
        self.wait_for(PROMPT)
        return is_marked

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False, capture_output=True)
