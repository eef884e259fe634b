"""No rule on communication promises more than could be won: the time in which collectives run and nothing is computed.

Made at random: two ranks that compute and communicate on several streams, side by side or not, and come late or not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from drawn import run
from made_spans import Made, collective, kernel, window

from meshscope.analysis.collectives import collectives
from meshscope.analysis.exposure import exposure
from meshscope.analysis.findings import findings
from meshscope.analysis.findings.whole import traced_step
from meshscope.run import Run
from meshscope.spans import How, Window

RULES = ("small-collectives", "synchronous-collectives")
STEP_NS = 100_000


def calls(rng: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """When each collective of two steps can begin, what it takes once all have come, its size and its stream.

    In half of the runs a call takes its latency and a part for its bytes.
    """
    found = []
    for at in (0, STEP_NS):
        for number in range(int(rng.integers(4, 24))):
            begin = at + int(rng.integers(0, 70_000)) if rng.random() < 0.5 else at + 4_000 * number
            size_bytes = int(rng.choice([20_000, 100_000, 400_000]))
            transfer_ns = int(rng.integers(500, 4_000)) + size_bytes // 100
            found.append((begin, transfer_ns, size_bytes, int(rng.integers(20, 23))))
    return sorted(found)


def at_random(seed: int) -> Run:
    rng = np.random.default_rng(seed)
    framework, made = ("jax" if rng.random() < 0.5 else "torch"), calls(rng)
    lateness = rng.integers(0, 3_000, (2, len(made))) * (rng.random() < 0.5)
    # A stream runs one after the other: a call begins when the one before it on its stream has ended.
    free: Counter[int] = Counter()
    times = []
    for number, (begin, transfer_ns, _, stream) in enumerate(made):
        starts = [max(begin + int(late), free[stream]) for late in lateness[:, number]]
        end = max(starts) + transfer_ns
        free[stream] = end
        times.append((starts, end))
    return run(windows=[one_rank(rng, rank, made, times, framework) for rank in range(2)], ranks=2, framework=framework)


def one_rank(
    rng: np.random.Generator,
    rank: int,
    made: list[tuple[int, int, int, int]],
    times: list[tuple[list[int], int]],
    framework: str,
) -> Window:
    spans: list[Made] = [
        collective(starts[rank], end, size_bytes=size_bytes, lane=f"stream {stream}")
        for (_, _, size_bytes, stream), (starts, end) in zip(made, times, strict=True)
    ]
    for at in (0, STEP_NS):
        begin = at + int(rng.integers(0, 60_000))
        spans.append(kernel(begin, begin + int(rng.integers(12_000, 40_000))))
    steps = [(0, STEP_NS), (STEP_NS, 2 * STEP_NS)]
    whole = window(spans, rank=rank, steps=steps, world=2, host="one", framework=framework)
    mode = How.SYNCHRONOUS if rng.random() < 0.7 else How.ASYNCHRONOUS
    column = np.where(whole.spans.collective >= 0, int(mode), -1).astype(np.int8)
    return replace(whole, spans=replace(whole.spans, how=column))


def test_no_rule_promises_more_than_the_time_in_which_nothing_is_computed() -> None:
    fired: Counter[str] = Counter()
    for seed in range(50):
        here = at_random(seed)
        total = exposure(here)
        for row in collectives(here):
            assert 0 <= (row.beside_ns or 0) <= (row.transfer_ns or 0) <= row.busy_ns
        for found in findings(here):
            if found.code in RULES:
                fired[found.code] += 1
                assert 0 < found.cost_ns <= total.exposed_ns - total.waited_ns + 1e-6, (seed, found)
                assert found.cost_frac == found.cost_ns / traced_step(here).ns
    assert set(fired) == set(RULES)
    assert min(fired.values()) >= 10, fired
