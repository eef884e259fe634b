"""Messages of memory that ran out, as torch, XLA and the host write them."""

from __future__ import annotations

import pytest

from meshscope.analysis.last_words import LastWords, last_words

MIB, GIB = 1 << 20, 1 << 30

NEW = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB of "
    "which 1.50 GiB is free. Process 71 has 3.25 GiB memory in use. Process 72 has 512.00 MiB memory in use. Including "
    "non-PyTorch memory, this process has 74.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by "
    "PyTorch, and 3.50 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
    "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 14.75 GiB total capacity; 13.25 GiB already "
    "allocated; 12.50 MiB free; 13.50 GiB reserved in total by PyTorch)"
)


def test_every_figure_of_torchs_message_is_read() -> None:
    assert last_words(NEW, ()) == LastWords(
        is_host=False, asked_bytes=2 * GIB, capacity_bytes=round(79.25 * GIB), device_free_bytes=round(1.5 * GIB),
        allocated_bytes=70 * GIB, reserved_bytes=round(73.5 * GIB), others_bytes=round(3.75 * GIB),
        process_bytes=74 * GIB,
    )  # fmt: skip


def test_a_message_that_was_cut_short_tells_what_it_still_has() -> None:
    found = last_words(NEW[: NEW.index("Process 72")], ())
    assert found is not None
    assert (found.asked_bytes, found.device_free_bytes) == (2 * GIB, round(1.5 * GIB))
    assert found.others_bytes == round(3.25 * GIB)
    assert (found.allocated_bytes, found.reserved_bytes, found.process_bytes) == (None, None, None)


def test_the_message_of_older_versions_is_read_too() -> None:
    found = last_words(OLD, ())
    assert found is not None
    assert (found.asked_bytes, found.device_free_bytes) == (20 * MIB, round(12.5 * MIB))
    assert (found.allocated_bytes, found.reserved_bytes) == (round(13.25 * GIB), round(13.5 * GIB))
    assert found.others_bytes is None


@pytest.mark.parametrize(
    ("why", "asked_bytes", "is_host"),
    [
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.", 2 * GIB,
         False),
        ("JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.50GiB.", 1536 * MIB, False),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you "
         "tried to allocate 4000000000 bytes. Error code 12 (Cannot allocate memory)", 4_000_000_000, True),
        ("MemoryError: Unable to allocate 3.00 TiB for an array", None, True),
    ],
)  # fmt: skip
def test_xla_and_the_host_have_words_of_their_own(why: str, asked_bytes: int | None, is_host: bool) -> None:
    found = last_words(why, ())
    assert found is not None
    assert (found.asked_bytes, found.is_host) == (asked_bytes, is_host)


def test_the_log_tells_where_the_exception_does_not_and_other_deaths_are_none() -> None:
    found = last_words("it ended with exit code 1", ("Traceback (most recent call last):", OLD))
    assert found is not None
    assert found.asked_bytes == 20 * MIB
    for why in (
        "ValueError: out of range",
        "it was ended by SIGKILL (… when memory runs out)",
        "RESOURCE_EXHAUSTED: quota",
        "",
    ):
        assert last_words(why, ("memory 20 GiB", "Connection closed by peer")) is None
