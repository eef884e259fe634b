"""Shows a folder on a real terminal, as a command line would: ``play.py FOLDER MODE [FPS]``

Modes: ``ok`` plays it from its beginning, ``live`` follows it, ``mouseless`` plays it without a mouse, ``bug`` and
``refused`` fail on the way.
"""

from __future__ import annotations

import fcntl
import sys
import termios
import time
from pathlib import Path

from meshscope.errors import MeshscopeError, RecordingError
from meshscope.run import Gallery
from meshscope.ui.app import Options, watch
from meshscope.ui.look import Look


class Breaking(Gallery):
    """A gallery that fails once it has been asked a few times."""

    def __init__(self, folder: Path, error: Exception) -> None:
        super().__init__(folder)
        self._error = error
        self._asked = 0

    def at(self, unix_ns: int):  # type: ignore[no-untyped-def]
        self._asked += 1
        if self._asked > 3:
            time.sleep(0.2)
            raise self._error
        return super().at(unix_ns)


def main() -> None:
    # The parent gave this process a session of its own; the terminal becomes its controlling one.
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    reel = {
        "bug": lambda: Breaking(folder, RuntimeError("this is a bug")),
        "refused": lambda: Breaking(folder, RecordingError("The folder is gone.", hint="Mount it again.")),
    }.get(mode, lambda: Gallery(folder))()
    try:
        options = Options(
            look=Look(), has_mouse=mode != "mouseless", fps=float(sys.argv[3]) if len(sys.argv) > 3 else 20.0
        )
        print(watch(folder, reel=reel, options=options, speed=None if mode == "live" else 1.0))
    except MeshscopeError as error:
        print(error.message, error.hint, sep="\n", file=sys.stderr)
        raise SystemExit(1) from None


main()
