"""The daemon's side of libkineto's socket, spoken to as libkineto speaks."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from meshscope.capture.attach.kineto_socket import KinetoSocket, check
from meshscope.capture.attach.kineto_traces import configuration, is_whole, written
from meshscope.errors import LaunchError

PATIENCE_S = 5


class Client:
    """As ``IpcFabricConfigClient``: a datagram socket with a name of its own."""

    def __init__(self, folder: Path) -> None:
        self._server = str(folder / "dynolog")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / f"client{os.urandom(4).hex()}"))
        self._socket.settimeout(PATIENCE_S)

    def ask(self, kind: bytes, payload: bytes) -> tuple[bytes, bytes]:
        self._socket.sendto(struct.pack("<Q32s", len(payload), kind) + payload, self._server)
        answer = self._socket.recv(65_536)
        size, name = struct.unpack_from("<Q32s", answer)
        assert len(answer) == 40 + size
        return name.rstrip(b"\0"), answer[40:]

    def request(self, *pids: int, what: int = 3) -> bytes:
        kind, payload = self.ask(b"req", struct.pack(f"<iiq{len(pids)}i", what, len(pids), 0, *pids))
        assert kind == b"req"
        return payload

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[KinetoSocket]:
    server = KinetoSocket(str(tmp_path))
    yield server
    server.close()


@pytest.fixture
def client(tmp_path: Path, answering: KinetoSocket) -> Iterator[Client]:
    found = Client(tmp_path)
    yield found
    found.close()


def test_a_process_gets_its_order_once_and_nothing_else(answering: KinetoSocket, client: Client) -> None:
    assert answering.asked_ns(71) is None
    assert client.request(71, 7) == b"", "there is no order yet"
    assert answering.asked_ns(71) is not None
    assert answering.asked_ns(7) is None, "the ids behind the first are those above it"
    answering.order(71, "ACTIVITIES_DURATION_MSECS=100")
    assert client.request(70) == b"", "another process's order"
    assert client.request(71, what=1) == b"", "while it is profiled it asks for events alone"
    assert client.request(71) == b"ACTIVITIES_DURATION_MSECS=100"
    assert client.request(71) == b""
    assert answering.is_fetched(71)


def test_an_order_that_is_withdrawn_is_not_given(answering: KinetoSocket, client: Client) -> None:
    answering.order(71, "X=1")
    assert not answering.is_fetched(71)
    assert answering.withdraw(71)
    assert client.request(71) == b""
    assert not answering.withdraw(71)


def test_a_process_that_registers_gets_a_count_back(client: Client) -> None:
    kind, payload = client.ask(b"ctxt", struct.pack("<iiq", 0, 71, 0))
    assert (kind, struct.unpack("<i", payload)) == (b"ctxt", (1,))


def test_bytes_that_are_no_message_end_nothing(answering: KinetoSocket, client: Client, tmp_path: Path) -> None:
    stray = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for message in (b"", b"x", b"\xff" * 40, struct.pack("<Q32s", 2**63, b"req") + b"\1\2", b"\0" * 60):
        stray.sendto(message, str(tmp_path / "dynolog"))
    # A count far beyond what follows.
    assert client.ask(b"req", struct.pack("<iiqi", 3, 2**30, 0, 71))[1] == b""
    stray.close()
    assert answering.asked_ns(71) is not None


def test_a_socket_that_is_taken_is_told_of(answering: KinetoSocket, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="Somebody else answers") as refused:
        check(str(tmp_path))
    assert "dynolog" in refused.value.hint


def test_a_closed_socket_can_be_had_again(tmp_path: Path) -> None:
    check(str(tmp_path))
    check(str(tmp_path))


def test_a_trace_is_whole_once_its_last_key_is_closed(tmp_path: Path) -> None:
    log = tmp_path / "window1.json"
    file = written(log, 71)
    assert file.name == "window1_71.json"
    assert not is_whole(file)
    file.write_text('{"traceEvents": [{"name": "a"}')
    assert not is_whole(file), "between two events there is a brace too"
    file.write_text('{"traceEvents": [{"name": "a"}],\n  "traceName": "x.json"\n}\n')
    assert is_whole(file)


def test_a_configuration_names_the_file_the_start_and_the_length(tmp_path: Path) -> None:
    at_ns = 1_700_000_000_123_456_789
    text = configuration(tmp_path / "w.json", start_unix_ns=at_ns, duration_ns=1_500_000_000, warmup_s=2)
    assert text.splitlines() == [
        f"ACTIVITIES_LOG_FILE={tmp_path / 'w.json'}",
        "PROFILE_START_TIME=1700000000123",
        "ACTIVITIES_WARMUP_PERIOD_SECS=2",
        "ACTIVITIES_DURATION_MSECS=1500",
        "PROFILE_REPORT_INPUT_SHAPES=true",
    ]
