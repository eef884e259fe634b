"""The user's configuration file: TOML, found once at the start of a command, in force from then on.

``--config FILE`` names it, else ``MESHSCOPE_CONFIG``, else it is ``meshscope/config.toml`` in the user's folder for
configuration. It extends the rules that tell kernels apart::

    [[kernels]]
    pattern = "my_ring_.*kernel"    # a regular expression, found anywhere in the name, in any case
    kind = "collective"             # collective, compute, copy, or other (shown, never counted)
    collective = "all_reduce"       # only for collectives: which one
    name = "our ring"               # how an answer cites the rule

The first rule that finds a name decides, and the user's come before all others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshscope.errors import InputError
from meshscope.patterns import reach

VARIABLE = "MESHSCOPE_CONFIG"
KINDS = ("collective", "compute", "copy", "other")
COLLECTIVES = (
    "all_reduce", "all_gather", "all_to_all", "reduce_scatter", "broadcast", "reduce", "gather", "scatter",
    "send_recv", "send", "recv", "permute", "barrier",
)  # fmt: skip
MOST_RULES = 200
_LARGEST_BYTES = 1 << 20
_KEYS = ("pattern", "kind", "collective", "name")


@dataclass(frozen=True)
class KernelRule:
    """Names that ``pattern`` finds are of ``kind`` (one of KINDS); ``collective`` is "" where the name tells it."""

    pattern: str
    kind: str
    collective: str
    name: str


@dataclass(frozen=True)
class Settings:
    """What the file says. ``source`` is its path, "" where there is none."""

    kernels: tuple[KernelRule, ...] = ()
    source: str = ""


_current = Settings()


def use(settings: Settings) -> None:
    """Puts settings in force in this process; a worker process is given its parent's :func:`current`."""
    global _current  # noqa: PLW0603  # one process answers one command
    _current = settings


def current() -> Settings:
    """The settings in force."""
    return _current


def settings(file: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """What the user's file says; nothing where there is none.

    Raises InputError when a file that was asked for is missing, or any that is there cannot be used.
    """
    asked = file or (Path(environ[VARIABLE]) if environ.get(VARIABLE) else None)
    path = asked or _default(environ)
    try:
        content = _content(path)
    except FileNotFoundError:
        if asked is None:
            return Settings()
        raise InputError(
            f"The configuration file {path} does not exist.", hint=f"Check --config and {VARIABLE}."
        ) from None
    except OSError as error:
        raise InputError(
            f"The configuration file {path} cannot be read: {error.strerror or error}.",
            hint="Check its permissions, or name another with --config.",
        ) from error
    return _settings(path, _parsed(path, content))


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's folder for configuration, ours in it: ``XDG_CONFIG_HOME``, else ``~/.config``."""
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return Path(base) / "meshscope"


def _default(environ: Mapping[str, str]) -> Path:
    return folder(environ) / "config.toml"


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # a pipe or a device would never end
        raise OSError(0, "it is no regular file")
    with path.open("rb") as file:
        return file.read(_LARGEST_BYTES + 1)


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    import tomllib

    if len(content) > _LARGEST_BYTES:
        raise InputError(f"The configuration file {path} is larger than 1 MiB.", hint="Name another with --config.")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no TOML: {error}.", hint="Mend the file; strings stand in quotes.") from error


def _settings(path: Path, found: dict[str, Any]) -> Settings:
    if unknown := sorted(set(found) - {"kernels"}):
        raise InputError(
            f"{path}: nothing is called {unknown[0]!r} here.", hint="The file holds [[kernels]] tables, and no others."
        )
    kernels = found.get("kernels", [])
    if not isinstance(kernels, list) or not all(isinstance(rule, dict) for rule in kernels):
        raise InputError(f"{path}: kernels is no list of tables.", hint="Write [[kernels]], with two brackets.")
    if len(kernels) > MOST_RULES:
        raise InputError(f"{path} has {len(kernels)} rules.", hint=f"At most {MOST_RULES} are read; join some with |.")
    return Settings(tuple(_rule(f"{path}: rule {at}", rule) for at, rule in enumerate(kernels, 1)), str(path))


def _rule(where: str, found: dict[str, Any]) -> KernelRule:
    for key, value in found.items():
        if key not in _KEYS:
            raise InputError(f"{where} has a key {key!r}.", hint=f"A rule has {', '.join(_KEYS)}.")
        if not isinstance(value, str):
            raise InputError(f"{where}: {key} is no text.", hint=f'Put it in quotes: {key} = "…"')
    if not found.get("pattern"):
        raise InputError(f"{where} has no pattern.", hint='Add: pattern = "part of the kernel\'s name"')
    kind, collective = found.get("kind", ""), found.get("collective", "")
    _one_of(where, "kind", kind, KINDS)
    if collective:
        _one_of(where, "collective", collective, COLLECTIVES)
        if kind != "collective":
            raise InputError(f"{where} names a collective and is of kind {kind}.", hint='Write: kind = "collective"')
    try:
        reach(found["pattern"])
    except InputError as error:
        raise InputError(f"{where}: {error.message}", hint=error.hint) from error
    return KernelRule(found["pattern"], kind, collective, found.get("name") or f"your rule {found['pattern']}")


def _one_of(where: str, key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        said = f"no {key} is called {value!r}" if value else f"it has no {key}"
        raise InputError(f"{where}: {said}.", hint=f"One of: {', '.join(allowed)}.")
