"""What was looked for in a run, as sentences: what was not found, what could not be judged, what does not apply."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.looked_for import ELSEWHERE, FOUND, JUDGED, UNTOLD, LookedFor


def headline(looked: Sequence[LookedFor]) -> str:
    """What it means that there is no finding: nothing, where nothing could be judged."""
    judged = [one for one in looked if one.state in (JUDGED, FOUND)]
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
