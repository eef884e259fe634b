"""Has XLA itself read a program as its GPU compiler leaves one, and writes it as it stands in a profile."""

from __future__ import annotations

import sys
from pathlib import Path

from jaxlib import _hlo

TEXT = r"""HloModule jit_step, is_scheduled=true, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

command_buffer.3 {
  q = f32[8] parameter(0)
  ROOT m = f32[8] multiply(q, q)
}

ENTRY main {
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  ar-start.1 = f32[8] all-reduce-start(p0), to_apply=add, replica_groups={{0,1}},
    backend_config={"operation_queue_id":"0","collective_backend_config":{"is_sync":true,"is_pipelined":false}}
  ar-done.1 = f32[8] all-reduce-done(ar-start.1)
  ar-start.2 = (f32[8], f32[8]) all-reduce-start(p0, p1), to_apply=add, replica_groups={{0,1}}
  ar-done.2 = (f32[8], f32[8]) all-reduce-done(ar-start.2)
  rs-start = ((f32[8]), f32[4]) reduce-scatter-start(p1), dimensions={0}, to_apply=add, replica_groups={{0,1}},
    backend_config={"collective_backend_config":{"is_sync":true}}
  rs-done = f32[4] reduce-scatter-done(rs-start)
  ag-start = (f32[8], f32[16]) all-gather-start(p0), dimensions={0}, replica_groups={{0,1}},
    backend_config="{\"collective_backend_config\":{\"is_sync\":false}}"
  ag-done = f32[16] all-gather-done(ag-start)
  a2a-start = ((f32[8]), f32[8]) all-to-all-start(p0), dimensions={0}, replica_groups={{0,1}}
  a2a-done = f32[8] all-to-all-done(a2a-start)
  psum.7 = f32[8] all-reduce(p0), to_apply=add, replica_groups={{0,1}}
  call.4 = f32[8] call(p0), to_apply=command_buffer.3
  ROOT t = (f32[8], f32[8], f32[8]) tuple(ar-done.1, psum.7, call.4)
}
"""


def varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes((*digits, value))


def main(out: str) -> None:
    module = _hlo.hlo_module_from_text(TEXT).as_serialized_hlo_module_proto()
    Path(out).write_bytes(b"\x0a" + varint(len(module)) + module)  # the field hlo_module of an HloProto


if __name__ == "__main__":
    main(sys.argv[1])
