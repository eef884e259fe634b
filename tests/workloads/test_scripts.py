"""The scripts as texts: what they declare, and which of their lines make them parallel."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from meshscope.discovery import workloads

SHARDING = ("torch_fsdp", "torch_fsdp1", "torch_tp", "torch_cp", "torch_dp")
TORCH = (
    *("torch_single", "torch_ddp", "torch_zero1", *SHARDING, "torch_ep", "torch_pipeline", "compression"),
    *("models/torch_transformer", "models/torch_models", "models/torch_units", "models/torch_images"),
    *("models/torch_moe", "models/torch_own"),
)
JAX = (
    *("jax_single", "jax_pmap", "jax_shard_map", "jax_shard_map_fsdp", "jax_pjit", "jax_pipeline", "jax_ep"),
    *("models/flax_transformer", "models/flax_models", "models/flax_images", "models/flax_moe", "models/jax_own"),
)
PARALLEL = (
    *("torch_ddp", "torch_zero1", *SHARDING, "torch_ep", "torch_pipeline"),
    *("jax_pmap", "jax_shard_map", "jax_shard_map_fsdp", "jax_pjit", "jax_pipeline", "jax_ep"),
)


def test_every_strategy_is_declared(root: Path) -> None:
    declared = {
        found.strategy: (found.framework, found.launch, found.max_ranks, found.is_baseline, found.arguments)
        for found in workloads(root / "workloads")
    }
    assert declared == {
        "ddp": ("torch", "torchrun", None, False, ()),
        "zero1": ("torch", "torchrun", None, False, ()),
        "fsdp": ("torch", "torchrun", None, False, ()),
        "ep": ("torch", "torchrun", None, False, ()),
        "jax-ep": ("jax", "process", None, False, ()),
        "hsdp": ("torch", "torchrun", None, False, ("--replicas", "2")),
        "fsdp1": ("torch", "torchrun", None, False, ()),
        "tp": ("torch", "torchrun", None, False, ("--spec", "tp")),
        "fsdp-tp": ("torch", "torchrun", None, False, ("--spec", "fsdp-tp", "--tensor", "2")),
        "cp": ("torch", "torchrun", None, False, ("--spec", "cp")),
        "dp": ("torch", "torchrun", 1, False, ()),
        "shard-map": ("jax", "process", None, False, ()),
        "pmap": ("jax", "process", None, False, ()),
        "pjit": ("jax", "process", None, False, ()),
        "pjit-dp": ("jax", "process", None, False, ("--spec", "dp")),
        "pjit-tp": ("jax", "process", None, False, ("--spec", "tp")),
        "pjit-2d": ("jax", "process", None, False, ("--spec", "fsdp-tp", "--tensor", "2")),
        "shard-map-fsdp": ("jax", "process", None, False, ()),
        "jax-pp": ("jax", "process", None, False, ("--schedule", "gpipe", "--accumulate", "8")),
        "pp-gpipe": ("torch", "torchrun", None, False, ("--schedule", "gpipe", "--accumulate", "8")),
        "pp-1f1b": ("torch", "torchrun", None, False, ("--schedule", "1f1b", "--accumulate", "8")),
        "pp-interleaved": ("torch", "torchrun", None, False, ("--schedule", "interleaved", "--accumulate", "8")),
        "torch-single": ("torch", "torchrun", 1, True, ()),
        "jax-single": ("jax", "process", 1, True, ()),
    }
    assert all(found.title for found in workloads(root / "workloads"))
    assert {found.strategy for found in workloads(root / "workloads") if found.needs_gpu} == {"dp"}


def test_baselines_have_no_parallel_line_and_every_other_strategy_some(root: Path) -> None:
    for found in workloads(root / "workloads"):
        assert (found.parallel_lines == 0) == found.is_baseline, found.strategy


@pytest.mark.parametrize("name", PARALLEL)
def test_lines_without_the_mark_stand_in_the_single_device_script_too(root: Path, name: str) -> None:
    """So no line that makes a workload parallel goes uncounted."""
    unmarked = Counter(line for line in _code(root, name) if not _is_marked(line))
    assert unmarked - Counter(_code(root, _single(name))) == Counter()


@pytest.mark.parametrize("name", PARALLEL)
def test_lines_with_the_mark_are_more_than_the_single_device_script_has(root: Path, name: str) -> None:
    """So nothing is counted that a single device needs as well."""
    bare = Counter(line.removesuffix("# parallel").rstrip() for line in _code(root, name))
    added = bare - Counter(_code(root, _single(name)))
    assert added.total() == sum(_is_marked(line) for line in _code(root, name))


@pytest.mark.parametrize("name", PARALLEL)
def test_the_count_is_the_number_of_marked_lines_of_code(root: Path, name: str) -> None:
    counted = {found.script.stem: found.parallel_lines for found in workloads(root / "workloads")}
    assert counted[name] == sum(_is_marked(line) for line in _code(root, name))


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("refusals", set()),
        ("degrees", set()),
        ("variants", set()),
        ("faults", set()),
        ("options", set()),
        ("pipelines", set()),
        ("injecting", {"torch", "jax", "numpy"}),
        ("watching", set()),
        ("tokens", {"numpy"}),
        ("families", set()),
        ("sizes", set()),
        ("images", {"numpy", "sklearn"}),
        ("own", {"numpy"}),
        ("batches", set()),
        ("own_facts", {"torch", "jax"}),
        *((name, {"torch"}) for name in TORCH),
        *((name, {"jax", "flax", "optax", "numpy"}) for name in JAX),
    ],
)
def test_a_workload_needs_its_framework_and_never_meshscope(root: Path, name: str, allowed: set[str]) -> None:
    own = {path.stem for path in (root / "workloads").iterdir()}
    tree = ast.parse((root / "workloads" / f"{name}.py").read_text(encoding="utf-8"))
    froms = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported = {module.partition(".")[0] for module in froms | plain}
    assert imported - own - set(sys.stdlib_module_names) <= allowed


def _single(name: str) -> str:
    return f"{name.partition('_')[0]}_single"


def _is_marked(line: str) -> bool:
    return line.endswith("# parallel")


def _code(root: Path, name: str) -> list[str]:
    """The lines that hold code, without indentation: no docstrings, no comments of their own, no blank lines."""
    text = (root / "workloads" / f"{name}.py").read_text(encoding="utf-8")
    prose = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    numbers = {
        number
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in blank
        for number in range(token.start[0], token.end[0] + 1)
    }
    lines = text.splitlines()
    return [lines[number - 1].strip() for number in sorted(numbers - prose)]
