"""What a span is, told by its name: tables of patterns, the first that matches wins and can be named.

A kernel is classified by what it is, never by the stream it is on: communication libraries put their kernels on
any stream, and XLA puts all-gathers on the compute stream. A recorded collective name beats every pattern,
because generic kernels (``ncclDevKernel_Generic``) only hint at what they carry. The user's own rules
(:mod:`meshscope.config`) come before all of these, for device kernels and for XLA's operations.
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

from meshscope import config
from meshscope.patterns import reach


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


def is_any(kind: npt.NDArray[np.uint8], kinds: Sequence[Kind]) -> npt.NDArray[np.bool_]:
    """Which rows of a column of kinds are of one of ``kinds``."""
    flags = np.zeros(256, dtype=np.bool_)
    flags[list(kinds)] = True
    return flags[kind]


@dataclass(frozen=True)
class Rule:
    """Names that ``pattern`` finds (case-insensitive) are of ``kind``; ``name`` is how an answer cites the rule.

    ``collective`` is the canonical collective of all of them, "" where each name tells its own. ``reach`` is how much
    of a name a user's pattern may look at, 0 for all of it. ``hints`` are pieces in lower case, one of which is in
    every name that the pattern finds: most names have none, and looking for them costs a hundredth of the pattern.
    """

    name: str
    pattern: str
    kind: Kind
    collective: str = ""
    reach: int = 0
    hints: tuple[str, ...] = ()

    def finds(self, text: str) -> bool:
        return self.is_hinted(text.lower()) and self.searches(text)

    def is_hinted(self, lowered: str) -> bool:
        return not self.hints or any(hint in lowered for hint in self.hints)

    def searches(self, text: str) -> bool:
        return _compiled(self.pattern).search(text[: self.reach] if self.reach else text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


RECORDED = "Collective name"
"""The rule cited for a kernel whose trace says which collective it is."""

ANNOTATION = "user annotation"
"""Cited for a host span that code named itself: ``record_function``, the profiler, DDP, FSDP, the optimizers."""

FRAME = "Python function"
"""Cited for a host span that is a call of a Python function or of an ``nn.Module``, from a trace with stacks."""

ANY = Rule("everything else", "", Kind.COMPUTE)

# A word begins here: after anything but a letter, or at a capital inside ``oneShotAllReduceKernel``.
_WORD = r"(?:(?<![a-z])|(?-i:(?<=[a-z])(?=[A-Z])))"

_INDUCTOR = r"^triton_(\w{2,4}_)?fused_"
_DEEP_EP = rf"{_WORD}deep_?ep(?![a-z])|{_WORD}deepep_?(dispatch|combine)|{_WORD}ep::(inter|intra)node"
# aiter's all-reduce is two kernels: one reduces and stores at its peers, the other loads what they stored, and norms.
_AITER = rf"{_WORD}aiter::all_?gather_|{_WORD}reduce_scatter_cross_device_store"
_AITER_LOAD = rf"{_WORD}local_device_load_rmsnorm"
_MORI = rf"{_WORD}mori::shmem::|{_WORD}shmembarrierall\w{{0,16}}kernel"
_EXPERTS = (
    rf"{_WORD}ep(dispatch|combine)\w{{0,80}}kernel|moe_?a2a|{_WORD}a2a_?(dispatch|combine)"
    r"|(inter|intra)node(_ll)?::(dispatch|combine)|moe_?(all_?to_?all|alltoall)|fused_?moe_?comm|(?<![a-z])pplx::"
    rf"|{_WORD}hybrid_ep::(dispatch|combine)\w{{0,16}}kernel"
)
_HCCL = r"(?<![a-z])(hccl|hcom_?(all|reduce|broadcast|send|receive|recv|batch|gather|scatter))"
_NAMED_KERNEL = rf"{_WORD}(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all_?v?)(_?(impl|aicpu|norm))?_?kernel"
_CUSTOM = (
    r"cross_device_(reduce|all_gather)|(one|two)_?shot_?all_?reduce|multimem_(one_shot_)?(all_?)?(reduce|gather)"
    rf"|lamport_?(style\w{{0,40}})?(all_?reduce|all_?gather|reduce_?scatter)|{_WORD}all_?reduce_?(fusion|prototype|lamport)"
    rf"|quick_?reduce|userbuffers|c10d::(symmetric_memory|intra_node_comm)::|multi_?gpu_?barrier_?kernel|{_NAMED_KERNEL}"
)

_NCCL = Rule("NCCL or RCCL kernel", r"(?<![a-z])[nr]ccl", Kind.COLLECTIVE, hints=("nccl", "rccl"))

KERNELS = (
    # Inductor calls a fused kernel after the operators around it, which may have been collectives.
    Rule("kernel that Inductor fused", _INDUCTOR, Kind.COMPUTE),
    # Its kernels take arguments of RCCL's types, which stand in their names.
    Rule("MSCCL or MSCCL++ kernel", r"(?<![a-z])msccl", Kind.COLLECTIVE, hints=("msccl",)),
    _NCCL,
    Rule("oneCCL kernel", r"(?<![a-z])(oneccl|ccl_kernel|ccl::)", Kind.COLLECTIVE, hints=("ccl",)),
    Rule("HCCL kernel", _HCCL, Kind.COLLECTIVE, hints=("hccl", "hcom")),
    Rule("NVSHMEM or rocSHMEM kernel", r"(?<![a-z])(nv|roc)shmem", Kind.COLLECTIVE, hints=("shmem",)),
    Rule("mori shmem kernel", _MORI, Kind.COLLECTIVE, hints=("mori::shmem", "shmembarrierall")),
    Rule("aiter collective kernel", _AITER, Kind.COLLECTIVE, hints=("gather_", "cross_device")),
    Rule("aiter all-reduce, second kernel", _AITER_LOAD, Kind.COLLECTIVE, "all_reduce", hints=("local_device_load",)),
    Rule("DeepEP kernel", _DEEP_EP, Kind.COLLECTIVE, hints=("deepep", "deep_ep", "ep::")),
    Rule(
        "expert-parallel dispatch or combine kernel",
        _EXPERTS,
        Kind.COLLECTIVE,
        "all_to_all",
        hints=("dispatch", "combine", "a2a", "toall", "to_all", "comm", "pplx::"),
    ),
    Rule(
        "symmetric-memory or custom all-reduce kernel",
        _CUSTOM,
        Kind.COLLECTIVE,
        hints=("reduce", "scatter", "gather", "toall", "to_all", "userbuffers", "c10d::", "barrier"),
    ),
    ANY,
)
"""Kernels of a torch GPU trace; copies have categories of their own there."""

XLA_KERNELS = (
    *KERNELS[:-1],
    Rule("copy kernel", r"memcpy|memset|copybuffer|CopyDeviceTo", Kind.COPY),
    ANY,
)
"""Kernels of an XLA GPU trace, where copies are known by name alone."""

_OPCODES = (
    r"all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast"
    r"|send|recv"
)
_HLO_COLLECTIVE = rf"^%?(({_OPCODES})(-start|-done)?|async-collective-(start|done))(\.(\d+|clone|remat\d*))*\.?(\s|=|$)"
# JAX calls instructions after its own operations (``%psum.7``): where there is a text, that says what it does.
_HLO_TEXT = rf"^%?[\w.-]+ = [^%]*?[ )]({_OPCODES})(-start|-done)?\("

_PRIMITIVE = (
    r"^%?(psum(2|_invariant|_scatter)?|pmax|pmin|pmean|ppermute|pshuffle|pbroadcast|all_gather(_invariant|_reduced)?"
    r"|reduce_scatter|(ragged_)?all_to_all)(\.(\d+|clone|remat\d*))*$"
)

JAX = Rule("JAX collective", _PRIMITIVE, Kind.COLLECTIVE)
"""Instructions that JAX called after a collective of its own; some only follow one."""

INSTRUCTIONS = (
    Rule("HLO collective instruction", rf"{_HLO_COLLECTIVE}|{_HLO_TEXT}", Kind.COLLECTIVE),
    JAX,
    _NCCL,
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
    ("reduce_scatter", r"reduce[-_]?scatter|psum_scatter"),
    ("all_to_all", r"all[-_]?to[-_]?all|::(internode|intranode)|deep_?ep|a2a"),
    ("all_gather", r"all[-_]?gather"),
    ("all_reduce", r"all[-_]?reduce|cross_device_reduce|quick_?reduce|^%?p(sum|max|min|mean)(\d|_|\.|\s|$)"),
    ("broadcast", r"broadcast"),
    ("send_recv", r"send_?recv|batch_?isend_?irecv|batch_?send_?recv|coalesced_p2p"),
    ("permute", r"collective-permute|ppermute|pshuffle"),
    ("barrier", r"barrier"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("reduce", r"reduce"),
    ("send", r"send"),
    ("recv", r"recv|receive"),
)

UNNAMED = "unnamed"
"""The collective of a kernel that tells no more than that it communicates (``ncclDevKernel_Generic``)."""


@lru_cache(maxsize=16_384)
def collective(name: str) -> str:
    """The canonical collective (``all_reduce``, ``all_gather``, …) that a span's or an argument's name says."""
    # An HLO text goes on with operands and attributes that may name other operations.
    head, _, text = name.partition("=")
    told = _canonical(head)
    if told != UNNAMED or not text:
        return told
    opcode = _compiled(_HLO_TEXT).search(name)
    return _canonical(opcode[1]) if opcode else UNNAMED


def _canonical(text: str) -> str:
    return next((canonical for canonical, pattern in _COLLECTIVES if _compiled(pattern).search(text)), UNNAMED)


@dataclass(frozen=True, eq=False)
class Classified:
    """For a table of n names: ``kind`` (n,) holds :class:`Kind`, ``rule`` (n,) indexes ``rules``."""

    names: tuple[str, ...]
    kind: npt.NDArray[np.uint8]
    rule: npt.NDArray[np.int32]
    rules: tuple[Rule, ...]

    def why(self, row: int) -> str:
        """The rule that decided name number ``row``."""
        return self.rules[int(self.rule[row])].name

    def collective(self, row: int) -> str:
        """The canonical collective of name number ``row``, as its rule says or else the name itself."""
        return self.rules[int(self.rule[row])].collective or collective(self.names[row])


def classify(names: Sequence[str], rules: tuple[Rule, ...]) -> Classified:
    """Each name by the first rule that finds it. Every table ends with a rule that finds everything.

    The user's rules come first, but not before those of OPERATORS: these are functions of the host, not kernels.
    """
    rules = rules if rules is OPERATORS else (*yours(), *rules)
    found = np.fromiter((_first(name, rules) for name in names), dtype=np.int32, count=len(names))
    kinds = np.array([rule.kind for rule in rules], dtype=np.uint8)
    return Classified(names=tuple(names), kind=kinds[found], rule=found, rules=rules)


def _first(name: str, rules: tuple[Rule, ...]) -> int:
    lowered = name.lower()
    return next(number for number, rule in enumerate(rules) if rule.is_hinted(lowered) and rule.searches(name))


def yours() -> tuple[Rule, ...]:
    """The user's rules, by the settings in force."""
    return _yours(config.current().kernels)


@lru_cache(maxsize=8)
def _yours(rules: tuple[config.KernelRule, ...]) -> tuple[Rule, ...]:
    taken = {rule.name for table in (KERNELS, XLA_KERNELS, INSTRUCTIONS, OPERATORS) for rule in table}
    names = [f"{rule.name} (yours)" if rule.name in taken else rule.name for rule in rules]
    return tuple(
        Rule(name, rule.pattern, Kind[rule.kind.upper()], rule.collective, reach(rule.pattern))
        for name, rule in zip(names, rules, strict=True)
    )


def rules_digest() -> str:
    """Tells one state of all rules, the user's included, from another: 64 hex digits. An answer is good for one."""
    tables = (yours(), KERNELS, XLA_KERNELS, INSTRUCTIONS, OPERATORS)
    said = [[(r.name, r.pattern, int(r.kind), r.collective, r.reach) for r in table] for table in tables]
    return hashlib.sha256(repr((said, _COLLECTIVES)).encode()).hexdigest()
