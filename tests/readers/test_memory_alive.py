"""What was alive at a moment, against a made-up allocator that keeps book of everything at every call."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from made_records import MIB, block, call, segment, write_snapshot

from meshscope.readers.memory_snapshot import read
from meshscope.records import Alive, MemoryRecord

Entry = dict[str, Any]


def stack(line: int) -> list[Entry]:
    return [
        {"name": "at::empty", "filename": "??", "line": 0},
        {"name": "linear", "filename": "/venv/lib/python3.11/site-packages/torch/nn/functional.py", "line": 7},
        {"name": "forward", "filename": "/home/user/gpt/model.py", "line": line},
        {"name": "main", "filename": "/home/user/gpt/train.py", "line": 1},
    ]


@dataclass
class Allocator:
    """Rounds up to 512 bytes, hands out addresses again, and writes down what is alive after every call."""

    calls: list[Entry] = field(default_factory=list)
    alive: dict[int, tuple[int, int]] = field(default_factory=dict)
    states: list[dict[int, tuple[int, int]]] = field(default_factory=list)
    free_addresses: list[int] = field(default_factory=list)

    def alloc(self, size: int, line: int) -> None:
        address = self.free_addresses.pop() if self.free_addresses else (len(self.states) + 1) << 24
        self.alive[address] = (size, line)
        self._note(call("alloc", size, len(self.calls), addr=address, frames=stack(line)))

    def free(self, address: int) -> None:
        size, _ = self.alive.pop(address)
        self.free_addresses.append(address)
        self._note(call("free_requested", size, len(self.calls), addr=address))
        self._note(call("free_completed", size, len(self.calls), addr=address))

    def _note(self, made: Entry) -> None:
        self.calls.append(made)
        self.states.append(dict(self.alive))

    def segments(self, has_stacks: bool) -> list[Entry]:
        return [
            segment(
                block(address, -(-size // 512) * 512, requested=size) | {"frames": stack(line) if has_stacks else []}
            )
            for address, (size, line) in self.alive.items()
        ]


def lived(seed: int) -> Allocator:
    chance = random.Random(seed)
    allocator = Allocator()
    for _ in range(chance.randint(5, 120)):
        if allocator.alive and chance.random() < 0.45:
            allocator.free(chance.choice(list(allocator.alive)))
        else:
            allocator.alloc(chance.randint(1, 9000), chance.randint(1, 4))
    return allocator


def told(alive: Alive) -> Counter[tuple[int, str]]:
    return Counter(
        (size, alive.sites[site] if site >= 0 else "")
        for size, site in zip(alive.size_bytes.tolist(), alive.site.tolist(), strict=True)
    )


def one(path: Path, *args: Any) -> MemoryRecord:
    (record,) = read(write_snapshot(path, *args))
    assert isinstance(record, MemoryRecord)
    return record


@pytest.mark.parametrize("seed", range(60))
def test_what_was_alive_at_the_peak_is_what_the_allocator_had_written_down(tmp_path: Path, seed: int) -> None:
    """Whatever of the history the ring buffer has lost, and whether or not blocks have kept their stacks."""
    allocator = lived(seed)
    chance = random.Random(-seed - 1)
    lost = chance.choice([0, chance.randrange(len(allocator.calls))])
    has_stacks = bool(chance.getrandbits(1))
    record = one(tmp_path / "s.pickle", allocator.segments(has_stacks), allocator.calls[lost:])
    before = allocator.states[lost - 1] if lost else {}
    moments = [before, *allocator.states[lost:]]
    fullest = max(sum(size for size, _ in state.values()) for state in moments)
    peaks = [state for state in moments if sum(size for size, _ in state.values()) == fullest]
    made_here = {made["addr"]: at for at, made in enumerate(allocator.calls[lost:]) if made["action"] == "alloc"}

    def expected(state: dict[int, tuple[int, int]]) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        for address, (size, line) in state.items():
            is_older = before.get(address) == (size, line) and address not in made_here
            is_last = allocator.alive.get(address) == (size, line)
            is_told = (has_stacks and is_last) if is_older else True
            found[size, f"gpt/model.py:{line} forward" if is_told else ""] += 1
        return found

    rounding = sum(-size % 512 for size, _ in allocator.alive.values())
    if record.alive is None:
        assert not allocator.alive
        assert fullest == 0
        return
    if record.preexisting_bytes == 0 and fullest > 0 and record.peak_bytes != fullest:
        peaks = [dict(allocator.alive)]  # rounded up, the end is fuller than the history knows any moment to be
    assert told(record.alive).total() in {len(state) for state in peaks}
    assert Counter(record.alive.size_bytes.tolist()) in [Counter(s for s, _ in state.values()) for state in peaks]
    if not any(address in made_here for address in before):
        assert told(record.alive) in [expected(state) for state in peaks]
    assert record.alive.total_bytes == record.peak_bytes
    assert record.alive.rounding_bytes in (0, rounding)


def test_by_hand_the_peak_has_what_was_there_before_and_what_the_history_frees_later(tmp_path: Path) -> None:
    held = [segment(block(MIB, 2 * MIB, requested=2 * MIB) | {"frames": stack(9)})]
    history = [
        call("alloc", 3 * MIB, 10, addr=8 * MIB, frames=stack(5), note="batch"),
        call("free_requested", MIB, 20, addr=4 * MIB),
        call("alloc", MIB // 2, 30, addr=4 * MIB, frames=stack(6)),
        call("free_requested", MIB // 2, 40, addr=4 * MIB),
        call("free_requested", 3 * MIB, 50, addr=8 * MIB),
    ]
    record = one(tmp_path / "s.pickle", held, history)
    alive = record.alive
    assert alive is not None
    assert (record.preexisting_bytes, record.peak_bytes) == (3 * MIB, 6 * MIB)
    assert told(alive) == Counter({
        (3 * MIB, "gpt/model.py:5 forward"): 1, (2 * MIB, "gpt/model.py:9 forward"): 1, (MIB, ""): 1,
    })  # fmt: skip
    assert alive.is_older.tolist() == [False, True, True]
    assert alive.notes == ("batch",)
    assert (alive.moment, alive.time_ns - record.start_ns) == ("peak", 0)


def test_a_history_that_does_not_lead_to_the_blocks_tells_no_allocations(tmp_path: Path) -> None:
    history = [call("alloc", MIB, 1, addr=7), call("alloc", MIB, 2, addr=7), call("free_requested", 2 * MIB, 3, addr=7)]
    record = one(tmp_path / "s.pickle", [segment(block(0, MIB))], history)
    assert record.alive is None
    (why,) = [why for what, why in record.cannot_say if what == "memory.alive_at_peak"]
    assert "allocates address 0x7 twice" in why
    lost = one(tmp_path / "t.pickle", [segment(block(0, MIB))], [call("alloc", MIB, 1, addr=7)])
    (why,) = [why for what, why in lost.cannot_say if what == "memory.alive_at_peak"]
    assert "1 block that it leads to or leaves alone" in why
    assert (lost.alive, lost.peak_bytes) == (None, MIB)


def test_without_a_history_the_end_is_told_and_says_so(tmp_path: Path) -> None:
    record = one(tmp_path / "s.pickle", [segment(block(0, MIB, requested=MIB - 24) | {"frames": stack(3)})], [])
    assert record.alive is not None
    assert (record.alive.moment, record.alive.total_bytes, record.alive.rounding_bytes) == ("end", MIB, 24)
    assert told(record.alive) == Counter({(MIB - 24, "gpt/model.py:3 forward"): 1})
    assert record.peak_bytes is None


def test_the_last_failure_knows_what_was_held_then_though_it_was_freed_since(tmp_path: Path) -> None:
    """10 MiB reserved: 6 and 2 allocated when 20 MiB were asked for; then 6 were freed."""
    held = [segment(block(6 * MIB, 2 * MIB), block(0, 6 * MIB, "inactive"), block(8 * MIB, 2 * MIB, "inactive"))]
    history = [
        call("segment_alloc", 10 * MIB, 1, addr=0), call("alloc", 6 * MIB, 2, addr=0, frames=stack(1)),
        call("alloc", 2 * MIB, 3, addr=6 * MIB, frames=stack(2)), call("oom", 20 * MIB, 4, device_free=5 * MIB),
        call("free_requested", 6 * MIB, 5, addr=0), call("free_completed", 6 * MIB, 6, addr=0),
    ]  # fmt: skip
    failure = one(tmp_path / "s.pickle", held, history).failure
    assert failure is not None
    assert (failure.asked_bytes, failure.device_free_bytes, failure.times) == (20 * MIB, 5 * MIB, 1)
    assert (failure.allocated_bytes, failure.reserved_bytes, failure.pool_free_bytes) == (8 * MIB, 10 * MIB, 2 * MIB)
    assert (failure.is_newest, failure.largest_free_bytes) == (False, None)
    assert failure.alive is not None
    assert told(failure.alive) == Counter({
        (6 * MIB, "gpt/model.py:1 forward"): 1, (2 * MIB, "gpt/model.py:2 forward"): 1,
    })  # fmt: skip

    full = [segment(block(0, 6 * MIB), block(6 * MIB, 2 * MIB), block(8 * MIB, 2 * MIB, "inactive"))]
    at_once = one(tmp_path / "t.pickle", full, history[:4]).failure
    assert at_once is not None
    assert (at_once.is_newest, at_once.largest_free_bytes, at_once.pool_free_bytes) == (True, 2 * MIB, 2 * MIB)


def test_settings_that_let_segments_grow_are_told_with_a_failure(tmp_path: Path) -> None:
    held, history = [segment(block(0, MIB))], [call("alloc", MIB, 1, addr=0), call("oom", MIB, 2, device_free=0)]
    for settings, is_expandable in (({"expandable_segments": True}, True), ({}, False), (None, False)):
        path = write_snapshot(tmp_path / "s.pickle", held, history, allocator_settings=settings)
        (record,) = read(path)
        assert isinstance(record, MemoryRecord)
        assert record.failure is not None
        assert record.failure.is_expandable is is_expandable
