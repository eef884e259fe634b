"""Listens to torch's optimizers, through the hooks that all of them share."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from meshscope import marking
from meshscope.capture.workers import own_engine
from meshscope.capture.workers.own_rank import harmless, say
from meshscope.capture.workers.own_torch import TorchSteps

_listening: list[Listening] = []


def begin() -> None:
    """Listen to the optimizers of this process, and to those of a child that is forked from it."""
    listening = Listening()
    listening.listen()
    _listening.append(listening)
    os.register_at_fork(after_in_child=listening.renew)


def begin_engines() -> None:
    """Listen to DeepSpeed's engines as well, which the script has just loaded."""
    for listening in _listening:
        listening.follow_engines()


class Listening:
    """The hooks, and the watch that they speak to: a forked child has a watch of its own."""

    def __init__(self) -> None:
        self._watch = TorchSteps()
        self._handles: list[Any] = []

    def listen(self) -> None:
        before = harmless(self._before, on_failure=self.stop)
        after = harmless(self._after, on_failure=self.stop)
        self._handles = [
            register_optimizer_step_pre_hook(_uncompiled(before)),
            register_optimizer_step_post_hook(_uncompiled(after)),
        ]
        marking.hear(self._watch)

    def _before(self, optimizer: torch.optim.Optimizer) -> None:
        self._watch.before(optimizer)

    def _after(self, optimizer: torch.optim.Optimizer) -> None:
        self._watch.after(optimizer)

    def _updates(self) -> None:
        self._watch.updates()

    def _updated(self) -> None:
        self._watch.updated()

    def follow_engines(self) -> None:
        """An engine's update is a step, however often it calls its optimizer."""
        updates = harmless(self._updates, on_failure=self.stop)
        updated = harmless(self._updated, on_failure=self.stop)
        if not own_engine.follow(updates, updated):
            say("note: DeepSpeed's engine is not as known: its optimizer's steps are counted")

    def stop(self) -> None:
        """Something failed: never again."""
        self.pause()
        self._watch.drop()

    def pause(self) -> None:
        """Hear nothing until :meth:`listen` is called again."""
        for handle in self._handles:
            handle.remove()

    def renew(self) -> None:
        self._watch = TorchSteps()
        marking.hear(self._watch)


def _uncompiled(hook: Any) -> Any:
    """A hook that is nothing to torch.compile: a step that is compiled goes uncounted, and is compiled as ever.

    Any other hook would split its graph, which ``fullgraph=True`` refuses.
    """

    def told(optimizer: torch.optim.Optimizer, arguments: Any, named: Any) -> None:
        if not torch.compiler.is_compiling():
            hook(optimizer)

    return told
