"""meshscope whose questions never end: they compute in compiled code for as long as it runs. ``busy.py ARGUMENTS…``"""

from __future__ import annotations

from pathlib import Path

from meshscope.analysis.lanes import lanes
from meshscope.analysis.waiting import waiting
from meshscope.cli import main
from meshscope.discovery import bundled
from meshscope.run import Gallery
from meshscope.ui.hands import Hands
from meshscope.ui.panel import Panel
from meshscope.ui.view import PanelView

_THREADS = 3
_asked: list[Panel] = []


def _forever() -> None:
    folder = Path(bundled("recordings")) / "tiny-4-cpu-ranks"
    while True:
        for run in Gallery(folder).at(2**62)[1]:
            waiting(run)
            lanes(run)


_made = PanelView.__init__


def _init(self: PanelView, panel: Panel, hands: Hands | None = None) -> None:
    if len(_asked) < _THREADS and not panel.is_overall:
        object.__setattr__(panel, "question", lambda _: _forever())
        _asked.append(panel)
    _made(self, panel, hands)


PanelView.__init__ = _init  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
