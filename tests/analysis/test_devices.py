"""Sensor readings per device."""

from __future__ import annotations

from drawn import run

from meshscope.analysis.devices import devices
from meshscope.recording.entries import Sampled, SensorFailed

READINGS = [
    Sampled(t_ns=2, device="gpu 0", values={"utilization_frac": 0.75, "power_w": 300.0}),
    Sampled(t_ns=1, device="gpu 0", values={"utilization_frac": 0.25}),
    Sampled(t_ns=1, device="cpu", values={"utilization_frac": 1.0}),
]


def test_each_field_of_each_device_is_a_series_in_order_of_time() -> None:
    found = devices(run(READINGS)).fields
    assert [(field.device, field.field) for field in found] == [
        ("cpu", "utilization_frac"), ("gpu 0", "power_w"), ("gpu 0", "utilization_frac"),
    ]  # fmt: skip
    last = found[2]
    assert (last.count, last.last, last.mean, last.maximum) == (2, 0.75, 0.5, 0.75)
    assert last.time_ns.tolist() == [1, 2]


def test_a_field_that_failed_is_listed_once_with_its_newest_reason() -> None:
    failed = [SensorFailed(t_ns=at, device="gpu 0", field="power_w", why=why) for at, why in ((1, "a"), (2, "b"))]
    assert devices(run(failed)).failed == (("gpu 0", "power_w", "b"),)


def test_no_readings_are_none() -> None:
    assert devices(run()).fields == ()
