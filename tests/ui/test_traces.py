"""Traces opened by themselves: what the screen shows of them, whole and while they are read."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from meshscope.reports.text import report
from meshscope.run import Loading, Opening, Seen, SoFar, open_traces, trace_files
from meshscope.ui import progress
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Look
from meshscope.ui.picture import text
from meshscope.ui.screens.strategies import Strategies
from meshscope.ui.screens.traces import Traces

PATIENCE_S = 20.0
UNIX_NS = 1_790_000_000_000_000_000


def kernel(name: str, start_us: float, dur_us: float, stream: int = 7) -> dict[str, Any]:
    args = {"stream": stream, "device": 0}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start_us, "dur": dur_us,
            "args": args}  # fmt: skip


def step(number: int, start_us: float, dur_us: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": start_us,
            "dur": dur_us, "args": {}}  # fmt: skip


def write(path: Path, events: list[dict[str, Any]], **around: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"baseTimeNanoseconds": UNIX_NS, **around, "traceEvents": events}))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two ranks of a step each, the second with more communication; and a file that is no trace."""
    for rank, exposed_us in ((0, 100), (1, 300)):
        events = [step(5, 0, 1000), kernel("gemm", 0, 600), kernel("ncclDevKernel_AllReduce", 400, 200 + exposed_us, 9)]
        write(tmp_path / "llama" / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    (tmp_path / "llama" / "notes.json").write_text('{"text": "not a trace"}')
    return tmp_path / "llama"


@pytest.fixture
def stepless(tmp_path: Path) -> Path:
    return write(tmp_path / "kernels only.json", [kernel("gemm", 0, 500), kernel("gemm", 700, 300)])


class Stage:
    def __init__(self, app: MeshscopeApp, pilot: Pilot[str], screen: Traces) -> None:
        self.app = app
        self.pilot = pilot
        self.screen = screen

    async def rest(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.pilot.pause()
            while not self.screen.is_at_rest:
                await asyncio.sleep(0.01)
            await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.rest()

    def text(self) -> str:
        return text(self.app)


@contextlib.asynccontextmanager
async def staged(
    opening: Opening | Path, *, size: tuple[int, int] = (120, 40), rests: bool = True
) -> AsyncIterator[Stage]:
    if isinstance(opening, Path):
        opening = Opening(Loading(trace_files(opening).files))
    screen = Traces(opening, Look(), fps=50)
    app = MeshscopeApp(Options(), lambda _: screen)
    async with app.run_test(size=size) as pilot:
        stage = Stage(app, pilot, screen)
        await pilot.pause()
        if rests:
            await stage.rest()
        yield stage


class Told(Opening):
    """An opening that is wherever a test puts it."""

    def __init__(self, seen: Seen) -> None:
        super().__init__(Loading(()))
        self.now = seen
        self.is_closed = False

    def start(self) -> None:
        pass

    def seen(self) -> Seen:
        return self.now

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_ranks_of_a_folder_look_as_they_did(
    folder: Path, size: tuple[int, int], snapshot: Callable[[str, str], None]
) -> None:
    async with staged(folder, size=size) as stage:
        snapshot(f"traces-{size[0]}x{size[1]}", stage.text())


async def test_the_sentence_says_what_its_shares_are_of(folder: Path) -> None:
    async with staged(folder) as stage:
        said = " ".join(line.strip() for line in stage.text().splitlines()[1:3])
        assert said == (
            "A step takes 1.00 ms, mean of 2 ranks and 1 step: computing 60.0 %, exposed in all-reduce 20.0 %, "
            "idle 20.0 % of it; 10.0 % is waiting for peers."
        )


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_who_is_late_in_eight_ranks_is_on_the_screen(shared: Path, size: tuple[int, int]) -> None:
    files = sorted((shared / "traces" / "mr-megatron-tp8-a100").glob("megatron*.gz"))
    async with staged(Opening(Loading(files)), size=size) as stage:
        assert "58.8 % is waiting, late: ranks 0, 6." in " ".join(stage.text().split())
        await stage.press("4", "enter", *["pagedown"] * 4)
        shown = " ".join(stage.text().split())
        assert "88.0 % of their 3.34 s, added up over calls and ranks, is waiting for peers" in shown
        assert "rank 0 came last to 32 of 84 collectives" in shown
        assert "rank 6 came last to 28 of 84 collectives" in shown
        assert "cannot say wait_ns" not in shown


async def test_the_doubts_are_those_of_the_ranks_together(folder: Path) -> None:
    """One rank of two: the report says that the other may have come last, and so does the screen."""
    async with staged(Opening(Loading([folder / "rank0.json"]))) as stage:
        await stage.press("4", "enter")
        shown = " ".join(stage.text().split())
        assert "cannot say wait_ns: 1 of 1 collective span:" in shown
        assert "telling that apart needs" not in shown


async def test_a_rank_without_a_whole_step_has_a_row_without_numbers(folder: Path) -> None:
    whole = (folder / "rank1.json").read_text()
    (folder / "rank1.json").write_text(whole[: whole.rindex("}, {")])
    async with staged(folder) as stage:
        shown = stage.text()
        assert "mean of 1 of 2 ranks and 1 step" in shown
        assert any(line.split()[:6] == ["1", "no", "whole", "step", "–", "–"] for line in shown.splitlines())


async def test_a_file_without_spans_has_the_ranks_that_its_report_says(shared: Path) -> None:
    path = shared / "traces" / "mem-hta-timeline-raw" / "memory_timeline.raw.gz"
    async with staged(path) as stage:
        row = next(line for line in stage.text().splitlines() if "▸✓" in line)
        assert row.split()[2:4] == ["torch", "1"]
    (run,) = open_traces([path]).runs
    assert "memory timeline of torch.profiler, 1 rank" in " ".join(report([run], encoding="utf-8").split())


async def test_the_steps_of_a_row_are_numbers_not_a_count(folder: Path) -> None:
    async with staged(folder) as stage:
        row = next(line for line in stage.text().splitlines() if "llama" in line)
        assert " step 5 " in row


async def test_without_steps_nothing_is_said_of_one(stepless: Path) -> None:
    async with staged(stepless) as stage:
        shown = stage.text()
        assert "1.00 ms traced, mean of 1 rank: computing 80.0 %, idle 20.0 % of that time." in shown
        assert "A step" not in shown
        assert "ms traced" in shown
        assert "The trace holds no collective" in " ".join(shown.split())


async def test_nothing_that_only_a_live_run_has_is_offered(folder: Path) -> None:
    async with staged(folder) as stage:
        shown = stage.text()
        for word in ("p profile", "samples/s", "speed", "seek", "live", "ago", "devices", "memory by category"):
            assert word not in shown, word
        await stage.pilot.press("question_mark")
        await stage.pilot.pause()
        help_ = stage.text()
        assert "reading ends" in help_
        assert "profile the next steps" not in help_


async def test_what_was_refused_is_listed_with_what_to_do(folder: Path) -> None:
    async with staged(folder) as stage:
        shown = " ".join(stage.text().split())
        assert "1 refused" in shown
        assert "✗ notes.json:" in shown
        await stage.press("4", "enter")
        shown = " ".join(stage.text().split())
        assert "notes.json: This JSON has no traceEvents, so it is no Chrome trace." in shown
        assert "Give the file that torch.profiler's export_chrome_trace wrote." in shown


async def test_when_nothing_could_be_read_the_screen_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    async with staged(tmp_path / "a.json") as stage:
        assert "None of the files could be read." in stage.text()
        assert "a.json" in stage.text()


async def test_keys_choose_a_run(folder: Path, stepless: Path) -> None:
    async with staged(Opening(Loading([*trace_files(folder).files, stepless]))) as stage:
        first = stage.screen.selected
        await stage.press("down")
        assert stage.screen.selected != first
        assert stage.screen.selected in stage.text()
        await stage.press("up")
        assert stage.screen.selected == first


async def test_text_from_a_trace_cannot_steer_the_terminal(tmp_path: Path) -> None:
    write(tmp_path / "a\x1b[2J.json", [kernel("gemm\x1b[31m", 0, 500)])
    async with staged(tmp_path) as stage:
        assert "\x1b" not in stage.text()
        assert "a�[2J.json" in stage.text()


class TestWhileReading:
    def so_far(self, **changed: Any) -> SoFar:
        given = {"files": 2, "files_done": 1, "total_bytes": 10**9, "read_bytes": 4 * 10**8, "events": 1_234_567,
                 "left_ns": 12_400_000_000, "is_done": False}  # fmt: skip
        return SoFar(**(given | changed))

    async def runs(self, path: Path) -> Seen:
        opening = Opening(Loading(trace_files(path).files))
        opening.start()
        async with asyncio.timeout(PATIENCE_S):
            while not opening.seen().so_far.is_done:
                await asyncio.sleep(0.01)
        return opening.seen()

    async def test_the_bar_tells_bytes_events_and_time_left(self) -> None:
        async with staged(Told(Seen(so_far=self.so_far())), rests=False) as stage:
            shown = stage.text()
            assert "reading, 1 of 2 files done" in shown
            assert "40.0 % of 1.00 GB · 1 234 567 events · about 12 s left" in shown
            bar = next(line for line in shown.splitlines() if "40.0 %" in line).split("  ")[0].strip()
            assert bar.count("━") / len(bar) == pytest.approx(0.4, abs=0.03)

    @pytest.mark.parametrize("size", [(80, 24), (120, 40)])
    async def test_compiling_is_told_where_it_holds_reading_up_and_that_it_comes_once(
        self, size: tuple[int, int]
    ) -> None:
        so_far = self.so_far(read_bytes=0, events=0, is_compiling=True)
        async with staged(Told(Seen(so_far=so_far)), rests=False, size=size) as stage:
            shown = stage.text()
            assert "0.0 % of 1.00 GB · compiling fast readers once; later openings skip it" in shown
            assert "left" not in shown

    async def test_what_is_known_so_far_is_marked_in_every_panel_until_it_is_whole(self, stepless: Path) -> None:
        seen = await self.runs(stepless)
        name = seen.runs[0].name
        told = Told(Seen(1, seen.runs, {name: 0.12}, self.so_far()))
        async with staged(told, rests=False) as stage:
            async with asyncio.timeout(PATIENCE_S):
                while stage.text().count("so far, 12 % looked at") < 3:
                    await asyncio.sleep(0.02)
            shown = stage.text()
            assert "So far, 12 % looked at: 1.00 ms traced" in shown
            assert "so far 12 %" in shown
            assert "No collective in what is read so far." in " ".join(shown.split())
            assert stage.screen.farewell.startswith(f"{name}, so far, 12 % looked at: ")
            told.now = Seen(2, seen.runs, {}, self.so_far(files_done=2, is_done=True))
            await stage.rest()
            assert "so far" not in stage.text().lower()
            assert stage.screen.farewell.startswith(f"{name}: ")

    async def test_how_long_ago_the_numbers_were_looked_at_is_told(self, stepless: Path) -> None:
        seen = await self.runs(stepless)
        told = Told(Seen(1, seen.runs, {seen.runs[0].name: 0.05}, self.so_far(), age_ns=14 * 10**9))
        async with staged(told, rests=False) as stage:
            async with asyncio.timeout(PATIENCE_S):
                while "So far" not in stage.text():
                    await asyncio.sleep(0.02)
            assert "So far, 5 % looked at 14 s ago: 1.00 ms traced" in stage.text()

    @pytest.mark.parametrize("size", [(80, 24), (120, 40), (220, 60)])
    async def test_before_anything_is_read_no_panel_promises_what_a_trace_does_not_hold(
        self, size: tuple[int, int]
    ) -> None:
        async with staged(Told(Seen(so_far=self.so_far())), rests=False, size=size) as stage:
            shown = stage.text()
            assert "where a step goes, by rank" in shown
            for word in ("memory by category", "devices", " log ", "optimizer"):
                assert word not in shown, word

    async def test_leaving_ends_the_reading(self) -> None:
        told = Told(Seen(so_far=self.so_far()))
        async with staged(told, rests=False) as stage:
            await stage.pilot.press("q")
            await stage.pilot.pause()
        assert told.is_closed
        assert stage.app.return_value == ""

    @pytest.mark.parametrize(
        ("is_done", "keys", "code"), [(False, "ctrl+c", 130), (False, "q", 0), (True, "ctrl+c", 0)]
    )
    async def test_ctrl_c_tells_the_shell_that_the_reading_was_interrupted(
        self, is_done: bool, keys: str, code: int
    ) -> None:
        told = Told(Seen(so_far=self.so_far(is_done=is_done)))
        async with staged(told, rests=False) as stage:
            await stage.pilot.press(keys)
            await stage.pilot.pause()
        assert told.is_closed
        assert (stage.app.return_code or 0) == code

    async def test_progress_alone_asks_no_panel_again(self, stepless: Path) -> None:
        seen = await self.runs(stepless)
        told = Told(seen)
        async with staged(told) as stage:
            scene = stage.screen.scene
            told.now = Seen(seen.number, seen.runs, {}, self.so_far(is_done=True, events=5))
            await stage.rest()
            assert stage.screen.scene is scene


@pytest.mark.parametrize(
    ("left_ns", "says"), [(0, "about 1 s left"), (89 * 10**9, "about 89 s left"), (150 * 10**9, "about 2 min left")]
)
def test_time_left_is_coarse(left_ns: int, says: str) -> None:
    assert progress.left(left_ns) == says


async def test_several_runs_are_set_side_by_side_and_one_alone_is_not(folder: Path, stepless: Path) -> None:
    async with staged(folder) as stage:
        await stage.press("c")
        assert "There is one run only: nothing to compare it with." in stage.text()
    files = [folder / "rank0.json", folder / "rank1.json", stepless]
    async with staged(Opening(Loading(files))) as stage:
        assert "c compare" in stage.text()
        await stage.pilot.press("c")
        here = stage.app.screen
        assert isinstance(here, Strategies)
        async with asyncio.timeout(PATIENCE_S):
            while not here.is_at_rest:
                await stage.pilot.pause()
        shown = stage.text()
        assert "2 runs of traces" in shown
        assert "llama takes 1.00 ms a profiled step; no other is ranked." in shown
        assert "its traces hold no complete step" in shown
        await stage.press("escape")
        assert stage.app.screen is stage.screen
