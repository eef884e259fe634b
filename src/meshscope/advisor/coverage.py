"""What the model has no answer for, as an answer of its own."""

from __future__ import annotations

from meshscope.errors import MeshscopeError


class NotCovered(MeshscopeError):  # noqa: N818 (it is an answer, not a failure)
    """The question lies outside of what is modelled: to abstain beats a wrong number.

    ``reason`` says in a sentence what is missing; a row of a table is listed with it, a person sees it beside ``hint``.
    """

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.reason = reason
