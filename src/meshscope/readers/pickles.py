"""Pickles read without trust: numbers, text, lists, tuples and dicts come out, and nothing else can.

A pickle is a program. Python's own unpickler can be forbidden to import, but it still reserves memory for a memo
number of ten digits, hashes tuples nested a million deep (a crash) and hashes a tuple that holds the one before twice,
sixty times over (a hang). Here every operation is one of a table, makes at most one small value, and only text and
numbers are keys; what is not in the table is refused with its name. So a pickle of n bytes makes at most n values.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from meshscope.errors import TraceError

PICKLE = b"\x80"
_MOST_BYTES_OF_INT = 16
_MOST_DIGITS = 40
_KEYS = (str, int, float, bool, bytes, type(None))

_U2, _U4, _I4, _U8 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<Q")
_DOUBLE = struct.Struct(">d")


class _RefusedError(Exception):
    """The pickle asks for something other than plain values."""


class _DamagedError(Exception):
    """The pickle does not hold together."""


class Unfinished(NamedTuple):
    """Where a pickle stood when it ended early: its stack, outermost first, and where on it something was begun."""

    stack: list[Any]
    marks: list[int]


def plain(content: bytes, name: str) -> Any:
    """The value that a pickle holds. ``name`` is the file's, for what is said of it.

    Raises TraceError when it ends early, is no pickle, or asks for anything but plain values. Protocol reference: the
    docstrings of the standard library's ``pickletools``.
    """
    found = as_far_as_it_goes(content, name)
    if isinstance(found, Unfinished):
        raise cut_short(name)
    return found


def as_far_as_it_goes(content: bytes, name: str) -> Any:
    """As :func:`plain`, but an :class:`Unfinished` for a pickle that ends early."""
    return value_and_end(content, name)[0]


def value_and_end(content: bytes, name: str) -> tuple[Any, int]:
    """As :func:`as_far_as_it_goes`, with where the pickle ends: what follows is none of it."""
    machine = _Machine(content)
    try:
        return machine.run(), machine.at + 1
    except _RefusedError as error:
        raise TraceError(
            f"{name} is a pickle that asks for {error}; only numbers, text, lists and dicts are read.",
            hint="Do not load it with Python's pickle unless you trust who made it: torch's own dumps ask for nothing.",
        ) from error
    except (IndexError, struct.error) as error:
        if machine.at >= len(content) or machine.at + 8 > len(content):
            return Unfinished(machine.stack, machine.marks), len(content)
        raise _broken(name) from error
    except (_DamagedError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise _broken(name) from error


def cut_short(name: str) -> TraceError:
    """Why a pickle that ends early is refused where nothing of it is worth keeping."""
    return TraceError(
        f"{name} stops in the middle of the pickle.", hint="It was cut short: copy it again, or dump it again."
    )


def _broken(name: str) -> TraceError:
    return TraceError(f"{name} is no whole pickle.", hint="Copy it again in binary mode, or dump it again.")


class _Machine:
    """The pickle's stack, the marks on it, and what it remembered by number."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        content, operations = self.content, _OPERATIONS
        while True:
            code = content[self.at]
            if code == _STOP:
                return self.stack.pop()
            self.at += 1
            operations[code](self)

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.content):
            raise IndexError(size)
        return self.content[start : self.at]

    def number(self, kind: struct.Struct) -> int:
        value: int = kind.unpack_from(self.content, self.at)[0]
        self.at += kind.size
        return value

    def line(self) -> bytes:
        end = self.content.find(b"\n", self.at)
        if end < 0:
            self.at = len(self.content)
            raise IndexError(end)
        start, self.at = self.at, end + 1
        return self.content[start:end]

    def since_mark(self) -> list[Any]:
        mark = self.marks.pop()
        if mark > len(self.stack):
            raise _DamagedError("a mark above the stack")
        values = self.stack[mark:]
        del self.stack[mark:]
        return values

    def remember(self, number: int) -> None:
        self.memo[number] = self.stack[-1]


Operation = Callable[[_Machine], None]
_STOP = ord(".")


def _constant(value: Any) -> Operation:
    return lambda machine: machine.stack.append(value)


def _fixed(kind: struct.Struct) -> Operation:
    return lambda machine: machine.stack.append(machine.number(kind))


def _text(size: Callable[[_Machine], int]) -> Operation:
    return lambda machine: machine.stack.append(machine.take(size(machine)).decode("utf-8", "replace"))


def _bytes(size: Callable[[_Machine], int]) -> Operation:
    return lambda machine: machine.stack.append(machine.take(size(machine)))


def _one(machine: _Machine) -> int:
    return machine.take(1)[0]


def _two(machine: _Machine) -> int:
    return machine.number(_U2)


def _four(machine: _Machine) -> int:
    return machine.number(_U4)


def _eight(machine: _Machine) -> int:
    return machine.number(_U8)


def _long(size: Callable[[_Machine], int]) -> Operation:
    def read(machine: _Machine) -> None:
        digits = machine.take(size(machine))
        if len(digits) > _MOST_BYTES_OF_INT:
            raise _RefusedError(f"an integer of {len(digits)} bytes")
        machine.stack.append(int.from_bytes(digits, "little", signed=True))

    return read


