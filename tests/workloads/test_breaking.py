"""The kernel paces what a rank with a slow link sends, on every connection but that to the store."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

Import = Callable[[str], ModuleType]
SO_MAX_PACING_RATE = 47
CPU = SimpleNamespace(type="cpu")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pacing by Linux's kernel")


def _connected() -> tuple[socket.socket, socket.socket, int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        one = socket.create_connection(("127.0.0.1", port))
        return one, server.accept()[0], port


def _rate(one: socket.socket) -> int:
    return one.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE)


def test_a_megabyte_takes_as_long_as_the_link_is_slow(workload: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 40 Mbit/s, 5 MB/s, 2 MB take 0.4 s; unpaced, a loopback needs some milliseconds."""
    one, other, _ = _connected()
    store, stored, port = _connected()
    monkeypatch.setenv("MASTER_PORT", str(port))
    received = threading.Thread(target=lambda: other.recv(2_000_000, socket.MSG_WAITALL))
    with one, other, store, stored:
        link = workload("breaking").SlowLink(40, CPU)
        link.slow_down()
        assert _rate(one) == 5_000_000
        assert _rate(store) != 5_000_000
        received.start()
        start_s = time.perf_counter()
        one.sendall(bytes(2_000_000))
        received.join()
        assert 0.3 < time.perf_counter() - start_s < 2


def test_connections_made_later_are_slow_too(workload: Import) -> None:
    link = workload("breaking").SlowLink(40, CPU)
    link.slow_down()
    one, other, _ = _connected()
    with one, other:
        link.slow_down()
        assert _rate(one) == 5_000_000


def test_gpus_have_links_that_cannot_be_slowed(workload: Import) -> None:
    breaking = workload("breaking")
    with pytest.raises(breaking.OptionError, match="links of their own"):
        breaking.SlowLink(40, SimpleNamespace(type="cuda"))


def test_a_crash_is_an_exit_code_and_a_last_line_without_an_exception(workload: Import) -> None:
    folder = Path(str(workload("breaking").__file__)).parent
    code = "import atexit, breaking; atexit.register(print, 'cleaned up'); breaking.crash(6)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 70
    assert done.stdout == ""
    assert done.stderr.splitlines() == ["fatal: rank-crash was asked for at step 6, exit code 70"]
