"""Processes that ask a framework itself: what torch would allocate, what XLA would compile.

Each is started by :mod:`meshscope.advisor.exact` as ``python -m meshscope.advisor.workers.NAME`` and answers with one
line of JSON. They run the very scripts that a training run runs, so that what is wrapped, and how, is said once; what
the scripts ask of a machine (devices, other ranks, numbers in tensors) is stood in for.
"""
