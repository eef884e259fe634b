"""What ``compare`` prints, and the baseline that it reads back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import msgspec
import pytest
from measured import MS, measured, noisy, work, works

from meshscope.analysis.conditions import conditions, judged
from meshscope.analysis.figures import Figures
from meshscope.analysis.pairing import Changes, changes
from meshscope.errors import InputError
from meshscope.reports.baseline import decoded, encoded, is_baseline
from meshscope.reports.change_json import change_json
from meshscope.reports.change_text import change_report
from meshscope.reports.columns import WIDTH

Golden = Callable[[str, str], None]


def side(median_ms: float, *, exposed_ms: float, more: bool = False) -> Figures:
    rows = [work("void gemm<128, 64>(float*)", [20.0, 20.1, 19.9, 20.0]), work("all_reduce", [exposed_ms * 1.5] * 4,
            count=[4] * 4, kind="collective")]  # fmt: skip
    if more:
        rows.append(work("clip_grad_norm", [1.5, 1.4, 1.6, 1.5], count=[12] * 4))
    exposed = tuple(exposed_ms * MS * (1 + 0.01 * at) for at in range(4))
    parts = {
        "span": (float(median_ms * MS),) * 4,
        "compute": (20.0 * MS,) * 4,
        "collective": exposed,
        "exposed": exposed,
        "idle": (5.0 * MS, 6.0 * MS, 5.5 * MS, 5.2 * MS),
    }
    return measured([ms * median_ms / 50 for ms in noisy(3)], works=works(*rows), parts_ns=parts,
                    peak_bytes=30_000_000_000 if more else 28_000_000_000, peak_how="measured",
                    options={"lr": "0.1", "clip": "1.0" if more else ""})  # fmt: skip


def compared() -> Changes:
    return changes([side(50, exposed_ms=5)], [side(60, exposed_ms=9, more=True)])


def test_the_text_of_a_comparison(golden: Golden) -> None:
    found = compared()
    verdicts = [one for pair in found.changes for one in judged(conditions("step_time>5%,memory>40GB"), pair)]
    text = change_report(found, verdicts, encoding="utf-8")
    assert text.startswith("ddp: B is slower: a step is 20.0 % longer")
    assert max(map(len, text.splitlines())) <= WIDTH
    golden("change.txt", text)


def test_the_json_of_a_comparison(golden: Golden) -> None:
    text = change_json(compared())
    said = json.loads(text)
    assert said["comparisons"][0]["verdict"] == "slower"
    assert said["comparisons"][0]["works"][0]["how"] in ("slower", "new")
    golden("change.json", text)


def test_a_terminal_of_plain_ascii_gets_plain_ascii() -> None:
    assert change_report(compared(), encoding="ascii").isascii()


def test_names_from_a_trace_steer_no_terminal() -> None:
    evil = measured(noisy(1), title="\x1b[2J", strategy="", works=works(work("\x1b]0;x\x07", [9.0] * 3)))
    other = measured(noisy(2), title="b", strategy="", works=works(work("mm", [9.0] * 3)))
    text = change_report(changes([evil], [other]), encoding="utf-8")
    assert "\x1b" not in text
    assert "\x1b" not in json.loads(change_json(changes([evil], [other])))["comparisons"][0]["a"]


def test_nothing_that_is_not_finite_is_written() -> None:
    text = change_json(changes([measured([])], [measured([])]))
    assert "NaN" not in text
    assert "null" not in text.replace('"how": null', "")


def test_a_baseline_is_read_back_as_it_was() -> None:
    run = side(50, exposed_ms=5, more=True)
    content = encoded([run])
    assert is_baseline(content[:256])
    (back,) = decoded(content, "b.json")
    assert msgspec.json.encode(back) == msgspec.json.encode(run)
    assert all(math.isnan(value) for value in back.others_cores)
    assert change_report(changes([back], [side(60, exposed_ms=9)])) == change_report(
        changes([run], [side(60, exposed_ms=9)])
    )


def damaged() -> dict[str, bytes]:
    content = encoded([side(50, exposed_ms=5)])
    plain = json.loads(content)
    short = json.loads(content)
    short["runs"][0]["step_ns"] = [1, 2]
    negative = json.loads(content)
    negative["runs"][0]["step_ns"][0] = -5
    parts = {kind: json.loads(content) for kind in ("none", "negative", "long")}
    parts["none"]["runs"][0]["parts_ns"] = {}
    parts["negative"]["runs"][0]["parts_ns"]["exposed"][0] = -5
    parts["long"]["runs"][0]["parts_ns"]["exposed"] *= 9
    samples = json.loads(content)
    samples["runs"][0]["samples_per_step"] = -31.0
    later = plain | {"format": 99}
    return {
        "cut": content[: len(content) // 2],
        "of fewer steps": json.dumps(short).encode(),
        "of negative time": json.dumps(negative).encode(),
        **{f"of {kind} parts": json.dumps(found).encode() for kind, found in parts.items()},
        "of negative samples": json.dumps(samples).encode(),
        "later": json.dumps(later).encode(),
        "another's": b'{"traceEvents": []}',
        "empty": encoded([]),
        "without runs": b'{"kind":"meshscope baseline","format":1}',
        "no text": b"\xff\xfe",
    }


@pytest.mark.parametrize("kind", damaged())
def test_a_damaged_baseline_is_one_line_and_what_to_do(kind: str) -> None:
    with pytest.raises(InputError) as refused:
        decoded(damaged()[kind], "b.json")
    assert refused.value.message.startswith("b.json ")
    assert "\n" not in refused.value.message
    assert refused.value.hint


def test_what_was_profiled_stands_under_a_heading_of_its_own_and_rates_have_a_unit() -> None:
    lines = change_report(compared(), encoding="utf-8").splitlines()
    places = {
        name: next(number for number, line in enumerate(lines) if line.startswith(name))
        for name in (
            "step time",
            "samples/s",
            "peak memory",
            "of a profiled step",
            "computing",
            "communicating",
            "idle",
        )
    }
    assert sorted(places, key=lambda name: places[name]) == list(places)
    assert not any(line.startswith(("throughput", "compute", "collective")) for line in lines)
