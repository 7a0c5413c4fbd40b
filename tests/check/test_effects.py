"""What instructions read and write, seen through the rule on unwritten registers."""

import ptxlab

from .wgmma_kernels import COMMIT, FENCE, MULTIPLY, OTHER, STORE, STORE_OTHER, WAIT_0, wgmma_kernel


def codes(text: str) -> set[str]:
    return {diagnostic.code for diagnostic in ptxlab.check(ptxlab.parse(text))}


def test_a_product_that_starts_anew_does_not_read_its_accumulators() -> None:
    assert codes(wgmma_kernel(FENCE, OTHER, COMMIT, WAIT_0, STORE_OTHER)) == set()


def test_a_product_that_adds_reads_them() -> None:
    assert codes(wgmma_kernel(FENCE, MULTIPLY, COMMIT, WAIT_0, STORE)) == {"unwritten-register"}


def test_the_scale_of_a_sum_in_tensor_memory_does_not_say_whether_its_address_is_read() -> None:
    text = """.version 8.6
    .target sm_100a
    .entry k(.param .u32 sum) {
        .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<3>;
        mov.b64 %rd1, 0; mov.b64 %rd2, 0; mov.b32 %r2, 0; setp.ne.u32 %p, %r2, 0;
        ADDRESS
        tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p, 0;
    }"""
    assert "unwritten-register" in codes(text.replace("ADDRESS", ""))
    assert "unwritten-register" not in codes(text.replace("ADDRESS", "ld.param.u32 %r1, [sum];"))
