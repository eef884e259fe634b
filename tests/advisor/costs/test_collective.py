"""Collectives: what was timed, a ring's arithmetic, and the network."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.advisor.cluster import Link
from meshscope.advisor.costs import bus
from meshscope.advisor.costs.collective import collective, placing
from meshscope.advisor.costs.sweeps import Sweep, mean_s, monotone
from meshscope.advisor.costs.within import curve
from meshscope.advisor.hardware import cluster

NOWHERE = Path("nowhere")
GIB = 2**30
MIB = 2**20


def seconds(text: str, kind: str, size_bytes: float, ranks: int, **more: int) -> float:
    return collective(cluster(text, NOWHERE), kind, size_bytes, ranks, **more).value


@pytest.mark.parametrize("kind", bus.KINDS)
def test_fewer_than_two_ranks_take_no_time(kind: str) -> None:
    assert seconds("8xH100", kind, GIB, 1) == 0.0
    assert seconds("8xH100", kind, 0, 8) == 0.0


def test_another_kind_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="gossip"):
        seconds("8xH100", "gossip", GIB, 8)


def test_what_several_have_timed_takes_their_geometric_mean() -> None:
    figure = collective(cluster("8xH100", NOWHERE), "all_reduce", GIB, 8)
    assert figure.source == "measured"
    assert figure.value == pytest.approx((4029e-6 * 4019e-6 * 4053e-6) ** (1 / 3), rel=1e-3)


def test_between_two_sizes_a_time_lies_on_the_line_between_their_logarithms() -> None:
    sweep = Sweep(1024.0, (10e-6, 40e-6, 160e-6), "")
    assert sweep.time_s(1024 * math.sqrt(2)) == pytest.approx(20e-6)
    assert sweep.time_s(16) == pytest.approx(10e-6)
    assert sweep.time_s(16384) == pytest.approx(4 * 160e-6)


def test_noise_in_small_messages_does_not_make_them_slower_than_large_ones() -> None:
    assert monotone([50.0, 30.0, 40.0, 35.0, 90.0]) == (30.0, 30.0, 35.0, 35.0, 90.0)


def test_a_sweep_that_begins_later_says_nothing_of_smaller_messages() -> None:
    early, late = Sweep(1024.0, (1.0, 1.0, 1.0), ""), Sweep(4096.0, (4.0,), "")
    assert mean_s((early, late), 1024.0) == 1.0
    assert mean_s((early, late), 4096.0) == pytest.approx(2.0)


def test_switches_that_reduce_take_a_tensor_once_whatever_the_ranks() -> None:
    assert seconds("8xH100", "all_reduce", GIB, 6) == pytest.approx(seconds("8xH100", "all_reduce", GIB, 8))


@pytest.mark.parametrize(("device", "ring", "reduced"), [("H100", 4, 5), ("B200", 5, 6)])
def test_they_do_so_from_five_ranks_on_hopper_and_six_on_blackwell(device: str, ring: int, reduced: int) -> None:
    def bus_rate(ranks: int) -> float:
        return bus.factor("all_reduce", ranks) * 8 * GIB / seconds(f"8x{device}", "all_reduce", 8 * GIB, ranks)

    assert bus_rate(ring) == pytest.approx(bus_rate(ring - 1), rel=0.25)
    assert bus_rate(reduced) > 1.1 * bus_rate(ring)


def test_measured_bus_rates_of_other_ranks_are_met() -> None:
    """Published: stas00/ml-engineering network, 8 GiB all-reduce, default algorithm, GB/s."""
    published = {
        "H200": {4: 363.3, 5: 414.2, 6: 435.6, 7: 460.0, 8: 473.1},
        "B200": {4: 673.2, 5: 677.8, 6: 778.2, 7: 811.2, 8: 838.0},
    }
    for device, rates in published.items():
        for ranks, rate in rates.items():
            took_s = bus.factor("all_reduce", ranks) * 8 * GIB / (rate * 1e9)
            assert seconds(f"8x{device}", "all_reduce", 8 * GIB, ranks) == pytest.approx(took_s, rel=0.08), (
                device,
                ranks,
            )


def test_half_of_a_rings_all_reduce_is_an_all_gather() -> None:
    whole, half = (seconds("8xA100", kind, 4 * GIB, 8) for kind in ("all_reduce", "all_gather"))
    assert half == pytest.approx(whole / 2, rel=0.01)
    assert collective(cluster("8xA100", NOWHERE), "all_gather", GIB, 8).source == "interpolated"


def test_all_gather_of_eight_gpus_meets_what_was_published() -> None:
    """stas00/ml-engineering network: 8 x H200, 16 GiB, 361.4 GB/s; MooreThreads/SimuMax: 8 x B200, 606 GB/s."""
    assert 7 / 8 * 16 * GIB / seconds("8xH200", "all_gather", 16 * GIB, 8) == pytest.approx(361.4e9, rel=0.05)
    assert 7 / 8 * 16 * GIB / seconds("8xB200", "all_gather", 16 * GIB, 8) == pytest.approx(606e9, rel=0.05)


def test_sharers_stretch_what_moves_and_not_what_begins() -> None:
    one, two, three = (seconds("8xH100", "all_gather", GIB, 8, sharers=n) for n in (1, 2, 3))
    assert three - two == pytest.approx(two - one)
    assert one < two < 2 * one


@pytest.mark.parametrize(
    ("ranks", "stride", "local", "nodes"),
    [(8, 1, 8, 1), (4, 2, 4, 1), (16, 1, 8, 2), (4, 8, 1, 4), (8, 4, 2, 4), (8, 16, 1, 8), (2, 1, 2, 1)],
)
def test_a_group_lies_within_a_node_or_strides_over_nodes(ranks: int, stride: int, local: int, nodes: int) -> None:
    assert placing(cluster("16x8xH100", NOWHERE), ranks, stride) == (local, nodes)


def test_a_ring_over_nodes_sends_a_share_of_the_tensor_through_each_network_card() -> None:
    # 4 nodes of 8: 2 x 31/32 of 4 GiB, an eighth of it through each card of 50 GB/s x 0.928.
    wire_s = 2 * 31 / 32 * 4 * GIB / 8 / (50e9 * 0.928)
    fade = 1 + (1.1e6 / (4 * GIB)) ** 1.22
    begun_s = 8.4e-6 + 2 * (7 * 4e-6 + 2 * 4e-6)
    assert seconds("4x8xB200@400", "all_reduce", 4 * GIB, 32) == pytest.approx(wire_s * fade + begun_s)


def test_over_efa_and_more_than_two_nodes_small_messages_go_around_the_ring_too() -> None:
    # 62 steps, 6 of them between nodes. Published: 4 x 8 B200, 378.3 us at 1 MiB (stas00/ml-engineering network).
    begun_s = 8.4e-6 + 56 * 3.4e-6 + 6 * 26e-6
    assert seconds("4x8xB200@EFA 400", "all_reduce", 1024, 32) == pytest.approx(begun_s, rel=0.01)
    assert seconds("4x8xB200@EFA 400", "all_reduce", MIB, 32) == pytest.approx(378.3e-6, rel=0.08)


def test_one_rank_per_node_has_one_card() -> None:
    # 7/8 of 1 GiB through one card; 7 hops of 4 us.
    wire_s = 7 / 8 * GIB / (50e9 * 0.928) * (1 + (1.1e6 / GIB) ** 1.22)
    assert seconds("8x8xH100@400", "all_gather", GIB, 8, stride=8) == pytest.approx(wire_s + 8.4e-6 + 7 * 4e-6)


def test_over_two_nodes_a_tree_sends_a_tensor_once_each_way() -> None:
    # Published: 2 x 8 A100, 400 Gbit/s a node, 2 GiB in 51406 us (aws-samples); 2 x 8 H200: 486.8 GB/s.
    assert seconds("2x8xA100@EFA 50", "all_reduce", 2 * GIB, 16) == pytest.approx(51.4e-3, rel=0.06)
    assert seconds("2x8xH200@EFA 400", "all_reduce", 16 * GIB, 16) == pytest.approx(66.2e-3, rel=0.05)


def test_the_links_within_nodes_bound_a_ring_over_fast_networks() -> None:
    # Published: 16 x 8 H200 369.9 GB/s, 4 x 8 H200 369.1: what the ring within a node reaches.
    for nodes, rate in ((16, 369.86e9), (4, 369.06e9)):
        took_s = bus.factor("all_reduce", 8 * nodes) * 16 * GIB / rate
        assert seconds(f"{nodes}x8xH200@EFA 400", "all_reduce", 16 * GIB, 8 * nodes) == pytest.approx(took_s, rel=0.05)


def test_an_unstated_network_is_assumed() -> None:
    assert collective(cluster("16xH100", NOWHERE), "all_reduce", GIB, 16).source == "assumed"
    assert collective(cluster("16xH100@400", NOWHERE), "all_reduce", GIB, 16).source == "interpolated"


def test_two_devices_of_a_mesh_have_one_wire_between_them() -> None:
    # Published: 2 x MI300X 47.7 GB/s, 8 x MI300X 312.9 GB/s, 4 GiB.
    assert seconds("8xMI300X", "all_reduce", 4 * GIB, 2) == pytest.approx(90.1e-3, rel=0.05)
    assert seconds("8xMI300X", "all_reduce", 4 * GIB, 8) == pytest.approx(24.0e-3, rel=0.05)


def test_an_all_gather_over_a_torus_takes_the_tensor_over_the_rate_of_its_axes() -> None:
    # v5e: 4 links of 45 GB/s; all 256 chips fill both axes, 16 fill one, 8 do not close a ring.
    every = seconds("256xv5e", "all_gather", GIB, 256)
    assert every == pytest.approx(255 / 256 * GIB / (180e9 * 0.9) + 16e-6)
    assert seconds("256xv5e", "all_gather", GIB, 16) == pytest.approx(15 / 16 * GIB / (90e9 * 0.9) + 8e-6)
    assert seconds("256xv5e", "all_gather", GIB, 8) == pytest.approx(7 / 8 * GIB / (45e9 * 0.9) + 4e-6)
    assert seconds("256xv5e", "all_reduce", GIB, 256) == pytest.approx(2 * every, rel=0.01)


def test_slices_reduce_within_before_they_reduce_between() -> None:
    within = seconds("256xv5e", "all_reduce", GIB, 256)
    # Between two slices each chip holds 1/256 of it: 2 x 1/2 of that at 3.125 GB/s x 0.8, and 2 hops of 50 us.
    between = GIB / 256 / (3.125e9 * 0.8) + 8.4e-6 + 2 * 50e-6
    assert seconds("2x256xv5e", "all_reduce", GIB, 512) == pytest.approx(within + between)


def test_an_unknown_link_goes_by_its_rate() -> None:
    wire = Link("wire", 100e9, 1e-6)
    parts = curve(wire, "all_gather", 1e12, 5)
    assert parts.source == "datasheet"
    assert parts.moved_s == pytest.approx(4 / 5 * 1e12 / 75e9, rel=0.01)
    assert parts.begun_s == pytest.approx(8.4e-6 + 4 * 1e-6)


@given(
    text=st.sampled_from(["8xA100", "8xH100", "8xB200", "64xGB200", "32xH100@400", "8xMI300X", "256xv5e", "4xcpu"]),
    kind=st.sampled_from(bus.KINDS),
    ranks=st.sampled_from([2, 3, 4]),
    size_bytes=st.floats(1, 1e11),
)
def test_a_larger_message_is_never_quicker_and_lies_in_its_interval(
    text: str, kind: str, ranks: int, size_bytes: float
) -> None:
    where = cluster(text, NOWHERE)
    small, large = (collective(where, kind, size, ranks) for size in (size_bytes, 2 * size_bytes))
    assert 0 < small.low < small.value < small.high < math.inf
    assert large.value >= small.value * (1 - 1e-9)
