"""The steps of a script whose optimizer is inside a DeepSpeed engine.

Under ZeRO the engine's own optimizer calls the script's once per parameter group, so that of it says how many groups
there are and not how many updates. The engine counts its updates in ``global_steps``, in the method that is followed
here; it is called on the last micro-batch of each update only, and by pipeline engines too (deepspeed/runtime/engine.py
and pipe/engine.py).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

_MODULE, _ENGINE, _UPDATE = "deepspeed.runtime.engine", "DeepSpeedEngine", "_take_model_step"


def follow(updates: Callable[[], None], updated: Callable[[], None]) -> bool:
    """Call ``updates`` before and ``updated`` after each update of an engine, once the script has loaded DeepSpeed.

    False, and nothing changes, where its engine is not as known.
    """
    engine = getattr(sys.modules.get(_MODULE), _ENGINE, None)
    inner = getattr(engine, _UPDATE, None)
    if engine is None or inner is None:
        return False

    @functools.wraps(inner)
    def update(this: Any, *arguments: Any, **named: Any) -> Any:
        updates()
        result = inner(this, *arguments, **named)
        updated()
        return result

    setattr(engine, _UPDATE, update)
    return True
