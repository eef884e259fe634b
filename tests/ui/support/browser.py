"""Headless Chromium, spoken to over its DevTools protocol: a page, what its web sockets receive, keys and pictures."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import struct
import subprocess
import time
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """One page. ``received`` is everything that its web sockets were sent as bytes, so far."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.received = b""
        self.is_closed = False
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Network.webSocketFrameReceived":
                frame = told["params"]["response"]
                if frame["opcode"] == 2:
                    self.received += base64.b64decode(frame["payloadData"])
            elif told["method"] == "Network.webSocketClosed":
                self.is_closed = True

    async def ask(self, method: str, **given: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": given})
        told = await asyncio.wait_for(answer, PATIENCE_S)
        assert "error" not in told, told
        found: dict[str, Any] = told["result"]
        return found

    async def open(self, address: str, size: tuple[int, int]) -> None:
        await self.ask("Network.enable")
        await self.ask("Page.enable")
        width, height = size
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self.ask("Page.navigate", url=address)

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"{what} never came"
            await asyncio.sleep(0.05)

    async def click(self, x: int, y: int) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, letter: str) -> None:
        code = {"key": letter, "code": f"Key{letter.upper()}", "windowsVirtualKeyCode": ord(letter.upper())}
        await self.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, **code)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **code)

    async def picture(self) -> bytes:
        """A PNG of what is seen."""
        return base64.b64decode((await self.ask("Page.captureScreenshot", format="png"))["data"])


@contextlib.asynccontextmanager
async def page(place: Path) -> AsyncIterator[Page]:
    """An empty page of a browser that keeps its things in ``place``."""
    import aiohttp

    command = [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={place}", "--remote-debugging-port=0", "about:blank"]
    with (place / "chromium.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        port = await _port(place / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                address = (await answer.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        process.wait(10)


async def _port(told: Path) -> int:
    end = time.monotonic() + PATIENCE_S
    while not told.is_file() or not told.read_text().strip():
        assert time.monotonic() < end, "the browser does not start"
        await asyncio.sleep(0.1)
    return int(told.read_text().split()[0])


def inked(png: bytes) -> float:
    """Which share of a picture's pixels differs from its most frequent colour."""
    rows, size = _pixels(png)
    counts: dict[bytes, int] = {}
    for row in rows:
        for at in range(0, len(row), size):
            pixel = bytes(row[at : at + size])
            counts[pixel] = counts.get(pixel, 0) + 1
    return 1 - max(counts.values()) / sum(counts.values())


def _pixels(png: bytes) -> tuple[list[bytearray], int]:
    """Rows of a PNG of 8 bits per channel that is not interlaced, and the bytes of a pixel (PNG, third edition)."""
    at, data, header = 8, b"", b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        header, data = (content, data) if kind == b"IHDR" else (header, data + content * (kind == b"IDAT"))
        at += length + 12
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    assert (depth, interlaced) == (8, 0)
    size = {2: 3, 6: 4}[colour]
    raw, rows = zlib.decompress(data), [bytearray(width * size)]
    for y in range(height):
        begin = y * (width * size + 1)
        rows.append(_row(raw[begin], bytearray(raw[begin + 1 : begin + 1 + width * size]), rows[-1], size))
    return rows[1:], size


def _row(kind: int, row: bytearray, above: bytearray, size: int) -> bytearray:
    """A row without its filter."""
    if kind == 0:
        return row
    for at in range(len(row)):
        a = row[at - size] if at >= size else 0
        b, c = above[at], above[at - size] if at >= size else 0
        row[at] = (row[at] + _guess(kind, a, b, c)) & 0xFF
    return row


def _guess(kind: int, a: int, b: int, c: int) -> int:
    if kind < 4:
        return (0, a, b, (a + b) // 2)[kind]
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
