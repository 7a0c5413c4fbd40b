"""Constant addresses outside of the variable that they name."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "outside-array"
DECLARED = (
    ".shared .align 16 .b8 tile[64];\n.shared .align 8 .b8 odd[10];\n.global .align 16 .f32 table[4];\n"
    ".const .align 8 .b64 one;\n.shared .align 16 .v4 .f32 quad;\n.global .align 4 .u32 listed[] = {1, 2, 3};\n"
    ".extern .shared .align 16 .b8 more[];\n.shared .align 4 .b16 grid[4][8];\n.shared .align 8 .b64 bar;"
)
H100 = {"target": "sm_90a", "version": "8.6"}
WRONG = {
    "one past": ("ld.shared.u32 %r1, [tile+64];", 64, 68, "tile", 64),
    "across the end": ("ld.shared.u64 %rd1, [odd+8];", 8, 16, "odd", 10),
    "before the start": ("ld.shared.u32 %r1, [tile+-4];", -4, 0, "tile", 64),
    "vector": ("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile+64];", 64, 80, "tile", 64),
    "element": ("ld.global.f32 %f1, table[4];", 16, 20, "table", 16),
    "moved": ("mov.u64 %rd1, table;\nld.global.f32 %f1, [%rd1+16];", 16, 20, "table", 16),
    "added": ("mov.u32 %r1, tile; add.u32 %r2, %r1, 128;\nld.shared.u32 %r3, [%r2];", 128, 132, "tile", 64),
    "a sum": ("mov.u32 %r1, tile; mov.u32 %r2, %r1+64;\nld.shared.u32 %r3, [%r2];", 64, 68, "tile", 64),
    "a sum of a name": ("mov.u32 %r1, tile+60;\nld.shared.u32 %r3, [%r1+4];", 64, 68, "tile", 64),
    "on two paths": (
        "mov.u32 %r1, tile; mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 0; @%p1 bra A; add.u32 %r1, %r1, 64; bra B;\n"
        "A: add.u32 %r1, %r1, 64; B:\nld.shared.u32 %r3, [%r1];",
        64,
        68,
        "tile",
        64,
    ),
    "scalar": ("ld.const.u64 %rd1, [one+8];", 8, 16, "one", 8),
    "vector variable": ("ld.shared.f32 %f1, [quad+16];", 16, 20, "quad", 16),
    "as long as its list": ("ld.global.u32 %r1, [listed+12];", 12, 16, "listed", 12),
    "two dimensions": ("ld.shared.u16 %h1, [grid+64];", 64, 66, "grid", 64),
    "cp.async to": ("cp.async.cg.shared.global [tile+64], [table], 16; cp.async.wait_all;", 64, 80, "tile", 64),
    "cp.async from": ("cp.async.ca.shared.global [tile], [table+16], 4; cp.async.wait_all;", 16, 20, "table", 16),
    "ldmatrix": ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [tile+64];", 64, 80, "tile", 64),
    "mbarrier": ("mbarrier.init.shared.b64 [bar+8], 1;", 8, 16, "bar", 8),
    "bulk copy": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [table], 128, [bar];",
        0,
        128,
        "tile",
        64,
    ),
    "bulk copy back": ("cp.async.bulk.global.shared::cta.bulk_group [table], [tile], 32;", 0, 32, "table", 16),
    "local": (".local .align 4 .b8 stack[16];\nst.local.u32 [stack+16], 0;", 16, 20, "stack", 16),
}
RIGHT = {
    "last": "ld.shared.u32 %r1, [tile+60];",
    "last vector": "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile+48];",
    "last element": "ld.global.f32 %f1, table[3];",
    "open": "ld.shared.u32 %r1, [more+4096];",
    "a sum": "mov.u32 %r1, tile; mov.u32 %r2, %r1+60;\nld.shared.u32 %r3, [%r2];",
    "on two paths": "mov.u32 %r1, tile; mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 0; @%p1 bra A;\n"
    "add.u32 %r1, %r1, 64; A: ld.shared.u32 %r3, [%r1];",
    "back and forth": "mov.u32 %r1, tile; add.u32 %r2, %r1, 128;\nld.shared.u32 %r3, [%r2+-128];",
    "part of a cp.async": "cp.async.ca.shared.global [tile], [table+8], 8, 0; cp.async.wait_all;",
    "unknown": "mov.u32 %r1, tile; mov.u32 %r2, %tid.x; add.u32 %r3, %r1, %r2;\nld.shared.u8 %r4, [%r3+128];",
    "bulk copy": "cp.async.bulk.global.shared::cta.bulk_group [table], [tile], 16;",
    "an address is not an access": "mov.u32 %r1, tile+64;",
}


@pytest.mark.parametrize("name", WRONG)
def test_outside(name: str) -> None:
    body, start, end, variable, size = WRONG[name]
    text = kernel(body, before=DECLARED, **H100)
    found = [diagnostic for diagnostic in findings(text, CODE) if f"`{variable}`" in diagnostic.message]
    assert [diagnostic.message for diagnostic in found] == [
        f"bytes {start} to {end} of `{variable}` are accessed, it has {size}"
    ]
    last = body.split("\n")[-1]
    assert found[0].line == line_of(text, last)
    assert found[0].labels[1].text == f"{size} bytes"


@pytest.mark.parametrize("name", RIGHT)
def test_inside(name: str) -> None:
    assert findings(kernel(RIGHT[name], before=DECLARED, **H100), CODE) == []


def test_help_says_what_fits() -> None:
    (found,) = findings(kernel("ld.shared.u32 %r1, [tile+64];", before=DECLARED, **H100), CODE)
    assert found.helps[0].text == "an access of 4 bytes is inside up to offset 60"
