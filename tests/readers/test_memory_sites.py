"""The line of a program that asked for an allocation."""

from __future__ import annotations

from typing import Any

import pytest

from meshscope.readers.memory_sites import Sites, part, site


def frame(name: str, file: str, line: Any = 0) -> dict[str, Any]:
    return {"name": name, "filename": file, "line": line}


TORCH = frame("forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125)
CPP = frame("at::_ops::mm::call(at::Tensor const&)", "??")
ENGINE = frame("torch::autograd::Engine::thread_main(std::shared_ptr<x> const&)", "??")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([CPP, TORCH, frame("forward", "/home/u/gpt/model.py", 41), frame("main", "/home/u/train.py", 3)],
         "gpt/model.py:41 forward"),
        ([TORCH, frame("f", "C:\\work\\train.py", 3)], "work/train.py:3 f"),
        ([CPP, TORCH], "modules/linear.py:125 forward"),
        ([frame("c10::malloc", "CUDACachingAllocator.cpp"), CPP, ENGINE], "aten::mm in the backward pass"),
        ([CPP], "aten::mm"),
        ([frame("??", "??")], ""),
        ([], ""),
        (["no frame", frame("f", "/a/b.py", "x"), None], "a/b.py:0 f"),
        ([frame("\x1b[2Jf", "/a/\x07b.py", 1)], "a/�b.py:1 �[2Jf"),
        ([frame("<module>", "<stdin>", 4)], "<stdin>:4 <module>"),
    ],
)  # fmt: skip
def test_the_innermost_frame_of_the_program_is_told_and_nothing_in_it_steers_a_terminal(
    frames: list[Any], words: str
) -> None:
    assert site(frames) == words


def test_sites_are_numbered_once() -> None:
    sites = Sites()
    shared = [frame("f", "/a/b.py", 1)]
    assert [sites.numbers(f)[0] for f in (shared, [frame("g", "/a/b.py", 2)], shared, [], None, [dict(shared[0])])] == [
        0, 1, 0, -1, -1, 0,
    ]  # fmt: skip
    assert sites.words == ("a/b.py:1 f", "a/b.py:2 g")


MODULE = frame("_call_impl", "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1790)
ADAM = frame("_init_group", "/venv/lib/python3.11/site-packages/torch/optim/adamw.py", 60)
BACKWARD = frame("_engine_run_backward", "/venv/lib/python3.11/site-packages/torch/autograd/graph.py", 841)
MINE = frame("step", "/home/u/optim/train.py", 3)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([CPP, ADAM, MINE], "optimizer"),
        ([CPP, ENGINE], "backward"),
        ([CPP, MODULE, BACKWARD, MINE], "backward"),  # a checkpointed block, run again
        ([CPP, TORCH, MODULE, MINE], "forward"),
        ([CPP, MINE], "elsewhere"),
    ],
)
def test_who_had_called_tells_the_part_of_the_step(frames: list[Any], words: str) -> None:
    assert part(frames) == words
    assert Sites().numbers(frames)[1] == ("optimizer", "backward", "forward", "elsewhere").index(words)
