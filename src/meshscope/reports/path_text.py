"""The critical path in the text report: its shares, the ranks that it goes through, and what would shorten it."""

from __future__ import annotations

from meshscope.analysis.carried_out import carried_out
from meshscope.analysis.critical_path import CriticalPath, critical_paths, marked_step_ns
from meshscope.analysis.path_works import OnPath
from meshscope.analysis.what_if import EVEN, FREE, HOST, TWICE, WhatIf
from meshscope.analysis.what_if_caveats import by_caveat
from meshscope.reports.columns import shortened, wrapped
from meshscope.run import Run
from meshscope.units import duration, percent, ranges, ratio, size

MOST = 4
LEAST_FRAC = 0.0005
LEAST_APART_FRAC = 0.02

_PARTS = {
    "late_start": "a rank that began late",
    "communication_and_waiting": "communication with waiting in it",
    "launch": "from launch to start",
    "delay": "delays that nothing explains",
}
_QUESTIONS = {
    TWICE: "communication twice as fast",
    FREE: "communication hidden",
    EVEN: "no rank late (the median rank by itself, at its own host's pace)",
    HOST: "a host that is never late",
}


def path_lines(run: Run) -> list[str]:
    """The newest round of windows; nothing where none has a path."""
    found = critical_paths(run)
    if not found:
        return []
    lines = wrapped(_path(found[-1]), hanging="  ")
    if works := _works(found[-1]):
        lines += wrapped(works + _carried(found[-1], run), hanging="  ")
    if found[-1].what_ifs:
        lines += wrapped(_what_ifs(found[-1], run), hanging="  ")
    return lines


def _path(found: CriticalPath) -> str:
    """Shares are of the path, which is as long as the steps."""
    word = "step" if len(found.steps) == 1 else "steps"
    of = f"{word} {ranges(found.steps)}" if found.steps else "the whole windows"
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    parts = [part for part in parts[:MOST] if part[1] >= LEAST_FRAC * found.of_ns]
    shares = ", ".join(f"{_PARTS.get(name, name)} {percent(ratio(ns, found.of_ns))}" for name, ns in parts)
    said = f"critical path of {of}, {duration(found.of_ns)}: {shares}"
    if len(found.ranks) > 1:
        ranks = sorted(found.by_rank.items(), key=lambda rank: -rank[1])[:MOST]
        said += "; through " + ", ".join(f"rank {rank} ({percent(ratio(ns, found.of_ns))})" for rank, ns in ranks)
    return said + ("; no wait of a host for its device is recorded" if found.is_unchecked else "")


def _works(found: CriticalPath) -> str:
    """The names that most of the path is in, whatever part of it they are."""
    longest = [one for one in found.works[:MOST] if one.total_ns >= LEAST_FRAC * found.of_ns]
    return f"longest on it: {', '.join(_work(one, found.of_ns) for one in longest)}" if longest else ""


def _carried(found: CriticalPath, run: Run) -> str:
    """What gloo's spans on it carry out, where their names say another collective."""
    carried = carried_out(run)
    said = dict.fromkeys(carried[one.name] for one in found.works[:MOST] if one.name in carried)
    return "".join(f"; {words}" for words in said)


def _work(one: OnPath, of_ns: int) -> str:
    said = f"{shortened(one.name) or '(no name)'} {percent(ratio(one.total_ns, of_ns))}"
    least_ns, backward_ns = LEAST_FRAC * of_ns, one.backward_ns or 0
    if backward_ns < least_ns:
        return said
    part = "" if one.total_ns - backward_ns < least_ns else f"{percent(ratio(backward_ns, of_ns))} "
    return f"{said} ({part}in backward)"


def _what_ifs(found: CriticalPath, run: Run) -> str:
    answers = sorted(found.what_ifs, key=lambda one: one.total_ns)
    buckets = [one for one in answers if one.bucket_bytes is not None]
    best = [one for one in buckets[:1] if one.saved_frac > 0]
    answers = [one for one in answers if one.bucket_bytes is None or one in best]
    said = "; ".join(f"{_question(one)} {duration(one.step_ns)} (−{percent(one.saved_frac)})" for one in answers)
    each = duration(found.of_ns / max(1, len(found.steps)))
    unit = f"a step of {each}{_between_marks(found, run)}" if found.steps else f"the {each}"
    caveats = "".join(f"; {' and '.join(_asked(name) for name in names)}: {caveat}"
                      for caveat, names in by_caveat(answers).items())  # fmt: skip
    return f"replayed with one thing changed and no other effect, {unit} would take: {said}{caveats}"


def _between_marks(found: CriticalPath, run: Run) -> str:
    """How long a step takes a rank in the mean, where that is another time: other lines are about that one.

    Ranks do not begin together, and what a host launched in a step may run behind it.
    """
    marked_ns = marked_step_ns(found, run)
    each_ns = found.of_ns / len(found.steps)
    if not abs(each_ns - marked_ns) > LEAST_APART_FRAC * each_ns:
        return ""
    windows = [one for one in run.windows if one.rank in found.ranks]
    is_device = any(one.framework == "torch" and one.device_kind == "gpu" for one in windows)
    where = "on each device, in the mean" if is_device else "between its marks"
    return f" ({duration(marked_ns)} {where})"


def _question(found: WhatIf) -> str:
    if found.bucket_bytes is not None:
        return f"buckets of {size(found.bucket_bytes)}"
    return _asked(found.name)


def _asked(name: str) -> str:
    return _QUESTIONS.get(name, "other buckets")
