"""Addresses of one state space that are used in another, without `cvta`."""

from ..lints import findings, kernel, line_of

CODE = "unconverted-address"
DECLARED = ".shared .align 128 .b8 tile[256];\n.global .align 16 .b8 table[256];\n.const .align 8 .b64 one;"
WRONG = [
    ("mov.u64 %rd1, tile; ld.u8 %r1, [%rd1];", "`ld.u8` takes a generic address, and is given one in `.shared`"),
    ("mov.u64 %rd2, one; ld.u64 %rd3, [%rd2+0];", "`ld.u64` takes a generic address, and is given one in `.const`"),
    (
        "mov.u32 %r2, tile; cvt.u64.u32 %rd4, %r2; mad.wide.u32 %rd5, %r2, 0, %rd4; st.u8 [%rd5], 0;",
        "`st.u8` takes a generic address, and is given one in `.shared`",
    ),
    (
        "mov.u64 %rd6, out; add.u64 %rd6, %rd6, 8; st.global.u8 [%rd6], 0;",
        "`st.global.u8` takes an address in `.global`, and is given one in `.param`",
    ),
    (
        "mov.u64 %rd7, table; red.shared.add.u32 [%rd7], 1;",
        "`red.shared.add.u32` takes an address in `.shared`, and is given one in `.global`",
    ),
    (
        "mov.u64 %rd8, tile; tensormap.replace.tile.rank.global.b1024.b32 [%rd8], %r1;",
        "`tensormap.replace.tile.rank.global.b1024.b32` takes an address in `.global`, and is given one in `.shared`",
    ),
]
RIGHT = """
    mov.u64 %rd1, tile; ld.shared.u8 %r1, [%rd1];
    cvta.shared.u64 %rd2, %rd1; ld.u8 %r1, [%rd2];
    mov.u64 %rd3, table; ld.u8 %r1, [%rd3]; ld.global.u8 %r1, [%rd3];
    mov.u64 %rd4, out; ld.param.u64 %rd5, [%rd4]; st.global.u8 [%rd5], 0;
    cvta.param.u64 %rd6, %rd4; ld.u64 %rd7, [%rd6];
    mapa.shared::cluster.u64 %rd8, %rd1, 0; ld.shared::cluster.u8 %r1, [%rd8];
    mov.u32 %r2, tile; cvt.u64.u32 %rd9, %r2; cvta.shared.u64 %rd10, %rd9; st.u8 [%rd10], 0;
    mov.u64 %rd11, tile; @%p1 cvta.shared.u64 %rd11, %rd11; @%p1 ld.u8 %r1, [%rd11];
    mov.u64 %rd12, tile; tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd12], %rd1;
"""


def test_each_address_is_reported_once_with_its_origin() -> None:
    text = kernel("\n".join(body for body, _ in WRONG), target="sm_90a", before=DECLARED)
    found = findings(text, CODE)
    assert [(diagnostic.line, diagnostic.message) for diagnostic in found] == [
        (line_of(text, body), message) for body, message in WRONG
    ]
    assert found[0].labels[1].text == "the address of `tile`"
    assert [diagnostic.helps[0].text for diagnostic in found[2:]] == [
        "convert it first, `cvta.shared.u64 d, a`, or use `.shared` in the instruction",
        "`ld.param` loads the pointer that `out` holds",
        "use `.global` in the instruction",
        "use `.shared` in the instruction",
    ]


def test_converted_addresses_are_not_reported() -> None:
    text = kernel("setp.eq.u32 %p1, 0, 0;" + RIGHT, target="sm_90a", before=DECLARED)
    assert findings(text, CODE) == []
