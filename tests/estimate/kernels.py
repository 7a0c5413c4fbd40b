"""Small kernels, each of which one unit limits."""

from __future__ import annotations

HEADER = """.version 8.0
.target sm_90
.address_size 64
"""
LOOP = """{header}.visible .entry {name}(.param .u64 x)
{{
    .shared .align 16 .b8 tile[4096];
    .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<40>; .reg .pred %p;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
{before}
    mov.u32 %r2, 0;
again:
    .pragma "nounroll";
{body}
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, {times};
    @%p bra again;
{after}
    ret;
}}
"""
READ = "\n".join(f"    ld.global.f32 %f{number}, [%rd2+{4 * number}];" for number in range(16))
SUM = "\n".join(f"    add.f32 %f0, %f0, %f{number};" for number in range(1, 16)) + "\n    st.global.f32 [%rd2], %f0;"


def loop(name: str, body: str, times: int, before: str = READ, after: str = SUM) -> str:
    """A kernel that executes `body` so often."""
    return LOOP.format(header=HEADER, name=name, before=before, body=body, after=after, times=times)


FMA = loop(
    "fma",
    "\n".join(f"    fma.rn.f32 %f{n}, %f{n}, %f16, %f17;" for n in [*range(16)] * 4),
    64,
    before=f"{READ}\n    ld.global.f32 %f16, [%rd2+64];\n    ld.global.f32 %f17, [%rd2+68];",
)
SFU = loop("sfu", "\n".join(f"    ex2.approx.ftz.f32 %f{n}, %f{n};" for n in range(16)), 64)
# All lanes of a warp read one bank; the loads are volatile, so that none is moved out of the loop.
CONFLICTS = loop(
    "conflicts",
    """    and.b32 %r5, %r2, 7;
    mad.lo.u32 %r6, %r5, 4, %r4;
    ld.volatile.shared.f32 %f20, [%r6];
    ld.volatile.shared.f32 %f21, [%r6+32];
    add.f32 %f0, %f0, %f20;
    add.f32 %f1, %f1, %f21;""",
    256,
    before=READ
    + """
    mov.u32 %r3, tile;
    and.b32 %r4, %r1, 31;
    mad.lo.u32 %r4, %r4, 128, %r3;
    st.shared.f32 [%r4], %f0;
    bar.sync 0;""",
)
NO_CONFLICTS = CONFLICTS.replace("%r4, 128, %r3", "%r4, 4, %r3").replace("conflicts(", "no_conflicts(")
# Each load is of the address that the one before says: the same, for zeros.
CHAIN = loop(
    "chain",
    "    ld.global.u64 %rd3, [%rd2];\n    add.u64 %rd2, %rd2, %rd3;",
    200,
    before="    mad.wide.u32 %rd2, %r1, 8, %rd1;",
    after="    st.global.u64 [%rd2], %rd3;",
)
TENSOR = loop(
    "tensor",
    "\n".join(
        f"    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{n}, %f{n + 1}, %f{n + 2}, %f{n + 3}}}, "
        f"{{%r8, %r9, %r10, %r11}}, {{%r12, %r13}}, {{%f{n}, %f{n + 1}, %f{n + 2}, %f{n + 3}}};"
        for n in range(0, 16, 4)
    ),
    128,
    before=READ + "\n" + "\n".join(f"    ld.global.b32 %r{n}, [%rd2+{4 * n}];" for n in range(8, 14)),
)
COPY = f"""{HEADER}.visible .entry copy(.param .u64 x, .param .u64 y)
{{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 256, %r1;
    mad.wide.u32 %rd3, %r3, 16, %rd1;
    mad.wide.u32 %rd4, %r3, 16, %rd2;
    ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd3];
    st.global.v4.b32 [%rd4], {{%r4, %r5, %r6, %r7}};
    ret;
}}
"""
