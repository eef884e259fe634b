"""What a command prints while a screen has the terminal: into a file, and line by line into the log."""

from __future__ import annotations

from pathlib import Path

from meshscope.recording.entries import Log
from meshscope.recording.journal import Journal

_AT_ONCE = 20
_MOST = 2000
_LONGEST = 500


class Output:
    """Tells the lines of a growing file. A progress bar that draws over itself is told as it stands at a line's end."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self._path = path
        self._journal = journal
        self._offset = 0
        self._told = 0

    def tell(self, *, is_last: bool = False) -> None:
        """The whole lines since the last call, the newest where there are too many; ``is_last`` takes the rest too."""
        lines = self._fresh(is_last=is_last)
        kept = lines[-_AT_ONCE:]
        if self._told >= _MOST:
            return
        if len(kept) < len(lines):
            self._say(f"… {len(lines) - len(kept)} lines more, in {self._path.name}")
        for line in kept:
            self._say(line)
        self._told += len(kept)
        if self._told >= _MOST:
            self._say(f"What it prints from here on is in {self._path.name} only.")

    def _fresh(self, *, is_last: bool) -> list[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read()
        except OSError:
            return []
        whole = len(chunk) if is_last else chunk.rfind(b"\n") + 1
        self._offset += whole
        lines = chunk[:whole].decode(errors="replace").split("\n")
        drawn = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)
        return [line[:_LONGEST] for line in drawn if line]

    def _say(self, text: str) -> None:
        self._journal.append(Log(t_ns=self._journal.now_ns(), level="info", text=text))
