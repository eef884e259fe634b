"""The cache of read traces: what is found is what would be read, and nothing else is ever found."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from made_traces import XSpace, kernel, write_kineto
from same import assert_same

from meshscope import kinds, readers
from meshscope.errors import InputError
from meshscope.readers import column_cache as caching
from meshscope.readers import kept
from meshscope.readers.column_cache import Cache, Hashing, Stat, limit, place
from meshscope.spans import Window


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", 10**9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return made(tmp_path / "rank3.json")


def made(path: Path, kernels: int = 9) -> Path:
    write_kineto(path, [kernel(f"gemm{n}", n * 4.0, n + 0.5) for n in range(kernels)], rank=None)
    settle(path)
    return path


def settle(path: Path) -> None:
    """Wait until the file's times are older than any clock is coarse."""
    while time.time_ns() - path.stat().st_ctime_ns < 30_000_000:
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def fine_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "_COARSE_NS", 20_000_000)


def keep(cache: Cache, path: Path, device_kind: str = "") -> tuple[Window, ...]:
    hashing = Hashing(path)
    windows = readers.read(path, device_kind=device_kind)
    digest = hashing.digest()
    assert digest is not None
    cache.store(path, windows, digest, device_kind, is_settled=hashing.is_settled).close()
    return windows


def entry(cache: Cache) -> Path:
    (found,) = (cache.folder / "entries").glob("*.columns")
    return found


def count_hashing(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    hashed: list[Path] = []
    digest_of = caching.digest_of
    monkeypatch.setattr(caching, "digest_of", lambda path: hashed.append(path) or digest_of(path))
    return hashed


def test_what_is_found_is_what_was_read(cache: Cache, path: Path) -> None:
    assert cache.find(path) is None
    assert_same(cache.find(path), None)
    assert_same(keep(cache, path), cache.find(path))


def test_an_xplane_file_is_found_too(cache: Cache, tmp_path: Path) -> None:
    made_ = XSpace().plane("/device:GPU:0", [("Stream #1", [("gemm", 0, 5000, {}), ("all-reduce", 9000, 10, {})])])
    path = made_.write(tmp_path / "a.xplane.pb")
    assert_same(keep(cache, path), cache.find(path))


def test_a_second_opening_does_not_hash_again(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, path)
    hashed = count_hashing(monkeypatch)
    assert cache.find(path) is not None
    assert hashed == []


def test_a_change_that_keeps_size_and_mtime_is_seen(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, path)
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"gemm3", b"gemmX"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    hashed = count_hashing(monkeypatch)
    assert cache.find(path) is None
    assert hashed == [path]
    fresh = keep(cache, path)
    assert "gemmX" in fresh[0].spans.names
    assert_same(cache.find(path), fresh)


def test_a_file_that_was_just_written_is_hashed_again_next_time(
    cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "_COARSE_NS", 3600 * 10**9)
    windows = keep(cache, path)
    hashed = count_hashing(monkeypatch)
    assert_same(cache.find(path), windows)
    assert hashed == [path]


def test_a_file_that_changes_while_it_is_read_is_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest_of = caching.digest_of

    def meanwhile(path: Path) -> str:
        digest = digest_of(path)
        path.write_bytes(path.read_bytes() + b" ")
        return digest

    monkeypatch.setattr(caching, "digest_of", meanwhile)
    assert Hashing(path).digest() is None


def test_a_copy_is_found_by_its_content(cache: Cache, path: Path, tmp_path: Path) -> None:
    windows = keep(cache, path)
    copy = tmp_path / "elsewhere" / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    assert_same(cache.find(copy), windows)


def test_a_file_of_another_name_is_read_anew_for_its_name_may_tell_the_rank(cache: Cache, path: Path) -> None:
    assert keep(cache, path)[0].rank == 3
    other = path.rename(path.with_name("rank5.json"))
    assert cache.find(other) is None
    assert keep(cache, other)[0].rank == 5
    found = cache.find(other)
    assert found is not None
    assert found[0].rank == 5


def test_what_is_known_of_the_device_is_part_of_the_question(cache: Cache, path: Path) -> None:
    keep(cache, path)
    assert cache.find(path, "cpu") is None


def test_other_rules_are_another_answer(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, path)
    monkeypatch.setattr(kinds, "rules_digest", lambda: "other rules")
    assert cache.find(path) is None


def test_other_readers_are_another_answer(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, path)
    monkeypatch.setattr(caching, "version", lambda: "other readers")
    assert cache.find(path) is None


def test_the_readers_version_is_their_source(root: Path) -> None:
    caching.version.cache_clear()
    assert len(caching.version()) == 40
    assert (root / "src/meshscope/readers/kineto.py").is_file()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda entry: entry.write_bytes(entry.read_bytes()[:-100]),
    "empty": lambda entry: entry.write_bytes(b""),
    "a flipped bit in a column": lambda entry: entry.write_bytes(_flipped(entry.read_bytes(), -64)),
    "a flipped bit in the head": lambda entry: entry.write_bytes(_flipped(entry.read_bytes(), 300)),
    "another file": lambda entry: entry.write_bytes(b"\x80\x04cos\nsystem\n(S'exit 1'\ntR."),
    "zeros": lambda entry: entry.write_bytes(bytes(entry.stat().st_size)),
    "not to be read": lambda entry: (entry.unlink(), entry.symlink_to("/dev/zero")),
}


