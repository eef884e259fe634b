"""The options of the toy workloads: as small as capture's contract with an options module allows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields


class OptionError(Exception):
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True)
class Options:
    """``fault`` is ``KIND:RANK:STEP``: raise, hang, exit or die, on that rank at that step; "" for none."""

    model: str = "tiny"
    width: int = 64
    seq: int = 8
    batch: int = 8
    steps: int = 10
    pace_ms: int = 20
    devices: int = 1
    device: str = "auto"
    fault: str = ""


PRESETS = {"tiny": Options()}


def parse(argv: Sequence[str] | None = None) -> Options:
    parser = argparse.ArgumentParser()
    for field in fields(Options):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default)
    return Options(**vars(parser.parse_args(argv)))


def arguments(options: Options) -> list[str]:
    given = [field for field in fields(Options) if getattr(options, field.name) != field.default]
    return [part for f in given for part in ("--" + f.name.replace("_", "-"), str(getattr(options, f.name)))]


def check(options: Options, ranks: int) -> None:
    if options.model not in PRESETS:
        raise OptionError(f"There is no model {options.model!r}.", "The presets are tiny.")
    if options.batch % ranks:
        raise OptionError(f"A batch of {options.batch} does not divide into {ranks} ranks.", f"Use {ranks}.")


def parameter_count(options: Options) -> int:
    return options.width * options.width


def fail_as_asked(options: Options, rank: int, step: int) -> None:
    import os
    import signal
    import time

    kind, _, place = options.fault.partition(":")
    if not kind or place != f"{rank}:{step}":
        return
    if kind == "raise":
        raise ValueError(f"the toy breaks on rank {rank} at step {step}")
    if kind == "hang":
        time.sleep(3600)
    if kind == "exit":
        os._exit(7)
    if kind == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
