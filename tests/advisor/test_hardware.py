"""Devices, links and clusters by name."""

from __future__ import annotations

import csv
import re
from dataclasses import fields
from pathlib import Path

import pytest

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.figures import Source
from meshscope.advisor.hardware import cluster, device, devices, links, network
from meshscope.advisor.hardware_files import entries
from meshscope.analysis import peaks
from meshscope.errors import InputError

NOWHERE = Path("nowhere")

SPELLINGS = {
    "A100-80GB": "A100-80GB", "a100": "A100-80GB", "NVIDIA A100-SXM4-80GB": "A100-80GB", "A100 80 GB": "A100-80GB",
    "A100-40GB": "A100-40GB", "a100-40": "A100-40GB", "NVIDIA A100-SXM4-40GB": "A100-40GB",
    "NVIDIA A100-PCIE-40GB": "A100-PCIe-40GB", "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB",
    "H100-80GB": "H100-80GB", "h100": "H100-80GB", "H100-SXM5-80GB": "H100-80GB",
    "NVIDIA H100 80GB HBM3": "H100-80GB", "H100-96GB": "H100-96GB", "NVIDIA H100 PCIe": "H100-PCIe",
    "NVIDIA H200": "H200", "B200": "B200", "NVIDIA GB200": "GB200", "B300": "B300", "GB300": "GB300",
    "AMD Instinct MI300X": "MI300X", "NVIDIA GeForce RTX 4090": "RTX 4090", "4090": "RTX 4090",
    "TPUv3": "TPU v3", "TPUv4": "TPU v4", "TPUv5e": "TPU v5e", "TPU v5 lite": "TPU v5e", "v5e": "TPU v5e",
    "TPUv5p": "TPU v5p", "TPU v5": "TPU v5p", "TPU v6 lite": "TPU v6e", "TPU7x": "TPU 7x", "cpu": "CPU",
}  # fmt: skip

OWN = """
[[device]]
name = "Box"
names = ["box", "big box"]
inside = "Wire"
between = "Ethernet 100"
per_node = 2
memory_gib = { value = 2, how = "measured", where = "free -g" }
peak_flops_per_s.bf16 = { value = 1e12, how = "datasheet", where = "its leaflet" }
memory_bytes_per_s = { value = 1e11, how = "measured", where = "a copy" }

[[link]]
name = "Wire"
bytes_per_s = { value = 1e9, how = "measured", where = "a copy" }
latency_s = { value = 1e-5, how = "measured", where = "ping" }
"""


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_device_answers_to_the_names_that_people_tables_and_drivers_give_it(text: str) -> None:
    assert device(text, NOWHERE).name == SPELLINGS[text]


@pytest.mark.parametrize("text", ["H100 NVL", "H200 NVL", "A100X", "v9", "H100-48GB", "", "GH200"])
def test_a_product_that_is_not_described_is_not_taken_for_another(text: str) -> None:
    with pytest.raises(InputError) as refused:
        device(text, NOWHERE)
    assert "H100-80GB" in refused.value.hint


@pytest.mark.shared
def test_every_device_of_the_published_runs_is_known(shared: Path) -> None:
    with (shared / "data" / "published_runs.csv").open() as file:
        named = {row["gpu"] for row in csv.DictReader(file)} - {""}
    assert named
    assert all(device(name, NOWHERE) for name in named)


def test_every_figure_says_how_and_where() -> None:
    known = entries()
    every = [*known.devices.values(), *known.links.values(), *known.networks.values()]
    assert len(known.devices) >= 20
    for entry in every:
        values = [getattr(entry, name) for name in entry.__struct_fields__]
        said = [one for value in values for one in (value.values() if isinstance(value, dict) else [value])]
        figures = [one for one in said if hasattr(one, "how")]
        assert figures, entry.name
        assert all(len(one.where) > 5 and one.how in Source.__args__ for one in figures), entry.name


def test_a_device_keeps_how_each_figure_was_come_by() -> None:
    sources = device("h100", NOWHERE).sources
    assert sources["usable_bytes"].startswith("measured: ")
    assert sources["memory_bytes_per_s"].startswith("datasheet: ")
    assert sources["peak_flops_per_s.bf16"].startswith("datasheet: ")
    assert sources["measured_flops_per_s.fp8"].startswith("measured: ")


def test_a_peak_has_one_place() -> None:
    listed = peaks.named("H100 SXM")
    assert listed is not None
    for precision, peak in listed.peak_flops_per_s.items():
        assert device("h100", NOWHERE).peak_flops_per_s[precision] is peak


def test_what_is_measured_stays_below_what_the_maker_says() -> None:
    for spec in devices(NOWHERE).values():
        assert spec.measured_memory_bytes_per_s < spec.memory_bytes_per_s
        assert spec.usable_bytes <= spec.memory_bytes
        assert all(rate < spec.peak_flops_per_s[kind] for kind, rate in spec.measured_flops_per_s.items())
    for link in links(NOWHERE).values():
        bus = {kind: rate for kind, rate in link.measured_bus_bytes_per_s.items() if kind != "all_reduce"}
        assert all(rate < link.bytes_per_s for rate in bus.values()), link.name  # a switch that reduces may pass it


