"""What host spans of a Kineto file are beyond their names: annotations and frames have categories of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.kineto_columns import Columns
from meshscope.readers.told import Told

_CITED = ((kinds.ANNOTATION, ("user_annotation",)), (kinds.FRAME, ("python_function",)))


def cited(columns: Columns, told: Told) -> Told:
    """``told``, with annotations and Python frames as the host's and with a rule, where no other kind was found."""
    kind, rule, rules = told.kind.copy(), told.rule.copy(), list(told.rules)
    is_host = np.isin(told.kind, (Kind.OTHER, Kind.HOST))
    for name, categories in _CITED:
        rows = is_host & columns.is_of(categories)
        if rows.any():
            kind[rows], rule[rows] = Kind.HOST, len(rules)
            rules.append(name)
    return replace(told, kind=kind, rule=rule, rules=tuple(rules))
