"""Opening the screen from a command: how it looks here, and what it shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from meshscope.analysis.pairing import Changes
from meshscope.readers.kept import usual
from meshscope.run import Gallery, Loading, Opening, trace_files
from meshscope.ui import app
from meshscope.ui.launching import Bundled
from meshscope.ui.look import look


def show(folder: Path, *, speed: float | None = None, **given: Any) -> Gallery:
    """Watch (or with ``speed`` replay) a folder until the user leaves, and print the line that stays in the shell."""
    gallery = Gallery(folder)
    line = app.watch(folder, reel=gallery, options=_options(**given), speed=speed)
    if line:
        click.echo(line)
    return gallery


def show_traces(opening: Opening, **given: Any) -> None:
    """Show traces while they are read, until the user leaves, and print the line that stays in the shell."""
    line = app.open_traces(opening, options=_options(**given))
    if line:
        click.echo(line)


def opened(path: Path) -> Gallery | Opening:
    """A recording, or native traces that will be read; raises MeshscopeError when it is neither."""
    from meshscope.cli.opening import is_recorded

    return Gallery(path) if is_recorded(path) else opening((path,))


def opening(paths: Sequence[Path], *, jobs: int | None = None) -> Opening:
    """The traces that some paths lead to, to be read. Raises InputError when one leads nowhere."""
    found = [trace_files(path) for path in paths]
    files = dict.fromkeys(file for one in found for file in one.files)
    refused = [refusal for one in found for refusal in one.refused]
    return Opening(Loading(tuple(files), cache=usual(), jobs=jobs, looks_ahead=True), refused=refused)


def begin(places: tuple[Path, ...], **given: Any) -> None:
    """The start screen, and whatever was picked on it."""
    line = app.start(options=_options(**given), launcher=Bundled(), open_reel=Gallery, open_path=opened, places=places)
    if line:
        click.echo(line)


def compare(found: Changes, **given: Any) -> None:
    """Two runs side by side."""
    app.compare(found, options=_options(**given))


def _options(
    *, is_ascii: bool = False, no_mouse: bool = False, theme: str = "auto", colours: str | None = None, fps: float = 4.0
) -> app.Options:
    found = look(
        os.environ,
        encoding=sys.stdout.encoding or "ascii",
        is_ascii=True if is_ascii else None,
        colours=colours,
        theme=theme,
    )
    return app.Options(look=found, has_mouse=not no_mouse, fps=fps)
