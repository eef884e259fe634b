"""What would flip the choice: the same question with one thing changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from meshscope.advisor.cluster import Cluster, Link
from meshscope.advisor.naming import layout_key
from meshscope.advisor.question import Question
from meshscope.advisor.ranking import Advice, Ranked, advice

_TIMED = 16
_LONGER = 4


@dataclass(frozen=True)
class Sensitivity:
    """``change`` in words. ``choice`` is what would be chosen then, ``same`` the layout that is chosen now, as it would
    do then (None where it does not fit, or is not legal). ``flips`` where ``same`` is surely slower then, or is none,
    for the reason in ``why``; ``leans`` where another would be chosen that is too near to tell."""

    change: str
    choice: Ranked | None
    same: Ranked | None
    flips: bool
    why: str = ""

    @property
    def leans(self) -> bool:
        return not self.flips and self.choice is not None and _kind(self.choice) != _kind(self.same)


def sensitivities(found: Advice) -> tuple[Sensitivity, ...]:
    """Each change asked anew, with fewer candidates computed."""
    if found.choice is None:
        return ()
    return tuple(_answer(found, words, question) for words, question in _changes(found.question))


def _answer(found: Advice, words: str, question: Question) -> Sensitivity:
    key = _kind(found.choice)
    then = advice(question, most_timed=_TIMED, strategies=frozenset(key[1:]))
    same = next((each for each in then.ranked if _kind(each) == key), None)
    behind = same is None or then.choice is None or not same.is_tied
    why = "" if same else _missing(then, key)
    return Sensitivity(words, then.choice, same, behind, why)


def _missing(then: Advice, key: tuple[str, ...]) -> str:
    if any(_kind(each) == key for each in then.close):
        return "is too close to say whether it fits"
    data = then.question.global_batch < then.question.cluster.devices
    if any(_kind(each) == key for each in then.refused) or not data:
        return "does not fit"
    return "has too few samples for so many data ranks"


def _kind(ranked: Ranked | None) -> tuple[str, ...]:
    return layout_key(ranked.candidate)[:2] if ranked else ()


def _changes(question: Question) -> Iterator[tuple[str, Question]]:
    cluster = question.cluster
    if cluster.nodes > 1:
        yield "the network half as fast", _on(question, replace(cluster, between=_slower(cluster.between)))
    if cluster.per_node > 1 and cluster.devices > 1:
        yield f"{cluster.inside.name} half as fast", _on(question, replace(cluster, inside=_slower(cluster.inside)))
    yield "half the memory", _on(question, _half_memory(cluster))
    yield "twice the batch", replace(question, global_batch=2 * question.global_batch)
    for words, part in (("half the batch", 2), ("a quarter of the batch", 4)):
        if question.global_batch >= part:
            yield words, replace(question, global_batch=question.global_batch // part, micro_batch=0)
    if question.global_batch >= _LONGER:
        longer = replace(
            question, seq_len=question.seq_len * _LONGER, global_batch=question.global_batch // _LONGER, micro_batch=0
        )
        yield f"sequences {_LONGER} times as long, as many tokens", longer
    if cluster.devices >= cluster.per_node:
        more = replace(question, micro_batch=0)
        yield "twice the devices, the same batch", _on(more, replace(cluster, devices=2 * cluster.devices))


def _on(question: Question, cluster: Cluster) -> Question:
    return replace(question, cluster=cluster)


def _slower(link: Link) -> Link:
    rates = {kind: rate / 2 for kind, rate in link.measured_bus_bytes_per_s.items()}
    return replace(link, bytes_per_s=link.bytes_per_s / 2, measured_bus_bytes_per_s=rates)


def _half_memory(cluster: Cluster) -> Cluster:
    device = cluster.device
    return replace(
        cluster, device=replace(device, memory_bytes=device.memory_bytes / 2, usable_bytes=device.usable_bytes / 2)
    )
