"""Lines to paste that make a run need less memory, or that let it use what there is."""

from __future__ import annotations

from meshscope.experiment import Experiment
from meshscope.run import Run

EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True torchrun …"
LIMIT = """# the share of the device that this process may take (1.0: all):
torch.cuda.set_per_process_memory_fraction(1.0)"""
WHO = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"
_CUTS = {
    "host": "# half the samples per rank, or fewer ranks and workers on this host",
    "activations": """# compute activations again in the backward pass:
x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
# or half the samples at a time, and an update every second batch:
(loss / 2).backward()""",
    "state": """# shard the optimizer's state over the ranks of DDP:
optimizer = torch.distributed.optim.ZeroRedundancyOptimizer(
    model.parameters(), optimizer_class=torch.optim.AdamW, lr=lr)""",
    "parameters": """# shard every block, then the model:
torch.distributed.fsdp.fully_shard(block)
torch.distributed.fsdp.fully_shard(model)""",
}
_CUTS_JAX = {
    "host": "# half the samples per device, or fewer devices on this host",
    "activations": """# compute activations again in the backward pass:
block = jax.checkpoint(block)""",
    "state": """# shard what lives on, and let the step reuse the old state's memory:
opt_state = jax.device_put(opt_state, NamedSharding(mesh, P("data")))
step = jax.jit(step, donate_argnums=(0, 1))""",
    "parameters": """params = jax.device_put(params, NamedSharding(mesh, P("data")))
step = jax.jit(step, donate_argnums=(0, 1))""",
}


def cut(term: str, run: Run) -> str:
    """What cuts a term (``activations``, ``state``, ``parameters`` or ``host``): of our own workloads by an option."""
    here = run.experiment
    lines = (_CUTS_JAX if here.framework == "jax" else _CUTS)[term]
    own = _own(term, here)
    return f"# this run again, with its other options:\n{own}\n{lines}" if own else lines


def _own(term: str, here: Experiment) -> str:
    """The option of our workloads that cuts it; "" for what is none of ours, and where no option does."""
    if not here.options or not here.strategy:
        return ""
    if term in ("state", "parameters"):
        return "meshscope run fsdp …" if here.base_strategy == "ddp" else ""
    parts = here.options.get("accumulate", 1)
    if not isinstance(parts, int) or parts < 1 or here.ranks < 1:
        return ""
    options = f" --accumulate {2 * parts}" if here.global_batch % (2 * parts * here.ranks) == 0 else ""
    options += "" if here.options.get("checkpoint_activations") else " --checkpoint-activations"
    return f"meshscope run {here.base_strategy} …{options}" if options else ""
