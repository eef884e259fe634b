"""A recording, folded: everything that is known of one strategy's run at one time, immutable.

Folding is commutative: entries of several writers may be seen in any order. Traces are read once per file and kept,
so a live screen and a seek in a replay pay only for what is new. Native traces without a recording become Runs too.
"""

from meshscope.run.finding import trace_files
from meshscope.run.foreign import Opened, open_files, open_traces
from meshscope.run.gallery import Gallery
from meshscope.run.ledger import fold
from meshscope.run.loading import COMPILING, Loading, SoFar
from meshscope.run.opening import Opening, Seen
from meshscope.run.reading import RunReader
from meshscope.run.state import SILENCE_NS, Run

__all__ = [
    "COMPILING",
    "SILENCE_NS",
    "Gallery",
    "Loading",
    "Opened",
    "Opening",
    "Run",
    "RunReader",
    "Seen",
    "SoFar",
    "fold",
    "open_files",
    "open_traces",
    "trace_files",
]
