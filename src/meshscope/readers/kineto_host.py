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
    """``told``, with the rule of annotations and Python frames that no other kind was found for."""
    rule, rules = told.rule.copy(), list(told.rules)
    is_host = np.isin(told.kind, (Kind.OTHER, Kind.HOST))
    for name, categories in _CITED:
        rows = is_host & columns.is_of(categories)
        if rows.any():
            rule[rows] = len(rules)
            rules.append(name)
    return replace(told, rule=rule, rules=tuple(rules))
