"""The start screen: what can be picked, what is wrong with it, and where it leads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import made
import msgspec
import pytest
from textual.pilot import Pilot

from meshscope.capture.request import Request
from meshscope.errors import InputError
from meshscope.experiment import Plan
from meshscope.run import Gallery, Loading, Opening, trace_files
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.form import Form, changed, erased, first, kept, moved, recalled, toggled, typed
from meshscope.ui.launching import Bundled, Model, Offer
from meshscope.ui.look import Depth, Look
from meshscope.ui.picture import text
from meshscope.ui.remembered import Memory, Remembered
from meshscope.ui.screens.advise import Advise
from meshscope.ui.screens.path import completed
from meshscope.ui.screens.start import Start
from meshscope.ui.screens.traces import Traces
from meshscope.ui.screens.watch import Watch
from meshscope.ui.shelf import shelf

MODELS = (Model("tiny", "4 layers, width 256"), Model("125m", "12 layers, width 768"))
NEEDS_JAX = "needs jax, flax: pip install 'meshscope[jax]'"


class Launcher:
    """Plans anything but three ranks; starting writes a made comparison."""

    def __init__(self, out: Path, *, has_jax: bool = True, notes: tuple[str, ...] = ()) -> None:
        self.out = out
        self.has_jax = has_jax
        self.notes = notes
        self.planned: list[Request] = []
        self.started: list[Path] = []

    def offers(self) -> tuple[Offer, ...]:
        return tuple(
            Offer(
                name,
                shape.title,
                not shape.is_baseline,
                NEEDS_JAX if shape.framework == "jax" and not self.has_jax else "",
            )
            for name, shape in made.SHAPES.items()
        )

    def models(self) -> tuple[Model, ...]:
        return MODELS

    def plan(self, request: Request) -> Plan:
        self.planned.append(request)
        if request.ranks == 3:
            raise InputError(
                "A batch of 8 does not divide into 3 ranks.", hint="Use a --batch that is a multiple of 3."
            )
        return msgspec.structs.replace(
            made.plan(request.strategies), request={"out": str(self.out)}, notes=list(self.notes)
        )

    def start(self, folder: Path, plan: Plan) -> int:
        self.started.append(folder)
        made.write(folder, tuple(run.strategy for run in plan.runs))
        return 1


Opened = Callable[..., contextlib.AbstractAsyncContextManager[tuple[MeshscopeApp, Pilot[str]]]]


@contextlib.asynccontextmanager
async def opened(
    launcher: Launcher,
    *places: Path,
    size: tuple[int, int] = (120, 40),
    look: Look | None = None,
    memory: Memory | None = None,
) -> AsyncIterator[tuple[MeshscopeApp, Pilot[str]]]:
    given = look or Look()
    screen = Start(launcher, shelf(places), given, open_reel=Gallery, open_path=opened_path)
    app = MeshscopeApp(Options(look=given, memory=memory or Memory()), lambda _: screen)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.2)
        yield app, pilot


async def press(pilot: Pilot[str], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause(0.2)


@pytest.fixture
def utc() -> Iterator[None]:
    """Local time is UTC, so that dates look the same everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (220, 60)])
async def test_the_start_screen_looks_as_it_did(
    tmp_path: Path, snapshot: Callable[[str, str], None], size: tuple[int, int], utc: None
) -> None:
    for day in range(2):
        made.write(tmp_path / f"run-{day}", made.FOUR[: 2 + day], t0=made.T0 + day * 86400 * made.S)
    async with opened(Launcher(Path("/runs/next"), has_jax=False), tmp_path, size=size) as (app, _):
        snapshot(f"start-{size[0]}x{size[1]}", text(app))


