"""Stacks as faulthandler writes them, and what a rank's own thread makes of them."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from meshscope.capture import stacks
from meshscope.capture.workers import stalls
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import StacksTaken
from meshscope.recording.frames import Frame, frame, is_own
from meshscope.recording.journal import Journal, Tail
from meshscope.recording.layout import LOGS

TEXT = """\
step 7 loss 1.0
Thread 0x00007fb12617b6c0 (most recent call first):
  File "/lib/python3.11/threading.py", line 327 in wait
  File "/lib/python3.11/threading.py", line 1045 in _bootstrap_inner

Thread 0x00007fb145d106c0 (most recent call first):
  File "/home/me/data.py", line 12 in fetch

Current thread 0x00007fb147237b80 (most recent call first):
  File "/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 979 in _engine_run_backward
  File "/home/me/train.py", line 67 in train
"""
BACKWARD = "/venv/lib/python3.11/site-packages/torch/autograd/graph.py:979 _engine_run_backward"
TRAIN, FETCH = "/home/me/train.py:67 train", "/home/me/data.py:12 fetch"


def test_a_dump_is_read_with_its_main_thread_first() -> None:
    threads = stacks.parsed(TEXT)
    assert threads[0] == (BACKWARD, TRAIN)
    assert threads[1] == (FETCH,)
    assert len(threads) == 3
    assert stacks.busy(threads) == ((BACKWARD, TRAIN), (FETCH,)), "a thread that waits for work says nothing"


def test_of_two_dumps_in_a_log_the_last_one_counts() -> None:
    later = TEXT.replace("line 67", "line 68")
    assert stacks.parsed(f"{TEXT}step 8\n{later}")[0][1] == "/home/me/train.py:68 train"
    assert len(stacks.parsed(f"{TEXT}step 8\n{later}")) == 3


@pytest.mark.parametrize("text", ["", "no dump", 'File "x", line 1 in y', "Thread 0x1 (most recent call first):\n"])
def test_text_without_a_stack_gives_none(text: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path, "supervisor", t0_unix_ns=0)
    assert stacks.parsed(text) == ()
    assert not stacks.keep(text, tmp_path, journal, rank=0, name="x")
    assert not (tmp_path / "stacks").exists()


def test_what_is_kept_is_told_in_the_journal_with_what_the_log_says_of_waiting(tmp_path: Path) -> None:
    (tmp_path / LOGS).mkdir()
    waits = "E1130 rendezvous.cc:116] [id=0] This thread has been waiting for … and may be stuck."
    (tmp_path / LOGS / "rank3.txt").write_text(f"step 7\n{waits}\nstep 8\n")
    journal = Journal(tmp_path, "supervisor", t0_unix_ns=0)
    assert stacks.keep(TEXT, tmp_path, journal, rank=3, name="asked1")
    (entry,) = Tail(tmp_path / "journal" / "supervisor.jsonl").read()
    assert isinstance(entry, StacksTaken)
    assert (entry.rank, entry.path, entry.said) == (3, "stacks/asked1-rank3.txt", (waits,))
    assert (tmp_path / entry.path).read_text() == TEXT


def _waits(device: int, name: str, held: np.ndarray, ready: threading.Event, over: threading.Event) -> None:
    ready.set()
    over.wait(10)


def test_a_rank_tells_where_its_threads_are_with_their_plain_arguments(tmp_path: Path) -> None:
    ready, over = threading.Event(), threading.Event()
    arguments = (3, "x" * 99, np.int32(7), ready, over)
    thread = threading.Thread(target=_waits, args=arguments, daemon=True)
    thread.start()
    ready.wait(10)
    journal = RankJournal(tmp_path, 2, t0_unix_ns=0)
    teller = threading.Thread(target=stalls.tell, args=(tmp_path, journal, 1))
    teller.start()
    teller.join()
    over.set()
    thread.join()

    (entry,) = [e for e in Tail(tmp_path / "journal" / "rank2.jsonl").read() if isinstance(e, StacksTaken)]
    assert entry.rank == 2
    assert any("test_a_rank_tells_where" in text for text in entry.threads[0]), "the main thread comes first"
    text = (tmp_path / entry.path).read_text()
    assert "_waits(device=3, held=7)" in text, "long texts and other objects are left out"
    assert "stalls.py" not in text, "the thread that tells leaves itself out"


def test_frames_are_told_apart_as_the_programs_own_or_not() -> None:
    assert frame(TRAIN) == Frame("/home/me/train.py", "67", "train")
    assert frame("no frame") is None
    assert is_own("/home/me/train.py")
    assert is_own("/venv/lib/python3.11/site-packages/meshscope/_bundled/workloads/jax_pmap.py")
    for path in (
        "/venv/lib/python3.11/site-packages/jax/_src/callback.py",
        "/usr/lib/python3.11/threading.py",
        "/src/meshscope/capture/workers/start.py",
        "<frozen runpy>",
    ):
        assert not is_own(path), path


def test_a_frame_is_told_short_and_names_its_place() -> None:
    found = frame("/w/injecting.py:185 _stalled.<locals>.wait(device=3, step=8)")
    assert found is not None
    assert found.words == "wait(device=3, step=8) (injecting.py:185)"
    assert found.place == 3
    assert frame("/w/a.py:1 wait(devices=3)").place is None  # type: ignore[union-attr]
