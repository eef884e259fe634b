"""What the screens remember from one time to the next: a file of their own beside the user's configuration.

It is written by the program alone, so it is apart from ``config.toml``, which is written by a person alone. Options of
the command line come before it and are never written to it: what is remembered is what was chosen on a screen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from meshscope import config
from meshscope.recording.layout import write_whole

VARIABLE = "MESHSCOPE_SETTINGS"
"""Another file for it, or ``off``."""

FILE = "screens.json"
_LARGEST_BYTES = 1 << 20
_MOST_ASIDE = 1000


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """None or empty is what was never chosen.

    ``strategies`` to ``batch`` are the last choices on the start screen that were started, as its form has them. Where
    one looked, how large, and how fast a clock ran belong to one recording: another board begins as every board does.
    """

    theme: Annotated[str, msgspec.Meta(pattern="^(dark|light)$")] | None = None
    is_ascii: bool | None = None
    fps: Annotated[float, msgspec.Meta(ge=0.5, le=60)] | None = None
    strategies: list[str] | None = None
    model: str | None = None
    ranks: Annotated[str, msgspec.Meta(pattern="^[0-9]{0,6}$")] = ""
    steps: Annotated[str, msgspec.Meta(pattern="^[0-9]{0,6}$")] = ""
    batch: Annotated[str, msgspec.Meta(pattern="^[0-9]{0,6}$")] = ""


class Memory:
    """Settings that last. ``notice`` is a line about a file that could not be used, "" where all is well.

    Without a ``path`` nothing lasts. Writing replaces the whole file at once, so that whoever else writes or reads it
    at the same time finds one whole file; what another process has changed meanwhile stays, key by key.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.notice = ""
        self.remembered = Remembered()
        self._is_forgotten = False
        if path is not None:
            self.remembered = self._read(path)

    def keep(self, **chosen: Any) -> str:
        """Remember some settings; why that could not be done, "" where it could (or nothing is to last)."""
        self.remembered = msgspec.structs.replace(self.remembered, **chosen)
        if self.path is None or self._is_forgotten:
            return ""
        try:
            write_whole(self.path, msgspec.json.format(msgspec.json.encode(self._others() | chosen), indent=1))
        except OSError as error:
            return f"Not remembered ({error.strerror or error}): {self.path}"
        return ""

    def forget(self) -> str:
        """Take the file away, and write no other in this session. A line that says so, or why it could not be done."""
        if self.path is None:
            return "Nothing is remembered here."
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            return f"It cannot be taken away ({error.strerror or error}): {self.path}"
        self.remembered, self._is_forgotten = Remembered(), True
        return "Forgotten: the next start is as the first."

    def _others(self) -> dict[str, Any]:
        """What the file holds now, also what only a newer version knows."""
        assert self.path is not None
        content = _content(self.path)
        try:
            _decoded(content)
            return dict(msgspec.json.decode(content, type=dict[str, Any]))
        except msgspec.MsgspecError:
            _set_aside(self.path)
            return {}

    def _read(self, path: Path) -> Remembered:
        try:
            content = _content(path)
        except OSError as error:
            self.notice = f"Settings cannot be read ({error.strerror or error}): {path}"
            return Remembered()
        try:
            return _decoded(content)
        except msgspec.MsgspecError:
            self.notice = _set_aside(path)
            return Remembered()


def _content(path: Path) -> bytes:
    """``{}`` where there is no file."""
    try:
        if path.exists() and not path.is_file():  # a pipe would never end
            raise OSError(0, "it is no regular file")
        with path.open("rb") as file:
            return file.read(_LARGEST_BYTES)
    except FileNotFoundError:
        return b"{}"


def _decoded(content: bytes) -> Remembered:
    try:
        return msgspec.json.decode(content, type=Remembered)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def _set_aside(path: Path) -> str:
    """Keep a damaged file under another name; the line that says where."""
    names = (path.with_name(f"{path.name}.damaged{f'-{n}' if n > 1 else ''}") for n in range(1, _MOST_ASIDE))
    aside = next((name for name in names if not name.exists()), None)
    try:
        path.rename(aside or path)
    except OSError:
        aside = None
    if aside is None:
        return f"Settings are damaged and not used: {path}"
    return f"Settings were damaged and are not used; kept as {aside}"


def usual(environ: Mapping[str, str] = os.environ) -> Memory:
    """The memory of this user, wherever that is here; one that does not last where it is switched off or homeless."""
    asked = environ.get(VARIABLE, "")
    if asked.lower() == "off":
        return Memory()
    path = Path(asked) if asked else config.folder(environ) / FILE
    # A relative XDG_CONFIG_HOME counts as none, and ~ stays ~ for a user whom nobody knows.
    return Memory(path if asked or path.is_absolute() else None)