async def test_in_forty_by_ten_cells_every_row_is_reached_and_what_is_wrong_is_read(
    tmp_path: Path, snapshot: Callable[[str, str], None], utc: None
) -> None:
    made.write(tmp_path / "run-0")
    async with opened(Launcher(Path("/runs/next")), tmp_path, size=(40, 10)) as (app, pilot):
        assert isinstance(app.screen, Start)
        snapshot("start-40x10", text(app))
        rows = app.screen.form.rows
        await pilot.press(*["up"] * len(rows))
        for row in rows:
            await pilot.pause()
            (here,) = [line for line in text(app).splitlines() if line.startswith(" ▸")]
            assert (row in here) or row.startswith("recording")
            assert text(app).splitlines()[-1].endswith("? help  q quit")
            await pilot.press("down")
        await press(pilot, *["up"] * (len(rows) - rows.index("ranks") - 1), "3")
        shown = text(app)
        assert "▸ ranks   ◂ 3 ▸" in shown
        assert "A batch of 8 does not divide into 3" in shown
        await press(pilot, "o", *"ab" * 30, "z")
        assert "abz█ │" in text(app)


async def test_the_start_screen_in_ascii_has_nothing_else(tmp_path: Path) -> None:
    look = Look(is_ascii=True, depth=Depth.NONE)
    async with opened(Launcher(tmp_path / "run"), tmp_path, look=look) as (app, _):
        assert text(app).isascii()


async def test_enter_starts_what_is_picked_and_shows_it(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "run")
    async with opened(launcher) as (app, pilot):
        await press(pilot, "enter")
        await pilot.pause(0.5)
        assert isinstance(app.screen, Watch)
        assert launcher.started == [tmp_path / "run"]
        assert launcher.planned[-1].strategies == made.FOUR


async def test_what_cannot_be_run_is_said_in_place_and_nothing_starts(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "run")
    async with opened(launcher) as (app, pilot):
        await press(pilot, "up", "up", "up", "3")
        shown = text(app)
        assert "▸ ranks   ◂ 3 ▸" in shown
        assert "A batch of 8 does not divide into 3 ranks." in shown
        assert "Use a --batch that is a multiple of 3." in shown
        await press(pilot, "enter")
        assert isinstance(app.screen, Start)
        assert launcher.started == []
        await press(pilot, "backspace", "4")
        assert "does not divide" not in text(app)
        assert launcher.planned[-1].ranks == 4


async def test_a_strategy_without_its_framework_says_what_it_needs_and_cannot_be_picked(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "run", has_jax=False)
    async with opened(launcher) as (app, pilot):
        assert text(app).count(NEEDS_JAX) == 3
        await press(pilot, *["up"] * 8, "space")
        assert "[–] pmap" in text(app)
        assert launcher.planned[-1].strategies == ("ddp", "fsdp")


async def test_an_uneven_machine_is_told_before_the_run(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "run", notes=("jax is CPU-only here: pip install 'meshscope[cuda]'",))
    async with opened(launcher) as (app, _):
        assert "jax is CPU-only here: pip install 'meshscope[cuda]'" in text(app)


async def test_without_a_strategy_there_is_nothing_to_start(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path / "run")
    async with opened(launcher) as (app, pilot):
        await press(pilot, *["up"] * 10)
        for _ in made.FOUR:
            await pilot.press("space", "down")
        await press(pilot)
        assert "pick a strategy first" in text(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, Start)
        assert launcher.started == []


async def test_a_recording_is_opened_and_plays_from_its_beginning(tmp_path: Path) -> None:
    made.write(tmp_path / "kept")
    async with opened(Launcher(tmp_path / "run"), tmp_path) as (app, pilot):
        await press(pilot, "tab")
        assert "▸ 2026" in text(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, Watch)
        assert app.screen.playback.clock.speed == 8.0
        assert not app.screen.playback.stance().is_at_end


async def test_leaving_the_start_screen_leaves_no_line(tmp_path: Path) -> None:
    async with opened(Launcher(tmp_path / "run")) as (app, pilot):
        await press(pilot, "q")
        assert app.return_value == ""


async def test_help_is_there_too(tmp_path: Path) -> None:
    async with opened(Launcher(tmp_path / "run")) as (app, pilot):
        await press(pilot, "question_mark")
        assert "pick a strategy, or leave it out" in text(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, Start)


