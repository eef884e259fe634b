"""A training step of one rank, as a program for the replay."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.operations import Groups, Layer, Stage, groups
from meshscope.advisor.prices import Prices
from meshscope.advisor.replay import COMPUTE, HOST, Piece, Repeat
from meshscope.advisor.stacks import Stack

_QUEUE = 1024
"""Kernels that wait on a stream before the host must: the depth of CUDA's launch queue."""

_HOOKS = 20
"""Launches' worth of the host's time for one collective of data parallelism: finding buffers, hooks, NCCL's call."""

_FARTHEST = 10
"""Layers that the host runs ahead at most (a replay remembers no more)."""

Waits = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Step:
    """Makes the programs of a stage: ``prices`` what work costs, ``is_whole`` whether compute tells no parts."""

    stage: Stage
    candidate: Candidate
    ran: Stack
    prices: Prices
    is_whole: bool = True

    @property
    def groups(self) -> Groups:
        return groups(self.candidate)

    @property
    def gathers(self) -> bool:
        """Whether parameters are gathered as layers need them. Within a pipeline they are gathered once per step, and
        gradients reduced once, as stages would otherwise do both for every micro-batch."""
        laid = self.candidate
        return laid.zero_stage >= 2 and laid.sharded_over > 1 and laid.pipeline == 1

    @property
    def overlaps(self) -> bool:
        """Whether gradients are reduced beside the backward pass, else once all of it is over."""
        return self.gathers or self.candidate.is_overlapped

    # ---- communication of data parallelism

    def gather(self, layer: Layer, waits: Waits = ()) -> tuple[Piece, ...]:
        if not self.gathers:
            return ()
        numerics = self.candidate.numerics
        size = layer.parameters * (numerics.cast_bytes or numerics.parameter_bytes)
        return (self.sharded("all_gather", size, waits, "gathered"),)

    def sharded(self, kind: str, size_bytes: float, waits: Waits, gives: str) -> Piece:
        laid = self.candidate
        took_s = self.prices.collective_s(kind, size_bytes, laid.sharded_over, self.groups.shard)
        return Piece("shard", took_s, kind, gives, "collective", waits, gives, self.prices.host_s(_HOOKS), size_bytes,
                     "shard")  # fmt: skip

    def replicated(self, kind: str, size_bytes: float, waits: Waits) -> tuple[Piece, ...]:
        """All ranks that have the same, in buckets."""
        laid, ranks = self.candidate, self.candidate.replicate * (1 if self.gathers else self.candidate.context)
        stride = self.groups.replicate if self.gathers else self.groups.context
        if ranks < 2:
            return ()
        buckets = max(1.0, size_bytes / max(laid.bucket_bytes, 1)) if laid.bucket_bytes else 1.0
        took_s = buckets * self.prices.collective_s(kind, size_bytes / buckets, ranks, stride)
        return (Piece("replicate", took_s, kind, "reduced", "collective", waits, "reduced",
                      self.prices.host_s(_HOOKS), size_bytes, "replicate"),)  # fmt: skip

    def reduce(self, layer: Layer) -> tuple[Piece, ...]:
        """Gradients of a layer, to whoever owns them."""
        laid = self.candidate
        size = (layer.parameters) * laid.numerics.reduce_bytes
        after = ((COMPUTE, 0),)
        if laid.zero_stage == 0:
            return self.replicated("all_reduce", size, after)
        if laid.sharded_over < 2:
            return self.replicated("all_reduce", size, after)
        buckets = 1.0 if self.gathers else max(1.0, size / self.bucket_bytes)
        one = self.sharded("reduce_scatter", size / buckets, after, "reduced")
        whole = replace(one, seconds=one.seconds * buckets, size_bytes=size)
        more = self.replicated("all_reduce", size / laid.sharded_over, (("reduced", 0),)) if laid.replicate > 1 else ()
        return (whole, *more)

    @property
    def bucket_bytes(self) -> float:
        """Of the distributed optimizer: 40 million parameters, or one per data rank (Megatron-LM, its default)."""
        laid = self.candidate
        return max(40e6, 1e6 * laid.sharded_over) * laid.numerics.reduce_bytes

    # ---- one micro-batch

    def work(self, layer: Layer, phase: str, waits: Waits = ()) -> tuple[Piece, ...]:
        """A layer's own pieces; the first waits for its parameters, the last says that the layer is done."""
        return self.issued(_waiting(self.priced(layer, phase), waits))

    def priced(self, layer: Layer, phase: str) -> tuple[Piece, ...]:
        """A layer's own pieces, and a mark that it is done."""
        operations = layer.forward if phase == "forward" else layer.backward
        pieces = self.prices.pieces(operations, phase, is_whole=self.is_whole)
        if not pieces:
            return ()
        return (*pieces, Piece(COMPUTE, 0.0, "", phase, "", ((pieces[-1].lane, 0),), "layer"))

    def issued(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """As the host issues them. Where it needs less time than the device it is ahead all the while, and nothing ever
        waits for it; else it runs ahead until the queue is full."""
        host_s = sum(each.host_s for each in pieces)
        if host_s < sum(each.seconds for each in pieces if each.lane == COMPUTE):
            return tuple(replace(each, host_s=0.0) if each.host_s else each for each in pieces)
        launches = host_s / max(self.prices.host_s(1), 1e-12)
        depth = min(_FARTHEST, max(1, int(_QUEUE / max(launches, 1.0))))
        return (Piece(HOST, 0.0, "", waits=(("layer", depth),)), *pieces)

    def forward(self) -> tuple[Piece | Repeat, ...]:
        stage = self.stage
        body: list[Piece | Repeat] = []
        if stage.first is not None:
            body += [*self.gather(_ends(stage)), *self.work(stage.first, "forward", self.own(0))]
        runs = stage.layers
        if runs:
            body += self.gather(runs[0][0])
        for number, (layer, many) in enumerate(runs):
            following = runs[number + 1][0] if number + 1 < len(runs) else None
            body += self.run(layer, many, following, "forward")
        if stage.last is not None:
            body += self.work(stage.last, "forward")
        return tuple(body)

    def backward(self, *, reduces: bool) -> tuple[Piece | Repeat, ...]:
        stage, regathers = self.stage, self.gathers and self.candidate.zero_stage == 3
        body: list[Piece | Repeat] = []
        if stage.last is not None:
            body += self.work(stage.last, "backward")
        runs = stage.layers[::-1]
        if runs and regathers:
            body += self.gather(runs[0][0], (("layer", 1),))
        for number, (layer, many) in enumerate(runs):
            following = runs[number + 1][0] if number + 1 < len(runs) else None
            body += self.run(layer, many, following, "backward", reduces=reduces)
        if stage.first is not None:
            body += self.work(stage.first, "backward")
            if reduces and self.overlaps:
                body += self.reduce(_ends(stage))
        elif stage.last is not None and reduces and self.overlaps:
            body += self.reduce(stage.last)
        return tuple(body)

    def run(
        self, layer: Layer, many: int, following: Layer | None, phase: str, *, reduces: bool = False
    ) -> list[Piece | Repeat]:
        """Layers alike: each gathers the next one's parameters before it computes, and reduces its own gradients."""
        gathers = self.gathers and (phase == "forward" or self.candidate.zero_stage == 3)
        # The buffer of the layer before must be free before another is gathered into it.
        room: Waits = (("layer", max(0, self.candidate.prefetch - 1)),)
        after = self.reduce(layer) if reduces and self.overlaps else ()
        own = self.priced(layer, phase)
        ahead = self.gather(layer, room) if gathers else ()
        inner = self.issued((*ahead, *_waiting(own, self.own(1, gathers=gathers)), *after))
        ahead = self.gather(following, room) if gathers and following is not None else ()
        lag = 1 if following is not None else 0
        last = self.issued((*ahead, *_waiting(own, self.own(lag, gathers=gathers)), *after))
        return [Repeat(inner, many - 1), *last] if many > 1 else list(last)

    def own(self, lag: int, *, gathers: bool = True) -> Waits:
        return (("gathered", lag),) if self.gathers and gathers else ()

    # ---- the step

    def ending(self) -> tuple[Piece, ...]:
        """Once all gradients are there: their norm, the optimizer, and what shards send back."""
        laid, prices = self.candidate, self.prices
        numerics = laid.numerics
        own = self.stage.parameters / laid.sharded_over + self.stage.expert_parameters / self.expert_shards
        state = numerics.parameter_bytes + numerics.master_bytes + numerics.optimizer_bytes
        moved = own * (2 * state + numerics.gradient_bytes) * self.prices.speed.optimizer
        clipped = own * 2 * numerics.gradient_bytes
        launches = 0 if self.ran.is_compiled else 60
        waits: Waits = (("reduced", 0), (COMPUTE, 0))
        pieces = [
            Piece(COMPUTE, prices.memory_s(clipped), "gradient norm", "step", "memory", waits, COMPUTE),
            Piece(COMPUTE, prices.memory_s(moved), "optimizer", "step", "memory", (), COMPUTE, prices.host_s(launches)),
        ]
        if laid.zero_stage and laid.sharded_over > 1 and not (self.gathers or self.is_gather_beside_forward):
            size = self.stage.parameters * (numerics.cast_bytes or numerics.parameter_bytes)
            pieces.append(self.sharded("all_gather", size, ((COMPUTE, 0),), "gathered"))
        return tuple(pieces)

    @property
    def is_gather_beside_forward(self) -> bool:
        """Whether ZeRO-1 gathers parameters while the next step's first layers compute."""
        return self.candidate.is_overlapped and self.ran.is_megatron

    @property
    def expert_shards(self) -> float:
        laid = self.candidate
        return max(1.0, laid.sharded_over / laid.expert) if laid.zero_stage else 1.0


def _waiting(pieces: tuple[Piece, ...], waits: Waits) -> tuple[Piece, ...]:
    if not pieces or not waits:
        return pieces
    return (replace(pieces[0], waits=(*pieces[0].waits, *waits)), *pieces[1:])


def _ends(stage: Stage) -> Layer:
    """The embedding and the head, which are gathered and reduced as one."""
    both = [each for each in (stage.first, stage.last) if each is not None]
    return Layer("ends", (), (), sum(each.parameters for each in both))
