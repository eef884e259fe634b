"""Files that torch and JAX write here and now: the formats as they are, not as we remember them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from meshscope import readers
from meshscope.analysis.breakdown import measure
from meshscope.analysis.collectives import collectives
from meshscope.analysis.flight import flight
from meshscope.analysis.phases import phases
from meshscope.analysis.scopes import scopes
from meshscope.readers.hlo_program import instructions_of
from meshscope.readers.records import record_reader_of
from meshscope.records import MemoryRecord
from meshscope.run import open_traces
from meshscope.spans import How

pytestmark = pytest.mark.live

LIVE = Path(__file__).parent / "live"


def ran(framework: str, script: str, *argument_lists: list[str]) -> None:
    """One process for each list of arguments, at the same time."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    processes = [
        subprocess.Popen([sys.executable, str(LIVE / script), *arguments], stderr=subprocess.PIPE, text=True)
        for arguments in argument_lists
    ]
    for process in processes:
        _, complaints = process.communicate(timeout=240)
        assert process.returncode == 0, complaints[-2000:]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("absent")
    ran("torch", "absent_rank.py", *([str(rank), str(out)] for rank in range(3)))
    return out


@pytest.mark.parametrize("name", ["nccl_trace_rank_{}", "fr_trace_rank_{}.json"])
def test_the_rank_that_never_came_to_an_all_reduce_is_named(dumps: Path, name: str) -> None:
    (run,) = open_traces([dumps / name.format(rank) for rank in range(3)]).runs
    found = flight(run)
    assert found is not None
    (stuck,) = found.unfinished
    assert (stuck.collective, stuck.sequence, stuck.waiting, stuck.absent) == ("all_reduce", 3, (0, 2), (1,))
    assert stuck.last == {1: "all_reduce 2"}
    assert found.mismatches == ()
    assert {call.input_sizes for record in found.records for call in record.calls} == {((1000,),)}


def test_jaxs_json_gives_the_numbers_of_the_xplane_beside_it(tmp_path: Path) -> None:
    ran("jax", "jax_profile.py", [str(tmp_path)])
    (xplane,) = tmp_path.rglob("*.xplane.pb")
    expected = readers.read(xplane)
    assert len(expected) == 4
    copies = sorted(xplane.parent.glob("*.json.gz"))
    assert [path.name.endswith(".trace.json.gz") for path in copies].count(True) == 1
    assert "perfetto_trace.json.gz" in {path.name for path in copies}
    for path in copies:
        windows = readers.read(path)
        for window, other in zip(windows, expected, strict=True):
            assert measure(window).total == measure(other).total
            assert measure(window).stepped == measure(other).stepped
            assert (window.rank, window.device_kind, window.steps) == (other.rank, other.device_kind, other.steps)
            assert window.counts.device == other.counts.device > 0
            # Every entry, of which the names of processes and threads and a last empty one are no events.
            assert window.counts.read > other.counts.read
    (run,) = open_traces([tmp_path]).runs
    assert {window.source for window in run.windows} == {str(xplane)}


def test_bytes_and_groups_of_jaxs_collectives_are_those_of_the_arrays(tmp_path: Path) -> None:
    ran("jax", "jax_collectives.py", [str(tmp_path)])
    (run,) = open_traces([tmp_path]).runs
    found = {(one.name, one.group, one.size_bytes): one for one in collectives(run)}
    everyone = "devices 0, 1, 2, 3"
    assert {key: one.count for key, one in found.items()} == {
        ("all_reduce", everyone, 1000 * 4): 8,  # each device's row of pmap's argument
        ("permute", everyone, 512): 8,
        ("all_to_all", everyone, 64 * 32 * 4): 8,
        ("all_gather", everyone, 4096 * 2): 8,  # what it leaves
        ("reduce_scatter", everyone, 8192 * 4): 8,  # what it takes
        ("all_reduce", "devices 0, 1", 32 * 32 * 4): 4,
        ("all_reduce", "devices 2, 3", 32 * 32 * 4): 4,
        ("all_reduce", everyone, 64 * 64 * 4): 8,  # the gradient
    }
    factors = {"all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75, "all_to_all": 0.75, "permute": 1.0}
    for (name, group, size_bytes), one in found.items():
        assert one.transfer_ns is not None
        assert one.algbw_bytes_per_s == pytest.approx(one.count * (size_bytes or 0) / one.transfer_ns * 1e9)
        factor = factors[name] if group == everyone else 1.0
        assert one.busbw_bytes_per_s == pytest.approx(one.algbw_bytes_per_s * factor)
    by_phase = {one.name: one.works for one in phases(run)}
    assert {"forward", "backward", "optimizer"} <= set(by_phase)
    (named,) = scopes(run)
    layer = next(one for one in named.scopes if one.name == "layer")
    assert named.source == "named scope"
    assert layer.backward_ns is not None
    assert 0 < layer.backward_ns < layer.total_ns


def test_both_forms_of_a_memory_timeline_have_one_peak(tmp_path: Path) -> None:
    ran("torch", "memory_profile.py", [str(tmp_path)])
    records = []
    for name in ("memory_timeline.json", "memory_timeline.raw.json.gz"):
        reader = record_reader_of(tmp_path / name)
        assert reader is not None
        (record,) = reader.read(tmp_path / name)
        assert isinstance(record, MemoryRecord)
        records.append(record)
    added_up, rows = records
    assert (added_up.peak_bytes, added_up.end_bytes) == (rows.peak_bytes, rows.end_bytes)
    assert added_up.categories == rows.categories
    assert sum(rows.categories.values()) == rows.peak_bytes
    # Two layers of 64 × 64 weights and 64 biases, four bytes each.
    assert rows.categories["parameters"] >= 2 * (64 * 64 + 64) * 4
    assert rows.has_unix_time


def test_what_xla_itself_writes_is_read_so(tmp_path: Path) -> None:
    """The text is that of a GPU's program; no GPU is needed to parse it and to write it as a message."""
    ran("jaxlib", "xla_text.py", [str(tmp_path / "module")])
    found = instructions_of((tmp_path / "module").read_bytes())
    told = {name: one.how for name, one in found.items() if one.how}
    assert told == {
        "ar-start.1": How.SYNCHRONOUS | How.SINGLE,
        "ar-start.2": How.ASYNCHRONOUS | How.COMBINED,
        "rs-start": How.SYNCHRONOUS | How.SINGLE,
        "ag-start": How.ASYNCHRONOUS | How.SINGLE,
        "a2a-start": How.ASYNCHRONOUS | How.SINGLE,
        "reduce-scatter": How.SYNCHRONOUS | How.SINGLE,
        "all-to-all": How.ASYNCHRONOUS | How.SINGLE,
        "psum.7": How.SYNCHRONOUS | How.SINGLE,
        "call.4": How.COMMANDS,
    }
