"""Memory imbalance: one rank is much fuller than the others and decides what fits.

Fires when the fullest rank's peak is a tenth above the median rank's, and by 256 MB: on a model of megabytes it decides
nothing, and there the profiler's own buffers on one rank would be it. Stages of a pipeline differ by design, which is
said then; what fits is the fullest one's all the same.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.imbalance import memory_imbalance as imbalance
from meshscope.analysis.pipeline import pipeline
from meshscope.run import Run
from meshscope.units import counted, percent, size

LEAST_BYTES = 256_000_000

_FIX = """# before anything else, or contexts of all ranks land on device 0:
torch.cuda.set_device(local_rank)
# shard every block, then the model; gather no state dict on one rank:
torch.distributed.fsdp.fully_shard(block)"""
_FIX_JAX = """# see where arrays lie, then shard what one device holds whole:
jax.debug.visualize_array_sharding(array)"""

_FIX_PIPELINE = """# fewer blocks to the fullest stage, or its activations computed again:
x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"""

_ADVICE = "The batch that fits is the fullest rank's. Find what it holds alone, or move layers from it."
_ENDS = "the first and the last hold the embedding too, and the last one logits. The batch that fits is the fullest "
_ENDS += "stage's: move blocks from it, or compute its activations again."
_BY_DESIGN = {
    "gpipe": f"Partly by design: every stage keeps the activations of all micro-batches, and {_ENDS}",
    "1f1b": f"Partly by design: the first stage keeps the activations of as many micro-batches as there are stages, "
    f"the last one of one, and {_ENDS}",
    "interleaved": f"Partly by design: the first stages keep the activations of more micro-batches, and {_ENDS}",
}


def memory_imbalance(run: Run) -> tuple[Finding, ...]:
    found = imbalance(run)
    if found is None or not found.is_material or found.peak_bytes - found.median_bytes < LEAST_BYTES:
        return ()
    staged = pipeline(run)
    said = f"rank {found.fullest} peaks at {size(found.peak_bytes)}, the median of {counted(found.ranks, 'rank')} at "
    said += f"{size(found.median_bytes)}: {percent(found.frac)} of that more ({found.how or 'as recorded'})"
    return (
        Finding(
            code=FINDING.code,
            title="memory imbalance" if staged is None else "stages hold unequal memory",
            ranks=(found.fullest,),
            evidence=(said, f"rank {found.emptiest} has the least, {size(found.least_bytes)}"),
            advice=_ADVICE if staged is None else _BY_DESIGN[staged.schedule],
            fix=_FIX_PIPELINE if staged is not None else _FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


FINDING = Rule("memory-imbalance", memory_imbalance)
