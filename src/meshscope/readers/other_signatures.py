"""What files of other kinds begin with, and what to do with each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

TRACE_INSTEAD = "Trace with torch.profiler or jax.profiler, and give their files."
NSYS_HINT = "Nsight Systems captures are not read. " + TRACE_INSTEAD
_UNPACK = "Unpack it, and give the traces in it (single files may stay gzip)."
_TENSORS = "It holds tensors, no times. " + TRACE_INSTEAD
_PROGRAM = "Give the .xplane.pb of a profile, which tells when it ran."
_PERFETTO = "Give Perfetto's JSON instead: traceconv json FILE OUT. JAX writes an .xplane.pb too."
_LOG = "Log with nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1."
_BESIDE = "The trace lies beside it, under plugins/profile/."


@dataclass(frozen=True)
class OtherKind:
    """A kind of file with its own signature; ``is_it`` looks at the first 4 kB, unpacked, and at the file's name."""

    what: str
    hint: str
    is_it: Callable[[bytes, str], bool]


def _starts(*signatures: bytes) -> Callable[[bytes, str], bool]:
    return lambda head, name: head.startswith(signatures)


def _finds(pattern: bytes, flags: int = 0) -> Callable[[bytes, str], bool]:
    compiled = re.compile(pattern, re.DOTALL | flags)
    return lambda head, name: compiled.search(head) is not None


def _named(*suffixes: str) -> Callable[[bytes, str], bool]:
    return lambda head, name: name.lower().endswith(suffixes)


def _is_text(head: bytes, name: str) -> bool:
    del name
    try:
        text = head[:-4].decode("utf-8") if len(head) > 4 else head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 8:  # the head may end inside a character
            return False
        text = head[: error.start].decode("utf-8")
    return not any(ord(c) < 0x20 and c not in "\t\r\n\x0b\x0c\x1b" for c in text)


def _is_table(head: bytes, name: str) -> bool:
    """Lines with the same number of commas (or tabs), at least one."""
    if not _is_text(head, name):
        return False
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    whole = lines[:-1] if len(head) >= 4096 else lines
    counts = [{line.count(mark) for line in whole} for mark in (b",", b"\t", b";")]
    return len(whole) > 1 and any(len(count) == 1 and count != {0} for count in counts)


_FIELD_1 = rb"\A\x0a[\x80-\xff]{0,4}[\x00-\x7f]"