def _flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 4
    return bytes(changed)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_entry_is_not_found_and_is_made_anew(
    cache: Cache, path: Path, damage: Callable[[Path], object]
) -> None:
    windows = keep(cache, path)
    damage(entry(cache))
    assert cache.find(path) is None
    keep(cache, path)
    assert_same(cache.find(path), windows)


def test_an_entry_under_another_ones_name_is_not_believed(cache: Cache, path: Path, tmp_path: Path) -> None:
    keep(cache, path)
    other = made(tmp_path / "b" / "rank3.json", kernels=4)
    foreign = entry(cache).read_bytes()
    entry(cache).unlink()
    keep(cache, other)
    entry(cache).write_bytes(foreign)
    assert cache.find(other) is None


def test_an_entry_of_another_user_is_not_believed(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cache, path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache.find(path) is None


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"0 1 2 3 4 abc", b"\xff" * 90])
def test_a_damaged_note_of_what_was_seen_only_costs_another_hash(cache: Cache, path: Path, damage: bytes) -> None:
    windows = keep(cache, path)
    (note,) = (cache.folder / "seen").iterdir()
    note.write_bytes(damage)
    assert_same(cache.find(path), windows)


def test_a_killed_writer_leaves_nothing_that_is_found_and_is_cleared_away(cache: Cache, path: Path) -> None:
    windows = keep(cache, path)
    entries = cache.folder / "entries"
    left = entries / f"{entry(cache).name}.{'a' * 16}.part"
    left.write_bytes(entry(cache).read_bytes()[:500])
    entry(cache).unlink()
    assert cache.find(path) is None
    keep(cache, path)
    assert [child.suffix for child in entries.iterdir()] == [".columns"]
    assert_same(cache.find(path), windows)


def test_what_a_living_writer_is_writing_stays(cache: Cache, path: Path) -> None:
    keep(cache, path)
    writing = cache.folder / "entries" / f"{entry(cache).name}.{'b' * 16}.part"
    with writing.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        cache.shrink()
        assert writing.exists()
    cache.shrink()
    assert not writing.exists()


def test_a_write_that_fails_leaves_nothing(cache: Cache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching, "pack", full)
    with pytest.raises(OSError, match="No space left"):
        keep(cache, path)
    assert list((cache.folder / "entries").iterdir()) == []


def test_the_least_lately_used_leave_first(tmp_path: Path) -> None:
    paths = [made(tmp_path / str(n) / "a.json", kernels=20 + n) for n in range(4)]
    roomy = Cache(tmp_path / "cache", 10**9)
    for path in paths[:3]:
        keep(roomy, path)
    for number, child in enumerate(sorted((tmp_path / "cache" / "entries").iterdir())):
        os.utime(child, (number, number))
    assert roomy.find(paths[0]) is not None  # used again: now the newest
    tight = Cache(tmp_path / "cache", int(roomy.size_bytes * 1.1))
    keep(tight, paths[3])
    assert [tight.find(path) is not None for path in paths] == [True, False, True, True]
    assert tight.size_bytes <= tight.limit_bytes


def test_an_entry_larger_than_the_limit_is_not_kept(tmp_path: Path, path: Path) -> None:
    small = Cache(tmp_path / "cache", 100)
    keep(small, path)
    assert small.size_bytes == 0