def _decimal(machine: _Machine) -> None:
    digits = machine.line().rstrip(b"L")
    if len(digits) > _MOST_DIGITS:
        raise _RefusedError(f"an integer of {len(digits)} digits")
    machine.stack.append(digits == b"01" if digits in (b"00", b"01") else int(digits))


def _quoted(machine: _Machine) -> None:
    text = machine.line()
    if len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise _DamagedError("text without quotes")
    machine.stack.append(text[1:-1].decode("utf-8", "replace"))


def _mark(machine: _Machine) -> None:
    machine.marks.append(len(machine.stack))


def _pop(machine: _Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _tuple(size: int) -> Operation:
    def read(machine: _Machine) -> None:
        values = tuple(machine.stack[-size:])
        if len(values) < size:
            raise _DamagedError("too few values for a tuple")
        machine.stack[-size:] = [values]

    return read


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _list(machine.stack[-1]).append(value)


def _appends(machine: _Machine) -> None:
    values = machine.since_mark()
    _list(machine.stack[-1]).extend(values)


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise _DamagedError("no list to append to")
    return value


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _fill(machine.stack[-1], [key, value])


def _set_items(machine: _Machine) -> None:
    pairs = machine.since_mark()
    _fill(machine.stack[-1], pairs)


def _fill(value: Any, pairs: list[Any]) -> Any:
    if type(value) is not dict or len(pairs) % 2:
        raise _DamagedError("no dict to fill")
    for key, item in zip(pairs[::2], pairs[1::2], strict=True):
        if type(key) not in _KEYS:
            raise _RefusedError(f"a {type(key).__name__} as a key")
        value[key] = item
    return value


def _put(number: Callable[[_Machine], int]) -> Operation:
    return lambda machine: machine.remember(number(machine))


def _get(number: Callable[[_Machine], int]) -> Operation:
    return lambda machine: machine.stack.append(machine.memo[number(machine)])


def _line_number(machine: _Machine) -> int:
    return int(machine.line()[:20])


def _refusing(code: int) -> Operation:
    """How an operation that is not in the table is refused: by what it would import, where it says so."""
    known = {ord(operation.code): operation.name for operation in pickletools.opcodes}

    def refuse(machine: _Machine) -> None:
        name = known.get(code)
        if name is None:
            raise _DamagedError(f"no operation {code}")
        if name in ("GLOBAL", "INST"):
            raise _RefusedError(f"{_said(machine.line())}.{_said(machine.line())}")
        if name == "STACK_GLOBAL":
            raise _RefusedError(".".join(_said(part) for part in machine.stack[-2:]))
        raise _RefusedError(f"the operation {name}")

    return refuse


def _said(part: Any) -> str:
    text = part.decode("utf-8", "replace") if isinstance(part, bytes) else part
    return text[:80] if isinstance(text, str) else "something unnamed"


_TABLE: dict[bytes, Operation] = {
    b"\x80": lambda machine: _skip(machine, 1),
    b"\x95": lambda machine: _skip(machine, 8),
    b"(": _mark,
    b"0": _pop,
    b"1": lambda machine: _drop(machine.since_mark()),
    b"2": lambda machine: machine.stack.append(machine.stack[-1]),
    b"N": _constant(None),
    b"\x88": _constant(True),  # noqa: FBT003  # the value itself
    b"\x89": _constant(False),  # noqa: FBT003
    b"J": _fixed(_I4),
    b"K": lambda machine: machine.stack.append(_one(machine)),
    b"M": _fixed(_U2),
    b"I": _decimal,
    b"L": _decimal,
    b"\x8a": _long(_one),
    b"\x8b": _long(_four),
    b"F": lambda machine: machine.stack.append(float(machine.line()[:64])),
    b"G": _fixed(_DOUBLE),
    b"S": _quoted,
    b"T": _text(_four),
    b"U": _text(_one),
    b"V": lambda machine: machine.stack.append(machine.line().decode("raw-unicode-escape")),
    b"X": _text(_four),
    b"\x8c": _text(_one),
    b"\x8d": _text(_eight),
    b"B": _bytes(_four),
    b"C": _bytes(_one),
    b"\x8e": _bytes(_eight),
    b"]": lambda machine: machine.stack.append([]),
    b"a": _append,
    b"e": _appends,
    b"l": lambda machine: machine.stack.append(machine.since_mark()),
    b")": lambda machine: machine.stack.append(()),
    b"t": lambda machine: machine.stack.append(tuple(machine.since_mark())),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"}": lambda machine: machine.stack.append({}),
    b"d": lambda machine: machine.stack.append(_fill({}, machine.since_mark())),
    b"s": _set_item,
    b"u": _set_items,
    b"p": _put(_line_number),
    b"q": _put(_one),
    b"r": _put(_four),
    b"\x94": lambda machine: machine.remember(len(machine.memo)),
    b"g": _get(_line_number),
    b"h": _get(_one),
    b"j": _get(_four),
}


def _skip(machine: _Machine, size: int) -> None:
    machine.take(size)


def _drop(_: list[Any]) -> None:
    """What stood above the mark is not wanted."""


_OPERATIONS: tuple[Operation, ...] = tuple(_TABLE.get(bytes((code,))) or _refusing(code) for code in range(256))
