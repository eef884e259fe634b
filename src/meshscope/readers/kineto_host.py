"""What host spans of a Kineto file are beyond their names: annotations and frames have categories of their own."""

from __future__ import annotations

from dataclasses import replace

from meshscope import kinds
from meshscope.kinds import Kind, is_any
from meshscope.readers.kineto_columns import Columns
from meshscope.readers.told import Told

_CITED = ((kinds.ANNOTATION, ("user_annotation",)), (kinds.FRAME, ("python_function",)))


def cited(columns: Columns, told: Told) -> Told:
    """``told``, with annotations and Python frames as the host's and with a rule, where no other kind was found.

    Its columns are changed where they stand.
    """
    kind, rule, rules = told.kind, told.rule, list(told.rules)
    is_host = is_any(kind, (Kind.OTHER, Kind.HOST))
    for name, categories in _CITED:
        rows = is_host & columns.is_of(categories)
        if rows.any():
            kind[rows], rule[rows] = Kind.HOST, len(rules)
            rules.append(name)
    return replace(told, rules=tuple(rules))
