"""Questions put to a Run: one file each, pure functions, no I/O.

A question about traces is ``measure(window) -> Part`` and ``combine(parts) -> Answer``; the rest are functions of
a Run. Answers are frozen dataclasses that panels and reports draw as they are.
"""
