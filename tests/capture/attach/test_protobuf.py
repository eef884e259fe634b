"""Messages in protobuf's wire format, against bytes worked out by hand."""

from __future__ import annotations

from meshscope.capture.attach.protobuf import nested, number, profile_request, terminate_request, text, varint


def test_a_varint_has_seven_bits_a_byte_the_lowest_first() -> None:
    assert varint(0) == b"\x00"
    assert varint(127) == b"\x7f"
    assert varint(300) == b"\xac\x02"


def test_fields_carry_their_number_and_wire_type() -> None:
    assert number(1, 150) == b"\x08\x96\x01"
    assert text(2, "testing") == b"\x12\x07testing"
    assert nested(3, number(1, 150)) == b"\x1a\x03\x08\x96\x01"


def test_a_profile_request_turns_python_off_and_says_so() -> None:
    options = b"\x28\x01\x08\x00\x10\x02\x18\x01\x20\x00\x38\x01\x48\xf4\x03"
    expected = b"\x08\xf4\x03" + b"\x22" + bytes([len(options)]) + options + b"\x2a\x02/r" + b"\x32\x01s" + b"\x3a\x01h"
    assert profile_request(duration_ms=500, root="/r", session="s", host="h") == expected
    assert terminate_request("s") == b"\x0a\x01s"