AT_FIRST = (
    OtherKind(
        "rocprofv3 output, not a Chrome trace",
        "Trace with torch.profiler or jax.profiler; rocprofv3's pftrace is for Perfetto.",
        _finds(rb'\A(\xef\xbb\xbf)?\s*\{\s*"rocprofiler-sdk-tool"\s*:'),
    ),
    OtherKind("a speedscope profile", TRACE_INSTEAD, _finds(rb'\A\s*\{.*"https?://www\.speedscope\.app/file-format')),
    OtherKind(
        "a JavaScript CPU profile",
        TRACE_INSTEAD,
        _finds(rb'\A\s*\{\s*"nodes"\s*:\s*\[\s*\{\s*"id"\s*:\s*\d+\s*,\s*"callFrame"'),
    ),
    OtherKind(
        "an nsys export as JSON",
        NSYS_HINT,
        _finds(
            rb'\A\s*\{\s*("data"\s*:\s*\["|"Type"\s*:\s*"?\d|"type"\s*:\s*"(String|ThreadName)"'
            rb'|("[A-Za-z]+"\s*:\s*[^{}]{1,40},\s*)?"(CudaEvent|TraceProcessEvent|NvtxEvent)")'
        ),
    ),
    OtherKind(
        "an execution trace (torch's ExecutionTraceObserver)",
        "It tells what ran and on which data, but not when. " + TRACE_INSTEAD,
        _finds(rb'\A\s*\{\s*"schema"\s*:\s*"([^"]*chakra|[\d.]+[^"]*"\s*,[^{}\[\]]{0,400}"nodes"\s*:\s*\[)'),
    ),
    OtherKind(
        "a baseline that meshscope saved",
        "Compare a run with it: meshscope compare FILE RECORDING",
        _finds(rb'\A\s*\{\s*"kind"\s*:\s*"meshscope baseline"'),
    ),
    OtherKind(
        "JSON cut short",
        "The program was ended while it wrote, or a copy broke off: copy the file again, or trace again.",
        _finds(rb"\A(\xef\xbb\xbf)?\s*[\[{]\s*\Z"),
    ),
    OtherKind("a Firefox profile", TRACE_INSTEAD, _finds(rb'\A\s*\{\s*"meta"\s*:\s*\{[^}]*"(interval|processType)"')),
    OtherKind("a Jupyter notebook", TRACE_INSTEAD, _finds(rb'\A\s*\{\s*"cells"\s*:\s*\[.*"cell_type"')),
    OtherKind(
        "a Perfetto protobuf trace",
        _PERFETTO,
        # A packet's first field: clocks, time, sequence, or those with numbers of two bytes; a plane's is id or name.
        _finds(
            _FIELD_1
            + rb"([\x32\x40\x50\x58\x6a]|[\x82\x8a\x92\x9a\xa2\xaa\xb2\xba\xc2\xca\xd2\xda\xe2\xea\xf2\xfa][\x01-\x0f])"
        ),
    ),
    OtherKind("a TensorBoard event file", _BESIDE, _finds(rb"\A.{12}[^\n]?.{0,16}brain\.Event:\d")),
)
"""Looked at before any reader."""

