"""What was measured of a machine, as a description of hardware."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from meshscope.advisor.bench import Attention, Bench, Collective, Copy, Product, best, described
from meshscope.advisor.hardware import cluster
from meshscope.cli.calibrate import command, lines
from meshscope.errors import InputError

MEASURED = Bench(
    platform="cpu",
    device="",
    memory_bytes=0,
    version="2.13.0",
    ranks=2,
    threads=1,
    launch_s=4e-6,
    matmul=(Product("fp32", 1000, 1000, 1000, 0.02), Product("fp32", 100, 100, 100, 1e-3)),
    copy=(Copy(1_000_000, 1e-4), Copy(100_000_000, 0.02)),
    attention=(Attention("fp32", 1, 1, 1000, 50, 0.01),),
    collective=(Collective("all_reduce", 2, 1024, 1e-4), Collective("all_reduce", 2, 10_000_000, 0.01)),
)


def test_a_machine_that_was_measured_can_be_asked_about_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "this.toml").write_text(described(MEASURED, "this", "2026-11-30"))
    found = cluster("2xthis", tmp_path)
    assert found.device.measured_flops_per_s == {"fp32": pytest.approx(1e11)}  # 2 · 1000³ / 0.02 s
    assert found.device.measured_memory_bytes_per_s == pytest.approx(5e9)  # the largest copy
    assert found.device.launch_s == pytest.approx(4e-6)
    assert found.inside.measured_bus_bytes_per_s == {"all_reduce": pytest.approx(1e9)}  # 2 · ½ · 10 MB / 0.01 s
    assert found.inside.latency_s == pytest.approx(5e-5)  # two hops
    assert found.device.family == "cpu"


def test_every_value_is_marked_measured(tmp_path: Path) -> None:
    text = described(MEASURED, "this", "2026-11-30")
    figures = [line for line in text.splitlines() if "value =" in line]
    assert figures
    assert all('how = "measured"' in line and "meshscope calibrate, 2026-11-30" in line for line in figures)


def test_a_device_that_calls_itself_something_wild_makes_no_other_file(tmp_path: Path) -> None:
    wild = 'x"]\n[[link]]\nname = "\x1b[2J\\'
    told = Bench(
        **{name: getattr(MEASURED, name) for name in Bench.__struct_fields__} | {"version": wild, "device": wild}
    )
    text = described(told, "this", "2026-11-30")
    (tmp_path / "this.toml").write_text(text)
    assert "\x1b" not in text
    assert cluster("2xthis", tmp_path).device.name == "this"


def test_the_fastest_product_stands_for_its_type() -> None:
    assert best(MEASURED.matmul)["fp32"].m == 1000


def test_what_was_measured_is_printed_with_its_units() -> None:
    text = "\n".join(lines(MEASURED))
    assert "1000 × 1000 × 1000" in text
    assert "an operator: 4.0 µs" in text


def test_a_name_that_is_no_word_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(InputError, match="no plain word"):
        CliRunner().invoke(command, ["--name", "../x"], standalone_mode=False, catch_exceptions=False)
