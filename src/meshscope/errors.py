"""What can go wrong and be told to a person: one line that says what failed, one that says what to do.

Only these are caught at the two doors (``cli.main`` and ``ui.app``); anything else is a bug and must look like one.
"""

from __future__ import annotations


class MeshscopeError(Exception):
    """Something a person can act on.

    ``hint`` is the second line a person sees: what to do about it.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(MeshscopeError):
    """The request cannot be carried out as it was put (unknown preset, batch that does not divide, …)."""


class LaunchError(MeshscopeError):
    """A run could not be started or did not reach its end."""


class RecordingError(MeshscopeError):
    """A folder is no recording, or a recording of a version this meshscope does not read."""


class TraceError(MeshscopeError):
    """A native trace cannot be read at all (damage inside a readable trace is counted, not raised)."""


class MissingPackageError(MeshscopeError):
    """An optional package is needed; the hint names the extra that brings it."""
