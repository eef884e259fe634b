"""What can be started here, and starting it: the side of capture that the start screen sees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from meshscope.capture import frameworks, launch, machine, scripts
from meshscope.capture.request import Request
from meshscope.discovery import Workload, bundled, workloads
from meshscope.experiment import Plan

USUAL = ("ddp", "fsdp", "pmap", "pjit")


@dataclass(frozen=True)
class Offer:
    """A strategy that may be picked; ``why_not`` says why it cannot run here and what mends that, "" if it can.

    ``is_usual`` is picked from the start.
    """

    strategy: str
    title: str
    is_usual: bool = True
    why_not: str = ""


@dataclass(frozen=True)
class Model:
    """A preset and what it is in a few words."""

    name: str
    about: str


class Launcher(Protocol):
    """Plans and starts runs. Errors are MeshscopeErrors, raised before any process starts."""

    def offers(self) -> tuple[Offer, ...]: ...

    def models(self) -> tuple[Model, ...]: ...

    def plan(self, request: Request) -> Plan: ...

    def start(self, folder: Path, plan: Plan) -> int: ...


class Bundled:
    """The bundled workloads on this machine."""

    def offers(self) -> tuple[Offer, ...]:
        return tuple(_offer(workload) for workload in workloads())

    def models(self) -> tuple[Model, ...]:
        module = scripts.options_module(bundled("workloads"))
        return tuple(Model(name, f"{module.about(preset)}{_sizes(preset)}") for name, preset in module.PRESETS.items())

    def plan(self, request: Request) -> Plan:
        return launch.plan(request)

    def start(self, folder: Path, plan: Plan) -> int:
        return launch.start(folder, plan)


def _offer(workload: Workload) -> Offer:
    absent = frameworks.missing(workload.framework)
    why_not = f"needs {', '.join(absent)}: pip install 'meshscope[{workload.framework}]'" if absent else ""
    if not why_not and workload.needs_gpu and not machine.has_gpus():
        why_not = "needs GPUs, of which this machine has none"
    return Offer(workload.strategy, workload.title, workload.strategy in USUAL, why_not)


def _sizes(preset: object) -> str:
    words = (("batch", ", batch {}"), ("steps", ", {} steps"))
    known = ((phrase, getattr(preset, name, None)) for name, phrase in words)
    return "".join(phrase.format(value) for phrase, value in known if value is not None)
