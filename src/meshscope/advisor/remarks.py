"""What a row of published runs says in passing and memory hangs on: the optimizer, and how the loss is computed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cells import text

_COLUMNS = ("optimizer", "other_opts", "software_notes", "notes", "strategy", "precision")

# The first that is found wins.
_OPTIMIZERS = (
    (r"8.?bit.{0,12}adam|adamw?.{0,3}8.?bit|8.?bit optim", "adam8bit"),
    (r"\badafactor\b", "adafactor"),
    (r"\blion\b", "lion"),
    (r"\bmuon\b", "muon"),
    (r"\bsgd\b.{0,20}momentum|momentum.{0,4}\bsgd\b", "sgd-momentum"),
    (r"\bsgd\b", "sgd"),
)
_IN_PIECES = r"\bliger\b|fused.?linear.{0,14}(cross|\bce\b)|chunked.{0,10}(cross|\bce\b|loss)|cut.?cross.?entropy"
_VIEWED = r"gradient_as_bucket_view(?!\s*=\s*false)"


def remarked(candidate: Candidate, row: Mapping[str, str]) -> Candidate:
    """The candidate with what the row's free text says."""
    said = " ".join(text(row, name) for name in _COLUMNS).lower()
    optimizer = next((name for pattern, name in _OPTIMIZERS if re.search(pattern, said)), candidate.optimizer)
    return replace(
        candidate,
        optimizer=optimizer,
        is_logits_chunked=candidate.is_logits_chunked or bool(re.search(_IN_PIECES, said)),
        is_bucket_view=candidate.is_bucket_view or bool(re.search(_VIEWED, said)),
    )
