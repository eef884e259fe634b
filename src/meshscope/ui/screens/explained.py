"""What a number on the screen is made of, in a frame over it; the screen goes on below."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.explaining.number import Explanation
from meshscope.analysis.explaining.words import Said, paragraphs
from meshscope.errors import MeshscopeError
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line
from meshscope.ui.screens.scrolled import Scrolled, paragraph
from meshscope.units import printable


class Explained(Scrolled):
    """Says that it is being worked out until ``tell`` brings the answer.

    ``caveat`` says what the answer does not stand on yet.
    """

    def __init__(self, title: str, look: Look, *, caveat: str = "") -> None:
        super().__init__(title, look, caveat=caveat)
        self._said: Sequence[Said] = (Said("Working it out…", role="quiet"),)

    def tell(self, found: Explanation | MeshscopeError) -> None:
        """Show the answer, or why there is none."""
        if isinstance(found, MeshscopeError):
            self._said = (Said(printable(found.message)), Said(printable(found.hint), role="quiet"))
        else:
            self._said = paragraphs(found)[1:]
        self.show()

    def body(self, width: int) -> list[Line]:
        return [line for said in self._said for line in paragraph(said, width)]
