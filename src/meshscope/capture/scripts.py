"""Workload scripts seen from outside: which strategies there are, their options, and how one is started."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from meshscope import discovery
from meshscope.capture.request import Request
from meshscope.discovery import Workload
from meshscope.errors import InputError

BASELINES = "single"
ALL = "all"
_GONE = {"xmap": "JAX has removed xmap. shard-map is what became of it: the same, over a mesh and within jax.jit."}


class OptionsModule(Protocol):
    """What capture uses of a folder's ``options.py`` (standard library only, so it is safe to import here)."""

    PRESETS: dict[str, Any]
    OptionError: type[Exception]

    def parse(self, argv: Sequence[str] | None) -> Any: ...
    def check(self, options: Any, ranks: int) -> None: ...
    def arguments(self, options: Any) -> list[str]: ...
    def parameter_count(self, options: Any) -> int: ...
    def about(self, options: Any) -> str: ...


def folder(request: Request) -> Path:
    return Path(request.workloads).resolve() if request.workloads else discovery.bundled("workloads")


def workloads(request: Request) -> dict[str, Workload]:
    """By strategy name, in the order they are shown."""
    return {workload.strategy: workload for workload in discovery.workloads(folder(request))}


def chosen(request: Request, known: dict[str, Workload]) -> tuple[Workload, ...]:
    """The workloads a request names, each once, in its order. InputError with a near name for an unknown one."""
    names: list[str] = []
    for name in request.strategies:
        if name == BASELINES:
            names += [w.strategy for w in known.values() if w.is_baseline]
        elif name == ALL:
            names += known
        elif name in known:
            names.append(name)
        else:
            hint = _GONE.get(name.lower()) or _nearest(name, (*known, BASELINES, ALL))
            raise InputError(f"There is no strategy {name!r}.", hint=hint)
    if not names:
        raise InputError("No strategy was asked for.", hint=f"Name some of: {', '.join((*known, BASELINES, ALL))}.")
    return tuple(known[name] for name in dict.fromkeys(names))


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    meant = f"Did you mean {close[0]}? " if close else ""
    return f"{meant}There are: {', '.join(known)}."


@functools.cache
def options_module(scripts: Path) -> OptionsModule:
    """``options.py`` of a folder of scripts, under a name of its own: it is on no import path here."""
    path = scripts / "options.py"
    name = f"_meshscope_options_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{scripts} has no options.py.", hint="Workload scripts need the options.py beside them.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _beside(scripts):
        spec.loader.exec_module(module)
    return cast("OptionsModule", module)


@contextmanager
def _beside(scripts: Path) -> Iterator[None]:
    """Modules of the folder can be imported here; afterwards their plain names are free again."""
    before = dict(sys.modules)
    sys.path.insert(0, str(scripts))
    try:
        yield
    finally:
        sys.path.remove(str(scripts))
        for name in sys.modules.keys() - before.keys():
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == scripts:
                del sys.modules[name]


def resolved(request: Request, workload: Workload, ranks: int) -> Any:
    """The workload's Options for this request. InputError says what cannot be trained on ``ranks`` ranks."""
    module = options_module(workload.script.parent)
    try:
        options = module.parse([*workload.arguments, *request.flags()])
        if workload.launch == "process":
            options = dataclasses.replace(options, devices=ranks)
        if hasattr(module, "settled"):
            options = module.settled(options, ranks)
        module.check(options, ranks)
        if hasattr(module, "check_strategy"):
            module.check_strategy(options, workload.strategy, ranks)
        if hasattr(module, "check_faults"):
            module.check_faults(options, workload.strategy, ranks)
    except module.OptionError as error:
        raise InputError(f"{workload.strategy}: {error.args[0]}", hint=getattr(error, "hint", "")) from error
    return options


def check_kind(workload: Workload, options: Any, kind: str) -> None:
    """InputError for what the workload, or an option of it, cannot do on one kind of device."""
    if workload.needs_gpu and kind == "cpu":
        raise InputError(
            f"{workload.strategy} runs on GPUs only, and this run is on the CPU.",
            hint="Leave it out, or use ddp, which trains on CPU ranks as well.",
        )
    module = options_module(workload.script.parent)
    if hasattr(module, "check_kind"):
        try:
            module.check_kind(options, kind)
        except module.OptionError as error:
            raise InputError(f"{workload.strategy}: {error.args[0]}", hint=getattr(error, "hint", "")) from error


def arguments(workload: Workload, options: Any) -> list[str]:
    return options_module(workload.script.parent).arguments(options)


def faults(workload: Workload, options: Any) -> list[str]:
    """What faults the options put into the run, each in a few words; a folder's options need not know any."""
    module = options_module(workload.script.parent)
    return list(module.fault_words(options)) if hasattr(module, "fault_words") else []


def fault_effects(workload: Workload, options: Any, ranks: int) -> list[str]:
    """What each of them does, as a clause."""
    module = options_module(workload.script.parent)
    return list(module.fault_effects(options, ranks)) if hasattr(module, "fault_effects") else []


def notes(workload: Workload, options: Any) -> list[str]:
    """What the options change about the strategy, as clauses."""
    module = options_module(workload.script.parent)
    return list(module.notes(options, workload.strategy)) if hasattr(module, "notes") else []


def parameter_count(workload: Workload, options: Any) -> int:
    return options_module(workload.script.parent).parameter_count(options)


def sequence_length(workload: Workload, options: Any) -> int:
    """Tokens of a sample; 0 where samples are no sequences."""
    module = options_module(workload.script.parent)
    length = module.sequence_length(options) if hasattr(module, "sequence_length") else getattr(options, "seq", 0)
    return int(length)


def flop_per_sample(workload: Workload, options: Any) -> tuple[float, str]:
    """What training on a sample computes and how that is counted; (0, "") where the folder's options do not tell."""
    module = options_module(workload.script.parent)
    return module.flop_per_sample(options) if hasattr(module, "flop_per_sample") else (0, "")
