"""What blocks read and write, as pictures of recorded launches: tiles as the addresses of the kernel have them."""

import numpy as np
import pytest

import ptxlab
from ptxlab import draw

# Block (x, y) copies 8 by 4 numbers of a matrix with 16 columns to the other side of the diagonal.
PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry turn(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ctaid.y;
    mad.lo.u32 %r1, %r3, 8, %r1;
    mad.lo.u32 %r2, %r4, 4, %r2;
    mad.lo.u32 %r5, %r2, 16, %r1;
    mad.wide.u32 %rd3, %r5, 4, %rd1;
    ld.global.u32 %r6, [%rd3];
    mad.lo.u32 %r5, %r1, 12, %r2;
    mad.wide.u32 %rd3, %r5, 4, %rd2;
    st.global.u32 [%rd3], %r6;
    ret;
}
"""


def turned(record: ptxlab.Record | None) -> ptxlab.Result:
    x, y = np.arange(12 * 16, dtype=np.uint32).reshape(12, 16), np.zeros((16, 12), np.uint32)
    result = ptxlab.parse(PTX)["turn"].launch((2, 3), (8, 4), [x, y], device="cpu", record=record)
    assert np.array_equal(y, x.T)
    return result


def texts(panel: draw.Panel) -> list[list[str | None]]:
    return [[cell and cell.text for cell in row] for row in panel.cells]


def test_tiles_are_those_of_the_addresses() -> None:
    read, written = draw.blocks(turned(ptxlab.Record())).panels
    assert read.title == "x, 12x16 uint32, is read by blocks"
    assert (read.row_names, read.column_names) == (["0-3", "4-7", "8-11"], ["0-7", "8-15"])
    assert texts(read) == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert texts(written) == [["0", "2", "4"], ["1", "3", "5"]]


def test_arrays_are_chosen_and_too_many_tiles_are_equal_parts() -> None:
    (only,) = draw.blocks(turned(ptxlab.Record()), "y", parts=2).panels
    assert (only.row_names, texts(only)) == (["0-7", "8-15"], [["0,2", "2,4"], ["1,3", "3,5"]])


def test_what_can_not_be_drawn_says_why() -> None:
    with pytest.raises(ValueError, match=r"launch with `record=ptxlab.Record\(\)`"):
        draw.blocks(turned(None))
    with pytest.raises(ValueError, match="there is no array `z`; expected one of x, y"):
        draw.blocks(turned(ptxlab.Record()), "z")
