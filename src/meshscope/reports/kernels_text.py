"""``analyze --kernels`` as text: per rank, which rule took which names for what."""

from __future__ import annotations

from meshscope.analysis.kernels import KernelGroup, KernelName, RankKernels, kernels
from meshscope.reports.columns import room, wrapped
from meshscope.run import Run
from meshscope.units import counted, duration, percent, printable, ratio

MOST_NAMES = 20


def kernel_lines(run: Run) -> list[str]:
    """Lines of at most 80 characters; of each group its longest-running names."""
    return [line for rank in kernels(run) for line in _rank(rank)]


def _rank(found: RankKernels) -> list[str]:
    head = f"kernels of rank {found.rank}, by the time in which at least one ran"
    share = f", in % of the rank's {duration(found.busy_ns)} of device work (what runs at once counts in each)"
    lines = wrapped(head + (share if found.busy_ns else "") + ":")
    if not found.groups:
        return [*lines, "    none"]
    return lines + [line for group in found.groups for line in _group(group, found.busy_ns)]


def _group(group: KernelGroup, busy_ns: int) -> list[str]:
    what = f"{group.kind} {group.collective}".strip()
    count = f"{counted(group.count, 'span')} of {counted(len(group.names), 'name')}"
    lines = wrapped(f"{what}, by «{printable(group.rule)}»: {count}, {_time(group.busy_ns, busy_ns)}", indent="    ")
    lines += [_name(name, busy_ns) for name in group.names[:MOST_NAMES]]
    if (more := len(group.names) - MOST_NAMES) > 0:
        lines.append(f"      … {counted(more, 'more name')} (--json lists all)")
    return lines


def _time(part_ns: int, busy_ns: int) -> str:
    return f"{duration(part_ns)}, {percent(ratio(part_ns, busy_ns))}" if busy_ns else duration(part_ns)


def _name(found: KernelName, busy_ns: int) -> str:
    share = f"{percent(ratio(found.busy_ns, busy_ns)):>8}" if busy_ns else ""
    head = f"      {found.count:>7} {duration(found.busy_ns):>8}{share}  "
    left = room() - len(head)
    name = printable(found.name) or "(no name)"
    return head + (name if len(name) <= left else name[: left - 1] + "…")
