"""A user's own command under the profiler: ``meshscope run -- torchrun train.py``.

The command runs as it would without us: in the same folder, with its environment but for PYTHONPATH and a few variables
of ours, its output, input, exit code and signals its own. What it turns out to be, its own processes tell: a start-up
hook (``hook/sitecustomize.py``) waits in each Python of the command until the script imports torch or JAX, and then
counts its steps (``workers/own_*``). A Python of another installation is lent this meshscope and its msgspec, by name
and where its version takes them; one that does not is told about, and runs unwatched.

Nothing here ends the command but a person's stop. A step that does not come is no failure: a script may evaluate for an
hour. And what goes wrong with the watching is a line in the log, never the script's end.
"""
