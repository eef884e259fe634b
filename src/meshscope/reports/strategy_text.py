"""DDP, FSDP and XLA in the text report: what their collectives cost, and what could be otherwise."""

from __future__ import annotations

from meshscope.analysis.ddp import Ddp, ddp, sent_as
from meshscope.analysis.fsdp import Fsdp, Module, fsdp
from meshscope.analysis.xla_checks import SMALL_BYTES, Xla, XlaCollective, xla
from meshscope.reports.columns import shortened, wrapped
from meshscope.run import Run
from meshscope.units import counted, duration, percent, size


def strategy_lines(run: Run) -> list[str]:
    """Nothing where the traces show none of them."""
    lines = []
    if (of_ddp := ddp(run)) is not None:
        lines += wrapped(_ddp(of_ddp, sent_as(run)), hanging="  ")
    if (of_fsdp := fsdp(run)) is not None:
        lines += wrapped(_fsdp(of_fsdp), hanging="  ")
    if (of_xla := xla(run)) is not None and (of_xla.collectives or of_xla.commands or of_xla.in_commands):
        lines += wrapped(_xla(of_xla), hanging="  ")
    return lines


def _ddp(found: Ddp, sent: str) -> str:
    sizes = [bucket.size_bytes for bucket in found.buckets if bucket.size_bytes is not None]
    of = f" of {size(min(sizes))} to {size(max(sizes))}" if sizes else ""
    of += f", sent in {sent}" if sent else ""
    said = f"ddp: {counted(len(found.buckets), 'bucket')}{of}; after the last computation of the mean backward pass, "
    said += f"all-reduces are exposed for {duration(found.tail_ns)}"
    said += f" ({duration(found.waited_ns)} of it waiting for a late rank)" if found.waited_ns else ""
    said += f"; in all that is {percent(found.tail_frac)} {_of_all(found.covered_ns)}"
    if found.buckets:
        last = found.buckets[-1]
        said += f"; the last bucket is ready {duration(last.ready_ns)} into the pass and exposed for "
        said += f"{duration(last.exposed_ns)}, {duration(last.after_ns)} of it after that computation"
    if found.repeats:
        said += f"; before {counted(found.repeats, 'optimizer step')} gradients were all-reduced more than once, "
        said += f"{duration(found.repeated_ns)} exposed in all: accumulate under no_sync()"
    if found.searches:
        said += f"; unused parameters were searched for {counted(found.searches, 'time')}"
        said += f" ({duration(found.search_ns)} in all)"
    if found.buffers:
        said += f"; {counted(found.buffers, 'broadcast')} of buffers, {duration(found.buffers_ns)} exposed in all"
    return said


def _of_all(covered_ns: int) -> str:
    """What a total is a share of, which is not steps: so that nobody adds up steps to find it."""
    return f"of the {duration(covered_ns)} from first to last device event of the traces, added up over ranks"


def _fsdp(found: Fsdp) -> str:
    said = f"fsdp, over all ranks and traces: {found.hidden} of {counted(found.gathers, 'all-gather')} are mostly "
    said += f"under compute ({percent(found.hidden_frac)} of their time); FSDP's collectives are exposed for "
    said += f"{duration(found.exposed_ns)} {_of_all(found.covered_ns)}"
    if found.modules:
        said += f"; most by {_module(found.modules[0])}"
    if found.root_again:
        said += f"; the root is gathered again in the backward pass, {duration(found.root_again_ns)} exposed: "
        said += "fully_shard it with reshard_after_forward=False"
    return said


def _module(found: Module) -> str:
    what = "reduce-scatter" if found.what == "reduce_scatter" else f"{found.what} all-gather"
    calls = counted(found.count, "call")
    return f"the {what} of {found.module or 'the root'} ({duration(found.exposed_ns)} in {calls})"


def _xla(found: Xla) -> str:
    said = "xla, over all devices and traces: " + "; ".join(_collective(one) for one in found.collectives)
    if found.commands:
        most = shortened(found.command_names[0])
        said += f"; {found.commands} of {found.works} operations are command buffers, {most} first"
    if found.in_commands:
        said += f"; {found.in_commands} of {found.works} operations ran in command buffers"
    return said


def _modes(found: XlaCollective) -> str:
    said = ""
    if found.asynchronous is not None:
        by = f" (told by {' and '.join(found.told_by)})" if found.told_by else ""
        said = f", {found.asynchronous or 'none'} asynchronous{by}"
    elif found.untold < found.count:
        said = f", of {found.untold} of which it is not known whether they are asynchronous"
    if found.combined:
        said += f", {found.combined} of several arrays"
    if found.in_commands:
        said += f", {found.in_commands} in command buffers"
    return said


def _collective(found: XlaCollective) -> str:
    said = f"{counted(found.count, found.name)}"
    if found.per_step == found.per_step:
        said += f", {found.per_step:.0f} in a step of a device"
    said += _modes(found)
    said += f", {duration(found.exposed_ns)} exposed"
    if found.exposed_ns and len(found.longest) > 1:
        said += f", most by {shortened(found.longest[0].name)} ({duration(found.longest[0].exposed_ns)})"
    if found.is_scattered:
        mean = size(found.sized_bytes / found.sized)
        said += f"; {found.small} move less than {size(SMALL_BYTES)} ({mean} in the mean): they could be combined"
    return said
