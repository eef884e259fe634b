"""The recordings of a run's nodes as one reel: live, replayed or read at once, what they know together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from meshscope.analysis.joining import joined
from meshscope.analysis.node_clocks import offset
from meshscope.cli.opening import is_recorded, nodes_in
from meshscope.errors import InputError
from meshscope.experiment import Plan
from meshscope.recording.entries import Entry
from meshscope.recording.feed import Feed
from meshscope.recording.layout import recordings
from meshscope.run import Gallery, Run, fold
from meshscope.spans import Window


def reel(paths: Sequence[Path]) -> Gallery | Nodes:
    """What some folders hold: one recording or comparison, or those of a run's nodes.

    Raises InputError for several that are not of one run, RecordingError for what is no recording.
    """
    folders = [inside for path in paths for inside in nodes_in(path)]
    if len(folders) == 1:
        return Gallery(folders[0])
    for folder in folders:
        if not is_recorded(folder):
            raise InputError(
                f"{folder} is no recording.", hint="Several are shown together only where all are of one run."
            )
    found = Nodes([Gallery(folder) for folder in folders], _ahead_ns(folders))
    if not found.is_one_run:
        raise InputError(
            f"{' and '.join(map(str, folders))} are not of one run.",
            hint="Compare them: meshscope compare A B. Nodes of one run have met at one --rendezvous.",
        )
    return found


def _ahead_ns(folders: Sequence[Path]) -> list[int]:
    """What the clock of each node is ahead of the first one's, as far as the steps in their journals tell now."""
    nodes = [{run.experiment.rendezvous: run for run in map(_journal, recordings(folder))} for folder in folders]
    found = []
    for node in nodes:
        offsets = (offset(nodes[0][place], run) for place, run in node.items() if place in nodes[0])
        found.append(next((one.ahead_ns for one in offsets if one.by), 0))
    return [0, *found[1:]]


def _journal(recording: Path) -> Run:
    """A recording without its traces, which say no more about when its steps were."""
    feed = Feed(recording)
    return fold(feed.experiment, feed.poll())


class Nodes:
    """Several galleries, each of one node. Times are those of the first node's clock; the others are ``ahead_ns``."""

    def __init__(self, galleries: Sequence[Gallery], ahead_ns: Sequence[int]) -> None:
        self._galleries = tuple(galleries)
        self._ahead_ns = tuple(ahead_ns)
        self._moved: dict[int, tuple[Window, int, Window]] = {}

    @property
    def is_one_run(self) -> bool:
        """Whether every gallery has a part in some joined run."""
        heads = [{run.rendezvous for run in (gallery.plan.runs if gallery.plan else []) if run.rendezvous}
                 for gallery in self._galleries]  # fmt: skip
        return all(head & heads[0] for head in heads)

    @property
    def plan(self) -> Plan | None:
        return self._galleries[0].plan

    @property
    def start_unix_ns(self) -> int:
        return min(gallery.start_unix_ns - ahead_ns for gallery, ahead_ns in self._each)

    @property
    def end_unix_ns(self) -> int | None:
        ends = [(gallery.end_unix_ns, ahead_ns) for gallery, ahead_ns in self._each]
        known = [end - ahead_ns for end, ahead_ns in ends if end is not None]
        return max(known) if len(known) == len(ends) else None

    @property
    def stretches(self) -> tuple[tuple[str, int, int], ...]:
        """Those of the first node: the others' are the same runs."""
        return self._galleries[0].stretches

    @property
    def refused(self) -> tuple[tuple[str, str, str], ...]:
        return tuple(refusal for gallery in self._galleries for refusal in gallery.refused)

    def at(self, unix_ns: int) -> tuple[Plan | None, tuple[Run, ...]]:
        """What all nodes knew at a time."""
        runs = [run for gallery, ahead_ns in self._each for run in gallery.at(unix_ns + ahead_ns)[1]]
        return self.plan, joined(runs, self._shifted).runs

    def supervisor_at(self, unix_ns: int) -> tuple[Entry, ...]:
        return tuple(entry for gallery, ahead_ns in self._each for entry in gallery.supervisor_at(unix_ns + ahead_ns))

    @property
    def _each(self) -> zip[tuple[Gallery, int]]:
        return zip(self._galleries, self._ahead_ns, strict=True)

    def _shifted(self, window: Window, by_ns: int) -> Window:
        """Moved once: what is known of a window is kept with it."""
        known = self._moved.get(id(window))
        if known is None or known[0] is not window or known[1] != by_ns:
            known = self._moved[id(window)] = window, by_ns, window.shifted(by_ns)
        return known[2]
