"""Files of other kinds: refused with their kind named and what to do, and never waited for."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import pickle
import socket
import sqlite3
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from meshscope import readers
from meshscope.errors import TraceError


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("rank0.json"), io.BytesIO(b""))
    return out.getvalue()


def database(path: Path, table: str) -> bytes:
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE {table} (start INTEGER, end INTEGER)")
    base.close()
    return path.read_bytes()


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def packet(inside: bytes) -> bytes:
    return field(1, inside)


EVENTS = struct.pack("<Q", 24) + b"\1\2\3\4" + b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2" + b"\0" * 4
HLO = field(1, field(1, b"jit_step") + field(2, b"main.12"))
CASES: dict[str, tuple[str, bytes, str]] = {
    "rocprofv3 JSON": ("908_results.json", b'{\n "rocprofiler-sdk-tool": [{"metadata": {}}]}', "rocprofv3"),
    "speedscope": ("p.json", b'{"version": "0.0.1", "$schema": "https://www.speedscope.app/file-format-schema.json"}',
                   "speedscope"),
    "cpuprofile": ("a.cpuprofile", b'{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}]}', "JavaScript CPU"),
    "nsys JSON, events first": (
        "r.json", b'{"Type":48,"TraceProcessEvent":{"startNs":"1","endNs":"2"}}\n{"Type":80}', "nsys export as JSON"),
    "nsys JSON, split strings": ("r.json", b'{"type":"String","id":"1","value":"x"}\n', "nsys export as JSON"),
    "Firefox profile": ("f.json", b'{"meta":{"interval":1,"startTime":5},"threads":[]}', "Firefox"),
    "notebook": ("n.json", b'{"cells": [{"cell_type": "code"}]}', "Jupyter"),
    "JSON of no kind": ("x.json", b'{"a": 1}', "no traceEvents"),
    "execution trace": (
        "et.json", b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2026", "start_ts": 5, "nodes": [{"id": 1}]}',
        "execution trace"),
    "older execution trace": ("et.json", b'{\n "schema": "1.0.1", "pid": 1, "nodes": [', "execution trace"),
    "saved baseline": ("b.json", b'{"kind":"meshscope baseline","format":1}', "baseline that meshscope saved"),
    "an opening brace": ("t.json", b"{\n", "JSON cut short"),
    "an opening bracket": ("t.json", b" [", "JSON cut short"),
    "TOML": ("p.toml", b'[project]\nname = "x"\n', "is text"),
    "TOML, a list of tables": ("p.toml", b'[[tool.x]]\nname = "x"\n', "is text"),
    "TOML, a key in quotes": ("p.toml", b'"name" = "x"\n', "is text"),
    "JSON number": ("x.json", b"[1, 2]", "JSON, but no object"),
    "rocpd": ("r.db", b"", "rocpd"),
    "nsys sqlite": ("r.sqlite", b"", "nsys export (SQLite)"),
    "other sqlite": ("o.db", b"", "SQLite database"),
    "nsys-rep": ("r.nsys-rep", b"\0\1QuadDCommon\2", "Nsight Systems"),
    "ncu-rep": ("r.ncu-rep", b"NVR\0\1\0\0\0", "Nsight Compute"),
    "ncu-rep by content": ("r.bin", b"NVR\0\1\0\0\0", "Nsight Compute"),
    "pftrace, clocks first": ("t.pftrace", packet(b"\x32\x04\x0a\x02\x08\x06") * 3, "Perfetto"),
    "pftrace, time first": ("t.bin", packet(b"\x40\x81\x01\x50\x01"), "Perfetto"),
    "pftrace, mark first": ("t.bin", packet(b"\xa2\x02\x04sync"), "Perfetto"),
    "pftrace, by name": ("t.perfetto-trace", b"\x12\x05hello", "Perfetto"),
    "tfevents": ("events.out.tfevents.1700000000.host", EVENTS, "TensorBoard event file"),
    "tfevents by content": ("e.bin", EVENTS, "TensorBoard event file"),
    "torch checkpoint": ("model.pt", zipped("archive/data.pkl", "archive/version"), "torch checkpoint"),
    "legacy checkpoint": ("model.pt", pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2), "torch checkpoint"),
    "safetensors": ("m.safetensors", struct.pack("<Q", 60) + b'{"__metadata__":{"format":"pt"}}', "safetensors"),
    "npy": ("a.npy", b"\x93NUMPY\1\0v\0", "NumPy"),
    "npz": ("a.npz", zipped("arr_0.npy"), "NumPy"),
    "zip": ("traces.zip", zipped("rank0.json"), "zip archive"),
    "tar": ("traces.tar", tarred(), "tar archive"),
    "tar.gz": ("traces.tar.gz", gzip.compress(tarred()), "tar archive"),
    "zstd": ("t.json.zst", b"\x28\xb5\x2f\xfd\x04\0", "packed with zstd"),
    "xz": ("t.json.xz", b"\xfd7zXZ\0\0\4", "packed with xz"),
    "bzip2": ("t.json.bz2", b"BZh91AY&SY\1\2", "packed with bzip2"),
    "lz4": ("t.json.lz4", b"\x04\x22\x4d\x18\x40", "packed with lz4"),
    "gzip twice": ("t.json.gz", gzip.compress(gzip.compress(b"{}")), "packed with gzip twice"),
    "7z": ("t.7z", b"7z\xbc\xaf\x27\x1c\0\4", "7z archive"),
    "ELF": ("a.out", b"\x7fELF\2\1\1\0", "ELF"),
    "PNG": ("a.png", b"\x89PNG\r\n\x1a\n", "image"),
    "PDF": ("a.pdf", b"%PDF-1.7", "PDF"),
    "HDF5": ("a.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
    "Parquet": ("a.parquet", b"PAR1\x15\4", "Parquet"),
    "LFS pointer": ("t.json.gz", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    "UTF-16": ("t.json", '{"traceEvents": []}'.encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": ("t.json", '{"traceEvents": []}'.encode("utf-16-le"), "UTF-16 text without a mark"),
    "UTF-16 BE without a mark": ("t.json", '{"traceEvents": []}'.encode("utf-16-be"), "UTF-16 text without a mark"),
    "dcgmi": ("dcgm.txt", b"#Entity   GPUTL  MCUTL\nID\nGPU 0     45     10\n", "dcgmi dmon"),
    "nvidia-smi": ("smi.txt", b"+-----+\n| NVIDIA-SMI 525.85.12    Driver Version: 525.85 |\n", "nvidia-smi's table"),
    "nvidia-smi -q": ("q.txt", b"\n==============NVSMI LOG==============\n\nTimestamp : Thu\n", "nvidia-smi -q"),
    "zeros": ("t.json", b"\0" * 8000, "zero bytes"),
    "pickle": ("p.pickle", pickle.dumps({"weights": [1, 2]}), "pickle"),
    "HLO proto": ("m.hlo.pb", HLO, "HLO program (protobuf)"),
    "HLO text": ("m.txt", b"HloModule jit_step, entry_computation_layout={}\n", "HLO program as text"),
    "MLIR": ("m.mlir", b'module @jit_step attributes {mhlo.num_partitions = 1 : i32} {\n', "MLIR"),
    "HTML": ("t.json", b"<!DOCTYPE html>\n<html><body>404</body></html>", "web page"),
    "SVG": ("f.svg", b'<?xml version="1.0"?><svg></svg>', "XML or SVG"),
    "NCCL log": ("nccl.log", b"host:1:1 [0] NCCL INFO Bootstrap : Using eth0\n", "log of NCCL"),
    "CSV": ("t.csv", b"a,b,c\n1,2,3\n4,5,6\n", "table (CSV)"),
    "text": ("notes.txt", "Größe: 5\n".encode(), "text"),
    "unknown bytes": ("x.bin", bytes(range(256)), "of no format"),
    "empty": ("t.json", b"", "is empty"),
    "empty gzip": ("t.json.gz", gzip.compress(b""), "is empty"),
}  # fmt: skip
TABLES = {"rocpd": "rocpd_kernelapi", "nsys sqlite": "CUPTI_ACTIVITY_KIND_KERNEL", "other sqlite": "users"}


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_another_kind_is_named_and_said_what_to_do(tmp_path: Path, case: str) -> None:
    name, content, kind = CASES[case]
    path = tmp_path / name
    path.write_bytes(database(tmp_path / "made.db", TABLES[case]) if case in TABLES else content)
    with pytest.raises(TraceError) as told:
        readers.read(path)
    assert kind in told.value.message
    assert told.value.hint
    assert "\n" not in told.value.message + told.value.hint


@pytest.mark.parametrize("name", ["rank0.nsys-rep", "events.tfevents.json", "t.pftrace", "model.pt", "run.log"])
def test_a_trace_by_another_name_is_still_a_trace(tmp_path: Path, name: str) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1, "pid": 0, "tid": 7, "args": {}}
    (tmp_path / name).write_text(json.dumps({"traceEvents": [event]}))
    (window,) = readers.read(tmp_path / name)
    assert window.counts.device == 1


def test_a_pipe_a_socket_a_device_and_a_folder_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        for path, what in (
            (tmp_path / "pipe", "a pipe"), (tmp_path / "socket", "a socket"), (Path("/dev/zero"), "a device"),
            (tmp_path, "a folder"),
        ):  # fmt: skip
            with pytest.raises(TraceError, match=what) as told:
                readers.read(path)
            assert told.value.hint


def test_a_file_that_may_not_be_read_is_told_with_the_systems_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    (tmp_path / "t.json").write_text("{}")
    monkeypatch.setattr(Path, "open", denied)  # root, who runs tests in containers, may read everything
    with pytest.raises(TraceError, match="Permission denied") as told:
        readers.read(tmp_path / "t.json")
    assert told.value.hint
