"""What a terminal sends as keys: escape and a key soon after it are two keys, not one with Alt.

A terminal writes Alt and j as it writes escape and then j. Textual waits 100 ms (``ESCDELAY``) for what may follow and
takes both for ``alt+j``, or for a sign that a Mac has there, to which nothing here is bound; both keys would be lost.
To lower the wait would tear the sequences of arrow keys apart on a slow line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import XTermParser

_ESC = "\x1b"
_BEGINS_MORE = "[]NOPX^_"
"""After escape these begin a sequence (ECMA-48 5.3), of which more may be on the way."""
_TAKEN = "\t" + _ESC
"""The Linux console writes Shift and tab as escape and tab; two escapes are told apart by Textual."""
_BY_HAND = re.compile(r"\x1b[][][^0-?]*")
"""What a terminal reports after escape and a bracket has parameters (ECMA-48 5.4, digits and signs up to ``?``); what
has none and is no key that Textual knows was typed."""


class TwoKeys(XTermParser):
    """Textual's parser, for programs that bind no key with Alt."""

    _tried = ""  # what followed escape, as far as it came

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:  # noqa: FBT001, FBT002
        """``alt`` comes with the first character of what began a sequence and then stood alone, or was not known."""
        if len(sequence) > 1:
            self._tried = sequence
        is_pair = len(sequence) == 2 and sequence[0] == _ESC and sequence[1] not in _BEGINS_MORE + _TAKEN
        # Brackets begin most of what a terminal reports, also what Textual does not know: that is no escape.
        if is_pair or (alt and (sequence not in "[]" or _BY_HAND.fullmatch(self._tried))):
            yield events.Key("escape", _ESC)
            sequence = sequence[-1]
        yield from super()._sequence_to_key_events(sequence)
