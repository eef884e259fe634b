"""The worker server of ``torch.distributed.debug``: plain HTTP without authentication, for stacks, calls and traces."""

from __future__ import annotations

import http.client

from meshscope.errors import InputError, LaunchError

_PROBE_S = 5.0
_DUMP_S = 10.0
_STOP_S = 120.0
_HINT = "Call torch.distributed.debug.start_debug_server() in the job; give the HOST:PORT of a rank's worker server."


def check(address: str) -> None:
    """Raises InputError where no worker server answers."""
    try:
        _post(address, "ping", _PROBE_S)
    except LaunchError as error:
        raise InputError(f"{address} is no worker server of torch: {error.message}", hint=_HINT) from error


def answers_http(address: str) -> bool:
    """Whether what listens there speaks HTTP/1, as a worker server does and a gRPC server does not."""
    try:
        _post(address, "ping", _PROBE_S)
    except LaunchError:
        return False
    return True


def stacks(address: str) -> str:
    """Where every Python thread of the process is, as faulthandler writes it."""
    return _post(address, "dump_traceback", _DUMP_S).decode(errors="replace")


def flight(address: str) -> bytes:
    """Its flight recorder as JSON."""
    return _post(address, "fr_trace_json", _DUMP_S)


def trace(address: str, duration_ns: int) -> bytes:
    """A Kineto trace of so long, as JSON. The process writes it to memory, and is held while it does."""
    duration_s = duration_ns / 1e9
    return _post(address, f"torch_profile?duration={duration_s:g}", duration_s + _STOP_S)


def _post(address: str, handler: str, patience_s: float) -> bytes:
    """Raises LaunchError with what went wrong."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=patience_s)
    try:
        connection.request("POST", f"/handler/{handler}", body=b"")
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise LaunchError(f"{address} gave no answer: {_reason(error)}.") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise LaunchError(f"{address} refused {handler.partition('?')[0]}: HTTP {answer.status}.")
    return content


def _reason(error: Exception) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return (strerror or str(error) or type(error).__name__).strip().rstrip(".")
