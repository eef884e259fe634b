"""The README's pictures show what the screen shows now, word by word."""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
from html import unescape
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def renderer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("meshscope_render", ROOT / ".assets" / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def words(svg: str) -> list[str]:
    """The text of a picture, line by line; shapes and colours are left to the eye."""
    return [unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg)]


async def test_the_pictures_of_the_readme_say_what_the_screen_says_now() -> None:
    render = renderer()
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for shot in render.SHOTS:
        assert f".assets/{shot.name}" in shown
        kept = words((ROOT / ".assets" / shot.name).read_text(encoding="utf-8"))
        now = words(await render.drawn(shot))
        assert len(now) > 50
        difference = "\n".join(difflib.unified_diff(kept, now, "kept", "now", lineterm="", n=0))
        assert kept == now, f"{shot.name} is out of date (python .assets/render.py draws it anew):\n{difference}"


def test_every_picture_in_the_readme_is_made_by_the_script() -> None:
    linked = set(re.findall(r"\(\.assets/([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert linked == {shot.name for shot in renderer().SHOTS}
