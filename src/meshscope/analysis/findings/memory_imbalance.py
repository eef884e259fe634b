"""Memory imbalance: one rank is much fuller than the others and decides what fits.

Fires when the fullest rank's peak is a tenth above the median rank's, and by 256 MB: on a model of megabytes it decides
nothing, and there the profiler's own buffers on one rank would be it.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.imbalance import memory_imbalance as imbalance
from meshscope.run import Run
from meshscope.units import counted, percent, size

LEAST_BYTES = 256_000_000

_FIX = """# before anything else, or contexts of all ranks land on device 0:
torch.cuda.set_device(local_rank)
# shard every block, then the model; gather no state dict on one rank:
torch.distributed.fsdp.fully_shard(block)"""
_FIX_JAX = """# see where arrays lie, then shard what one device holds whole:
jax.debug.visualize_array_sharding(array)"""


def memory_imbalance(run: Run) -> tuple[Finding, ...]:
    found = imbalance(run)
    if found is None or not found.is_material or found.peak_bytes - found.median_bytes < LEAST_BYTES:
        return ()
    said = f"rank {found.fullest} peaks at {size(found.peak_bytes)}, the median of {counted(found.ranks, 'rank')} at "
    said += f"{size(found.median_bytes)}: {percent(found.frac)} of that more ({found.how or 'as recorded'})"
    return (
        Finding(
            code=FINDING.code,
            title="memory imbalance",
            ranks=(found.fullest,),
            evidence=(said, f"rank {found.emptiest} has the least, {size(found.least_bytes)}"),
            advice="The batch that fits is the fullest rank's. Find what it holds alone, or move layers from it.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


FINDING = Rule("memory-imbalance", memory_imbalance)
