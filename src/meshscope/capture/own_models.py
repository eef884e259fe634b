"""A model of the user's own, asked what it is by a short process before anything starts."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from meshscope.capture import scripts
from meshscope.capture.frameworks import PATIENCE_S
from meshscope.capture.probing import told
from meshscope.discovery import Workload
from meshscope.errors import InputError

SCRIPT = "own_facts.py"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """``parameters`` of the model; ``flop_per_sample`` (0: unknown) and ``how`` it was counted, or ``why`` not."""

    parameters: int = 0
    flop_per_sample: float = 0.0
    how: str = ""
    why: str = ""
    error: str = ""
    hint: str = ""


def is_own(model: str) -> bool:
    """Whether a model's name is that of a factory, ``package.module:factory``."""
    return ":" in model


def facts(workload: Workload, flags: list[str], ranks: int) -> Facts:
    """Of the model that ``flags`` name, under this workload's framework; nothing where its folder has no way to ask.

    Raises InputError with the factory's own file and line where it is not one to train.
    """
    script = workload.script.parent / SCRIPT
    if not script.is_file():
        return Facts(why=f"{script.parent} has no {SCRIPT}")
    found = _asked(script, workload.framework, tuple(flags), ranks)
    if found.error:
        raise InputError(f"{workload.strategy}: {found.error}", hint=found.hint)
    return found


@functools.cache  # strategies of one framework share the answer
def _asked(script: Path, framework: str, flags: tuple[str, ...], ranks: int) -> Facts:
    line = [sys.executable, str(script), framework, str(ranks), *flags]
    quiet = os.environ | {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
    try:
        found = told(line, quiet, Facts, patience_s=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return Facts(why=f"its factory took more than {PATIENCE_S:.0f} s")
    return Facts(why=found) if isinstance(found, str) else found


def asked(workload: Workload, model: str, options: object, ranks: int) -> Facts:
    """:func:`facts` of a model of the user's own; of any other what its options tell."""
    if is_own(model):
        return facts(workload, scripts.arguments(workload, options), ranks)
    flop, how = scripts.flop_per_sample(workload, options)
    return Facts(parameters=scripts.parameter_count(workload, options), flop_per_sample=flop, how=how)