def form(at: str = "ranks") -> Form:
    given = first((Offer("ddp", "DDP"), Offer("pmap", "pmap", why_not="needs jax")), MODELS, 2)
    return Form(given.offers, given.models, 2, given.chosen, at=at)


def test_numbers_are_typed_changed_erased_and_left_to_the_plan() -> None:
    given = typed(typed(form(), "1"), "2")
    assert given.ranks == "12"
    assert erased(given).ranks == "1"
    assert changed(form(), 1).ranks == "1"
    assert changed(form(), -1).ranks == ""
    assert typed(form(), "0").ranks == ""
    assert form().request().ranks is None
    assert given.request().ranks == 12
    assert len(typed(form("steps"), "9" * 20).steps) == 6


def test_only_what_can_run_is_picked_at_first_and_nothing_else_can_be() -> None:
    given = form("pmap")
    assert given.chosen == {"ddp"}
    assert toggled(given) == given
    assert toggled(form("ddp")).chosen == frozenset()


def test_the_cursor_stops_at_the_ends() -> None:
    given = form("ddp")
    assert moved(given, -1).at == "ddp"
    assert moved(given, 99).at == "recording 1"


def test_models_go_round() -> None:
    assert changed(form("model"), 1).model == "125m"
    assert changed(form("model"), -1).model == "125m"


def test_damaged_folders_are_left_off_the_shelf(tmp_path: Path) -> None:
    made.write(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "plan.json").write_text("{")
    own = [shelved for shelved in shelf([tmp_path, tmp_path / "absent"]) if not shelved.is_bundled]
    assert [shelved.folder.name for shelved in own] == ["good"]
    assert own[0].strategies == made.FOUR


def test_the_bundled_launcher_offers_every_strategy_and_model() -> None:
    launcher = Bundled()
    assert {offer.strategy for offer in launcher.offers()} >= {"ddp", "fsdp", "pmap", "pjit"}
    about = {model.name: model.about for model in launcher.models()}
    assert about["tiny"] == "4 layers × 256, 64 tokens, batch 8, 60 steps"
    assert about["resnet50"] == "ResNet-50, 64 × 64 pixels, 1000 classes, batch 16, 60 steps"
    assert about["moe"] == "4 layers × 256, 2 of 8 experts, 64 tokens, batch 8, 60 steps"
    assert {"125m", "350m", "1.3b", "mlp"} < about.keys()


async def test_a_picture_of_the_start_screen_is_told_of_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("meshscope.ui.screens.start._SAID_S", 0.2)
    async with opened(Launcher(tmp_path / "run")) as (app, pilot):
        app.action_picture()
        saved = next(tmp_path.glob("meshscope-*.svg"))
        assert f"Saved {saved.name}" in text(app)
        await pilot.pause(0.5)
        assert "Saved" not in text(app)
        assert "q quit" in text(app)


