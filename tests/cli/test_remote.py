"""Recordings behind a URL: copied, read, and nothing written anywhere else; two lines where that cannot be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from meshscope.cli import main, remote
from meshscope.errors import InputError, MissingPackageError

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def put() -> Callable[..., str]:
    """Puts files into a file system in memory; its URL."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()

    def place(files: dict[str, bytes]) -> str:
        for name, content in files.items():
            memory.pipe_file(f"/runs/one/{name}", content)
        return "memory://runs/one"

    return place


def _code(*line: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(list(line))
    return left.value.code


def test_a_folder_is_copied_as_it_is(put: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    url = put({"plan.json": b"{}", "ddp/journal/rank0.jsonl": b"a\n"})
    copy = remote.fetched(url)
    assert copy.name == "one"
    assert (copy / "ddp/journal/rank0.jsonl").read_bytes() == b"a\n"
    assert "copying 2 files, 4 B from memory://runs/one" in capsys.readouterr().err


def test_a_single_file_keeps_its_name(put: Callable[..., str]) -> None:
    copy = remote.fetched(put({"rank0.pt.trace.json": b"[]"}) + "/rank0.pt.trace.json")
    assert copy.name == "rank0.pt.trace.json" or (copy / "rank0.pt.trace.json").is_file()


def test_a_real_recording_is_analyzed_by_its_url(
    put: Callable[..., str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "recordings" / "tiny-4-cpu-ranks" / "ddp"
    url = put({str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    assert _code("analyze", url) == 0
    assert "ddp" in capsys.readouterr().out


def test_what_is_not_there_is_told_in_two_lines(put: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    put({})
    assert _code("analyze", "memory://runs/none") == 1
    first, second = capsys.readouterr().err.strip().splitlines()
    assert first == "meshscope: There is nothing at memory://runs/none."
    assert second.strip() == "Check the name and the permissions."


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingPackageError) as missing:
        remote.fetched("s3://bucket/run")
    assert missing.value.hint == "Install it: pip install 'meshscope[remote]'"


def test_an_unknown_kind_of_url_is_refused() -> None:
    with pytest.raises(InputError, match="nosuch"):
        remote.fetched("nosuch://a/b")


@pytest.mark.parametrize("name", ["/runs/one/../../etc/passwd", "/runs/one/a/../../b"])
def test_no_name_leads_out_of_the_copy(name: str) -> None:
    with pytest.raises(InputError, match="outside"):
        remote._inside(name, "/runs/one")


@pytest.mark.parametrize(("text", "is_one"), [("s3://a/b", True), ("/a/b", False), ("C:/a", False), ("sftp://", True)])
def test_what_is_a_url(text: str, is_one: bool) -> None:
    assert remote.is_url(text) == is_one