@pytest.mark.parametrize(
    ("text", "count", "per_node", "nodes"),
    [
        ("8xH100", 8, 8, 1),
        ("4x8xH100", 32, 8, 4),
        ("4 x 8 x H100", 32, 8, 4),
        ("64xA100-40@200", 64, 8, 8),
        ("2x6xH100", 12, 6, 2),
        ("1xH100", 1, 1, 1),
        ("128xGB200", 128, 64, 2),
        ("72xGB200", 72, 72, 1),
        ("256xv5e", 256, 256, 1),
        ("2x256xv5e", 512, 256, 2),
        ("8x7x", 8, 8, 1),
        ("8x4090", 8, 8, 1),
    ],
)
def test_a_cluster_is_devices_in_nodes(text: str, count: int, per_node: int, nodes: int) -> None:
    made = cluster(text, NOWHERE)
    assert (made.devices, made.per_node, made.nodes) == (count, per_node, nodes)


def test_what_nobody_said_of_the_network_is_marked() -> None:
    said, unsaid = cluster("16xH100@200", NOWHERE), cluster("16xH100", NOWHERE)
    assert (said.between.bytes_per_s, said.is_between_assumed) == (25e9, False)
    assert (unsaid.between.bytes_per_s, unsaid.is_between_assumed) == (50e9, True)


def test_a_network_is_a_kind_and_a_rate() -> None:
    assert network("EFA-400", NOWHERE).name == "EFA 400"
    assert network("100", NOWHERE).name == "InfiniBand 100"
    assert network("ethernet 25 Gbit/s", NOWHERE).bytes_per_s == 3.125e9


def test_ranks_on_cpu_share_this_machine() -> None:
    two, four = cluster("2xcpu", NOWHERE), cluster("4xcpu", NOWHERE)
    assert two.cores_per_rank == 2 * four.cores_per_rank > 0
    assert two.device.memory_bytes == pytest.approx(2 * four.device.memory_bytes)
    assert four.device.usable_bytes > 0


@pytest.mark.parametrize(
    "text", ["", "H100", "8", "0xH100", "8xH100@", "8xH100@fast", "8xH100@0", "9xH100", "99999999999xH100", "8xH9000",
             "8xH100@token ring 400", "1048577xH100"],
)  # fmt: skip
def test_what_is_no_cluster_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InputError) as refused:
        cluster(text, NOWHERE)
    assert refused.value.message
    assert refused.value.hint


def test_ones_own_description_counts_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "box.toml").write_text(OWN)
    made = cluster("2xbig-box", tmp_path)
    assert (made.device.name, made.inside.name, made.between.name) == ("Box", "Wire", "Ethernet 100")
    assert made.device.memory_bytes == 2 * 2**30
    assert made.device.sources["memory_bytes"] == "measured: free -g"
    assert "Box" in devices(tmp_path)
    assert "Box" not in devices(NOWHERE)


def test_ones_own_description_stands_before_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "h.toml").write_text(OWN.replace('names = ["box", "big box"]', 'names = ["h100"]'))
    assert device("h100", tmp_path).name == "Box"
    assert device("H100-80GB", tmp_path).name == "H100-80GB"


@pytest.mark.parametrize(
    "broken",
    [
        OWN.replace("value = 2,", "value = -2,"),
        OWN.replace("value = 2,", "value = nan,"),
        OWN.replace("value = 2,", 'value = "two",'),
        OWN.replace('how = "measured"', 'how = "guessed"', 1),
        OWN.replace("memory_gib", "memory_gb"),
        OWN.replace('name = "Box"\n', ""),
        OWN.replace("per_node = 2", "per_node = 0"),
        OWN.replace("per_node = 2", 'peaks = "B900"'),
        OWN.replace("[[device]]", "[[device"),
        'name = "\\u001b[2J"',
        "device = 3",
        "\x00",
    ],
)
def test_a_broken_description_is_told_in_two_lines(tmp_path: Path, broken: str) -> None:
    (tmp_path / "box.toml").write_text(broken)
    with pytest.raises(InputError) as refused:
        cluster("8xH100", tmp_path)
    assert "box.toml" in refused.value.message
    assert refused.value.hint
    assert "\n" not in refused.value.message + refused.value.hint
    assert re.search(r"[\x00-\x1f\x7f]", refused.value.message) is None


def test_a_description_that_names_an_unknown_link_is_told(tmp_path: Path) -> None:
    (tmp_path / "box.toml").write_text(OWN.partition("[[link]]")[0])
    with pytest.raises(InputError, match="Wire"):
        cluster("2xbox", tmp_path)


def test_every_device_makes_a_cluster() -> None:
    for name in devices(NOWHERE):
        made = cluster(f"4x{name}", NOWHERE)
        assert made.inside.bytes_per_s > 0
        assert {field.name for field in fields(DeviceSpec)} >= {"family", "dies"}
