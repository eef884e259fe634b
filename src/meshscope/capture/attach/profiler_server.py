"""JAX's profiler server (``jax.profiler.start_server``): gRPC, one call per trace.

The process that is profiled writes the trace itself, to a path that is given to it: it has to see the recording's
folder.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from meshscope.capture.attach import protobuf
from meshscope.errors import InputError, LaunchError, MissingPackageError

_SERVICE = "/tensorflow.ProfilerService"
_PROBE_S = 5.0
_STOP_S = 120.0
_HINT = "Call jax.profiler.start_server(PORT) in the job, and give that HOST:PORT."


def require() -> Any:
    """The gRPC package. Raises MissingPackageError."""
    if importlib.util.find_spec("grpc") is None:
        raise MissingPackageError(
            "Attaching to a JAX process needs grpcio, which this Python does not have.",
            hint="Install: pip install 'meshscope[attach]'",
        )
    return importlib.import_module("grpc")


def check(address: str) -> None:
    """Raises InputError where no profiler server answers. Ends a session that there is not, which changes nothing."""
    grpc = require()
    try:
        _call(grpc, address, "Terminate", protobuf.terminate_request("meshscope-asks-whether-you-are-there"), _PROBE_S)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            why = f"{address} is a gRPC server and no JAX profiler server."
        else:
            why = f"No profiler server answers at {address}."
        raise InputError(why, hint=_HINT) from error


def trace(address: str, *, duration_ns: int, root: Path, session: str, host: str) -> Path:
    """The xplane that the process has written to ``root/session``. Raises LaunchError, which says why there is none."""
    grpc = require()
    duration_ms = max(1, duration_ns // 1_000_000)
    request = protobuf.profile_request(duration_ms=duration_ms, root=str(root), session=session, host=host)
    try:
        _call(grpc, address, "Profile", request, duration_ns / 1e9 + _STOP_S)
    except grpc.RpcError as error:
        raise LaunchError(f"{address} gave no trace: {_said(error)}.") from error
    written = sorted((root / session).glob("*.xplane.pb"))
    if not written:
        raise LaunchError(
            f"{address} was profiled, and there is no trace in {root / session}: the job writes it where it runs.",
            hint="Choose a folder with --out that the job sees under the same path and may write to.",
        )
    return written[0]


def _call(grpc: Any, address: str, method: str, request: bytes, patience_s: float) -> bytes:
    options = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1))
    with grpc.insecure_channel(address, options=options) as channel:
        return bytes(channel.unary_unary(f"{_SERVICE}/{method}")(request, timeout=patience_s))


def _said(error: Any) -> str:
    """One line of what the server said."""
    lines = str(error.details() or "").strip().splitlines()
    return f"{error.code().name.lower().replace('_', ' ')}{f' ({lines[0][:200]})' if lines else ''}".rstrip(".")
