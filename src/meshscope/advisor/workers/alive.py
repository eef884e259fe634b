"""Which storages are alive, and when most of them are: counted as torch makes and frees them, to the byte."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any

import torch
import torch.distributed._tools.fake_collectives  # gives collectives a form for fake tensors
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

Key = int
"""A storage while it lives: the address of what C++ knows it by. A fake storage has no data to have an address."""

_WAIT = torch.ops._c10d_functional.wait_tensor.default
_BINCOUNT = torch.ops.aten.bincount.default


def storages(value: Any) -> list[torch.UntypedStorage]:
    """Under every tensor in a value; of a wrapper, such as a DTensor, under what it holds on this rank."""
    return [storage for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor) for storage in _under(leaf)]


def keyed(tensors: Iterable[torch.Tensor | None]) -> dict[Key, int]:
    """Key → bytes of every storage under the tensors."""
    return {storage._cdata: storage.nbytes() for tensor in tensors for storage in storages(tensor)}


def _under(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    if is_traceable_wrapper_subclass(tensor):
        inner = (getattr(tensor, name) for name in tensor.__tensor_flatten__()[0])
        return [storage for one in inner if isinstance(one, torch.Tensor) for storage in _under(one)]
    return [tensor.untyped_storage()]


class Alive(TorchDispatchMode):
    """``alive_bytes`` now, and the most since the last :meth:`begin`, reached with operation ``peak_operation``.

    ``sent`` counts collectives by kind, bytes (the larger of what goes in and comes out) and the group's size.
    ``communicated`` are keys of storages that a collective has read or written. At operation number ``look_at`` it
    calls ``look``. With ``is_fused`` no peak is looked for within an update: a GPU's fused optimizer needs nothing
    beside what it updates. Operations that sharding rules try out in a fake mode of their own are not counted.
    """

    def __init__(self, ranks: int, *, is_fused: bool) -> None:
        super().__init__()
        self._is_fused = is_fused
        self.alive_bytes = self.peak_bytes = self.operation = self.peak_operation = 0
        self.peak_in = ""
        self.sent: Counter[tuple[str, int, int]] = Counter()
        self.communicated: set[Key] = set()
        self.sizes: dict[Key, int] = {}
        self.in_update = False
        self._ranks = ranks
        self._references: dict[Key, weakref.ref[torch.UntypedStorage]] = {}
        self._look_at, self._look = -1, _nothing
        self._own_mode: Any = None

    def __enter__(self) -> Alive:
        self._own_mode = _fake_mode()
        self._watch_resizes()
        super().__enter__()
        return self

    def begin(self, look_at: int = -1, look: Callable[[], None] = lambda: None) -> None:
        """A step: peaks and operations count from here."""
        self.peak_bytes, self.operation, self.peak_operation, self.peak_in = self.alive_bytes, 0, 0, "between steps"
        self.sent.clear()
        self._look_at, self._look = look_at, look

    def hold(self, value: Any) -> None:
        """Counts what is under a value from now on; what torch itself makes is seen without being told."""
        for storage in storages(value):
            self._note(storage)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind is DTensor for kind in types):
            return NotImplemented  # a DTensor's operations come again as those on this rank's part
        result = self._done(function, args, kwargs or {})
        if _fake_mode() is self._own_mode:
            self._count(function, args, result)
        return result

    def _done(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function is _WAIT:
            return args[0]  # its form for fake tensors makes a copy, which the real one does not
        if function is _BINCOUNT and (least := _least(args, kwargs)):
            # How long the result is depends on values; with a least length that is taken to be it.
            return args[0].new_empty(least, dtype=torch.long)
        return function(*args, **kwargs)

    def _count(self, function: Any, args: Any, result: Any) -> None:
        self.operation += 1
        for storage in storages(result):
            self._note(storage)
        if function.namespace in ("c10d", "_c10d_functional") and function is not _WAIT:
            self._note_collective(function, args, result)
        if self.alive_bytes > self.peak_bytes and not (self.in_update and self._is_fused):
            self.peak_bytes, self.peak_operation = self.alive_bytes, self.operation
            self.peak_in = self._where()
        if self.operation == self._look_at:
            self._look()

    def _where(self) -> str:
        if self.in_update:
            return "update"
        return "backward" if torch._C._current_graph_task_id() != -1 else "forward"

    def _note(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key not in self.sizes:
            self._references[key] = weakref.ref(storage, partial(self._gone, key))
        self.alive_bytes += size - self.sizes.get(key, 0)
        self.sizes[key] = size

    def _gone(self, key: Key, _: Any) -> None:
        self.alive_bytes -= self.sizes.pop(key, 0)
        self._references.pop(key, None)
        self.communicated.discard(key)

    def _note_collective(self, function: Any, args: Any, result: Any) -> None:
        there, back = (keyed(tree_leaves(value)) for value in ((args), (result)))
        self.communicated |= there.keys() | back.keys()
        sizes = [_size(tree_leaves(value)) for value in (args[:1], args[1:2], result)]
        if size := max(sizes):
            self.sent[_kind(function), size, _group_size(args, self._ranks)] += 1

    def _watch_resizes(self) -> None:
        """FSDP frees and takes gathered parameters by resizing storages, which is no operation of torch's."""
        resize = torch.UntypedStorage.resize_

        @wraps(resize)
        def resized(storage: torch.UntypedStorage, size: int) -> Any:
            found = resize(storage, size)
            if storage._cdata in self.sizes:
                self._note(storage)
            return found

        torch.UntypedStorage.resize_ = resized


def _nothing() -> None:
    return None


def _fake_mode() -> Any:
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)


def _least(args: Any, kwargs: Any) -> int:
    return int(kwargs.get("minlength", args[2] if len(args) > 2 else 0))


def _size(values: list[Any]) -> int:
    return sum(value.numel() * value.element_size() for value in values if isinstance(value, torch.Tensor))


_KINDS = {
    "allreduce": "all_reduce", "all_reduce": "all_reduce", "allgather": "all_gather", "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all", "all_to_all": "all_to_all",
    "broadcast": "broadcast", "send": "send", "recv": "recv", "scatter": "scatter", "gather": "gather",
    "reduce": "reduce", "barrier": "barrier",
}  # fmt: skip


def _kind(function: Any) -> str:
    name = function.name().partition("::")[2].strip("_")
    return next((kind for start, kind in _KINDS.items() if name.startswith(start)), name)


def _group_size(args: Any, ranks: int) -> int:
    """Functional collectives name their group, the others hand it over as an object of C++'s."""
    import torch.distributed as dist

    for value in args:
        if isinstance(value, str) and value not in ("sum", "avg", "max", "min"):
            return int(torch._C._distributed_c10d._resolve_process_group(value).size())
        if isinstance(value, torch.ScriptObject):
            try:
                return int(dist.ProcessGroup.unbox(value).size())
            except (RuntimeError, TypeError):
                continue
    return ranks
