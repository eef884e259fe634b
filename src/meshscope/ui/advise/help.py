"""The keys of the advise screen, and what is drawn on it."""

from __future__ import annotations

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, named
from meshscope.ui.palette import texture

KEYS = (
    ("↑ ↓  j k", "another candidate (home, end: the first, the last)"),
    ("← →  h l", "why · rules · time and memory · what flips it"),
    ("pgup pgdn", "scroll what is said below"),
    ("tab", "to the question, and back; enter asks it"),
    ("", "there ← → are the usual choices, letters are typed"),
    ("e  enter", "the arithmetic of the candidate, term by term"),
    ("f", "what would flip the choice (asks several times)"),
    ("space", "mark; o then simulates all that are marked"),
    ("o", "the predicted step as a recording, marked simulated"),
    ("s  T", "save the screen; light or dark"),
    ("ctrl+p", "all commands by name"),
    ("q  esc", "back"),
)
_DRAWN = (
    ("compute", "computing, beside no communication"),
    ("hidden", "communicating beside computing"),
    ("exposed", "communicating while nothing computes"),
    ("wait", "the pipeline's bubble"),
    ("idle", "waiting for the host, or for late ranks"),
    ("parameters", "as they are trained on; also gradients, optimizer"),
    ("activations", "kept from forward to backward; temporaries"),
    ("communication", "buckets and gathered parameters"),
    ("logits", "the output layer's results and gradients"),
    ("outside", "slack, context, communication's own buffers"),
)


def help_lines(look: Look) -> list[Line]:
    lines: list[Line] = [[(f"{named(key, look):<12}", "key"), (what, "text")] for key, what in KEYS]
    lines.append([])
    lines += [
        [(texture(meaning, look) * 3, meaning), (f"  {meaning:<14}", "text"), (what, "quiet")]
        for meaning, what in _DRAWN
    ]
    signs = ("|", "~", "|--+--|") if look.is_ascii else ("│", "≈", "├──┼──┤")
    lines.append([(f"{signs[0]}  ", "warn"), ("   the device's memory", "quiet")])
    lines.append([(f"{signs[1]}  ", "quiet"), ("   nobody can tell which of these is faster", "quiet")])
    lines.append([(f"{signs[2]}", "quiet"), ("  90 % of outcomes lie between", "quiet")])
    return lines
