"""Opening the screen from a command: how it looks here, and what it shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshscope.cli import nodes
from meshscope.cli.options import RUNS
from meshscope.readers.kept import usual
from meshscope.run import Gallery, Loading, Opening, trace_files
from meshscope.ui import app, remembered
from meshscope.ui.launching import Bundled
from meshscope.ui.look import look
from meshscope.ui.options import Options

if TYPE_CHECKING:
    from meshscope.analysis.pairing import Changes
    from meshscope.ui.advise.form import Form


def show_nodes(folders: Sequence[Path], **given: Any) -> None:
    """Watch the recordings of a run's nodes as one until the user leaves."""
    line = app.watch(folders[0], reel=nodes.reel(folders), options=_options(**given))
    if line:
        click.echo(line)


def show(folder: Path, **given: Any) -> Gallery:
    """Watch a folder until the user leaves, and print the line that stays in the shell."""
    gallery = Gallery(folder)
    line = app.watch(folder, reel=gallery, options=_options(**given))
    if line:
        click.echo(line)
    return gallery


def replay(folders: Sequence[Path], *, speed: float | None = None, **given: Any) -> None:
    """Play a recording from its beginning, or those of a run's nodes; as fast as it was where no speed is given."""
    options = _options(**given)
    click.echo(app.watch(folders[0], reel=nodes.reel(folders), options=options, speed=speed or 1.0))


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


def advise(form: Form, **given: Any) -> None:
    """Ask which way to train until the user leaves, and print the line that stays in the shell."""
    line = app.advise(form, options=_options(**given), places=RUNS)
    if line:
        click.echo(line)


def compare(found: Changes, **given: Any) -> None:
    """Two runs side by side."""
    app.compare(found, options=_options(**given))


def _options(
    *,
    is_ascii: bool | None = None,
    no_mouse: bool = False,
    theme: str | None = None,
    colours: str | None = None,
    fps: float | None = None,
) -> Options:
    """What is given comes before what is remembered, and that before what the environment tells."""
    memory = remembered.usual()
    kept = memory.remembered
    found = look(
        os.environ,
        encoding=sys.stdout.encoding or "ascii",
        # That blocks were chosen elsewhere does not make a font here have them.
        is_ascii=(kept.is_ascii or None) if is_ascii is None else is_ascii,
        colours=colours,
        theme=theme or kept.theme or "auto",
    )
    first = Options(look=found, has_mouse=not no_mouse, memory=memory)
    return replace(first, fps=fps or kept.fps or first.fps)
