"""What a terminal sends as keys: escape and a key soon after it are two keys, not one with Alt.

A terminal writes Alt and j as it writes escape and then j. Textual waits 100 ms (``ESCDELAY``) for what may follow and
takes both for ``alt+j``, or for a sign that a Mac has there, to which nothing here is bound; both keys would be lost.
To lower the wait would tear the sequences of arrow keys apart on a slow line.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual._xterm_parser import XTermParser

_ESC = "\x1b"
_BEGINS_MORE = "[]NOPX^_"
"""After escape these begin a sequence (ECMA-48 5.3), of which more may be on the way."""
_TAKEN = "\t" + _ESC
"""The Linux console writes Shift and tab as escape and tab; two escapes are told apart by Textual."""


class TwoKeys(XTermParser):
    """Textual's parser, for programs that bind no key with Alt."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:  # noqa: FBT001, FBT002
        """``alt`` comes with the first character of what began a sequence and then stood alone, or was not known."""
        is_pair = len(sequence) == 2 and sequence[0] == _ESC and sequence[1] not in _BEGINS_MORE + _TAKEN
        # These begin most of what a terminal reports, also what Textual does not know: that is no escape.
        if is_pair or (alt and sequence not in "[]"):
            yield events.Key("escape", _ESC)
            sequence = sequence[-1]
        yield from super()._sequence_to_key_events(sequence)
