"""``meshscope advise --markdown``: what a ticket or a wiki page takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from meshscope.advisor.answer import Answer
from meshscope.advisor.naming import layout_name, settings
from meshscope.advisor.ranking import Ranked
from meshscope.units import NS_PER_S, UNKNOWN, duration, durations, percent, printable, rate, ratio, reach, size

_HEADING = ("#", "layout", "settings", "fits", "step (90 % within)", "exposed, of the step", "tokens/s", "MFU",
            "memory per device (90 % within)", "of")  # fmt: skip
_SPECIAL = re.compile(r"([\\`*_|<>\[\]#~])")


def advice_markdown(found: Answer, *, top: int = 10) -> str:
    """Headings, tables and lists. What comes from outside is escaped."""
    question = found.posed.question
    where = question.cluster
    title = f"{question.architecture.name} on {where.devices:,} × {where.device.name}"
    subject = f"{question.global_batch:,} samples of {question.seq_len:,} tokens a step. Predicted, not measured."
    parts = [
        f"# {_plain(title)}",
        _plain(subject),
        *(_plain(note) for note in found.posed.notes),
        "\n\n".join(_plain(sentence) for sentence in found.why),
        "## Candidates",
        _table(_HEADING, [_row(number, each) for number, each in _shown(found, top)]),
        "## Rules of thumb",
        _table(("rule", "threshold here", "holds", "would choose", "beside the computed choice"), _rules(found)),
        *(["## What would flip the choice", _table(("change", "choice then", ""), _flips(found))]
          if found.sensitivities else []),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _shown(found: Answer, top: int) -> Iterable[tuple[int, Ranked]]:
    fit, close = len(found.advice.ranked), len(found.advice.close)
    for number, each in enumerate(found.rows, start=1):
        at = number if number <= fit else number - fit if number <= fit + close else number - fit - close
        if at <= top:
            yield number, each


def _row(number: int, each: Ranked) -> tuple[str, ...]:
    memory, time = each.memory, each.time
    used = f"{size(memory.used.value)} ({reach(size(memory.used.low), size(memory.used.high))})"
    step, exposed, tokens, mfu = UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN
    if time is not None:
        value, low, high = durations(
            *(bound * NS_PER_S for bound in (time.step_s.value, time.step_s.low, time.step_s.high))
        )
        step = f"{value} ({low} to {high})"
        exposed = f"{duration(time.exposed_s * NS_PER_S)}, {percent(ratio(time.exposed_s, time.step_s.value))}"
        tokens = rate(time.tokens_per_s)
        mfu = f"{percent(time.mfu_frac)} of {each.candidate.numerics.compute}"
    tied = " ~" if each.is_tied else ""
    return (f"{number}{tied}", layout_name(each.candidate), settings(each.candidate), str(memory.fit), step, exposed,
            tokens, mfu, used, size(memory.limit_bytes))  # fmt: skip


def _rules(found: Answer) -> list[tuple[str, ...]]:
    beside = {True: "agrees", False: "differs", None: UNKNOWN}
    return [
        (rule.title, rule.threshold, "yes" if rule.holds else "no", rule.chooses or UNKNOWN,
         beside[rule.agrees] + (f": {rule.why}" if rule.why else ""))
        for rule in found.rules
    ]  # fmt: skip


def _flips(found: Answer) -> list[tuple[str, ...]]:
    return [
        (each.change, f"{layout_name(each.choice.candidate)}, {settings(each.choice.candidate)}" if each.choice
         else "nothing surely fits", "flips" if each.flips else "leans" if each.leans else "stays")
        for each in found.sensitivities
    ]  # fmt: skip


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heading)} |", f"|{'---|' * len(heading)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_plain, row))} |" for row in rows)])


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(text))
