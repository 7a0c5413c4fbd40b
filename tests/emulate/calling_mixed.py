"""Programs in which what a call passes differs from what the function declares, as far as ptxas allows it.

Each has the addresses of its thread's bytes in `%in` and `%out`.
"""

from collections.abc import Callable

import numpy as np

from tests.emulate.calling import HEAD, SLOT, THREADS, Bytes, Program

# Functions, the body of the kernel, and what it makes of a thread's bytes.
_DIFFERENT: dict[str, tuple[str, str, Callable[[Bytes], Bytes]]] = {
    # A vector, or a register of packed halves, fits whatever has as many bits; but ptxas crashes where it would have to
    # take something apart.
    "v2.u32 for b64": (
        ".func (.reg .v2 .u32 o) f(.reg .b64 i) { mov.b64 {o.y, o.x}, i; ret; }",
        ".reg .v2 .u32 a; .reg .b64 b; ld.global.v2.u32 a, [%in]; call (b), f, (a); st.global.b64 [%out], b;",
        lambda a: a[:8].view("u4")[::-1].copy().view("u1"),
    ),
    "v4.u16 for v2.b32": (
        ".func (.reg .v4 .u16 o) f(.reg .v2 .b32 i) { mov.b32 {o.w, o.z}, i.r; mov.b32 {o.y, o.x}, i.g; ret; }",
        ".reg .v4 .u16 a; .reg .v2 .f32 b; ld.global.v4.u16 a, [%in]; call (b), f, (a); st.global.v2.f32 [%out], b;",
        lambda a: a[:8].view("u2")[::-1].copy().view("u1"),
    ),
    "v4.u8 for f16x2": (
        ".func (.reg .v4 .u8 o) f(.reg .f16x2 i)\n{ .reg .u16 a, b; mov.b32 {a, b}, i; cvt.u8.u16 o.z, a;"
        " shr.u16 a, a, 8;"
        " cvt.u8.u16 o.w, a; cvt.u8.u16 o.x, b; shr.u16 b, b, 8; cvt.u8.u16 o.y, b; ret; }",
        ".reg .v4 .s8 a; .reg .f16x2 b; ld.global.v4.s8 a, [%in]; call (b), f, (a); st.global.b32 [%out], b;",
        lambda a: a[:4].view("u2")[::-1].copy().view("u1"),
    ),
    "v4.f32 for b128": (
        ".func (.reg .b128 o) f(.reg .b128 i)"
        " { .reg .b64 x, y; mov.b128 {x, y}, i; add.u64 x, x, 1; mov.b128 o, {y, x}; ret; }",
        ".reg .v4 .f32 a, b; ld.global.v4.f32 a, [%in]; call (b), f, (a); st.global.v4.f32 [%out], b;",
        lambda a: (a[:16].view("u8")[::-1] + np.array([0, 1], "u8")).view("u1"),
    ),
    "v2.s32 for a .param": (
        ".func (.reg .b64 o) f(.param .b64 i) { ld.param.b64 o, [i]; not.b64 o, o; ret; }",
        ".reg .v2 .s32 a; .reg .b64 b; ld.global.v2.s32 a, [%in]; call (b), f, (a); st.global.b64 [%out], b;",
        lambda a: ~a[:8],
    ),
    "a .param for v2.u16": (
        ".func (.reg .v2 .u16 o) f(.reg .v2 .u16 i) { add.u16 o.x, i.y, 1; add.u16 o.y, i.x, 1; ret; }",
        ".param .b32 a, b; .reg .b32 x; ld.global.b32 x, [%in]; st.param.b32 [a], x; call (b), f, (a);"
        " ld.param.b32 x, [b]; st.global.b32 [%out], x;",
        lambda a: (a[:4].view("u2")[::-1] + np.array([1, 1], "u2")).view("u1"),
    ),
    # Constants: ptxas converts to `.f32`, and else passes the bits of 64 that an integer or a double has.
    "constants": (
        ".func (.reg .u32 o, .reg .v2 .u32 p)\n"
        "f(.reg .b16 a, .reg .f32 b, .param .b64 c, .reg .v2 .u32 d, .reg .b32 e)\n"
        "{ .reg .u64 x; ld.param.b64 x, [c]; mov.b32 o, b; mov.b64 {p.x, p.y}, x; add.u32 p.x, p.x, d.x;"
        " add.u32 p.y, p.y, d.y; add.u32 o, o, e; ret; }",
        ".reg .u32 a; .reg .v2 .u32 b; call (a, b), f, (-1, 1.5, -3, 0x500000007, 0xFF00000001);"
        " st.global.u32 [%out], a; st.global.v2.u32 [%out+8], b;",
        lambda a: np.array([0x3FC00001, 0, 0xFFFFFFFD + 7 & 0xFFFFFFFF, 0xFFFFFFFF + 5 & 0xFFFFFFFF], "u4").view("u1"),
    ),
    # Several results, of which some are not wanted, and parameters of all kinds beside each other.
    "several": (
        ".func (.reg .u32 o, .reg .v4 .u16 p, .reg .f64 q, .reg .b16 r)\n"
        "f(.reg .v4 .u16 a, .param .align 8 .b8 b[24], .reg .b16 c, .param .f64 d, .reg .v2 .u8 e)\n"
        "{ .reg .u16 x; ld.param.b32 o, [b+20]; mov.b16 p.x, a.w; mov.b16 p.y, a.z; mov.b16 p.z, c; cvt.u16.u8 x, e.y;"
        " mov.b16 p.w, x; ld.param.f64 q, [d]; mov.b16 r, a.y; ret; }",
        ".reg .v4 .u16 a, p; .reg .b16 c, r; .reg .v2 .u8 e; .reg .u32 o; .reg .f64 q; .reg .b64 x;"
        " .param .align 8 .b8 b[24]; .param .f64 d;"
        " ld.global.v4.u16 a, [%in]; ld.global.b64 x, [%in+8]; st.param.b64 [b+16], x; ld.global.b16 c, [%in+16];"
        " ld.global.f64 q, [%in+24]; st.param.f64 [d], q; ld.global.v2.u8 e, [%in+18];"
        " call (o, p, _, r), f, (a, b, c, d, e); st.global.u32 [%out], o; st.global.v4.u16 [%out+8], p;"
        " st.global.b16 [%out+16], r; call (_, _, q, _), f, (a, b, c, d, e); st.global.f64 [%out+24], q;",
        lambda a: np.concatenate(
            [
                a[12:16],
                np.zeros(4, "u1"),
                a[6:8],
                a[4:6],
                a[16:18],
                a[19:20],
                np.zeros(1, "u1"),
                a[2:4],
                np.zeros(6, "u1"),
                a[24:32],
            ]
        ),
    ),
    # A function calls another through an address that it is passed, beside a vector that outlives the call.
    "address passed": (
        ".func (.reg .v2 .u32 o) swap(.reg .v2 .u32 i) { mov.u32 o.x, i.y; mov.u32 o.y, i.x; ret; }\n"
        ".func (.reg .v2 .u32 o) twice(.reg .u64 to, .reg .v2 .u32 i)\n"
        "{ .reg .v2 .u32 t; P: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _); call (t), to, (i), P;"
        " add.u32 t.x, t.x, i.x; call (o), to, (t), P; add.u32 o.y, o.y, i.y; ret; }",
        ".reg .v2 .u32 a; .reg .u64 to; ld.global.v2.u32 a, [%in]; mov.u64 to, swap; call (a), twice, (to, a);"
        " st.global.v2.u32 [%out], a;",
        lambda a: (a[:8].view("u4") @ np.array([[1, 1], [0, 2]], "u4")).view("u1"),
    ),
}


def _different(name: str) -> Program:
    functions, body, compute = _DIFFERENT[name]
    given = np.random.default_rng(1).integers(0, 256, (THREADS, SLOT), np.uint8)
    expected = np.zeros_like(given)
    for thread in range(THREADS):
        found = compute(given[thread].copy())
        expected[thread, : len(found)] = found
    text = f"""{HEAD}{functions}
.visible .entry k(.param .u64 given, .param .u64 found)
{{
    .reg .b32 %thread; .reg .b64 %in, %out, %slot;
    ld.param.u64 %in, [given]; ld.param.u64 %out, [found]; mov.u32 %thread, %tid.x;
    mul.wide.u32 %slot, %thread, {SLOT}; add.u64 %in, %in, %slot; add.u64 %out, %out, %slot;
    {body}
    ret;
}}
"""
    return Program(name, text, given, expected)


PROGRAMS = [_different(name) for name in _DIFFERENT]
