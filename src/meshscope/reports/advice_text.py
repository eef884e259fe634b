"""Advice as text: the choice and why, the candidates, the rules beside it, and what would flip it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from meshscope.advisor.answer import Answer
from meshscope.advisor.naming import layout_name, settings, short_name, turned
from meshscope.advisor.ranking import Ranked
from meshscope.advisor.rule import Rule
from meshscope.advisor.sensitivity import Sensitivity
from meshscope.advisor.space import software
from meshscope.reports.columns import encodable, room, table, wrapped
from meshscope.units import (
    MILLISECONDS,
    NS_PER_S,
    UNKNOWN,
    Unit,
    counted,
    duration,
    percent,
    printable,
    rate,
    ratio,
    size,
    size_unit,
    time_unit,
)

_WIDEST = 200
"""A table of all columns is read across: it uses more of a wide terminal than sentences do."""
_LONG_NS = 10 * NS_PER_S
"""Steps as long as this are told in seconds, shorter ones in milliseconds."""
_MOST_REFUSED = 6
_MOST_CLOSE = 3
_MOST_FRONT = 6
_KEPT = {"none": "none", "selective": "select.", "full": "full"}


def advice_report(found: Answer, *, top: int = 10, encoding: str | None = None) -> str:
    """All of it. ``encoding`` is the terminal's (stdout's when None): what it cannot show becomes ASCII."""
    lines = [
        *subject_lines(found),
        "",
        *_paragraphs(found.why),
        "",
        *_candidates(found, top),
        *_not_chosen(found),
        *_rules(found.rules),
        *_flips(found.sensitivities),
        *_front(found),
        *_counts(found),
    ]
    text = "\n".join(printable(line) for line in lines).strip("\n")
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def subject_lines(found: Answer) -> list[str]:
    """What was asked, and what the answer stands on."""
    question = found.posed.question
    shape, where = question.architecture, question.cluster
    nodes = f", {where.nodes} nodes of {where.per_node} over {where.between.name}" if where.nodes > 1 else ""
    parts = (
        f"{shape.name}, {shape.parameters / 1e9:.3g} B parameters",
        f"{where.devices:,} × {where.device.name} of {size(where.device.memory_bytes)}, {where.inside.name}{nodes}",
        f"{question.global_batch:,} samples of {question.seq_len:,} tokens a step",
        question.precision or "each strategy's usual precision",
        " and ".join(software(question, each) for each in question.frameworks),
    )
    lines = wrapped(" · ".join(parts), indent="", hanging="  ")
    told = question.multipliers.provenance
    stands = f"calibrated on {told.recording} ({told.strategy})" if told.recording else "nothing was measured here"
    lines += wrapped(f"Predicted; {stands}. Intervals hold 90 % of outcomes.", indent="", hanging="  ")
    for note in found.posed.notes:
        lines += wrapped(f"– {note}", indent="", hanging="  ")
    return lines


def _paragraphs(sentences: Sequence[str]) -> list[str]:
    """The first by itself, the others together."""
    first, *others = sentences
    lines = wrapped(first, indent="")
    return lines + (wrapped(" ".join(others), indent="") if others else [])


def _candidates(found: Answer, top: int) -> list[str]:
    rows = [(number, each) for number, each in _numbered(found) if _is_shown(found, number, top)]
    if not rows:
        return []
    longest_ns = max((each.time.step_s.high * NS_PER_S for _, each in rows if each.time), default=0.0)
    times = MILLISECONDS if longest_ns < _LONG_NS else time_unit((longest_ns,))
    sizes = size_unit(each.memory.used.high for _, each in rows)
    first = ("#    strategy", "micro", "ckpt", f"{times.name}/step", "90 % within")
    limit = sizes.figure(rows[0][1].memory.limit_bytes)
    held = f"{sizes.name} of {limit}"
    second = ("#", f"exposed {times.name}", "of the step", "tokens/s", f"MFU {_peak(found)}", held, "90 % within")
    one = [_first(found, number, each, times) for number, each in rows]
    other = [_second(number, each, times, sizes) for number, each in rows]
    close = next((at for at, (number, _) in enumerate(rows) if number > len(found.advice.ranked)), len(rows))
    joined = [(*left, *right[1:]) for left, right in zip(one, other, strict=True)]
    across = table((*first, *second[1:]), joined, indent="")
    if max(map(len, across)) <= room(_WIDEST):
        return [*_parted(across, close), *_legend(rows), ""]
    upper, lower = table(first, one, indent=""), table(second, other, indent="")
    return [*_parted(upper, close), *_legend(rows), "", *_parted(lower, close), ""]


def _parted(lines: list[str], close: int) -> list[str]:
    """With a line before those that may not fit."""
    return [
        *lines[: close + 1],
        *(["too close to say whether it fits:"] if lines[close + 1 :] else []),
        *lines[close + 1 :],
    ]


def _legend(rows: Sequence[tuple[int, Ranked]]) -> list[str]:
    said = ["~ too near to the fastest to tell"] if any(each.is_tied for _, each in rows[1:]) else []
    if any(each.candidate.virtual > 1 for _, each in rows):
        said.append("v interleaved, so many stages on each rank")
    alike: dict[str, list[str]] = {}
    for number, each in rows:
        alike.setdefault(", ".join(turned(each.candidate)), []).append(str(number))
    named = [f"{', '.join(numbers)} with {words}" for words, numbers in alike.items() if words]
    return wrapped("; ".join([*said, *named]), indent="", hanging="  ") if said or named else []


def _numbered(found: Answer) -> Iterable[tuple[int, Ranked]]:
    return enumerate(found.rows, start=1)


def _is_shown(found: Answer, number: int, top: int) -> bool:
    fit, close = len(found.advice.ranked), len(found.advice.close)
    return number <= min(top, fit) or fit < number <= fit + min(close, _MOST_CLOSE, top)


def _first(found: Answer, number: int, each: Ranked, times: Unit) -> tuple[str, ...]:
    candidate = each.candidate
    mark = "▸" if each is found.advice.choice else "~" if each.is_tied else " "
    micro = f"{candidate.micro_batch:g} × {candidate.accumulate}"
    step, interval = UNKNOWN, ""
    if each.time is not None:
        step = times.figure(each.time.step_s.value * NS_PER_S, 2)
        interval = (
            f"{times.figure(each.time.step_s.low * NS_PER_S, 2)}–{times.figure(each.time.step_s.high * NS_PER_S, 2)}"
        )
    return f"{number:<2} {mark} {short_name(candidate)}", micro, _KEPT[candidate.checkpointing], step, interval


def _second(number: int, each: Ranked, times: Unit, sizes: Unit) -> tuple[str, ...]:
    time, used = each.time, each.memory.used
    memory = (sizes.figure(used.value), f"{sizes.figure(used.low)}–{sizes.figure(used.high)}")
    if time is None:
        return f"{number}", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, *memory
    exposed = times.figure(time.exposed_s * NS_PER_S, 2)
    share = percent(ratio(time.exposed_s, time.step_s.value))
    return f"{number}", exposed, share, rate(time.tokens_per_s), percent(time.mfu_frac), *memory


def _peak(found: Answer) -> str:
    """Whose peak: several where strategies compute in several types."""
    names = dict.fromkeys(each.candidate.numerics.compute for each in found.rows)
    return f"of {'/'.join(names)}"


def _not_chosen(found: Answer) -> list[str]:
    refused = found.advice.refused
    if not refused:
        return []
    lines = ["does not fit, with the layout and settings that need least:"]
    first = len(found.advice.ranked) + len(found.advice.close) + 1
    for number, each in enumerate(refused[:_MOST_REFUSED], start=first):
        used = each.memory.used
        kept = each.candidate.checkpointing
        said = f"{layout_name(each.candidate)}, {'no' if kept == 'none' else kept} checkpointing"
        lines.append(f"{number:>2}   {said}: {size(used.low)} to {size(used.high)} of {size(each.memory.limit_bytes)}")
    if len(refused) > _MOST_REFUSED:
        lines.append(f"     and {counted(len(refused) - _MOST_REFUSED, 'strategy', 'strategies')} more")
    return [*lines, ""]


def _rules(found: Sequence[Rule]) -> list[str]:
    if not found:
        return []
    lines = ["Rules of thumb, beside the computed choice:"]
    for rule in sorted(found, key=lambda one: _ORDER[one.agrees]):
        lines += wrapped(_rule(rule), indent="", hanging="    ")
    return [*lines, ""]


_ORDER = {False: 0, True: 1, None: 2}
_SAYS = {True: "agrees", False: "differs", None: "  –   "}


def _rule(rule: Rule) -> str:
    holds = "holds" if rule.holds else "does not hold"
    chooses = f" → {rule.chooses}" if rule.chooses else ""
    why = f". Computed: {rule.why}" if rule.why else ""
    return f"{_SAYS[rule.agrees]}  {rule.title} ({holds}): {rule.threshold}{chooses}{why}"


def _flips(found: Sequence[Sensitivity]) -> list[str]:
    if not found:
        return []
    rows = [(each.change, _then(each), "flips" if each.flips else "leans" if each.leans else "stays") for each in found]
    return ["What would flip the choice:", *_ragged(rows), ""]


def _then(each: Sensitivity) -> str:
    if each.choice is None:
        return "nothing surely fits"
    behind = ""
    if each.flips or each.leans:
        behind = f"; what is chosen now {_now(each)}"
    step = duration(each.choice.step_s * NS_PER_S)
    return f"{layout_name(each.choice.candidate)} ({settings(each.choice.candidate)}), {step}{behind}"


def _now(each: Sensitivity) -> str:
    if each.same is None or each.choice is None:
        return each.why
    behind = each.same.step_s / each.choice.step_s - 1
    return f"is {percent(abs(behind))} {'slower' if behind >= 0 else 'faster, and less plain'}"


def _ragged(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    lines = []
    for change, then, state in rows:
        lines += wrapped(f"{state}  {change}: {then}", indent="  ", hanging="    ")
    return lines


def _front(found: Answer) -> list[str]:
    """The way from the fastest to the smallest, where there is more than one."""
    if len(found.front) < 2:
        return []
    kept = _thinned(found.front)
    lines = ["Time against memory; nothing computed is better in both:"]
    rows = [
        (f"{layout_name(each.candidate)}, {settings(each.candidate)}", duration(each.step_s * NS_PER_S),
         size(each.memory.used.value))
        for each in kept
    ]  # fmt: skip
    width = max(room() - 24, 20)
    for name, step, used in rows:
        first, *others = wrapped(name, indent="  ", hanging="  ")
        lines.append(f"{first[:width].ljust(width)}  {step:>9}  {used:>9}" if len(first) <= width else first)
        if len(first) > width:
            lines.append(f"{''.ljust(width)}  {step:>9}  {used:>9}")
        lines += others
    return [*lines, ""]


def _thinned(front: Sequence[Ranked]) -> list[Ranked]:
    if len(front) <= _MOST_FRONT:
        return list(front)
    last = len(front) - 1
    return [front[round(at * last / (_MOST_FRONT - 1))] for at in range(_MOST_FRONT)]


def _counts(found: Answer) -> list[str]:
    counts = found.advice.counts
    said = (
        f"{counts.legal:,} legal candidates; {counts.too_large:,} cannot fit by a lower bound; memory was computed of "
        f"{counts.weighed:,}, the step of {counts.timed:,}; the others were behind by an estimate."
    )
    lines = wrapped(said, indent="")
    for reason, count in found.advice.cannot_say.items():
        lines += wrapped(f"not covered ({counted(count, 'candidate')}): {reason}", indent="", hanging="  ")
    return lines
