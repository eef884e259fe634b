"""A process group of any size of which this process is a rank and the others are nobody."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed import device_mesh
from torch.distributed.pipelining import schedules
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import LocalLRUCache, ShardingPropagator
from torch.testing._internal.distributed.fake_pg import FakeStore

from meshscope.advisor.workers.fake_ddp import FakeDdp
from meshscope.advisor.workers.scripted import Asked, UntoldError

T = TypeVar("T")

_OF_MESHES = ("__init__", "__getitem__", "_flatten", "_unflatten")
_OF_RULES = ("_propagate_tensor_meta", "_propagate_tensor_meta_non_cached")


def join(asked: Asked) -> None:
    """Who this process is, in the environment and for torch; scripts that are imported later find it settled."""
    os.environ |= {
        "RANK": str(asked.rank),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(asked.ranks),
        "LOCAL_WORLD_SIZE": "1",
        "OMP_NUM_THREADS": "1",
    }
    dist.init_process_group("fake", rank=asked.rank, world_size=asked.ranks, store=FakeStore())
    dist.init_process_group = lambda *_, **__: None
    torch.nn.parallel.DistributedDataParallel = FakeDdp
    _keep_meshes_real()
    _keep_sharding_rules_apart()
    _spare_stages_their_vote()


def _keep_meshes_real() -> None:
    """A mesh is a tensor of ranks, whose numbers it looks at."""
    device_mesh.init_device_mesh = _in_earnest(device_mesh.init_device_mesh)
    mesh = device_mesh.DeviceMesh
    for name in _OF_MESHES:
        if hasattr(mesh, name):
            setattr(mesh, name, _in_earnest(getattr(mesh, name)))
    if hasattr(mesh, "_concatenate"):
        mesh._concatenate = staticmethod(_in_earnest(mesh._concatenate))


def _in_earnest(function: Callable[..., T]) -> Callable[..., T]:
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> T:
        with unset_fake_temporarily():
            return function(*args, **kwargs)

    return called


def _keep_sharding_rules_apart() -> None:
    """How a DTensor's operation is split is tried out on fake tensors of the whole size: in a mode of its own, so that
    none of it counts, and once for alike operations, as in a real run."""
    for name in _OF_RULES:
        if hasattr(ShardingPropagator, name):
            setattr(ShardingPropagator, name, _in_earnest(getattr(ShardingPropagator, name)))
    known = getattr(DTensor._op_dispatcher.sharding_propagator, "propagate_op_sharding", None)
    if isinstance(known, LocalLRUCache):
        ShardingPropagator.propagate_op_sharding_non_cached = lambda _, schema: known(schema)


def _spare_stages_their_vote() -> None:
    """Stages of a pipeline ask one another whether all of them know their shapes; here nobody would answer."""

    def agreed(_: Any, stages: list[Any], has_backward: bool, *__: Any) -> None:  # noqa: FBT001  # torch's signature
        for stage in stages:
            if schedules.InferenceMode.needs_dynamic(stage._user_meta, has_backward):
                raise UntoldError("stages of a pipeline that are not told their shapes ask one another for them")
            stage._inference_mode = schedules.InferenceMode.STATIC

    if hasattr(schedules, "InferenceMode"):
        schedules._PipelineSchedule._warmup_p2p = agreed
