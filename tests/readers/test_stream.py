"""Files as blocks: gzip is told by its first bytes, and a file that breaks off gives what is whole."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path

import pytest

from meshscope.errors import TraceError
from meshscope.readers import stream
from meshscope.readers.stream import Source, head

CONTENT = random.Random(0).randbytes(5000) + b"a" * 70_000


@pytest.fixture(params=["with isal if installed", "with zlib"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "with zlib":
        monkeypatch.setattr(stream, "_unzip", lambda: (lambda: zlib.decompressobj(wbits=31), (zlib.error,)))


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 22])
def test_packed_and_plain_files_give_the_same_content(tmp_path: Path, block_bytes: int) -> None:
    (tmp_path / "plain").write_bytes(CONTENT)
    (tmp_path / "packed").write_bytes(gzip.compress(CONTENT))
    (tmp_path / "members").write_bytes(gzip.compress(CONTENT[:4000]) + gzip.compress(CONTENT[4000:]))
    for name in ("plain", "packed", "members"):
        source = Source(tmp_path / name, block_bytes)
        assert b"".join(source.blocks()) == CONTENT
        assert source.cut_short == ""


@pytest.mark.usefixtures("either_way")
def test_a_packed_file_that_breaks_off_gives_its_beginning_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT)
    (tmp_path / "cut").write_bytes(packed[: len(packed) // 2])
    source = Source(tmp_path / "cut")
    found = b"".join(source.blocks())
    assert found
    assert CONTENT.startswith(found)
    assert source.cut_short == "the gzip data end early"


@pytest.mark.usefixtures("either_way")
def test_damaged_gzip_data_are_no_crash(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(CONTENT))
    packed[2000:2100] = b"\xff" * 100
    (tmp_path / "damaged").write_bytes(packed)
    source = Source(tmp_path / "damaged")
    b"".join(source.blocks())
    assert source.cut_short


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 22])
def test_damaged_gzip_data_are_given_up_to_the_damage(tmp_path: Path, block_bytes: int) -> None:
    noise = random.Random(1).randbytes(200_000)
    packed = bytearray(gzip.compress(noise, 0))  # stored: every byte of the content is a byte of the file
    damaged = bytes(packed[:100_000]) + b"\xff" * 100_000
    (tmp_path / "damaged").write_bytes(damaged)
    source = Source(tmp_path / "damaged", block_bytes)
    found = b"".join(source.blocks())
    assert source.cut_short
    assert found[:99_900] == noise[:99_900]
    packed[-8:-4] = b"\0\0\0\0"  # the content's check sum
    (tmp_path / "sum").write_bytes(packed)
    source = Source(tmp_path / "sum", block_bytes)
    assert b"".join(source.blocks())[: len(noise) - 1] == noise[:-1]
    assert "damaged" in source.cut_short


def test_a_file_that_is_not_there_is_told_to_a_person(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read") as told:
        head(tmp_path / "nowhere.json")
    assert told.value.hint


def test_the_head_of_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert head(tmp_path / "empty") == b""
