"""Flight recorders of torch.distributed: the newest collectives that one rank called, and how far each has come.

``_dump_nccl_trace`` and ``_dump_fr_trace`` pickle them (``TORCH_NCCL_DEBUG_INFO_TEMP_FILE`` names the files,
``nccl_trace_rank_0`` and so on), ``_dump_fr_trace_json`` writes JSON. Versions 1 and 2.0 to 2.10 differ in names that
are all accepted. The dump does not say its rank: the file's name does. Format: ``torch.distributed.flight_recorder``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from meshscope import kinds
from meshscope.errors import TraceError
from meshscope.readers.damage import CUT_SHORT
from meshscope.readers.pickles import PICKLE, plain
from meshscope.readers.records import RecordReader, rank_of, whole
from meshscope.readers.windows import EARLIEST_UNIX_NS
from meshscope.records import Call, FlightRecord, Group, Record, Sizes
from meshscope.spans import Counts

KIND = "flight recorder of torch.distributed"
_NAMES = re.compile(r"(nccl|xccl|rccl|gloo|fr|flight)\w*[-_]?(trace|record|dump)|(^|[-_.])rank[-_]?\d+$", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(\d{1,9})(\.\w+)*$")
_KEYS = rb"(comm_lib_version|nccl_version|nccl_comm_state|pg_status|collective_seq_id|profiling_name|record_id)"
_IN_PICKLE = re.compile(_KEYS + rb"|pg_config")
_IN_JSON = re.compile(rb'\A(\xef\xbb\xbf)?\s*[\[{].*"' + _KEYS + rb'"\s*:', re.DOTALL)
_TRACE = re.compile(rb'"(traceEvents|schemaVersion|distributedInfo|deviceProperties)"')
_NUMBER = re.compile(r"\d{1,9}")
_TORCH = re.compile(r"[/\\]torch[/\\]")
_NOT_TOLD = "undefined"
_MOST = 1 << 62
# An entry may hold lists of dicts itself: its stack frames.
_BETWEEN = b"},{"
_CUTS_TRIED = 200


def sniff(head: bytes) -> bool:
    """A pickle or JSON that names what only a flight recorder has."""
    if head.startswith(PICKLE):
        return _IN_PICKLE.search(head) is not None
    return _IN_JSON.match(head) is not None and _TRACE.search(head) is None


def read(path: Path) -> tuple[Record, ...]:
    """One record: a dump is of one rank."""
    content, cut_short = whole(path)
    if cut_short:
        raise TraceError(f"{path.name}: {cut_short}.", hint="Copy the file again.")
    found, is_complete = (plain(content, path.name), True) if content.startswith(PICKLE) else _json(content, path)
    found = {"entries": found} if isinstance(found, list) else found
    entries = found.get("entries", []) if isinstance(found, dict) else None
    if not isinstance(entries, list) or len(entries) > len(content):
        raise TraceError(
            f"{path.name} has no list of entries, so it is no flight recorder's dump.",
            hint="Give what TORCH_NCCL_DEBUG_INFO_TEMP_FILE or torch._C._distributed_c10d._dump_fr_trace() wrote.",
        )
    dropped: Counter[str] = Counter() if is_complete else Counter({CUT_SHORT: 1})
    calls = tuple(call for number, entry in enumerate(entries) if (call := _call(entry, number, dropped)))
    rank, rank_from = _rank(path)
    times = [time for call in calls for time in (call.created_ns, call.completed_ns) if time >= EARLIEST_UNIX_NS]
    return (
        FlightRecord(
            kind=KIND,
            source=path.name,
            rank=rank,
            rank_from=rank_from,
            start_ns=min(times, default=0),
            end_ns=max(times, default=0),
            has_unix_time=bool(times),
            is_complete=is_complete,
            counts=Counts(read=len(entries), dropped=dict(dropped)),
            cannot_say=(("breakdown", f"a {KIND} holds no device work"),),
            version=str(found.get("version", "1"))[:32],
            calls=calls,
            groups=_groups(found, calls),
        ),
    )


def _json(content: bytes, path: Path) -> tuple[Any, bool]:
    """The dump, and whether it is whole; of one that was cut short, the entries before the cut."""
    text = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(text), True
    except msgspec.MsgspecError as error:
        why = error
    end = len(text)
    for _ in range(_CUTS_TRIED):
        end = text.rfind(_BETWEEN, 0, end)
        if end < 0:
            break
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(text[:end] + b"}]}"), False
    raise TraceError(
        f"{path.name} is a flight recorder's dump that is not whole JSON: {why}.",
        hint="The rank was killed while writing, or the copy is cut short: dump it again.",
    ) from why


def _rank(path: Path) -> tuple[int, str]:
    """The rank by its name, or by the number that the recorder puts at the end of any name."""
    rank, rank_from = rank_of(path)
    last = _LAST_NUMBER.search(path.name)
    return (int(last[1]), "file name") if rank < 0 and last and int(last[1]) < 2**31 else (rank, rank_from)


def _call(entry: Any, place: int, dropped: Counter[str]) -> Call | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("profiling_name"), str):
        dropped["entry that names no operation"] += 1
        return None
    name: str = entry["profiling_name"]
    library, _, operation = name.rpartition(":")
    operation, _, peers = operation.partition(" ")
    is_p2p = entry.get("is_p2p") is True or operation in ("send", "recv")
    state = str(entry.get("state", ""))
    group, _ = _group_name(entry)
    return Call(
        number=_int(entry.get("record_id", entry.get("id", place))),
        group=group,
        sequence=_sequence(entry, is_p2p=is_p2p),
        is_p2p=is_p2p,
        collective=kinds.collective(operation),
        name=name,
        peers=peers,
        input_sizes=_sizes(entry.get("input_sizes")),
        output_sizes=_sizes(entry.get("output_sizes")),
        input_dtypes=_words(entry.get("input_dtypes")),
        output_dtypes=_words(entry.get("output_dtypes")),
        state=state,
        is_done=_time(entry.get("time_discovered_completed_ns")) > 0
        or _is_done(library, state, entry.get("retired") is True),
        created_ns=_time(entry.get("time_created_ns")),
        started_ns=_time(entry.get("time_discovered_started_ns")),
        completed_ns=_time(entry.get("time_discovered_completed_ns")),
        timeout_ns=_time(entry.get("timeout_ms")) * 1_000_000 if _time(entry.get("timeout_ms")) < 2**40 else 0,
        where=_where(entry.get("frames")),
    )


def _is_done(library: str, state: str, is_retired: bool) -> bool:  # noqa: FBT001  # private, and named where it is read
    """gloo's calls stay ``scheduled`` and are retired once done; NCCL's are retired also when a timeout ends them."""
    return is_retired if library == "gloo" or not state else state == "completed"


def _sequence(entry: dict[str, Any], *, is_p2p: bool) -> int:
    name = "p2p_seq_id" if is_p2p else "collective_seq_id"
    return _int(entry.get(name, entry.get("seq_id", -1)))


def _group_name(entry: dict[str, Any]) -> tuple[str, str]:
    """Name and description; before version 2 a group had a number only."""
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and group:
        description = str(group[1]) if len(group) > 1 else ""
        return str(group[0]), "" if description == _NOT_TOLD else description
    return str(entry.get("pg_id", entry.get("pg_name", "0"))), ""


def _groups(found: dict[str, Any], calls: Iterable[Call]) -> dict[str, Group]:
    """The groups that were configured, have a status, or were called in."""
    config, status = _mapping(found.get("pg_config")), _mapping(found.get("pg_status"))
    described = dict(_group_name(entry) for entry in found.get("entries", []) if isinstance(entry, dict))
    names = dict.fromkeys((*config, *status, *(call.group for call in calls)))
    return {name: _group(name, config.get(name), status.get(name), described.get(name, "")) for name in names if name}


def _group(name: str, config: Any, status: Any, description: str) -> Group:
    told, how_far = _mapping(config), _mapping(status)
    ranks = told.get("ranks", config if isinstance(config, (list, str)) else [])
    numbers = _NUMBER.findall(ranks) if isinstance(ranks, str) else ranks if isinstance(ranks, (list, tuple)) else []
    last = {word: _int(how_far.get(f"last_{word}_collective")) for word in ("enqueued", "started", "completed")}
    said = str(told.get("desc", ""))
    known = tuple(sorted({int(number) for number in numbers if str(number).isdecimal()}))
    return Group(name, description or ("" if said == _NOT_TOLD else said), known, **last)


def _mapping(value: Any) -> dict[str, Any]:
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def _int(value: Any) -> int:
    """A count, −1 where there is none; JSON dumps write some as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if type(value) is int and 0 <= value < _MOST else -1


def _time(value: Any) -> int:
    return max(_int(value), 0)


def _sizes(value: Any) -> Sizes:
    """A list of shapes. Some versions wrote one shape without its list."""
    listed = value if isinstance(value, (list, tuple)) else []
    if listed and all(type(size) is int for size in listed):
        listed = [listed]
    return tuple(tuple(_int(size) for size in shape) for shape in listed[:1024] if isinstance(shape, (list, tuple)))


def _words(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, (list, tuple)) else [value] if isinstance(value, str) else []
    return tuple(str(word) for word in listed[:1024])


def _where(frames: Any) -> str:
    """The innermost frame that is not torch's own."""
    listed = [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []
    mine = [frame for frame in listed if not _TORCH.search(str(frame.get("filename", "")))]
    frame = next(iter((*mine, *listed)), None)
    if frame is None:
        return ""
    file = re.split(r"[/\\]", str(frame.get("filename", "")))[-1]
    return f"{frame.get('name', '')} ({file}:{frame.get('line', '')})"


RECORD_READER = RecordReader(
    format="flight recorder dump", names=_NAMES, sniff=sniff, read=read, called="nccl_trace_rank_0, fr_dump_0"
)
