"""Flight recorders of torch.distributed, as every version has written them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from made_records import entry, write_flight
from made_traces import UNIX_NS, kernel, write_kineto

from meshscope.errors import TraceError
from meshscope.readers.flight_recorder import read
from meshscope.readers.records import is_named_like_a_record, record_reader_of
from meshscope.records import FlightRecord, Group


def record_of(path: Path) -> FlightRecord:
    reader = record_reader_of(path)
    assert reader is not None
    assert reader.format == "flight recorder dump"
    (record,) = reader.read(path)
    assert isinstance(record, FlightRecord)
    return record


def test_a_dump_of_nccl_gives_its_calls_and_its_groups(tmp_path: Path) -> None:
    entries = [entry(1), entry(2, "_allgather_base", output_sizes=[[9, 4]]), entry(3, state="started", retired=False)]
    record = record_of(write_flight(tmp_path / "nccl_trace_rank_2", entries))
    assert (record.rank, record.rank_from, record.version) == (2, "file name", "2.4")
    first, second, third = record.calls
    assert (first.collective, first.name, first.group, first.sequence) == ("all_reduce", "nccl:all_reduce", "0", 1)
    assert (first.input_sizes, first.input_dtypes, first.is_done) == (((3, 4),), ("Float",), True)
    assert (second.collective, second.output_sizes) == ("all_gather", ((9, 4),))
    assert (third.state, third.is_done, third.timeout_ns) == ("started", False, 600 * 10**9)
    assert record.groups == {"0": Group("0", "default_pg", (0, 1, 2), enqueued=3)}
    assert (record.start_ns, record.end_ns) == (UNIX_NS + 1_000_000, UNIX_NS + 3_000_000)


def test_the_frame_that_is_told_is_the_programs_own(tmp_path: Path) -> None:
    (call,) = record_of(write_flight(tmp_path / "nccl_trace_rank_0", [entry(1)])).calls
    assert call.where == "train_step (train.py:42)"


def test_gloo_leaves_a_call_scheduled_and_retires_it_once_it_is_done(tmp_path: Path) -> None:
    entries = [entry(n, state="scheduled", profiling_name="gloo:all_reduce", retired=n == 1) for n in (1, 2)]
    assert [call.is_done for call in record_of(write_flight(tmp_path / "fr_trace_rank_0", entries)).calls] == [
        True,
        False,
    ]


def test_nccl_retires_a_call_also_when_a_timeout_ends_it(tmp_path: Path) -> None:
    (call,) = record_of(write_flight(tmp_path / "nccl_trace_rank_0", [entry(1, state="started", retired=True)])).calls
    assert not call.is_done


def test_json_dumps_say_the_same_as_pickles(tmp_path: Path) -> None:
    """They write numbers of a group's status as text, 0 for a time that is not known, and no frames."""
    entries = [entry(1), entry(2, state="started", retired=False)]
    pickled = record_of(write_flight(tmp_path / "fr_trace_rank_1", entries))
    told = pickle.loads((tmp_path / "fr_trace_rank_1").read_bytes())
    for one in told["entries"]:
        one.pop("frames")
        one.update(time_discovered_started_ns=0, time_discovered_completed_ns=0)
    told["pg_status"]["0"] = {"last_enqueued_collective": "2", "last_started_collective": "-1"}
    told["comm_lib_version"] = ""
    path = tmp_path / "fr_trace_rank_1.json"
    path.write_text(json.dumps(told, separators=(",", ":"), sort_keys=True))
    again = record_of(path)
    assert again.groups == pickled.groups
    assert [vars(call) | {"where": ""} for call in pickled.calls] == [vars(call) for call in again.calls]
    assert again.rank == 1


def test_sends_and_receives_are_numbered_apart_and_name_their_peers(tmp_path: Path) -> None:
    (call,) = record_of(write_flight(tmp_path / "nccl_trace_rank_0", [entry(0, "send 0->1", p2p_seq_id=5)])).calls
    assert (call.collective, call.peers, call.is_p2p, call.sequence) == ("send", "0->1", True, 5)


def test_the_list_that_torch_2_2_dumped_is_read(tmp_path: Path) -> None:
    old = {"seq_id": 4, "profiling_name": "nccl:all_reduce", "pg_id": 1, "input_sizes": [[2]], "state": "completed"}
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps([old | {"time_created_ns": UNIX_NS, "record_id": 0}]))
    (call,) = record_of(path).calls
    assert (call.group, call.sequence, call.is_done, call.input_sizes) == ("1", 4, True, ((2,),))


@pytest.mark.parametrize(
    "name", ["nccl_trace_rank_7", "run5_7", "nccl_trace_rank_7.pickle", "fr_dump_rank7.json", "comm_lib_trace_rank_7"]
)
def test_the_rank_is_the_number_in_the_files_name(tmp_path: Path, name: str) -> None:
    assert record_of(write_flight(tmp_path / name, [entry(1)])).rank == 7


def test_dumps_are_looked_for_by_their_names() -> None:
    for name in ("nccl_trace_rank_0", "fr_trace_rank_3.json", "nccl_flight_recorder_dump_1", "rank_0"):
        assert is_named_like_a_record(Path(name)), name


def test_a_trace_that_lists_its_groups_is_no_dump(tmp_path: Path) -> None:
    about = {"backend": "nccl", "rank": 0, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}], "record_id": 3}
    path = write_kineto(tmp_path / "rank0.json", [kernel("gemm", 0, 1)], rank=None, distributedInfo=about)
    assert record_reader_of(path) is None


def test_an_entry_that_is_none_is_counted(tmp_path: Path) -> None:
    odd: list[Any] = [entry(1), "x", {"state": "started"}, entry(2, process_group=None, input_sizes="?", frames=7)]
    record = record_of(write_flight(tmp_path / "nccl_trace_rank_0", odd))
    assert [call.sequence for call in record.calls] == [1, 2]
    assert record.counts.dropped == {"entry that names no operation": 2}


def test_a_json_dump_cut_short_gives_the_entries_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "fr_trace_rank_0.json"
    whole = {"comm_lib_version": "", "entries": [entry(number) for number in range(1, 6)], "pg_config": {}}
    text = json.dumps(whole, separators=(",", ":"))
    path.write_text(text[: text.index('"record_id":4') + 300])
    record = record_of(path)
    assert [call.sequence for call in record.calls] == [1, 2, 3]
    assert not record.is_complete
    assert record.counts.dropped == {"the file ends inside an event": 1}


@pytest.mark.parametrize("content", [b'{"comm_lib_version": "", "entries": [{"record_id"', b'{"record_id": 1}}'])
def test_json_in_which_no_entry_is_whole_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fr_trace_rank_0.json"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="not whole JSON") as told:
        read(path)
    assert told.value.hint


@pytest.mark.parametrize("found", [{"entries": 7, "pg_config": {}}, {"pg_config": {}, "entries": None}])
def test_a_dump_without_a_list_of_entries_is_refused(tmp_path: Path, found: Any) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps(found))
    with pytest.raises(TraceError, match="no list of entries") as told:
        read(path)
    assert told.value.hint
