"""Files to try ptxlab with: those of the tour and of the README, which `ptxlab tour --write` puts into a folder."""

SAXPY = """\
.version 8.0
.target sm_80
.address_size 64

// y[i] = a * x[i] + y[i]
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<6>;

    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r1, [n];
    setp.ge.u32 %p, %r4, %r1;
    @%p bra done;

    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
done:
    ret;
}
"""

WRONG = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry wrong(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<2>;

    ld.param.u64 %rd1, [data];
    ld.global.f32 %f1, [%rd1];
    add.u32 %r1, %r2, %f1;
    shl.b32 %r3, %r1, %r4;
    cp.async.bulk.commit_group;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""

UGLY = """\
.version 8.0 .target sm_80 .address_size 64
.visible .entry ugly() { .reg .b32 %r<3>; // two registers
mov.b32 %r1,0x10;  shl.b32   %r2 , %r1,2; ret; }
"""


REDUCE = """\
.version 8.6
.target sm_80
.address_size 64

.visible .entry reduce(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;

    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %laneid;
    redux.sync.add.s32 %r2, %r1, -1;
    bfind.u32 %r3, %r2;
    st.global.b32 [%rd1], %r3;
    ret;
}
"""


SUM = """\
.version 8.0
.target sm_80
.address_size 64

// total = the sum of 64 numbers: each warp adds its own, the first thread adds both sums
.visible .entry sum(.param .u64 numbers, .param .u64 total)
{
    .shared .align 8 .u32 parts[2];
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;

    ld.param.u64 %rd1, [numbers];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    redux.sync.add.u32 %r3, %r2, -1;
    and.b32 %r4, %r1, 31;
    shr.u32 %r5, %r1, 3;
    mov.u32 %r6, parts;
    add.u32 %r6, %r6, %r5;
    setp.eq.u32 %p, %r4, 0;
    @%p st.shared.u32 [%r6], %r3;

    setp.ne.u32 %p, %r1, 0;
    @%p bra done;
    ld.shared.v2.u32 {%r7, %r8}, [parts];
    add.u32 %r7, %r7, %r8;
    ld.param.u64 %rd3, [total];
    st.global.u32 [%rd3], %r7;
done:
    ret;
}
"""


LITMUS = """\
PTX MP
{ data = 0; flag = 0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0          ;
 st.weak data, 42       | ld.acquire.gpu r0, flag ;
 st.release.gpu flag, 1 | beq r0, 0, END          ;
                        | ld.weak r1, data        ;
                        | END:                    ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""

SCALE = """\
from ptxlab.author import f32, kernel, pointer, ptx


@kernel(target="sm_80")
def scale(x: pointer[f32], a: f32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    x[i] = ptx.mul.rn.f32(x[i], a)
"""

# The README's race.
REVERSE = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry reverse(.param .u64 data)
{
    .shared .align 4 .b8 tile[256];
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;

    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], %r2;
    mad.lo.u32 %r4, %r1, -4, %r3;
    ld.shared.u32 %r5, [%r4+252];
    st.global.u32 [%rd2], %r5;
    ret;
}
"""

# What the README checks.
GEMM = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry gemm()
{
    .reg .b32 %r<2>;

    mov.u32 %r1, %tid.x;
    cp.async.bulk.commit_group;
    ret;
}
"""

TASK = """\
from ptxlab.verify import Array, Scalar, Size, Task

task = Task(
    "a*x + y",
    lambda x, y, a: a * x + y,
    sizes={"n": Size(1, 700)},
    arguments=[Array("x", "f32", "n"), Array("y", "f32", "n", role="inout"), Scalar("a", "f32", 2.5), Scalar("n")],
)
"""
SUBMITTED = "// launch: saxpy grid=max(1, n//256) block=256\n" + SAXPY  # the last elements have no block

SAMPLES = {
    "saxpy.ptx": SAXPY,
    "wrong.ptx": WRONG,
    "typo.ptx": SAXPY.replace("%tid.x;", "%tid.x"),
    "saxpy_task.py": TASK,
    "submitted.ptx": SUBMITTED,
    "split.ptx": SAXPY.replace(
        "fma.rn.f32 %f4, %f1, %f2, %f3;", "mul.rn.f32 %f4, %f1, %f2;\n    add.rn.f32 %f4, %f4, %f3;"
    ),
    "ugly.ptx": UGLY,
    "reduce.ptx": REDUCE,
    "sum.ptx": SUM,
    "fixed.ptx": SUM.replace("%r3;\n\n", "%r3;\n    bar.sync 0;\n\n"),
    "reverse.ptx": REVERSE,
    "gemm.ptx": GEMM,
    "mp.litmus": LITMUS,
    "scale.py": SCALE,
}