AT_LAST = (
    OtherKind("an Nsight Systems capture", NSYS_HINT, _named(".nsys-rep", ".qdrep", ".qdstrm")),
    OtherKind(
        "an Nsight Compute report",
        "It holds counters of single kernels. " + TRACE_INSTEAD,
        lambda head, name: head.startswith(b"NVR\0") or name.lower().endswith(".ncu-rep"),
    ),
    OtherKind("a Perfetto protobuf trace", _PERFETTO, _named(".pftrace", ".perfetto-trace")),
    OtherKind("a TensorBoard event file", _BESIDE, lambda head, name: "tfevents" in name),
    OtherKind(
        "a torch checkpoint", _TENSORS, lambda head, name: head.startswith(b"PK\3\4") and b"/data.pkl" in head[:512]
    ),
    OtherKind("a torch checkpoint", _TENSORS, _starts(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")),
    OtherKind("a safetensors file", _TENSORS, _finds(rb"\A.{5}\0\0\0\{\s*\"")),
    OtherKind(
        "a NumPy archive",
        TRACE_INSTEAD,
        lambda head, name: head.startswith(b"\x93NUMPY") or (head.startswith(b"PK\3\4") and b".npy" in head[:512]),
    ),
    OtherKind("a zip archive", _UNPACK, _starts(b"PK\3\4", b"PK\5\6")),
    OtherKind("a tar archive", _UNPACK, lambda head, name: head[257:262] == b"ustar"),
    OtherKind("packed with zstd", "Unpack it first: zstd -d FILE", _starts(b"\x28\xb5\x2f\xfd")),
    OtherKind("packed with xz", "Unpack it first: xz -d FILE", _starts(b"\xfd7zXZ\0")),
    OtherKind("packed with bzip2", "Unpack it first: bunzip2 FILE", _finds(rb"\ABZh[1-9]1AY&SY")),
    OtherKind("packed with lz4", "Unpack it first: lz4 -d FILE", _starts(b"\x04\x22\x4d\x18")),
    OtherKind("packed with gzip twice", "Unpack it once: gunzip FILE", _starts(b"\x1f\x8b")),
    OtherKind("a 7z archive", _UNPACK, _starts(b"7z\xbc\xaf\x27\x1c")),
    OtherKind("a program (ELF)", TRACE_INSTEAD, _starts(b"\x7fELF")),
    OtherKind("an image", TRACE_INSTEAD, _starts(b"\x89PNG", b"\xff\xd8\xff", b"GIF8")),
    OtherKind("a PDF", TRACE_INSTEAD, _starts(b"%PDF")),
    OtherKind("an HDF5 file", TRACE_INSTEAD, _starts(b"\x89HDF\r\n")),
    OtherKind("a Parquet or Arrow file", TRACE_INSTEAD, _starts(b"PAR1", b"ARROW1")),
    OtherKind("a Git LFS pointer, not the file itself", "Fetch it: git lfs pull", _starts(b"version https://git-lfs")),
    OtherKind("a git-annex pointer, not the file itself", "Fetch it: git annex get FILE", _starts(b"/annex/objects/")),
    OtherKind("UTF-16 text", "Convert it first: iconv -f UTF-16 -t UTF-8 FILE", _starts(b"\xff\xfe", b"\xfe\xff")),
    OtherKind(
        "UTF-16 text without a mark of its byte order",
        "Convert it first: iconv -f UTF-16LE -t UTF-8 FILE",
        _finds(rb"\A([\t\r\n -~]\0){8}"),
    ),
    OtherKind(
        "UTF-16 text without a mark of its byte order",
        "Convert it first: iconv -f UTF-16BE -t UTF-8 FILE",
        _finds(rb"\A(\0[\t\r\n -~]){8}"),
    ),
    OtherKind(
        "nothing but zero bytes",
        "The disk may have been full when it was written: trace again.",
        _finds(rb"\A\0{16,}\Z"),
    ),
    OtherKind(
        "a pickle, but no memory snapshot",
        "Give what torch.cuda.memory._dump_snapshot wrote.",
        _finds(rb"\A\x80[\x02-\x05][\x00-\xff]"),
    ),
    OtherKind("a compiled HLO program (protobuf)", _PROGRAM, _finds(_FIELD_1 + rb"\x0a[\x01-\x7f][ -~]")),
    OtherKind("an HLO program as text", _PROGRAM, _finds(rb"\A\s*HloModule ")),
    OtherKind("an MLIR program as text", _PROGRAM, _finds(rb"\A\s*(#loc|module @|module \{|module attributes)")),
    OtherKind(
        "a web page",
        "Give the trace itself, not the page around it.",
        _finds(rb"\A\s*(<!doctype html|<html)", re.IGNORECASE),
    ),
    OtherKind("XML or SVG", TRACE_INSTEAD, _finds(rb"\A\s*(<\?xml|<svg)")),
    OtherKind(
        "a log of NCCL",
        "Logs hold no times of kernels. " + TRACE_INSTEAD,
        _finds(rb"NCCL (INFO|WARN|TRACE|VERSION)|NCCL version \d"),
    ),
    OtherKind("a log of dcgmi dmon", _LOG, _finds(rb"\A\s*#\s*Entity\s+\w")),
    OtherKind("nvidia-smi's table for people", _LOG, _finds(rb"\A[^{\[]{0,512}\|\s*NVIDIA-SMI\s+\d")),
    OtherKind("an answer of nvidia-smi -q", _LOG, _finds(rb"\A\s*=+\s*NVSMI LOG\s*=+")),
    OtherKind("a Python source file", "", lambda head, name: name.endswith(".py") and _is_text(head, name)),
    OtherKind("a table (CSV) of unknown columns", "Of tables, only logs of nvidia-smi are known.", _is_table),
    OtherKind(
        "JSON, but no object",
        "Give the file that torch.profiler's export_chrome_trace wrote.",
        _finds(rb'\A\s*(\[[\[\s]*(["{\]\d-]|(true|false|null)\b)|"[^"\n]*"(?!\s*[=.])|(-?\d+|true|false|null)\s*\Z)'),
    ),
    OtherKind("text", "", _is_text),
)
"""Looked at once no reader knew the file; the first that fits is named."""
