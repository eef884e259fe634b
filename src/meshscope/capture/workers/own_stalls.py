"""What a rank of a user's own command tells when it is asked where it stands.

It is asked by a file in the recording's control folder, so no signal of the script's is touched and none of its threads
interrupted: a thread of ours looks there twice a second. It needs the interpreter, which a thread that waits in a
collective has let go. Arguments are left out: they are the user's, and may be anything.
"""

from __future__ import annotations

import threading
import time

from meshscope.capture.workers import stalls
from meshscope.capture.workers.own_rank import Enlisted, say
from meshscope.recording.control import STAND, Asked

_EVERY_S = 0.5


def listen(me: Enlisted, *dumps: stalls.Dump) -> None:
    """Answer from now on, in a thread that ends with the process; ``dumps`` are called as well, once per question."""
    threading.Thread(target=_serve, args=(me, dumps), daemon=True, name="meshscope-stalls").start()


def _serve(me: Enlisted, dumps: tuple[stalls.Dump, ...]) -> None:
    asked = Asked(me.recording)
    number = 0
    try:
        asked.new()  # What was asked before this rank began is not its concern.
        while True:
            time.sleep(_EVERY_S)
            if any(ask.what == STAND for ask in asked.new()):
                number += 1
                answer(me, number, *dumps)
    except Exception as error:  # noqa: BLE001  # the script must go on, whatever this is
        say(f"note: where this rank stands can no longer be told: {type(error).__name__}: {error}")


def answer(me: Enlisted, number: int, *dumps: stalls.Dump) -> None:
    """Write where this process's Python threads are, and what ``dumps`` write."""
    stalls.tell(me.recording, me.journal, number, has_arguments=False)
    for dump in dumps:
        dump(me.recording, me.journal)
