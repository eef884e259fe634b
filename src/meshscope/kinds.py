"""What a span is, told by its name: tables of patterns, the first that matches wins and can be named.

A kernel is classified by what it is, never by the stream it is on: communication libraries put their kernels on
any stream, and XLA puts all-gathers on the compute stream. A recorded collective name beats every pattern,
because generic kernels (``ncclDevKernel_Generic``) only hint at what they carry.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt


class Kind(IntEnum):
    """What a span is. ``OTHER`` is kept for display and never counted as device work."""

    OTHER = 0
    COMPUTE = 1
    COLLECTIVE = 2
    COPY = 3
    WAIT = 4
    LAUNCH = 5
    HOST = 6
    STEP = 7


@dataclass(frozen=True)
class Rule:
    """Names that ``pattern`` finds (case-insensitive) are of ``kind``; ``name`` is how an answer cites the rule."""

    name: str
    pattern: str
    kind: Kind

    def finds(self, text: str) -> bool:
        return _compiled(self.pattern).search(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


RECORDED = "Collective name"
"""The rule cited for a kernel whose trace says which collective it is."""

ANY = Rule("everything else", "", Kind.COMPUTE)

_CUSTOM_ALL_REDUCE = (
    r"cross_device_reduce|(one|two)_shot_all_reduce|multimem_all_reduce|allreduce_fusion|quickreduce"
    r"|all_?reduce_kernel|all_gather_kernel|reduce_scatter_kernel"
)

KERNELS = (
    Rule("NCCL or RCCL kernel", r"nccl|rccl", Kind.COLLECTIVE),
    Rule("oneCCL, HCCL or MSCCL kernel", r"oneccl|ccl_kernel|hccl|msccl", Kind.COLLECTIVE),
    Rule("NVSHMEM kernel", r"nvshmem", Kind.COLLECTIVE),
    Rule("DeepEP kernel", r"deep_?ep|ep::(internode|intranode)", Kind.COLLECTIVE),
    Rule("symmetric-memory or custom all-reduce kernel", _CUSTOM_ALL_REDUCE, Kind.COLLECTIVE),
    ANY,
)
"""Kernels of a torch GPU trace; copies have categories of their own there."""

XLA_KERNELS = (
    *KERNELS[:-1],
    Rule("copy kernel", r"memcpy|memset|copybuffer|CopyDeviceTo", Kind.COPY),
    ANY,
)
"""Kernels of an XLA GPU trace, where copies are known by name alone."""

_HLO_COLLECTIVE = (
    r"^%?(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute"
    r"|collective-broadcast|send|recv)(-start|-done)?[.\d]*(\s|=|$)"
)

INSTRUCTIONS = (
    Rule("HLO collective instruction", _HLO_COLLECTIVE, Kind.COLLECTIVE),
    Rule("NCCL or RCCL kernel", r"nccl|rccl", Kind.COLLECTIVE),
    ANY,
)
"""HLO instructions, as TPU and CPU traces name their operations; copies are compute there."""

# ``c10d::barrier`` only enqueues one: the waiting comes after it and leaves no operator.
_WAIT = r"^(c10d|_c10d_functional\w*)::(\w*wait|monitored_barrier)|::wait_tensor$|^wait$"
_WRAPPER = r"^(autograd|torch|profiler|record_function|prim|static_runtime)::"

OPERATORS = (
    Rule("gloo span", r"^(gloo|mpi|ucc):(?!:)", Kind.COLLECTIVE),
    Rule("recorded wait", _WAIT, Kind.WAIT),
    Rule("collective enqueue", r"^(c10d|_c10d_functional\w*)::", Kind.LAUNCH),
    Rule("wrapper, not an operator", _WRAPPER, Kind.HOST),
    Rule("aten operator", r"^aten::", Kind.COMPUTE),
    Rule("custom operator", r"^[a-z_]\w*::\w", Kind.COMPUTE),
    Rule("everything else", "", Kind.HOST),
)
"""Operators of a torch CPU rank. ``autograd::`` and other wrappers are no compute: they block inside on waits."""

_COLLECTIVES = (
    ("reduce_scatter", r"reduce[-_]?scatter"),
    ("all_to_all", r"all[-_]?to[-_]?all|::(internode|intranode)|deep_?ep"),
    ("all_gather", r"all[-_]?gather"),
    ("all_reduce", r"all[-_]?reduce|cross_device_reduce|quickreduce"),
    ("broadcast", r"broadcast"),
    ("send_recv", r"send_?recv|batch_isend_irecv|coalesced_p2p"),
    ("permute", r"collective-permute"),
    ("barrier", r"barrier"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("reduce", r"reduce"),
    ("send", r"send"),
    ("recv", r"recv"),
)

UNNAMED = "unnamed"
"""The collective of a kernel that tells no more than that it communicates (``ncclDevKernel_Generic``)."""


@lru_cache(maxsize=16_384)
def collective(name: str) -> str:
    """The canonical collective (``all_reduce``, ``all_gather``, …) that a span's or an argument's name says."""
    # An HLO text goes on with operands and attributes that may name other operations.
    head = name.split("=", 1)[0]
    for canonical, pattern in _COLLECTIVES:
        if _compiled(pattern).search(head):
            return canonical
    return UNNAMED


@dataclass(frozen=True, eq=False)
class Classified:
    """For a table of n names: ``kind`` (n,) holds :class:`Kind`, ``rule`` (n,) indexes ``rules``."""

    kind: npt.NDArray[np.uint8]
    rule: npt.NDArray[np.int32]
    rules: tuple[Rule, ...]

    def why(self, row: int) -> str:
        """The rule that decided name number ``row``."""
        return self.rules[int(self.rule[row])].name


def classify(names: Sequence[str], rules: tuple[Rule, ...]) -> Classified:
    """Each name by the first rule that finds it. Every table ends with a rule that finds everything."""
    found = np.fromiter((_first(name, rules) for name in names), dtype=np.int32, count=len(names))
    kinds = np.array([rule.kind for rule in rules], dtype=np.uint8)
    return Classified(kind=kinds[found], rule=found, rules=rules)


def _first(name: str, rules: tuple[Rule, ...]) -> int:
    return next(number for number, rule in enumerate(rules) if rule.finds(name))


def rules_digest() -> str:
    """Tells one state of all rules from another: an answer is good for one."""
    tables = (KERNELS, XLA_KERNELS, INSTRUCTIONS, OPERATORS)
    said = [[(rule.name, rule.pattern, int(rule.kind)) for rule in table] for table in tables]
    return hashlib.sha256(repr((said, _COLLECTIVES)).encode()).hexdigest()
