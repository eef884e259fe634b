"""Someone who outlives this program: puts the terminal back where it can no longer do so itself.

A program that is killed (SIGKILL, the kernel out of memory, a fault in compiled code) leaves the terminal in raw mode
on its alternate screen, reporting every move of the mouse into the shell. A shell of a few kilobytes waits beside it
for the word that all was put back; where the pipe ends without it, it does that work.
"""

from __future__ import annotations

import subprocess
import termios
from collections.abc import Sequence

# In a group of its own, so that what is meant for the program's group does not end it too; from the background only
# who ignores SIGTTOU may set the terminal.
_SCRIPT = """
trap '' INT TERM QUIT TTOU TTIN TSTP
IFS= read -r word
if [ "$word" != done ]; then
  stty "$1" <&1
  printf '%b\\r\\nmeshscope was killed; the terminal is as it was.\\r\\n' "$2"
fi
"""

_SHOWN_AGAIN = r"\0033[?25h\0033[0m\0033[?1049l"


class Guard:
    """Watches over the terminal at ``descriptor``: its state now is what it puts back, with ``modes`` switched off."""

    def __init__(self, descriptor: int, modes: Sequence[str]) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        ended = r"\0033[<u" + "".join(rf"\0033[?{mode}l" for mode in modes) + _SHOWN_AGAIN
        command = ["/bin/sh", "-c", _SCRIPT, "guard", _saved(descriptor), ended]
        self._shell = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=descriptor, stderr=subprocess.DEVNULL, process_group=0
        )

    def dismiss(self) -> None:
        """The terminal has been put back."""
        if self._shell is None or self._shell.stdin is None:
            return
        try:
            self._shell.stdin.write(b"done\n")
            self._shell.stdin.close()
        except BrokenPipeError:  # somebody ended it: there is nobody to tell
            pass
        self._shell.wait()
        self._shell = None


def _saved(descriptor: int) -> str:
    """The line discipline as ``stty`` reads it: flags and control characters in hexadecimal digits."""
    input_flags, output_flags, control_flags, local_flags, _, _, characters = termios.tcgetattr(descriptor)
    values = [character if isinstance(character, int) else character[0] for character in characters]
    return ":".join(f"{value:x}" for value in (input_flags, output_flags, control_flags, local_flags, *values))
