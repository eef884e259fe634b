"""Which devices a script trains on. Each framework is imported only by the functions that serve it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from faults import faults
from options import OptionError, Options

if TYPE_CHECKING:
    import jax
    import torch


def torchrun_ranks() -> tuple[int, int, int]:
    """This process's rank over all machines, its rank on this machine, and the number of ranks, from torchrun."""
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    if any(name not in os.environ for name in names):
        raise OptionError(
            "This script is one of several ranks, and nothing has started the others.",
            "Start it with: torchrun --standalone --nproc_per_node 2 SCRIPT",
        )
    rank, local_rank, ranks = (int(os.environ[name]) for name in names)
    return rank, local_rank, ranks


def torch_device(options: Options, local_rank: int | None = None) -> torch.device:
    """The device of one rank of this machine; without a rank, of a process that trains alone."""
    import torch

    neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if local_rank is None:
        _check_alone(neighbours)
    gpus = torch.cuda.device_count()
    if options.device == "cpu" or (options.device == "auto" and not gpus):
        _share_cores(neighbours)
        return torch.device("cpu")
    _check_present(neighbours, gpus, "CUDA devices")
    device = torch.device("cuda", local_rank or 0)
    torch.cuda.set_device(device)
    torch.set_float32_matmul_precision("high")
    return device


def several_gpus(options: Options) -> int:
    """How many GPUs this process sees, for a script that drives all of them; it cannot do without."""
    import torch

    gpus: int = torch.cuda.device_count()
    if options.device == "cpu" or gpus < 2:
        found = "--device cpu leaves it none" if options.device == "cpu" else f"this machine has {gpus or 'none'}"
        raise OptionError(
            f"DataParallel drives two GPUs or more from one process; {found}.",
            "Use ddp (torch_ddp.py), which trains on one GPU or CPU rank per process.",
        )
    return gpus


def jax_devices(options: Options) -> list[jax.Device]:
    """The first ``options.devices`` devices; on CPU, as many virtual ones. Call before anything else starts JAX.

    Of several processes, which ``JAX_COORDINATOR_ADDRESS``, ``JAX_NUM_PROCESSES`` and ``JAX_PROCESS_ID`` bring
    together, each brings the same number, and all get all of them, process by process.
    """
    import jax

    if options.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    processes = _met(options)
    each = options.devices // processes
    jax.config.update("jax_num_cpu_devices", each)
    devices: list[jax.Device] = jax.devices()
    if processes > 1:
        ours = [[device for device in devices if device.process_index == number] for number in range(processes)]
        _check_present(each, min(map(len, ours)), f"{devices[0].platform.upper()} devices in each process")
        devices = [device for own in ours for device in own[:each]]
    if options.device in ("cuda", "gpu") and devices[0].platform != "gpu":
        raise OptionError(
            "JAX sees no GPU.", 'Install its CUDA wheels (pip install "jax[cuda12]"), or use --device cpu.'
        )
    _check_present(options.devices, len(devices), f"{devices[0].platform.upper()} devices")
    return devices[: options.devices]


def _met(options: Options) -> int:
    """The number of processes, once all of them have found each other; 1 for one that is alone."""
    import jax

    address = os.environ.get("JAX_COORDINATOR_ADDRESS", "")
    if not address:
        return 1
    count, number = (os.environ.get(name, "") for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"))
    if not (count.isdecimal() and number.isdecimal() and int(number) < int(count)):
        raise OptionError(
            "JAX_COORDINATOR_ADDRESS is set; JAX_NUM_PROCESSES and JAX_PROCESS_ID are not the numbers they should be.",
            "Set all three in every process, or none of them.",
        )
    if options.devices % int(count):
        raise OptionError(
            f"{options.devices} devices do not divide among {count} processes.",
            f"--devices counts those of all processes together: use a multiple of {count}.",
        )
    jax.distributed.initialize(address, int(count), int(number))
    return int(count)


def own_rows(devices: list[jax.Device]) -> list[int]:
    """Which of the devices are this process's, by their places."""
    import jax

    return [place for place, device in enumerate(devices) if device.process_index == jax.process_index()]


def laid_out(tree: Any, sharding: jax.sharding.Sharding) -> Any:
    """Arrays that every process has whole, each device's part on it.

    ``jax.device_put`` does the same, and where there are several processes it has them compare all values first.
    """
    import jax

    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    return jax.tree.map(lambda leaf: _placed(leaf, sharding), tree)


def _placed(leaf: Any, sharding: jax.sharding.Sharding) -> jax.Array:
    import jax
    import numpy as np

    is_key = isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    whole = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
    placed = jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])
    return jax.random.wrap_key_data(placed) if is_key else placed


def jax_device(options: Options) -> jax.Device:
    """The device of a script that trains on one."""
    _check_alone(options.devices)
    return jax_devices(options)[0]


def jax_compiler_options(options: Options) -> dict[str, str]:
    """What XLA must be told beside the program: which of its passes to leave out.

    For ``--checkpoint-activations`` on CPU it drops the barriers around what is to be computed again before it merges
    equal computations, and merges these with those of the forward pass: everything is computed once and kept. Without
    that pass the barriers stay. The fault ``small-buckets`` leaves out what combines small collectives into large ones.
    """
    import jax

    left_out = []
    if options.checkpoint_activations and jax.default_backend() == "cpu":
        left_out.append("cse_barrier_expander")
    if "small-buckets" in faults(options.inject):
        kinds = ("all-reduce", "all-gather", "reduce-scatter")
        left_out += [f"{backend}{kind}-combiner" for kind in kinds for backend in ("", "cpu-", "gpu-")]
    return {"xla_disable_hlo_passes": ",".join(left_out)} if left_out else {}


def _check_alone(asked: int) -> None:
    if asked != 1:
        raise OptionError(
            f"This script trains on one device, not on {asked}.", "Ask for one, or pick a parallel script."
        )


def _check_present(asked: int, present: int, what: str) -> None:
    if asked > present:
        raise OptionError(
            f"{asked} ranks need {asked} {what}; this machine has {present}.",
            f"Ask for {present} at most, or use --device cpu." if present else "Use --device cpu.",
        )


def _share_cores(neighbours: int) -> None:
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // neighbours))
