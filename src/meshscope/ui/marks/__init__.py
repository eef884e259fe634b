"""Numbers in, cells out: pure functions that know no panel and no run.

A mark returns pieces, ``(text, role)``, in a fixed number of cells; ``cells.strip`` turns a line of them into what
Textual draws. The same input always gives the same cells, and a number that changes does not move its neighbours.
"""
