"""What a person sees in a terminal. Panels draw answers and compute none; only this package imports Textual.

Everything is drawn through the Line API as run-length strips, because DataTable and plot widgets cost several times
more per frame and redraw what has not changed. A live run and a replay are the same screen over two clocks, so what
was seen live can be seen again, to the cell. Torch and JAX are never imported here, nor by anything imported here.
"""
