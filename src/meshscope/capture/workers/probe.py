"""``python -m meshscope.capture.workers.probe FRAMEWORK``: one JSON line that says what the framework can use."""

from __future__ import annotations

import json
import sys
from typing import Any


def torch_devices() -> dict[str, Any]:
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = [torch.cuda.get_device_name(i) for i in range(count)]
    return {"version": torch.__version__, "platform": "gpu" if count else "cpu", "names": names}


def jax_devices() -> dict[str, Any]:
    import jax

    platform = jax.default_backend()
    names = [device.device_kind for device in jax.devices()] if platform != "cpu" else []
    return {"version": jax.__version__, "platform": platform, "names": names}


def main() -> int:
    """A package that is there and does not import is told as ``error``, in one line."""
    probes = {"torch": torch_devices, "jax": jax_devices}
    try:
        found = probes[sys.argv[1]]()
    except (ImportError, OSError, RuntimeError) as error:
        found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
