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


def origins(body: str, what: str | int, thread: int = 0, target: str = "sm_80") -> list[str]:
    """Where a register of a thread comes from, or four bytes of shared memory; the block is a warp."""
    text = f"""
.version 8.0
.target {target}
.address_size 64
.entry k() {{
  .reg .b32 %r<12>; .reg .f32 %f<9>; .reg .b64 %rd<2>;
  .shared .align 128 .b32 tile[64];
  mov.u32 %r1, %laneid;
  mov.u32 %r2, tile;
  {body}
  ret;
}}"""
    trace = ptxlab.parse(text)["k"].launch(1, 32, [], record=ptxlab.Record()).trace
    assert trace is not None
    return [one.what for one in trace.origin(what, thread, space="shared").sources]


PRODUCT = """
  mov.b32 %r3, %r1; mov.b32 %r4, %r1; mov.b32 %r5, %r1; mov.b32 %r6, %r1; mov.b32 %r7, %r1; mov.b32 %r8, %r1;
  mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%f5, %f6, %f7, %f8}, {%r3, %r4, %r5, %r6}, {%r7, %r8}, {%f1, %f2, %f3, %f4};
"""


@pytest.mark.parametrize(
    ("register", "a", "columns", "c"),
    [  # lane 6 has columns 4 and 5 of rows 1 and 9
        ("%f5", ["%r3", "%r5"], range(16, 20), "%f1"),
        ("%f6", ["%r3", "%r5"], range(20, 24), "%f2"),
        ("%f8", ["%r4", "%r6"], range(20, 24), "%f4"),
    ],
)
def test_an_element_of_a_product_comes_from_a_row_and_a_column(
    register: str, a: list[str], columns: range, c: str
) -> None:
    row = [f"{one} of thread {lane}" for one in a for lane in range(4, 8)]
    column = [f"{one} of thread {lane}" for one in ("%r7", "%r8") for lane in columns]
    assert sorted(origins(PRODUCT, register, 6)) == sorted([*row, *column, f"{c} of thread 6"])


LOADED = """
  mad.lo.u32 %r3, %r1, 8, %r2;
  st.shared.v2.b32 [%r3], {%r1, %r1};
  bar.warp.sync -1;
  and.b32 %r3, %r1, 15;
  mad.lo.u32 %r3, %r3, 16, %r2;
  ldmatrix.sync.aligned.m8n8.x2TRANS.shared.b16 {%r4, %r5}, [%r3];
"""


@pytest.mark.parametrize(
    ("how", "register", "expected"),
    [  # lane 6 has elements 4 and 5 of row 1; of the second matrix they are in row 9, whose address lane 9 has
        ("", "%r4", {"bytes 24..26 of shared memory", "bytes 26..28 of shared memory", "%r3 of thread 1"}),
        ("", "%r5", {"bytes 152..154 of shared memory", "bytes 154..156 of shared memory", "%r3 of thread 9"}),
        (".trans", "%r4", {"bytes 66..68 of shared memory", "bytes 82..84 of shared memory",
                           "%r3 of thread 4", "%r3 of thread 5"}),
    ],
)  # fmt: skip
def test_a_loaded_matrix_comes_from_rows_of_other_lanes(how: str, register: str, expected: set[str]) -> None:
    assert {*origins(LOADED.replace("TRANS", how), register, 6)} - {"%r3 of thread 6"} == expected


def test_a_transposed_matrix_comes_from_other_lanes() -> None:
    """Lane 6 has elements 4 and 5 of row 1, which were element 1 of rows 4 and 5."""
    found = origins("mov.b32 %r3, %r1; movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r3;", "%r4", 6)
    assert found == ["%r3 of thread 16", "%r3 of thread 20"]


STORED = """
  mov.b32 %r3, %r1;
  mov.b32 %r5, %r2;
  and.b32 %r4, %r1, 15;
  mad.lo.u32 %r4, %r4, 16, %r2;
  stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r3, %r5};
"""


@pytest.mark.parametrize(
    ("offset", "source"), [(24, "%r3 of thread 6"), (16, "%r3 of thread 4"), (148, "%r5 of thread 5")]
)
def test_a_stored_matrix_comes_from_registers_of_other_lanes(offset: int, source: str) -> None:
    """Rows of 16 bytes are of four lanes, the eight of the second matrix after those of the first."""
    assert source in origins(STORED, offset, target="sm_90")


@pytest.mark.parametrize(("offset", "source"), [(0, "%r3"), (4, "%r4"), (8, "%r5")])
def test_bytes_come_from_the_store_that_wrote_them_and_not_from_its_neighbours(offset: int, source: str) -> None:
    body = """
      mov.b32 %r3, 3; mov.b32 %r4, 4; mov.b32 %r5, 5;
      .reg .pred %p;
      setp.ne.b32 %p, %r1, 0;
      @%p bra done;
      st.shared.b32 [%r2], %r3;
      st.shared.b32 [%r2+4], %r4;
      st.shared.b32 [%r2+8], %r5;
      done:
    """
    assert origins(body, offset) == [f"{source} of thread 0", "%r2 of thread 0"]
