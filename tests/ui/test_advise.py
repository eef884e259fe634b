"""The advise screen: the question at the left, every candidate with its cost, and that nothing of it was measured."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import advised
import planned
import pytest
from textual.pilot import Pilot

from meshscope.advisor.forecast import Forecast
from meshscope.advisor.ranking import Ranked
from meshscope.advisor.request import Request
from meshscope.advisor.simulated import write
from meshscope.errors import InputError
from meshscope.ui.advise import form as forms
from meshscope.ui.advise import state as states
from meshscope.ui.advise.answer import Answer
from meshscope.ui.advise.drawing import Status, drawn
from meshscope.ui.advise.form import FIELDS, Form
from meshscope.ui.advise.state import FLIPS, PARETO, RULES, VIEWS, WHY, State
from meshscope.ui.app import MeshscopeApp, Options
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cells import cells, strips
from meshscope.ui.palette import TEXTURES
from meshscope.ui.picture import picture, text
from meshscope.ui.screens.advise import Advise
from meshscope.ui.screens.watch import Watch

Snapshot = Callable[[str, str], None]
SIZES = ((80, 24), (120, 40), (220, 60))
PATIENCE_S = 20.0
NOW_UNIX_NS = 1_796_000_000_000_000_000


def shown(
    answer: Answer | None,
    state: State | None = None,
    *,
    form: Form | None = None,
    status: Status | None = None,
    size: tuple[int, int] = (120, 40),
    look: Look | None = None,
) -> str:
    look = look or Look()
    found = drawn(form or Form(), answer, state or State(), status or Status(), size, look)
    assert len(found.lines) == size[1]
    return "\n".join(strip.text for strip in strips(found.lines, *size, look))


@contextlib.asynccontextmanager
async def opened(
    *,
    size: tuple[int, int] = (120, 40),
    look: Look | None = None,
    ask: Callable[[Form], Answer] = advised.answer,
    **given: Any,
) -> AsyncIterator[tuple[MeshscopeApp, Advise, Pilot[str]]]:
    given = {"flip": advised.flips} | given
    screen = Advise(look or Look(), ask=ask, **given)
    app = MeshscopeApp(Options(look=look or Look()), lambda _: screen)
    async with app.run_test(size=size) as pilot:
        await rest(screen, pilot)
        yield app, screen, pilot


async def rest(screen: Advise, pilot: Pilot[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await pilot.pause()
        while not screen.is_at_rest:
            await asyncio.sleep(0.01)
        await pilot.pause()


# What it looks like


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", ["why", "rules", "pareto", "flips", "typing", "nothing", "refused"])
async def test_every_state_looks_as_it_did(snapshot: Snapshot, size: tuple[int, int], state: str) -> None:
    ask = advised.answer if state != "nothing" else lambda _: advised.nothing()
    async with opened(size=size, ask=ask) as (app, screen, pilot):
        keys = {"rules": ["right"], "pareto": ["right", "right"], "flips": ["f"], "typing": ["tab", "down"],
                "refused": ["end"]}  # fmt: skip
        await pilot.press(*keys.get(state, []))
        await rest(screen, pilot)
        snapshot(f"advise-{state}-{size[0]}x{size[1]}.svg", picture(app))


@pytest.mark.parametrize("size", [*SIZES, (300, 90)])
@pytest.mark.parametrize("view", VIEWS)
def test_no_line_is_wider_than_the_screen(size: tuple[int, int], view: str) -> None:
    for answer in (advised.answer(), advised.nothing(), None):
        found = drawn(Form(), answer, State(view=view), Status(), size, Look())
        assert max(cells(line) for line in found.lines) <= size[0]


@pytest.mark.parametrize("size", [(60, 16), (40, 12), (20, 8), (8, 3), (1, 1)])
@pytest.mark.parametrize("view", VIEWS)
def test_a_screen_that_is_too_small_is_filled_all_the_same(size: tuple[int, int], view: str) -> None:
    for answer in (advised.answer(), advised.nothing(), None):
        shown(answer, State(view=view), size=size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", VIEWS)
def test_in_ascii_nothing_else_is_drawn(size: tuple[int, int], view: str) -> None:
    assert shown(advised.answer(), State(view=view), size=size, look=Look(is_ascii=True, depth=Depth.NONE)).isascii()


@pytest.mark.parametrize("size", SIZES)
def test_it_says_that_nothing_was_measured(size: tuple[int, int]) -> None:
    for answer in (advised.answer(), advised.nothing(), None):
        assert "predicted, not measured" in shown(answer, size=size).splitlines()[0]


def test_what_steers_a_terminal_reaches_none() -> None:
    evil = "\x1b[2J\u202eevil"
    answer = replace(advised.answer(), why=(evil, evil), notes=(evil,))
    said = shown(answer, form=Form(model=evil), status=Status(said=evil))
    assert "\x1b" not in said
    assert "\u202e" not in said


# Candidates


def test_candidates_stand_in_the_order_of_the_advice_with_their_verdicts() -> None:
    lines = shown(advised.answer(), size=(160, 45)).splitlines()
    rows = lines[3:9]
    assert [word for line in rows for word in ("yes", "close", " no ") if word in line] == ["yes"] * 4 + [
        "close",
        " no ",
    ]
    assert "fsdp 8" in rows[0]
    assert "189 … 231" in rows[0]
    assert "≈" in rows[1]  # nobody can tell it from the choice
    assert "≈" not in rows[0] + rows[2]
    assert "–" in rows[5]  # it does not fit, so its time was not computed


def test_the_bars_add_up_and_show_the_limit() -> None:
    lines = shown(advised.answer(), State(chosen=3), size=(120, 40)).splitlines()
    memory = next(line for line in lines if line.startswith(" memory "))
    bar = memory[9:].split("  22.0 GB")[0]
    told = {meaning: bar.count(TEXTURES[meaning][0]) for meaning in ("parameters", "activations", "optimizer")}
    assert told["activations"] > told["optimizer"] > told["parameters"] > 0
    assert bar.count("│") == 1
    assert "22.0 GB of 80.0 GB: fits" in memory
    legend = next(line for line in lines if "█ compute" in line)
    # 290 ms: 0.8 × 290 − 20 of compute, of which 58 hide; 43.5 exposed, 20 bubble, 14.5 idle.
    assert legend.strip() == "█ compute 154  ▒ hidden 58.0  ░ exposed 43.5  ╱ bubble 20.0  · idle 14.5 ms"


def test_what_does_not_fit_goes_on_beyond_the_bar() -> None:
    said = shown(advised.answer(), State(chosen=5))
    assert "▶" in said
    assert "128 GB of 80.0 GB: does not fit" in said
    assert "cannot say" in said


def test_a_candidate_without_a_time_says_why() -> None:
    row = Ranked(planned.candidate("ddp"), Forecast(advised.memory(40e9), None, ("time: no sweep of this link",)))
    answer = replace(advised.answer(), rows=(row,))
    assert "cannot say: time: no sweep of this link" in shown(answer)


async def test_keys_choose_a_candidate_and_stop_at_both_ends() -> None:
    async with opened() as (_, screen, pilot):
        for keys, at in (
            (["down", "j"], 2),
            (["up"], 1),
            (["k", "k", "up"], 0),
            (["end"], 5),
            (["down"], 5),
            (["home"], 0),
        ):
            await pilot.press(*keys)
            assert screen.state.chosen == at


async def test_keys_turn_the_view_round() -> None:
    async with opened() as (app, screen, pilot):
        assert screen.state.view == WHY
        await pilot.press("right", "l")
        assert screen.state.view == PARETO
        assert "none beats it in both" in text(app)
        await pilot.press("h")
        assert screen.state.view == RULES
        assert "replicate first: 20 B × 1.41 B" in text(app)
        assert "the choice is another: ddp 8 takes 218 ms" in text(app)
        await pilot.press("left", "left")
        assert screen.state.view == FLIPS
        assert "asks what would flip the choice" in text(app)


async def test_what_flips_the_choice_is_asked_once_and_told() -> None:
    asked: list[Answer] = []

    def flip(of: Answer) -> Any:
        asked.append(of)
        return advised.flips(of)

    async with opened(flip=flip) as (app, screen, pilot):
        await pilot.press("f", "f")
        await rest(screen, pilot)
        await pilot.press("f", "enter")
        await rest(screen, pilot)
        assert len(asked) == 1
        assert "≠ NVLink half as fast: then ddp 8" in text(app)
        assert "= twice the batch: still fsdp 8" in text(app)
        assert "≠ half the memory: then nothing would fit" in text(app)


async def test_the_view_scrolls_as_far_as_it_goes_on() -> None:
    long = replace(advised.answer(), why=tuple(f"Sentence {number}." for number in range(60)))
    async with opened(ask=lambda _: long) as (app, screen, pilot):
        assert "Sentence 59." not in text(app)
        await pilot.press(*["pagedown"] * 9)
        assert "Sentence 59." in text(app)
        await pilot.press(*["pageup"] * 9)
        assert screen.state.scroll == 0


async def test_the_arithmetic_of_a_candidate_is_told_term_by_term() -> None:
    async with opened() as (app, _, pilot):
        for key in ("e", "enter"):
            await pilot.press(key)
            await pilot.pause()
            assert "forward of a layer: 24 × 4.00 ms" in text(app)
            assert "Predicted: nothing of it was measured." in text(app)
            await pilot.press("escape")
        await pilot.press("down", "e")
        await pilot.pause()
        assert "Not chosen: ddp 8 takes 218 ms against 210 ms" in text(app)


# The question


async def test_letters_are_typed_into_a_field_and_act_elsewhere() -> None:
    asked: list[Form] = []

    def ask(form: Form) -> Answer:
        asked.append(form)
        return advised.answer(form)

    async with opened(ask=ask) as (app, screen, pilot):
        await pilot.press("tab", "ctrl+u", "j", "q", "o", "7", "b", "space", "question_mark")
        assert screen.form.model == "jqo7b ?"
        assert screen.state.chosen == 0
        await pilot.press("backspace", "backspace", "down", "down", "4", "x", "0")
        assert (screen.form.model, screen.form.sequence) == ("jqo7b", "40")
        assert "The question was changed" in text(app)
        await pilot.press("enter")
        await rest(screen, pilot)
        assert asked[-1].asked == ("jqo7b", "8xH100", "40", "", "")
        assert not screen.form.at
        assert "The question was changed" not in text(app)


async def test_escape_leaves_the_fields_before_it_leaves_the_screen() -> None:
    async with opened() as (app, screen, pilot):
        await pilot.press("tab", "escape")
        assert not screen.form.at
        await pilot.press("q")
    assert app.return_value == ""


async def test_what_is_wrong_with_the_question_is_said_and_the_answer_before_stays() -> None:
    def ask(form: Form) -> Answer:
        if form.model == "1.3bx":
            raise InputError("There is no model '1.3bx'.", hint="There are tiny, 125m.")
        return advised.answer(form)

    async with opened(ask=ask) as (app, screen, pilot):
        await pilot.press("tab", "x", "enter")
        await rest(screen, pilot)
        assert "There is no model '1.3bx'. There are tiny, 125m." in text(app)
        assert "fsdp 8" in text(app)


async def test_keys_go_on_while_a_search_takes_its_time_and_only_the_newest_counts() -> None:
    go, seen = threading.Event(), []

    def ask(form: Form) -> Answer:
        seen.append(form.model)
        if form.model == "slow":
            go.wait(PATIENCE_S)
        return advised.answer(form)

    async with opened(ask=ask) as (app, screen, pilot):
        await pilot.press("tab", "ctrl+u", *"slow", "enter")
        await pilot.pause()
        assert "Computing every layout that is legal" in text(app)
        await pilot.press("down", "right")
        assert (screen.state.chosen, screen.state.view) == (1, RULES)
        await pilot.press("tab", "ctrl+u", *"new", "enter", "tab", *"er", "enter")
        go.set()
        await rest(screen, pilot)
        assert seen == ["1.3b", "slow", "newer"]
        assert screen.answer is not None
        assert screen.answer.asked[0] == "newer"


async def test_before_the_first_answer_it_says_what_will_stand_there() -> None:
    go = threading.Event()

    def ask(form: Form) -> Answer:
        go.wait(PATIENCE_S)
        return advised.answer(form)

    app = MeshscopeApp(Options(), lambda _: screen)
    screen = Advise(Look(), ask=ask)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "Candidates appear here" in text(app)
        await pilot.press("down", "o", "e", "space")
        assert "There is no candidate to simulate yet." in text(app)
        go.set()
        await rest(screen, pilot)


def test_where_nothing_fits_the_reason_stands_in_place_of_candidates() -> None:
    said = shown(advised.nothing())
    assert "not even the state of the model" in said


# The form alone


def test_a_number_takes_digits_alone_and_doubles_with_a_key() -> None:
    form = Form(at="batch")
    assert forms.typed(form, "1a2٣").batch == "12"
    assert forms.changed(Form(at="batch", batch="12"), 1).batch == "24"
    assert forms.changed(Form(at="batch", batch="12"), -1).batch == "6"
    assert forms.changed(Form(at="batch", batch="1"), -1).batch == ""
    assert forms.changed(Form(at="batch"), 1).batch == "1024"


def test_usual_choices_come_round_and_auto_is_no_word() -> None:
    form = Form(at="precision")
    seen = []
    for _ in range(20):
        form = forms.changed(form, 1)
        seen.append(form.precision)
    assert "" in seen
    assert "auto" not in seen
    assert forms.changed(Form(at="model", model="my own"), 1).model == "125m"


def test_the_cursor_stops_at_both_ends_of_the_form() -> None:
    assert forms.moved(Form(at="model"), -1).at == "model"
    assert forms.moved(Form(at="precision"), 1).at == "precision"
    assert [forms.moved(Form(at="model"), by).at for by in range(5)] == list(FIELDS)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"model": "nonesuch"}, "nonesuch"),
        ({"model": "pkg.module:make"}, "of your own"),
        ({"devices": "8xPotato"}, "Potato"),
        ({"precision": "fp99"}, "fp99"),
        ({"sequence": "0"}, "sequence"),
        ({"model": " "}, "No model"),
        ({"batch": "99999999999"}, "batch"),
    ],
)
def test_a_question_that_cannot_be_asked_names_what_is_wrong(changed: dict[str, str], word: str) -> None:
    with pytest.raises(InputError, match=word) as refused:
        forms.question(replace(Form(), **changed))
    assert refused.value.hint


def test_what_is_left_open_is_supplied_and_said() -> None:
    open_ = forms.question(Form())
    assert (open_.question.seq_len, open_.question.cluster.devices) == (1024, 8)
    assert any("No batch was given" in note for note in open_.notes)
    told = forms.question(Form(sequence="512", batch="64", precision="bf16"))
    assert (told.question.seq_len, told.question.global_batch, told.question.precision) == (512, 64, "bf16-mixed")
    assert not told.notes


def test_what_a_request_says_beyond_the_fields_is_kept() -> None:
    form = forms.asking(Request("7b", "8xH100", batch=64, strategies=("fsdp",), micro_batch=2))
    assert form.asked == ("7b", "8xH100", "", "64", "")
    asked = forms.question(replace(form, model="13b")).question
    assert (asked.strategies, asked.micro_batch, asked.global_batch) == (("fsdp",), 2, 64)


def test_of_many_marks_the_oldest_gives_way() -> None:
    state = State()
    for row in (0, 1, 2, 3, 4):
        state = states.marked(replace(state, chosen=row))
    assert state.marked == (1, 2, 3, 4)
    assert states.marked(state).marked == (1, 2, 3)


# Opening what is simulated


async def test_what_is_marked_is_simulated_and_opened(tmp_path: Path) -> None:
    kept: list[list[str]] = []

    def keep(of: Answer, picked: list[Ranked], place: Path) -> Path:
        kept.append([one.candidate.strategy for one in picked])
        write(place / "it", [planned.simulated("ddp"), planned.simulated("fsdp")], now_unix_ns=NOW_UNIX_NS)
        return place / "it"

    async with opened(keep=keep, places=tmp_path) as (app, screen, pilot):
        await pilot.press("space", "down", "space", "down", "o")
        await rest(screen, pilot)
        assert kept == [["fsdp", "ddp"]]
        async with asyncio.timeout(PATIENCE_S):
            while not (isinstance(app.screen, Watch) and "simulated · 1.3b" in text(app)):
                await asyncio.sleep(0.02)


async def test_what_cannot_be_simulated_is_said_where_the_keys_stand() -> None:
    def keep(of: Answer, picked: list[Ranked], place: Path) -> Path:
        raise InputError("ddp has no simulated step: no table.", hint="")

    async with opened(keep=keep) as (app, screen, pilot):
        await pilot.press("o")
        await rest(screen, pilot)
        assert "ddp has no simulated step: no table." in text(app).splitlines()[-1]
        assert isinstance(app.screen, Advise)


# The mouse, help, and where it is opened from


async def test_a_click_chooses_a_candidate_a_field_or_a_view() -> None:
    async with opened() as (_, screen, pilot):
        assert screen._drawn is not None
        line = next(line for line, row in screen._drawn.rows.items() if row == 2)
        await pilot.click(offset=(60, line))
        assert screen.state.chosen == 2
        at, first, _ = screen._drawn.fields["batch"]
        await pilot.click(offset=(first + 2, at))
        assert screen.form.at == "batch"
        at, first, _ = screen._drawn.tabs[RULES]
        await pilot.click(offset=(first + 1, at))
        assert screen.state.view == RULES


async def test_help_tells_every_key_and_every_texture() -> None:
    async with opened(size=(120, 44)) as (app, _, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        said = text(app)
        for word in (
            "another candidate",
            "the arithmetic",
            "marked simulated",
            "the pipeline's bubble",
            "90 % of outcomes",
        ):
            assert word in said
        await pilot.press("escape", "tab", "f1")
        await pilot.pause()
        assert "another candidate" in text(app)


async def test_it_is_worn_in_another_look() -> None:
    async with opened() as (app, screen, pilot):
        await pilot.press("T")
        await pilot.pause()
        assert not screen.look.is_dark
        app.wear(Look(is_ascii=True))
        await pilot.pause()
        assert text(app).isascii()


async def test_the_commands_of_any_screen_lead_to_it_and_back() -> None:
    async with opened() as (app, screen, pilot):
        titles = [command.title for command in app.commands()]
        assert "Advise" in titles
        assert {"Ask", "Open simulated", "What flips it", "Arithmetic", "Mark"} <= set(titles)
        app.action_advise()  # it is there already
        await pilot.pause()
        assert app.screen is screen
