"""Over ``ssh -t`` and inside GNU screen: the screen is drawn, follows the size, and leaves the terminal as it was."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import made
import psutil
import pytest
import tmux
from tmux import MESHSCOPE, Tmux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not tmux.is_here(), reason="tmux is not installed"),
]

needs_screen = pytest.mark.skipif(shutil.which("screen") is None, reason="GNU screen is not installed")
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
needs_ssh = pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="OpenSSH is not installed")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Tmux]:
    found = Tmux(tmp_path)
    yield found
    found.close()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    made.write(tmp_path / "run")
    return tmp_path / "run"


def assert_as_it_was(shell: Tmux) -> None:
    assert (shell.place / "after").read_text() == (shell.place / "before").read_text()
    modes = shell.modes()
    assert (modes["alternate_on"], modes["mouse_any_flag"], modes["cursor_flag"]) == ("0", "0", "1")
    assert shell.stray() == ""


class Server:
    """``sshd`` for one user on a port of its own, with keys of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
        (place / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {place}/user.pub\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
        )
        with contextlib.suppress(OSError):  # who is not root needs none
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = [str(SSHD), "-D", "-e", "-f", str(place / "config")]
        self.process = subprocess.Popen(command, stderr=(place / "sshd.log").open("w"))

    def wait(self) -> None:
        """Until it listens; skips the test where it may not."""
        end = time.monotonic() + 10
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        pytest.skip(f"sshd does not start here: {(self.place / 'sshd.log').read_text().strip()}")

    def command(self, *remote: str) -> list[str]:
        there = f"PYTHONPATH={shlex.quote(os.pathsep.join(sys.path))} MESHSCOPE_CACHE=off {shlex.join(remote)}"
        options = ["StrictHostKeyChecking=no", f"UserKnownHostsFile={self.place}/known", "LogLevel=ERROR"]
        given = [part for option in options for part in ("-o", option)]
        key = ["-i", str(self.place / "user"), "-p", str(self.port)]
        return ["ssh", "-t", "-F", "/dev/null", *given, *key, f"{getpass.getuser()}@127.0.0.1", there]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "ssh").mkdir()
    found = Server(tmp_path / "ssh")
    try:
        found.wait()
        yield found
    finally:
        found.close()


@needs_ssh
def test_over_ssh_it_draws_follows_the_size_and_leaves_no_trace(shell: Tmux, server: Server, recording: Path) -> None:
    shell.start(server.command(*MESHSCOPE, "watch", str(recording)))
    shell.wait_for("ddp         450")
    shell.resize(160, 50)
    shell.wait_until(lambda: len(shell.screen().rstrip().splitlines()) == 50, "fifty lines")
    shell.resize(100, 30)
    shell.wait_until(lambda: len(shell.screen().rstrip().splitlines()) == 30, "thirty lines")
    shell.type("q")
    assert shell.end() == 0
    assert "Recorded in" in shell.screen()
    assert_as_it_was(shell)


@needs_ssh
def test_a_line_that_breaks_ends_the_program_at_the_other_end(shell: Tmux, server: Server, recording: Path) -> None:
    shell.start(server.command(*MESHSCOPE, "watch", str(recording)))
    shell.wait_for("ddp         450")
    there = psutil.Process(server.process.pid).children(recursive=True)
    watching = [process for process in there if str(recording) in process.cmdline()]
    assert watching
    shell.program.kill()
    assert psutil.wait_procs(watching, timeout=20)[1] == []


@needs_screen
def test_inside_screen_it_draws_follows_the_size_and_leaves_no_trace(shell: Tmux, recording: Path) -> None:
    (shell.place / "screenrc").write_text("startup_message off\nvbell off\naltscreen on\n")
    inside = ["screen", "-U", "-c", str(shell.place / "screenrc"), "-S", shell.name]
    shell.start([*inside, *MESHSCOPE, "watch", str(recording)], environ=f"SCREENDIR={shell.place}/screens")
    shell.wait_for("ddp         450")
    shell.resize(160, 50)
    shell.wait_until(lambda: len(shell.screen().rstrip().splitlines()) == 50, "fifty lines")
    shell.type("j")
    shell.wait_for("▸✓ fsdp")
    shell.resize(100, 30)
    shell.wait_until(lambda: len(shell.screen().rstrip().splitlines()) == 30, "thirty lines")
    shell.type("q")
    assert shell.end() == 0
    assert_as_it_was(shell)
