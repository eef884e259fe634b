"""How a model is laid over devices: the strategy, its mesh, the batch, and what is kept or computed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Checkpointing = Literal["none", "selective", "full"]


@dataclass(frozen=True)
class Numerics:
    """Bytes per parameter of each part of the state, and what matrices are multiplied in.

    ``compute`` is ``fp32``, ``tf32``, ``fp16``, ``bf16`` or ``fp8``. ``parameter_bytes`` is the copy that is trained
    on; ``master_bytes`` a second one in fp32 that the optimizer keeps (0 where the first is fp32 already);
    ``cast_bytes`` a copy in the compute type that lives while a layer (or under autocast the whole model) is in use.
    ``optimizer_bytes`` are the moments; ``reduce_bytes`` the type in which gradients travel.
    """

    name: str
    compute: str
    parameter_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    master_bytes: float = 0.0
    cast_bytes: float = 0.0
    reduce_bytes: float = 4.0


@dataclass(frozen=True)
class Candidate:
    """Degrees multiply to the number of devices: ``replicate`` × ``shard`` × ``tensor`` × ``pipeline`` × ``context``
    (experts are spread over ranks of the data axes: ``expert`` divides ``replicate`` × ``shard`` × ``context``, or with
    ``is_expert_over_tensor`` those times ``tensor``).

    ``zero_stage``: 0 all state on every data rank; 1 optimizer sharded; 2 gradients too; 3 parameters too. It is over
    ``shard`` × ``context`` ranks; ``replicate`` above 1 beside ``shard`` above 1 is HSDP (or a distributed optimizer
    within a group). ``virtual`` stages per pipeline rank; ``schedule`` is ``gpipe``, ``1f1b`` or ``interleaved``.
    ``micro_batch`` is in samples per data rank; ``accumulate`` micro-batches make a step (of a pipeline: they fill it).
    ``stack`` names the software whose habits matter (see ``stacks``); ``strategy`` is what a person calls it.
    ``bucket_bytes`` is DDP's, ``prefetch`` how many layers FSDP gathers ahead. ``is_compiled``: torch.compile or XLA.
    ``is_flash``: attention whose scores never reach memory. ``is_logits_chunked``: the loss is computed in pieces.
    """

    strategy: str
    framework: Literal["torch", "jax"]
    stack: str
    seq_len: int
    micro_batch: float
    numerics: Numerics
    accumulate: int = 1
    replicate: int = 1
    shard: int = 1
    zero_stage: int = 0
    tensor: int = 1
    is_sequence_parallel: bool = True
    pipeline: int = 1
    virtual: int = 1
    schedule: str = "1f1b"
    context: int = 1
    expert: int = 1
    is_expert_over_tensor: bool = False
    checkpointing: Checkpointing = "none"
    is_compiled: bool = False
    is_flash: bool = True
    is_logits_chunked: bool = False
    is_overlapped: bool = True
    bucket_bytes: int = 25 * 2**20
    is_bucket_view: bool = False
    prefetch: int = 1
    reshards: bool = True
    optimizer: str = "adamw"

    @property
    def data(self) -> int:
        """Ranks that see different samples."""
        return self.replicate * self.shard

    @property
    def devices(self) -> int:
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def tokens_per_step(self) -> float:
        """Of all devices together."""
        return self.micro_batch * self.accumulate * self.data * self.seq_len

    @property
    def sharded_over(self) -> int:
        """Ranks that divide what ``zero_stage`` shards."""
        return self.shard * self.context if self.zero_stage else 1
