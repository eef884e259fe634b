"""Out of memory: an allocation that failed, what had filled the device, and which term to cut.

Fires where a snapshot's history holds an allocation that failed, or where a rank died of one by its own last words. A
rank that was killed says nothing, and nothing is said of it. Expandable segments are advised only where what was free
in the pool and on the device together came to what was asked for; else the largest term is the one to cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from meshscope.analysis.allocations import Holdings
from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.memory_cuts import EXPANDABLE, LIMIT, WHO, cut
from meshscope.analysis.out_of_memory import FRAGMENTED, LIMITED, OTHERS, OutOfMemory, out_of_memory
from meshscope.run import Run
from meshscope.units import counted, percent, ratio, size

_MOST_SITES = 4
_LEAST_FRAC = 1 / 3
_TERMS = {"activations": ("activations", "temporaries"), "state": ("optimizer", "gradients"),
          "parameters": ("parameters",)}  # fmt: skip
_TERM_OF_PART = {"forward": "activations", "optimizer": "state"}

_ADVICE = {
    "activations": "Most of it are activations: keep fewer of them (checkpointing), or a smaller batch per rank.",
    "state": "Most of it are gradients and the optimizer's state: shard them over the ranks.",
    "parameters": "Most of it are parameters: shard them over the ranks.",
    "": "No single term is told to be most of it. Activations grow with the batch, so cut that first.",
}


def out_of_memory_rule(run: Run) -> tuple[Finding, ...]:
    """At most one, by the failure of which most is known."""
    failed = out_of_memory(run)
    if not failed:
        return ()
    told = max(failed, key=lambda one: (one.holdings is not None, one.asked_bytes or 0, -one.rank))
    ranks = tuple(sorted({one.rank for one in failed if one.rank >= 0}))
    more = (f"it ran out on {ranks_words(list(ranks))}",) if len(ranks) > 1 else ()
    advice, fix = _advised(told, run)
    return (
        Finding(
            code=FINDING.code,
            title="out of memory",
            ranks=ranks,
            evidence=(*_evidence(told), *more),
            advice=advice,
            fix=fix,
            is_grave=True,
        ),
    )


def _advised(told: OutOfMemory, run: Run) -> tuple[str, str]:
    if told.is_host:
        return "The host's memory ran out, not a device's: cut what each rank keeps there.", cut("host", run)
    if told.cause == LIMITED:
        return "The device had room: something forbids this process to take it. Look for a limit that it sets.", LIMIT
    if told.cause == FRAGMENTED:
        return "There was enough, in pieces. Let segments grow instead of splitting them.", EXPANDABLE
    if told.cause == OTHERS:
        return "It would have fitted but for other processes on the device. Find them, and end what is left over.", WHO
    term = _term(told)
    return _ADVICE[term], cut(term or "activations", run)


def _term(told: OutOfMemory) -> str:
    """The largest term, where it is told and is a third of all; "" else."""
    sizes: dict[str, int] = {}
    if told.holdings is not None:
        whole_bytes = told.holdings.total_bytes
        for group in told.holdings.parts:
            sizes[_TERM_OF_PART.get(group.name, "")] = (
                sizes.get(_TERM_OF_PART.get(group.name, ""), 0) + group.size_bytes
            )
    else:
        known = {category.name: category.size_bytes for category in told.categories}
        whole_bytes = sum(known.values())
        sizes = {term: sum(known.get(name, 0) for name in names) for term, names in _TERMS.items()}
    largest = max(sizes, key=lambda term: sizes[term], default="")
    return largest if ratio(sizes.get(largest, 0), whole_bytes) >= _LEAST_FRAC else ""


def _evidence(told: OutOfMemory) -> Iterator[str]:
    who = f"rank {told.rank} " if told.rank >= 0 else ""
    asked = "" if told.asked_bytes is None else f"asked for {size(told.asked_bytes)}"
    again = f", the last of {counted(told.times, 'failure')}" if told.times > 1 else ""
    yield f"{who}{asked or 'ran out'}{again}{_free(told)} ({told.told_by})"
    if told.allocated_bytes is not None and told.reserved_bytes is not None:
        yield f"of {size(told.reserved_bytes)} reserved by the allocator, {size(told.allocated_bytes)} were allocated"
    if told.others_bytes:
        yield f"other processes held {size(told.others_bytes)} of the device"
    elif told.outside_bytes:
        yield f"outside of the allocator, contexts and other processes held {size(told.outside_bytes)} of the device"
    if told.cause == FRAGMENTED and told.pool_free_bytes is not None and told.device_free_bytes is not None:
        together = size(told.pool_free_bytes + told.device_free_bytes)
        yield f"what was free comes to {'' if told.is_exact else 'about '}{together}: enough, in one piece"
    if told.holdings is not None:
        yield from _filled(told.holdings)
    elif told.categories:
        words = ", ".join(f"{category.name} {size(category.size_bytes)}" for category in told.categories)
        yield f"as last measured before it: {words}"


def _free(told: OutOfMemory) -> str:
    words = []
    if told.device_free_bytes is not None:
        of = f" of {size(told.capacity_bytes)}" if told.capacity_bytes is not None else ""
        words.append(f"the device had {size(told.device_free_bytes)} free{of}")
    if told.pool_free_bytes is not None:
        most = "" if told.is_exact else "about "
        words.append(f"the allocator {most}{size(told.pool_free_bytes)} reserved and in no use")
    if told.largest_free_bytes is not None:
        words.append(f"the largest free block {size(told.largest_free_bytes)}")
    return f"; {', '.join(words)}" if words else ""


def _filled(found: Holdings) -> Iterator[str]:
    sites = [f"{group.name}: {size(group.size_bytes)} ({percent(group.frac)}, {counted(group.count, 'allocation')})"
             for group in found.sites[:_MOST_SITES]]  # fmt: skip
    if sites:
        yield f"of the {size(found.total_bytes)} allocated then, by where it was made: {'; '.join(sites)}"
    parts = [f"{group.name} {percent(group.frac)}" for group in found.parts]
    if parts and found.parts[0].name != "not told":
        yield f"by who had asked for it: {', '.join(parts)}"


FINDING = Rule("out-of-memory", out_of_memory_rule)
