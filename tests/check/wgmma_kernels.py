"""Parts of kernels with wgmma, to put together right and wrong."""

from .lints import kernel

START = """
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, 4611686293305360384;
    mov.u64 %rd3, 4611686293305360512;
    ld.param.u32 %r20, [n];
"""
ZERO = "".join(f"    mov.f32 %f{n}, 0f00000000;\n" for n in range(1, 5))
LOAD = "    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"
LOAD_A = "    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1+64];\n"
FENCE = "    wgmma.fence.sync.aligned;\n"
COMMIT = "    wgmma.commit_group.sync.aligned;\n"
WAIT_0 = "    wgmma.wait_group.sync.aligned 0;\n"
WAIT_1 = "    wgmma.wait_group.sync.aligned 1;\n"
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
MULTIPLY = f"    {PRODUCT} {{%f1, %f2, %f3, %f4}}, %rd2, %rd3, 1, 1, 1, 0, 0;\n"
MULTIPLY_A = f"    {PRODUCT} {{%f1, %f2, %f3, %f4}}, {{%r1, %r2, %r3, %r4}}, %rd3, 1, 1, 1, 0;\n"
OTHER = f"    {PRODUCT} {{%f11, %f12, %f13, %f14}}, %rd2, %rd3, 0, 1, 1, 0, 0;\n"
STORE = "    st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};\n"
STORE_OTHER = "    st.global.v4.f32 [%rd1+16], {%f11, %f12, %f13, %f14};\n"
LOOP = "loop:\n"
AGAIN = "    sub.u32 %r20, %r20, 1;\n    setp.ne.u32 %p1, %r20, 0;\n    @%p1 bra loop;\n"


def wgmma_kernel(*parts: str) -> str:
    """A kernel of these parts, with descriptors in `%rd2` and `%rd3`."""
    return kernel(START + "".join(parts), target="sm_90a")