def test_clearing_removes_the_caches_own_files_alone(cache: Cache, path: Path) -> None:
    keep(cache, path)
    mine = [cache.folder / "entries" / "thesis.tex", cache.folder / "seen" / "photo.jpg", cache.folder / "notes"]
    for other in mine:
        other.write_text("mine")
    assert (cache.count, cache.size_bytes) == (1, cache.clear())
    assert (cache.count, cache.find(path)) == (0, None)
    assert all(other.read_text() == "mine" for other in mine)


def test_two_caches_at_once_do_not_disturb_each_other(cache: Cache, path: Path) -> None:
    other = Cache(cache.folder, cache.limit_bytes)
    windows = keep(cache, path)
    assert_same(keep(other, path), windows)
    assert_same(cache.find(path), windows)
    assert cache.count == 1


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"MESHSCOPE_CACHE": "/x/y"}, "/x/y"),
        ({"XDG_CACHE_HOME": "/caches"}, "/caches/meshscope"),
        ({"XDG_CACHE_HOME": "relative"}, "~/.cache/meshscope"),
        ({}, "~/.cache/meshscope"),
        ({"MESHSCOPE_CACHE": "off"}, None),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], folder: str | None) -> None:
    assert place(environ) == (None if folder is None else Path(folder).expanduser())


@pytest.mark.parametrize(
    ("said", "most"), [("2GB", 2 * 10**9), ("500 M", 5 * 10**8), ("1.5k", 1500), ("7", 7), ("0", 0)]
)
def test_how_much_it_may_take(said: str, most: int, tmp_path: Path) -> None:
    assert limit({"MESHSCOPE_CACHE_LIMIT": said}, tmp_path) == most


def test_without_a_limit_a_tenth_of_the_disk_at_most(tmp_path: Path) -> None:
    assert 0 < limit({}, tmp_path / "not" / "there") <= 10**10


@pytest.mark.parametrize("said", ["lots", "-5", "10%", "nan", "inf", "1e99GB"])
def test_a_limit_that_is_no_size_is_told(said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MESHSCOPE_CACHE_LIMIT"):
        limit({"MESHSCOPE_CACHE_LIMIT": said}, tmp_path)


class TestReadingThroughIt:
    """``read_kept``, which recordings read their own traces with."""

    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MESHSCOPE_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(kept, "WORTH_BYTES", 100)
        kept.usual.cache_clear()

    def test_a_recordings_time_counts_from_its_start_either_way(self, path: Path) -> None:
        t0_unix_ns = readers.read(path)[0].start_ns - 12_345
        fresh = readers.read(path, t0_unix_ns=t0_unix_ns)
        assert_same(kept.read_kept(path, t0_unix_ns=t0_unix_ns), fresh)
        again = kept.read_kept(path, t0_unix_ns=t0_unix_ns)
        assert_same(again, fresh)
        assert not again[0].spans.name.flags.writeable

    def test_a_trace_without_a_wall_time_starts_at_zero_either_way(self, tmp_path: Path) -> None:
        path = write_kineto(tmp_path / "b.json", [kernel("a", 5, 5)], base_ns=None)
        for _ in range(2):
            assert_same(kept.read_kept(path, t0_unix_ns=99), readers.read(path, t0_unix_ns=99))

    def test_a_small_file_is_not_kept(self, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(kept, "WORTH_BYTES", 10**9)
        kept.read_kept(path)
        assert not (tmp_path / "cache").exists()

    def test_a_disk_that_cannot_be_written_costs_nothing_but_speed(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "cache").write_text("a file where the folder would be")
        assert_same(kept.read_kept(path), readers.read(path))

    @pytest.mark.shared
    def test_every_trace_of_the_corpus_is_the_same_from_the_cache(self, shared: Path) -> None:
        checked = 0
        for path in sorted(shared.glob("traces/*/*")):
            if not path.name.endswith((".json.gz", ".pb")) or "tl-rocprofv3" in str(path) or "mangled" in str(path):
                continue
            fresh = readers.read(path, t0_unix_ns=1_700_000_000_000_000_000)
            for _ in range(2):
                assert_same(kept.read_kept(path, t0_unix_ns=1_700_000_000_000_000_000), fresh, path.name)
            checked += 1
        assert checked >= 45


def test_stats_of_a_file_tell_its_changes_apart(path: Path) -> None:
    before = Stat.of(path)
    path.write_bytes(path.read_bytes())
    assert Stat.of(path) != before
