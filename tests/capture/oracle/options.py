"""The options of the oracle: which case, and where its schedule is written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields


class OptionError(Exception):
    """Never raised: the oracle takes any numbers."""


@dataclass(frozen=True)
class Options:
    """``schedule`` is a path without its suffix ``-CASE.json``; lengths are those of the schedule itself."""

    model: str = "tiny"
    case: str = "overlapped"
    steps: int = 14
    batch: int = 2
    devices: int = 1
    compute_ms: int = 120
    launch_ms: int = 50
    collective_ms: int = 100
    period_ms: int = 500
    schedule: str = ""


PRESETS = {"tiny": Options()}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def parse(argv: Sequence[str] | None = None) -> Options:
    parser = argparse.ArgumentParser()
    for field in fields(Options):
        parser.add_argument(_flag(field.name), type=type(field.default), default=field.default)
    return Options(**vars(parser.parse_args(argv)))


def arguments(options: Options) -> list[str]:
    given = [field for field in fields(Options) if getattr(options, field.name) != field.default]
    return [part for field in given for part in (_flag(field.name), str(getattr(options, field.name)))]


def check(options: Options, ranks: int) -> None:
    """Anything goes."""


def parameter_count(options: Options) -> int:
    return 1
