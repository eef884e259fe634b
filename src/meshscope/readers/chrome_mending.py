"""One damaged entry of a Chrome trace, as text, back into a value: by the grammar where it holds, by guess nowhere.

Exporters have written raw backslashes, control characters, quotes inside names, bytes of other encodings, NaN. What
is meant can be told as long as every string can be seen to end where the next key begins; else the entry is lost.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

BAD_TEXT = "bad escape, control character or UTF-8 in a string"
BAD_QUOTE = "unescaped quote in a string"
NOT_FINITE = "NaN or Infinity"
ODD_TYPE = "a value of another type than events have"

_KEYS = "ph|cat|name|pid|tid|ts|dur|args|id|id2|bp|s|sf|cname|tts|tdur|scope|bind_id|flow_in|flow_out|stackFrame"
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\|"')
_SWALLOWED = re.compile(rf'"(?:{_KEYS})\\?"\s*:')
_STRUCTURE = re.compile(r'[\[\]{}"]')
_NEXT_QUOTE = {False: re.compile(r'\\[\\"]|"'), True: re.compile(r'"')}
_ENDS_KEY = re.compile(r'"\s*:')
_ENDS_VALUE = re.compile(rf'"\s*(?:,\s*"(?:{_KEYS})"\s*:|\}}\s*\Z)')
_ENDS_ARGUMENT = re.compile(r'"\s*(?:,\s*"[^"\\]{0,200}"\s*:|\}\s*(?:[,}\]]|\Z))')
_ENDS_ITEM = re.compile(r'"\s*(?:,\s*(?:["\[{\d-]|true|false|null)|\]\s*(?:[,}\]]|\Z))')
_LONGEST_MENDED = 1 << 20


def mended(text: bytes) -> tuple[Any, str] | None:
    """The value and what was wrong with its text; None when that cannot be told."""
    said = text.decode("utf-8", "replace")
    odd: list[str] = []
    value = _loaded(_escaped(said), odd)
    if value is not None:
        reason = NOT_FINITE if odd else ODD_TYPE if _is_json(text) else BAD_TEXT
        return value[0], reason
    if len(said) > _LONGEST_MENDED:
        return None
    for ignores_escapes in (False, True):
        again = _requoted(said, ignores_escapes=ignores_escapes)
        value = _loaded(again, odd, is_unique=True) if again is not None else None
        if value is not None:
            return value[0], BAD_QUOTE
    return None


def as_event(value: dict[str, Any]) -> dict[str, Any]:
    """The value with the types that events have: text for names, a number or text for ids, an object of arguments."""
    event = dict(value)
    for key in ("ph", "cat", "name"):
        if key in event and not isinstance(event[key], str | None):
            event[key] = json.dumps(event[key])
    for key in ("pid", "tid"):
        if isinstance(event.get(key), bool | list | dict):
            event[key] = json.dumps(event[key])
    if not isinstance(event.get("args"), dict):
        event.pop("args", None)
    return event


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; halves of surrogate pairs, which no UTF-8 can hold, become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(value))


def lenient_int(digits: str) -> int | str:
    """An int where one of 64 bits may hold it; else its digits (some hold thousands of them)."""
    return int(digits) if len(digits) <= 20 else digits


def _loaded(text: str, odd: list[str], *, is_unique: bool = False) -> tuple[Any] | None:
    """The value in a tuple; None when it is no JSON. ``odd`` takes the constants that are no numbers."""

    def constant(name: str) -> str:
        odd.append(name)
        return name

    pairs = _unique if is_unique else None
    try:
        return (
            json.loads(
                text, strict=False, parse_float=str, parse_int=lenient_int, parse_constant=constant,
                object_pairs_hook=pairs,
            ),
        )  # fmt: skip
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two entries run into one repeat their keys: after a guess about quotes that is no event."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _is_json(text: bytes) -> bool:
    """Whether nothing is wrong with the text itself; half a surrogate pair is, though JSON's grammar lets it pass."""
    try:
        msgspec.json.encode(json.loads(text, parse_int=lenient_int))
    except (ValueError, RecursionError):
        return False
    return True


def _escaped(text: str, *, and_quotes: bool = False) -> str:
    """Backslashes that begin no escape doubled; quotes escaped too when asked."""

    def one(found: re.Match[str]) -> str:
        if found[0] == '"':
            return '\\"' if and_quotes else '"'
        return "\\\\" if found[0] == "\\" else found[0]

    return _ESCAPE.sub(one, text)


def _requoted(text: str, *, ignores_escapes: bool) -> str | None:
    """The text with the quotes inside its strings escaped; None when a string's end cannot be seen.

    ``ignores_escapes`` takes a backslash before a quote for a character of its own, as in ``"C:\\work\\"``.
    """
    out: list[str] = []
    at, nesting, before = 0, "", ""
    while (found := _STRUCTURE.search(text, at)) is not None:
        gap = text[at : found.start()]
        before = gap.rstrip()[-1:] or before
        out.append(gap)
        at = found.end()
        if found[0] == '"':
            end = _end_of_string(text, at, _ends(nesting, before), ignores_escapes=ignores_escapes)
            if end < 0 or _SWALLOWED.search(text, at, end):
                return None
            content = text[at:end].replace("\\", "\\\\") if ignores_escapes else text[at:end]
            out.append(f'"{_escaped(content, and_quotes=True)}"')
            at = end + 1
        else:
            nesting = nesting[:-1] if found[0] in "]}" else nesting + found[0]
            out.append(found[0])
        before = found[0]
    return "".join(out) + text[at:]


def _ends(nesting: str, before: str) -> re.Pattern[str]:
    """What a quote and the text after it look like where a string ends, by what stands around and before it."""
    if nesting.endswith("["):
        return _ENDS_ITEM
    if before != ":":
        return _ENDS_KEY
    return _ENDS_VALUE if nesting == "{" else _ENDS_ARGUMENT


def _end_of_string(text: str, at: int, ends: re.Pattern[str], *, ignores_escapes: bool) -> int:
    for quote in _NEXT_QUOTE[ignores_escapes].finditer(text, at):
        if quote[0] == '"' and ends.match(text, quote.start()):
            return quote.start()
    return -1


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(one) for key, one in value.items()}
    return [_without_surrogates(one) for one in value] if isinstance(value, list) else value