class TestOpeningByPath:
    @pytest.fixture
    def trace(self, tmp_path: Path) -> Path:
        event = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 5, "args": {}}
        (tmp_path / "traces q").mkdir()
        path = tmp_path / "traces q" / "rank0.json"
        path.write_text(json.dumps({"traceEvents": [event]}))
        return path

    async def type(self, pilot: Pilot[str], text: str) -> None:
        await pilot.press("o")
        await pilot.pause()
        for character in text:
            await pilot.press(
                {"/": "slash", " ": "space", ".": "full_stop", "_": "underscore"}.get(character, character)
            )
        await pilot.press("enter")
        await pilot.pause()

    async def test_a_trace_is_looked_at(self, tmp_path: Path, trace: Path) -> None:
        async with opened(Launcher(tmp_path / "out")) as (app, pilot):
            await self.type(pilot, str(trace.parent))
            await until(lambda: isinstance(app.screen, Traces) and app.screen.is_at_rest)
            assert "rank0.json" in text(app)

    async def test_a_recording_is_watched(self, tmp_path: Path) -> None:
        made.write(tmp_path / "run", ("ddp",))
        async with opened(Launcher(tmp_path / "out")) as (app, pilot):
            await self.type(pilot, str(tmp_path / "run"))
            await until(lambda: isinstance(app.screen, Watch))

    async def test_a_path_that_leads_nowhere_is_told_and_the_screen_stays(self, tmp_path: Path) -> None:
        async with opened(Launcher(tmp_path / "out")) as (app, pilot):
            await self.type(pilot, str(tmp_path / "nothere"))
            await until(lambda: "does not exist" in " ".join(text(app).split()))
            assert isinstance(app.screen, Start)

    async def test_escape_leaves_the_line_alone(self, tmp_path: Path) -> None:
        async with opened(Launcher(tmp_path / "out")) as (app, pilot):
            await pilot.press("o", "q", "j", "1", "backspace")
            await pilot.pause()
            assert "qj█" in text(app)
            await pilot.press("escape")
            await pilot.pause()
            assert isinstance(app.screen, Start)

    def test_tab_completes_as_far_as_all_agree(self, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = trace.parent
        (folder / "rank1.json").touch()
        assert completed(f"{folder}/r") == f"{folder}/rank"
        assert completed(f"{folder}/rank1") == f"{folder}/rank1.json"
        assert completed(str(folder)[:-2]) == f"{folder}/"
        assert completed(f"{folder}/x") == f"{folder}/x"
        assert completed("/nothere/at/all") == "/nothere/at/all"
        monkeypatch.chdir(folder)
        assert completed("ra") == "rank"


def opened_path(path: Path) -> Gallery | Opening:
    if (path / "plan.json").is_file():
        return Gallery(path)
    return Opening(Loading(trace_files(path).files))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)


class TestRemembering:
    def test_the_form_begins_as_a_run_was_last_started(self) -> None:
        begun = replace(form(), chosen=frozenset({"ddp"}), model="125m", ranks="2", batch="")
        again = recalled(form(), Remembered(**kept(begun)))  # type: ignore[arg-type]
        assert again.request() == begun.request()

    def test_what_this_machine_no_longer_offers_is_left_out(self) -> None:
        offers = (Offer("ddp", "DDP"), Offer("pmap", "pmap", True, NEEDS_JAX))
        here = first(offers, MODELS, 0)
        before = Remembered(strategies=["ddp", "pmap", "gone"], model="gone", ranks="007")
        again = recalled(here, before)
        assert again.chosen == {"ddp"}
        assert (again.model, again.ranks) == ("tiny", "7")
        assert recalled(here, Remembered(strategies=["pmap"], model="125m")) == here

    async def test_a_start_is_remembered_and_looking_at_a_recording_is_not(self, tmp_path: Path) -> None:
        path = tmp_path / "config" / "screens.json"
        made.write(tmp_path / "old")
        for keys, is_kept in ((("tab", "enter"), False), (("enter",), True)):
            async with opened(Launcher(tmp_path / "run"), tmp_path, memory=Memory(path)) as (app, pilot):
                await press(pilot, *keys)
                await until(lambda app=app: isinstance(app.screen, Watch))  # type: ignore[misc]
            assert path.exists() == is_kept
        assert Memory(path).remembered.strategies == list(made.FOUR)


def test_what_needs_gpus_cannot_be_picked_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {}
    for has_gpus in (True, False):
        monkeypatch.setattr("meshscope.capture.machine.has_gpus", lambda has_gpus=has_gpus: has_gpus)
        offers[has_gpus] = {offer.strategy: offer.why_not for offer in Bundled().offers()}
    assert offers[False]["dp"].startswith("needs GPUs")
    assert "GPU" not in offers[True]["dp"] + offers[False]["ddp"]


async def test_a_leads_to_the_advise_screen_and_escape_back(tmp_path: Path) -> None:
    async with opened(Launcher(tmp_path / "next")) as (app, pilot):
        await press(pilot, "a")
        assert isinstance(app.screen, Advise)
        assert "predicted, not measured" in text(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, Start)
