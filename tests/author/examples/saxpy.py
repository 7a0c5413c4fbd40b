"""y = a * x + y, one element a thread."""

from ptxlab.author import f32, kernel, pointer, ptx, u32


@kernel(target="sm_80")
def saxpy(x: pointer[f32], y: pointer[f32], a: f32, n: u32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with ptx.when(i < n):
        y[i] = ptx.fma.rn.f32(a, x[i], y[i])
