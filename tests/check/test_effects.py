"""What instructions read and write, seen through the rule on unwritten registers."""

import ptxlab

from .wgmma_kernels import COMMIT, FENCE, MULTIPLY, OTHER, STORE, STORE_OTHER, WAIT_0, wgmma_kernel


def codes(text: str) -> set[str]:
    return {diagnostic.code for diagnostic in ptxlab.check(ptxlab.parse(text))}


def test_a_product_that_starts_anew_does_not_read_its_accumulators() -> None:
    assert codes(wgmma_kernel(FENCE, OTHER, COMMIT, WAIT_0, STORE_OTHER)) == set()


def test_a_product_that_adds_reads_them() -> None:
    assert codes(wgmma_kernel(FENCE, MULTIPLY, COMMIT, WAIT_0, STORE)) == {"unwritten-register"}
