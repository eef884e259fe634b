"""What was looked for in a run, as sentences: what was not found, what could not be judged, what does not apply."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.looked_for import ELSEWHERE, FOUND, JUDGED, UNTOLD, LookedFor


def headline(looked: Sequence[LookedFor]) -> str:
    """What it means that there is no finding: nothing, where nothing could be judged, and little where little could."""
    judged = [one for one in looked if one.state in (JUDGED, FOUND)]
    untold = sum(one.state == UNTOLD for one in looked)
    if 1 < len(judged) < untold:
        return f"None shows, but only {len(judged)} of {len(judged) + untold} pitfalls could be judged."
    if len(judged) > 1:
        return f"None of the {len(judged)} pitfalls that could be looked for shows in this run."
    # That what was read is whole can be said of anything.
    beyond = f" but {judged[0].title}" if judged else ""
    whys = dict.fromkeys(one.why for one in looked if one.state == UNTOLD)
    others = "nothing else that is looked for applies" if any(one.state == ELSEWHERE for one in looked) else ""
    return f"Nothing{beyond} could be judged: {'; '.join(whys) or others or 'nothing was read'}."


def counts(looked: Sequence[LookedFor]) -> str:
    """How many rules came to what, in a line: ``11 looked for and not found, 7 not judged, 6 do not apply``."""
    number = {state: sum(one.state == state for one in looked) for state in (FOUND, JUDGED, UNTOLD, ELSEWHERE)}
    verb = "does" if number[ELSEWHERE] == 1 else "do"
    said = (
        (number[FOUND], "found"),
        (number[JUDGED], "looked for and not found"),
        (number[UNTOLD], "could not be judged"),
        (number[ELSEWHERE], f"{verb} not apply"),
    )
    return ", ".join(f"{count} {words}" for count, words in said if count)


def folded(looked: Sequence[LookedFor]) -> str:
    """What was looked for without being found, by its codes; of the rest how many, and where it is told one by one."""
    judged = [one.code for one in looked if one.state == JUDGED]
    untold, elsewhere = (sum(one.state == state for one in looked) for state in (UNTOLD, ELSEWHERE))
    rest = [f"{untold} could not be judged"] if untold else []
    rest += [f"{elsewhere} {'does' if elsewhere == 1 else 'do'} not apply"] if elsewhere else []
    said = f"looked for and not found: {', '.join(judged) or 'nothing'}"
    return f"{said}; {', '.join(rest)} (looked_for in --json: which, and why)" if rest else said


def sentences(looked: Sequence[LookedFor]) -> tuple[str, ...]:
    """One for each group that has any; the reasons stand behind what they are the reasons of."""
    judged = [one.title for one in looked if one.state == JUDGED]
    untold, elsewhere = (_by_why(looked, state) for state in (UNTOLD, ELSEWHERE))
    said = (
        f"Looked for and not found: {', '.join(judged)}." if judged else "",
        f"Could not be judged: {untold}." if untold else "",
        f"Do not apply: {elsewhere}." if elsewhere else "",
    )
    return tuple(one for one in said if one)


def _by_why(looked: Sequence[LookedFor], state: str) -> str:
    titles: dict[str, list[str]] = {}
    for one in looked:
        if one.state == state:
            titles.setdefault(one.why, []).append(one.title)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in titles.items())
