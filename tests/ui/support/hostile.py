"""Names that try to steer a terminal, a trace that is full of them, and what a terminal would make of the output."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = {
    "escapes": "\x1b[2J\x1b]0;owned\x07\x1b[53mover\x9b53m\x1bP+q\x1b\\ \x1b]52;c;b3duZWQ=\x07",
    "markup": "[red]bold[/] [@click=app.bell]x[/] [link=file:///etc]y[/link] :bomb: {x!r} %s",
    "bidi": "a\u202egnp\u202c\u2066x\u2069\u061c\u200f\u200e\u05d0\u05d1b",
    "long": "kernel_" + "long" * 2500,
    "wide": "行列積カーネル🚀🚀ｗｉｄｅ",
    "combining": "e\u0301o\u0302\u0303" + "Z" + "\u0300\u0315\u0489" * 400 + "\u0301",
    "joined": "\u0301first 👩\u200d👩\u200d👧 🇩🇪 👍🏽 ❤\ufe0f 1\ufe0f\u20e3 \u1112\u1161\u11ab कि \U000e0041\u00ad",
    "control": "a\r\nb\tc\x00d\x7fe\x85f\u2028g\u2029h\x0e\x0f\x05",
}

STREAMS = 3


def width(text: str) -> int:
    """Cells by Unicode's own properties: nothing for marks and format characters, two for wide ones."""
    return sum(_width(c) for c in text)


def _width(c: str) -> int:
    if unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def is_harmless(text: str) -> bool:
    """Nothing in it is a control or a format character, and no cell carries more than a few marks."""
    steers = any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn") for c in text)
    return not steers and not re.search("[\u0300-\u036f\u0489]{4}", text)


def write(folder: Path) -> list[Path]:
    """The traces of two ranks in a folder whose name is hostile too, as those of the files."""
    # A name of a file has 255 bytes and no slash.
    names = {key: name.replace("/", "|").replace("\x00", "")[:40] for key, name in NAMES.items()}
    place = folder / names["escapes"].replace("\r", "")
    place.mkdir(parents=True)
    paths = []
    for rank in range(2):
        path = place / f"{names['wide']}{names['bidi']}[red]\x1b[53m rank{rank}.pt.trace.json"
        path.write_text(json.dumps(_document(rank)))
        paths.append(path)
    return paths


def _document(rank: int) -> dict[str, Any]:
    everything = list(NAMES.values())
    groups = [
        {"pg_name": name, "pg_desc": name, "backend_config": name, "pg_size": 2, "ranks": [0, 1]} for name in everything
    ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": NAMES["escapes"]}],
        "hostname": NAMES["escapes"], "host_name": NAMES["joined"],
        "distributedInfo": {"backend": NAMES["markup"], "rank": rank, "world_size": 2, "pg_config": groups},
        "baseTimeNanoseconds": 1_790_000_000_000_000_000,
        "trace_name": NAMES["control"],
        "traceEvents": list(_events(rank)),
    }  # fmt: skip


def _events(rank: int) -> Iterator[dict[str, Any]]:
    at = 1000.0
    for number in range(2):
        begun = at
        for index, name in enumerate(NAMES.values()):
            yield _event("cpu_op", name, at, 40, pid=1, tid=1, args={"External id": number * 100 + index})
            yield _event("python_function", name, at, 38, pid=1, tid=1)
            yield _event("user_annotation", name, at, 39, pid=1, tid=1)
            yield _event("kernel", name, at + 5, 30, tid=7 + index % STREAMS, args={"stream": 7 + index % STREAMS})
            told = {"stream": 20, "Collective name": "allreduce" if index % 2 else name, "Process Group Name": name,
                    "Process Group Description": name, "dtype": name, "In msg nelems": 1024, "Group size": 2,
                    "Process Group Ranks": "[0, 1]", "Seq": number * 100 + index}  # fmt: skip
            yield _event("kernel", f"ncclDevKernel_AllReduce_{name}", at + 20 + rank * 4, 40, tid=20, args=told)
            yield _event("gpu_memcpy", f"Memcpy {name}", at + 60, 5, tid=30, args={"stream": 30, "bytes": 10})
            at += 100
        yield _event("user_annotation", f"ProfilerStep#{number}", begun, at - begun, pid=1, tid=1)
    for pid in (0, 1):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": NAMES["escapes"]}}
        yield {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": NAMES["bidi"]}}
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": 7, "args": {"name": NAMES["control"]}}


def _event(
    category: str, name: str, at: float, took: float, *, pid: int = 0, tid: int = 7, args: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": took,
            "args": {"device": 0, **(args or {})}}  # fmt: skip


# All that meshscope itself has to say to a terminal; the rest of what it writes are characters in cells.
_OWN = re.compile(
    r"\x1b\[(?P<row>\d*);?(?P<column>\d*)H"
    r"|\x1b\[(?P<style>[\d;:]*)m"
    r"|\x1b\[\?[\d;]+[hl]"
    r"|\x1b\[\?\d+\$p"
    r"|\x1b\[[<>]\d*u"
    r"|\x1b\]22;[a-z-]*\x07"  # the shape of the pointer
)
_OTHER_STYLES = {"5", "6", "8", "53"}


class Paper:
    """Takes the output of a program as a terminal does, and fails at what no program of ours may write."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [[" "] * width for _ in range(height)]
        self._x = self._y = 0

    def write(self, output: str) -> None:
        at = 0
        while at < len(output):
            if output[at] == "\x1b":
                found = _OWN.match(output, at)
                assert found is not None, f"not ours: {output[at : at + 40]!r}"
                self._obey(found)
                at = found.end()
            else:
                self._put(output[at])
                at += 1

    def _obey(self, found: re.Match[str]) -> None:
        if found["row"] is not None:
            self._y, self._x = int(found["row"] or 1) - 1, int(found["column"] or 1) - 1
        elif found["style"] is not None:
            colours = re.sub(r"[34]8;(5;\d+|2;\d+;\d+;\d+)", "", found["style"])
            assert not _OTHER_STYLES & set(colours.split(";")), f"not ours: {found[0]!r}"

    def _put(self, c: str) -> None:
        if c == "\n":
            self._y += 1
        elif c == "\r":
            self._x = 0
        else:
            assert is_harmless(c), f"not ours: {c!r}"
            cells = width(c)
            if cells:
                assert self._x + cells <= self.width, f"row {self._y} is too long: {''.join(self.rows[self._y])!r}"
                self.rows[self._y][self._x : self._x + cells] = [c, *[""] * (cells - 1)]
            self._x += cells

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.rows)
