"""``meshscope advise --exact``, and of a model of one's own: memory as torch or XLA plan it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from meshscope.advisor.request import Request


def planned(request: Request, *, is_json: bool) -> int:
    """Prints the plans. Raises InputError where there is nothing to ask a framework about."""
    from meshscope.advisor.planned import plans
    from meshscope.reports.planned_text import planned_json, planned_report

    found = plans(request)
    click.echo(planned_json(found) if is_json else planned_report(found))
    return 0 if any(each.exact for each in found.found) else 1
