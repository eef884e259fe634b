"""What JAX's logs say of the inputs of a function that is compiled again, from records as JAX 0.10 writes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from meshscope.capture.workers.jax_inputs import Inputs

LOGGER = "jax._src.interpreters.pxla"
MISS = (
    "TRACING CACHE MISS at train.py:15:27 (<module>):\n  for step defined at train.py:10\n"
    "  all previously seen cache keys differ. For the closest previous key:\n  different input types:\n"
    "  * at tokens, now i32[7,128] and before i32[8,128]\n  * at params['w'], now bf16[4,4] and before f32[4,4]"
)


@pytest.fixture
def inputs() -> Iterator[Inputs]:
    logger = logging.getLogger(LOGGER)
    level, filters = logger.level, list(logger.filters)
    yield Inputs()
    logger.setLevel(level)
    logger.filters[:] = filters


def aval(dtype: str, *shape: int, weak_type: bool = False) -> SimpleNamespace:
    return SimpleNamespace(dtype=np.dtype(dtype), shape=shape, weak_type=weak_type)


def lower(name: str, *avals: Any, split: tuple[str, ...] | None = None) -> None:
    mapping = split or ("UnspecifiedValue",) * len(avals)
    logging.getLogger(LOGGER).log(
        logging.DEBUG, "Compiling %s with global shapes and types %s. Argument mapping: %s.", name, avals, mapping
    )


def missed(inputs: Inputs, text: str = MISS) -> None:
    inputs.emit(logging.LogRecord("jax", logging.WARNING, "", 0, text, None, None))


def test_an_input_without_a_name_is_told_by_its_place(inputs: Inputs) -> None:
    lower("jit(_fun)", aval("float32", 4, 4), aval("int32", 2, 8))
    assert inputs.compiled("jit(_fun)") == ("", ())
    lower("jit(_fun)", aval("float32", 4, 4), aval("int32", 2, 7))
    assert inputs.compiled("jit(_fun)") == ("", ("input 2 of 2 int32[2,8] → int32[2,7]",))


def test_the_earlier_program_that_is_most_alike_is_the_one_to_compare_with(inputs: Inputs) -> None:
    """To JAX all pmapped functions have one name: the one that made the parameters is no earlier training step."""
    programs = (
        (aval("uint32", 2), aval("float32", 9), aval("float32", 9)),
        (aval("float32", 4), aval("float32", 4), aval("int32", 8)),
        (aval("uint32", 2), aval("float32", 9), aval("float32", 8)),
    )
    for avals in programs:
        lower("jit(_fun)", *avals)
        said = inputs.compiled("jit(_fun)")
    assert said[1] == ("input 3 of 3 float32[9] → float32[8]",)
    lower("jit(_fun)", aval("float32", 4))
    assert inputs.compiled("jit(_fun)") == ("", ())


def test_arguments_are_named_where_jax_explains_them(inputs: Inputs) -> None:
    lower("jit(step)", aval("float32", 4, 4), aval("int32", 8, 128))
    inputs.compiled("jit(step)")
    missed(inputs)
    # A function that the step calls is traced and explained before the step is compiled.
    missed(inputs, MISS.replace("for step", "for norm"))
    lower("jit(step)", aval("float16", 4, 4), aval("int32", 7, 128))
    reason, changed = inputs.compiled("jit(step)")
    assert changed == ("tokens int32[8,128] → int32[7,128]", "params['w'] float32[4,4] → bfloat16[4,4]")
    assert reason.startswith("for step defined at train.py:10 all previously seen cache keys differ.")


def test_equal_shapes_split_in_another_way_are_said_to_be(inputs: Inputs) -> None:
    lower("jit(step)", aval("float32", 8), split=("P('data')",))
    inputs.compiled("jit(step)")
    lower("jit(step)", aval("float32", 8), split=("P()",))
    assert inputs.compiled("jit(step)")[1] == ("input 1 of 1 float32[8] is split over the devices in another way",)


def test_a_weak_type_is_another_input(inputs: Inputs) -> None:
    lower("jit(step)", aval("float32", weak_type=True))
    inputs.compiled("jit(step)")
    lower("jit(step)", aval("float32"))
    assert inputs.compiled("jit(step)")[1] == ("input 1 of 1 float32[] (weak type) → float32[]",)


def test_of_many_inputs_the_first_are_named_and_the_rest_counted(inputs: Inputs) -> None:
    for rows in (8, 7):
        lower("jit(step)", *(aval("float32", rows) for _ in range(11)))
        _, changed = inputs.compiled("jit(step)")
    assert len(changed) == 9
    assert changed[-1] == "3 more inputs"


def test_listening_shows_nothing_that_was_not_shown_before(caplog: pytest.LogCaptureFixture, inputs: Inputs) -> None:
    lower("jit(step)", aval("float32", 8))
    logging.getLogger(LOGGER).warning("a warning of its own")
    assert [record.getMessage() for record in caplog.records] == ["a warning of its own"]


def test_a_record_of_another_form_is_passed_over(inputs: Inputs) -> None:
    logger = logging.getLogger(LOGGER)
    logger.debug("Compiling %s with global shapes and types of a new kind", "jit(step)")
    logger.debug("Compiling %s with global shapes and types %s.", "jit(step)", 3)
    logger.debug("Compiling step with global shapes and types")
    assert inputs.compiled("jit(step)") == ("", ())


def test_a_function_that_is_made_anew_each_time_has_one_reason(inputs: Inputs) -> None:
    text = "TRACING CACHE MISS at a.py:1:2 (f):\n  never seen function:\n    step id=1402 defined at a.py:7"
    text += (
        "\n  but seen another function defined on the same line; maybe the function is\n  being re-defined repeatedly"
    )
    reasons = set()
    for address in ("1402", "977"):
        missed(inputs, text.replace("1402", address))
        lower("jit(step)", aval("float32", 8))
        reasons.add(inputs.compiled("jit(step)")[0])
    (reason,) = reasons
    assert reason == (
        "never seen function: step defined at a.py:7 but seen another function defined on the same line; "
        "maybe the function is being re-defined repeatedly"
    )
