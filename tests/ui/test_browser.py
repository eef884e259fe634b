"""Through ``textual serve`` in a browser: the screen is drawn, keys reach it, and leaving ends the program."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import browser
import hostile
import made
import psutil
import pytest
from tmux import MESHSCOPE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("textual_dev") is None, reason="the browser extra is not installed"),
]

SERVE = "from textual_dev.cli import run; run()"  # the ``textual`` command


class Served:
    """``textual serve`` of a command, on a port of its own."""

    def __init__(self, command: str, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # A server has no terminal, and what it says of one is not the browser's.
        environ = os.environ | {"TERM": "dumb", "MESHSCOPE_CACHE": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
        with log.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE, "serve", "-h", "127.0.0.1", "-p", str(self.port), "-c", command],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environ,
            )  # fmt: skip
        end = time.monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.1)

    @property
    def programs(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made.write(tmp_path / "run")
    found = Served(shlex.join([*MESHSCOPE, "watch", str(tmp_path / "run")]), tmp_path / "serve.log")
    yield found
    found.close()


async def test_a_browser_shows_the_screen_takes_keys_and_is_left(tmp_path: Path, served: Served) -> None:
    def shown() -> str:
        """What the terminal in the page shows, of a size that the page has chosen."""
        paper = hostile.Paper(400, 150)
        paper.write(page.received.decode("utf-8", "ignore"))
        return paper.text

    (tmp_path / "browser").mkdir()
    async with browser.page(tmp_path / "browser") as page:
        await page.open(f"http://127.0.0.1:{served.port}/", (1400, 900))
        await page.until(lambda: b"450" in page.received, "the verdict")
        await page.until(lambda: "▸✓ ddp" in shown() and "q quit" in shown(), "the table")
        assert b"38;2;" in page.received
        await asyncio.sleep(1)  # the page fades in
        picture = await page.picture()
        (tmp_path / "page.png").write_bytes(picture)
        assert browser.inked(picture) > 0.05
        await page.click(30, 10)
        await page.press("j")
        await page.until(lambda: "▸✓ fsdp" in shown(), "the next strategy")
        programs = served.programs
        assert programs
        await page.press("q")
        await page.until(lambda: page.is_closed, "the end of the connection")
    assert psutil.wait_procs(programs, timeout=20)[1] == []
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


async def test_a_page_that_is_closed_ends_the_program(tmp_path: Path, served: Served) -> None:
    (tmp_path / "browser").mkdir()
    async with browser.page(tmp_path / "browser") as page:
        await page.open(f"http://127.0.0.1:{served.port}/", (800, 600))
        await page.until(lambda: b"strategies" in page.received, "the screen")
        programs = served.programs
        assert programs
    assert psutil.wait_procs(programs, timeout=30)[1] == []
