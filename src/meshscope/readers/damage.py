"""What damage to a file costs, in the words that are counted and shown: of its text, and of what it is packed in."""

from __future__ import annotations

from collections import Counter

from meshscope.readers.stream import BAD_TRAILER, Source

CUT_SHORT = "the file ends inside an event"
DAMAGED = "not JSON"
NOT_AN_EVENT = "not an event"
METADATA = "metadata that is not JSON"
SECOND_HEAD = "another trace begins inside this one"
ENDLESS = "an event longer than 64 MiB"
AFTER_END = "text after the end"


def packing(source: Source, *, is_closed: bool) -> Counter[str]:
    """Damage of a file's packing, by reason. Where the text in it is closed, what is damaged is what follows that."""
    damage = Counter({source.after: 1} if source.after else {})
    if source.cut_short:
        damage[BAD_TRAILER if is_closed else CUT_SHORT] = 1
    return damage
