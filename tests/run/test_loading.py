"""Many traces at once: by processes or here, the windows are the same, and what fails costs its own file only."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from made_traces import kernel, step, write_kineto
from same import assert_same

from meshscope import config, fast, readers
from meshscope.readers.column_cache import Cache
from meshscope.run import loading as loads
from meshscope.run import opening as opens
from meshscope.run.loading import Loading, SoFar, load
from meshscope.run.opening import Opening, Seen

PATIENCE_S = 30.0


def trace(path: Path, rank: int, kernels: int = 200) -> Path:
    events = [step(1, 0, kernels * 4.0 + 9), *(kernel(f"gemm{n % 7}", n * 4.0, 3.5) for n in range(kernels))]
    return write_kineto(path, events, rank=rank)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [trace(tmp_path / "run" / f"rank{rank}.json", rank) for rank in range(3)]


WAITING = """
import pathlib, time
plain = pathlib.Path.open
def open(self, *given, **named):
    if self.name == "endless.json":
        time.sleep(3600)
    return plain(self, *given, **named)
pathlib.Path.open = open
"""


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose reading never ends, in a process."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WAITING)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return trace(tmp_path / "endless.json", 9, kernels=1)


def finish(loading: Loading) -> Loading:
    end = time.monotonic() + PATIENCE_S
    while loading.pump(0.05):
        assert time.monotonic() < end
    return loading


def busy(loading: Loading) -> int:
    """The process that reads, once it has begun."""
    end = time.monotonic() + PATIENCE_S
    while not loading._pool.pids:
        assert time.monotonic() < end
        loading.pump(0.05)
    return loading._pool.pids[0]


def test_processes_read_what_is_read_here(files: list[Path]) -> None:
    with Loading(files, jobs=2, here_bytes=-1) as loading:
        finish(loading)
        assert len(loading._pool.pids) == 2
        for path in files:
            assert_same(loading.windows[path], readers.read(path))
    with Loading(files) as here:
        finish(here)
        assert here._pool.pids == ()
    for path in files:
        assert_same(here.windows[path], loading.windows[path])


def test_a_file_that_cannot_be_read_is_refused_with_the_readers_words(files: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"a": 1}')
    for here_bytes in (-1, 10**9):
        with Loading([files[0], bad], here_bytes=here_bytes) as loading:
            finish(loading)
        ((path, why, hint),) = loading.refused
        assert (path, list(loading.windows)) == (str(bad), [files[0]])
        assert "no traceEvents" in why
        assert "export_chrome_trace" in hint


def test_processes_read_by_the_rules_that_are_in_force_here(files: list[Path]) -> None:
    config.use(config.Settings((config.KernelRule("gemm3", "collective", "all_reduce", "our ring"),)))
    try:
        with Loading(files, here_bytes=-1) as loading:
            finish(loading)
        (window,) = loading.windows[files[0]]
        assert "our ring" in window.spans.rules
        assert_same(loading.windows[files[0]], readers.read(files[0]))
    finally:
        config.use(config.Settings())


@pytest.mark.parametrize("name", ["ünïcode né.json", os.fsdecode(b"latin\xff.json"), "a b\n.json"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = trace(tmp_path / name, 0)
    with Loading([path], here_bytes=-1) as loading:
        finish(loading)
    assert loading.refused == []
    assert_same(loading.windows[path], readers.read(path))


def test_a_process_that_dies_costs_its_file_only(files: list[Path], endless: Path) -> None:
    with Loading([endless, *files], jobs=1, here_bytes=-1) as loading:
        # The largest go first.
        end = time.monotonic() + PATIENCE_S
        while len(loading.windows) < len(files):
            assert time.monotonic() < end
            loading.pump(0.05)
        loading.pump(0.05)
        (pid,) = loading._pool.pids
        os.kill(pid, signal.SIGKILL)
        finish(loading)
    assert sorted(loading.windows) == sorted(files)
    ((path, why, hint),) = loading.refused
    assert path == str(endless)
    assert why == "The process that read endless.json was killed (SIGKILL)."
    assert "--jobs 1" in hint


def test_a_process_that_dies_is_replaced_for_the_files_that_are_left(files: list[Path], endless: Path) -> None:
    with Loading([endless], jobs=1, here_bytes=-1) as loading:
        pid = busy(loading)
        loading._to_read.extend(files)
        loading.files = (endless, *files)
        loading._sizes |= dict.fromkeys(files, 1)
        os.kill(pid, signal.SIGKILL)
        finish(loading)
        assert loading._pool.pids
        assert pid not in loading._pool.pids
    assert sorted(loading.windows) == sorted(files)


def test_leaving_kills_every_process(endless: Path) -> None:
    with Loading([endless], here_bytes=-1) as loading:
        process = psutil.Process(busy(loading))
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert not process.is_running()


def test_a_process_ends_when_nobody_listens_any_more(endless: Path) -> None:
    loading = Loading([endless], here_bytes=-1)
    pid = busy(loading)
    for one in loading._pool._workers:
        one.line.close()
    end = time.monotonic() + PATIENCE_S
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.02)
    loading.close()


def test_the_interrupt_of_a_terminal_does_not_reach_the_processes(endless: Path) -> None:
    with Loading([endless], here_bytes=-1) as loading:
        assert os.getsid(busy(loading)) != os.getsid(0)


class TestWithACache:
    @pytest.fixture
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
        monkeypatch.setattr(loads, "WORTH_BYTES", 0)
        return Cache(tmp_path / "cache", 10**9)

    def test_what_processes_have_read_is_found_the_next_time(self, files: list[Path], cache: Cache) -> None:
        with Loading(files, cache=cache, here_bytes=-1) as first:
            finish(first)
        assert cache.count == 3
        with Loading(files, cache=cache, here_bytes=-1) as second:
            finish(second)
            assert second._pool.pids == ()
        for path in files:
            assert_same(second.windows[path], first.windows[path])
            assert_same(second.windows[path], readers.read(path))

    def test_a_cache_that_cannot_be_written_is_noted(self, files: list[Path], tmp_path: Path, cache: Cache) -> None:
        (tmp_path / "cache").write_text("a file where the folder would be")
        with Loading(files, cache=cache, here_bytes=-1) as loading:
            finish(loading)
        assert sorted(loading.windows) == sorted(files)
        assert loading.refused == []
        (note,) = loading.notes
        assert "cannot be written (Not a directory): nothing is kept" in note

    def test_nothing_half_written_is_left_by_a_process_that_was_killed(self, endless: Path, cache: Cache) -> None:
        left = cache.folder / "entries" / f"1-{'a' * 40}.columns.{'b' * 16}.part"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"half")
        with Loading([endless], cache=cache, here_bytes=-1) as loading:
            busy(loading)
        assert list(left.parent.iterdir()) == []


class TestBeginnings:
    @pytest.fixture
    def big(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(loads, "FIRST_LOOK_BYTES", 50_000)
        monkeypatch.setattr(loads, "_LOOKED_AT_FROM_BYTES", 100_000)
        return trace(tmp_path / "big.json", 0, kernels=20_000)

    def test_the_beginning_of_a_big_file_is_there_before_the_file(self, big: Path) -> None:
        with Loading([big], jobs=1, looks_ahead=True, here_bytes=-1) as loading:
            end = time.monotonic() + PATIENCE_S
            while not loading.beginnings:
                assert time.monotonic() < end
                assert loading.pump(0.05)
            share, (window,) = loading.beginnings[big]
            assert not window.is_complete
            assert 0 < len(window.spans) < 20_000
            assert share == pytest.approx(50_000 / big.stat().st_size)
            assert loading.windows == {}
            finish(loading)
            assert loading.beginnings == {}
            assert_same(loading.windows[big], readers.read(big))

    def test_a_look_that_is_killed_leaves_nothing_behind(
        self, big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
        (tmp_path / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", None)
        with Loading([big], jobs=1, looks_ahead=True, here_bytes=-1) as loading:
            end = time.monotonic() + PATIENCE_S
            while not list((tmp_path / "tmp").rglob("big.json")):
                assert time.monotonic() < end
                loading.pump(0.001)
        assert list((tmp_path / "tmp").iterdir()) == []

    @staticmethod
    def seen(big: Path) -> list[Seen]:
        """All that is seen of one opening."""
        opening = Opening(Loading([big], jobs=1, looks_ahead=True, here_bytes=-1))
        opening.start()
        seen = [opening.seen()]
        end = time.monotonic() + PATIENCE_S
        while not seen[-1].so_far.is_done:
            assert time.monotonic() < end
            time.sleep(0.0005)
            if opening.seen() is not seen[-1]:
                seen.append(opening.seen())
        opening.close()
        return seen

    def test_a_run_is_called_partial_until_its_files_are_read(self, big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # Else the whole file may be read before the time comes to fold what its beginning tells.
        monkeypatch.setattr(opens, "_FOLD_EVERY_NS", 0)
        monkeypatch.setattr(opens, "_PATIENCE_S", 0.001)
        trace(big, 0, kernels=200_000)
        openings = (self.seen(big) for _ in range(5))
        seen = next(seen for seen in openings if any(one.partial for one in seen))
        partial = [one for one in seen if one.partial]
        assert all(0 < one.partial["big.json"] < 1 for one in partial)
        assert [bool(one.runs) for one in seen] == sorted(bool(one.runs) for one in seen)
        assert seen[-1].partial == {}
        assert seen[-1].runs[0].windows[0].is_complete


def test_progress_grows_to_the_whole(files: list[Path]) -> None:
    seen: list[SoFar] = []
    with Loading(files, jobs=1, here_bytes=-1) as loading:
        while loading.pump(0.01):
            seen.append(loading.so_far)
        seen.append(loading.so_far)
    assert [one.read_bytes for one in seen] == sorted(one.read_bytes for one in seen)
    last = seen[-1]
    assert (last.files, last.files_done, last.is_done) == (3, 3, True)
    assert last.read_bytes == last.total_bytes == sum(path.stat().st_size for path in files)
    assert last.events == sum(readers.read(path)[0].counts.read for path in files)
    assert last.frac == 1.0


@pytest.mark.slow
def test_compiling_the_fast_readers_is_told_by_the_process_that_does_it_and_once(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="the fast extra is not installed")
    monkeypatch.setenv(fast.SWITCH, "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    told = []
    for _ in range(2):
        seen: set[bool] = set()
        with Loading(files[:1], jobs=1, here_bytes=-1) as loading:
            while loading.pump(0.01):
                seen.add(loading.so_far.is_compiling)
        assert not loading.so_far.is_compiling
        told.append(True in seen)
    assert told == [True, False]


def test_the_time_left_is_by_the_pace_of_what_had_to_be_read(tmp_path: Path) -> None:
    now = [0]
    loading = Loading([trace(tmp_path / "a.json", 0)], clock=lambda: now[0])
    assert loading._left_ns(10, 100) is None  # no time has passed
    now[0] = 2 * 10**9
    assert loading._left_ns(0, 100) is None  # nothing is read yet
    assert loading._left_ns(1, 101) is None  # so little tells no pace
    assert loading._left_ns(25, 100) == 6 * 10**9
    loading.close()


def test_time_that_goes_into_compiling_tells_no_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    with Loading([trace(tmp_path / "a.json", 0)], clock=lambda: now[0]) as loading:
        for now_ns, is_compiling in ((10**9, False), (9 * 10**9, True), (10 * 10**9, False)):
            now[0] = now_ns
            monkeypatch.setattr(Loading, "_is_compiling", is_compiling)
            loading._unseen.append(loading.files[0])
            loading.pump(0)
        assert loading._left_ns(25, 100) == 6 * 10**9  # of ten seconds, two went into reading


def test_load_keeps_the_order_of_the_files(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = [files[2], files[0], files[1]]
    loaded = load(mixed)
    assert (list(loaded.windows), loaded.refused, loaded.notes) == (mixed, [], [])


class TestOpening:
    def seen(self, files: list[Path]) -> Seen:
        opening = Opening(Loading(files))
        opening.start()
        end = time.monotonic() + PATIENCE_S
        while not opening.seen().so_far.is_done:
            assert time.monotonic() < end
            time.sleep(0.01)
        opening.close()
        return opening.seen()

    def test_runs_of_one_name_get_names_of_their_own(self, tmp_path: Path) -> None:
        files = [trace(tmp_path / "two" / name, 0) for name in ("a.json", "b.json")]
        files += [trace(tmp_path / "one" / "a.json", 0)]
        names = [run.name for run in self.seen(files).runs]
        assert len(set(names)) == 3

    def test_refusals_come_with_the_rest(self, files: list[Path], tmp_path: Path) -> None:
        (tmp_path / "bad.json").write_text("{}")
        seen = self.seen([*files, tmp_path / "bad.json"])
        assert sum(run.experiment.ranks for run in seen.runs) == 3
        assert [path for path, _, _ in seen.refused] == [str(tmp_path / "bad.json")]

    def test_how_old_the_runs_are_is_told_until_they_are_put_together_again(self, files: list[Path]) -> None:
        now = [0]
        loading = Loading(files[:1])
        opening = Opening(loading, clock=lambda: now[0])
        while loading.pump(0.1):
            pass
        opening._look(is_last=True)
        assert opening.seen().age_ns == 0
        now[0] = 7_000_000_000
        opening._look(is_last=True)
        assert (opening.seen().number, opening.seen().age_ns) == (1, 7_000_000_000)

    def test_a_fault_of_ours_is_raised_by_who_looks(self, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("this is a bug")

        monkeypatch.setattr(readers, "read", broken)
        opening = Opening(Loading(files))
        opening.start()
        opening._thread.join(PATIENCE_S)
        with pytest.raises(RuntimeError, match="this is a bug"):
            opening.seen()
