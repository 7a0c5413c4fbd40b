"""Which elements of a matrix are in a register of a lane, and in some of its bytes."""

import pytest

import ptxlab
from ptxlab.isa.units.layouts import multiplicand
from ptxlab.trace.lanes import elements_in


@pytest.mark.parametrize(
    ("type", "lane", "register", "part", "columns"),
    [
        ("s8", 5, 0, None, [4, 5, 6, 7]),
        ("s8", 5, 0, (0, 1), [4]),
        ("s8", 5, 0, (1, 1), [5]),
        ("s8", 5, 0, (2, 2), [6, 7]),
        ("s8", 5, 2, (1, 2), [21, 22]),
        ("f16", 5, 0, (0, 2), [2]),
        ("f16", 5, 2, (2, 2), [11]),
        ("tf32", 5, 2, (0, 4), [5]),
    ],
)
def test_elements_of_bytes(
    type: str, lane: int, register: int, part: tuple[int, int] | None, columns: list[int]
) -> None:
    """Lane 5 has row 1 in even registers."""
    layout = multiplicand(16, {"s8": 32, "f16": 16, "tf32": 8}[type], type)
    assert elements_in(layout, lane, register, part) == [(0, 1, column) for column in columns]


TRANSPOSED = """.version 8.0
.target sm_90a
.address_size 64
.entry k() {
  .reg .b32 %r<4>; .reg .f32 %f<9>; .reg .b64 %rd<2>;
  .shared .align 128 .b32 b[128];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, b;
  add.u32 %r2, %r2, %r3;
  st.shared.b32 [%r2], %r1;
  fence.proxy.async;
  bar.sync 0;
  mov.b32 %r0, 0;
  shr.u32 %r3, %r3, 4;
  cvt.u64.u32 %rd1, %r3;
  or.b64 %rd1, %rd1, 0x0000001000080000;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
    {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r0, %r0, %r0, %r0}, %rd1, 0, 1, 1, 1;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ret;
}
"""


@pytest.mark.parametrize(("register", "first"), [("%f1", 4), ("%f2", 6), ("%f6", 262)])
def test_a_column_of_b_that_is_transposed_in_shared_memory(register: str, first: int) -> None:
    """Rows of 8 columns are 16 bytes each, the next 8 columns 256 bytes on; lane 9 has columns 2, 3, 10 and 11."""
    trace = ptxlab.parse(TRANSPOSED)["k"].launch(1, 128, [], record=ptxlab.Record()).trace
    assert trace is not None
    found = [one.what for one in trace.origin(register, 9).sources if "shared" in one.what]
    places = [first + 16 * k for k in range(16)]
    assert found == [f"bytes {place}..{place + 2} of shared memory" for place in places]
