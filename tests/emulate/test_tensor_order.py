"""What is missing around `tcgen05.mma`: waits, fences, commits; beside each wrong kernel is the right one."""

from functools import partial
from typing import Any

import pytest

import ptxlab
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor as Descriptor
from tests.emulate import launching
from tests.emulate.tensor_kernels import Case, multiply

SMALL = Descriptor("f16", 128, 16, "f16", "f16")
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];"
WAIT = "    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;\n    @!%p3 bra wait;\n"
AFTER = "    tcgen05.fence::after_thread_sync;\n    mul.lo.u32"
PROXY = "    fence.proxy.async.shared::cta;\n"
Edits = tuple[tuple[str, str], ...]


def found_in(edits: Edits = (), steps: int = 2, seed: int = 0, **how: Any) -> list[ptxlab.Diagnostic]:
    *_, found = multiply(Case(SMALL, steps=steps, edits=edits, how={"seed": seed, "timeout": 60}, **how))
    return found


silent = partial(launching.silent, found_in, seeds=range(3))


def finds(code: str, message: str, edits: Edits, **how: Any) -> ptxlab.Diagnostic:
    for seed in (2, 1, 0):
        found = next((d for d in found_in(edits, seed=seed, **how) if d.code == code and message in d.message), None)
        assert found is not None, ptxlab.report.render(found_in(edits, seed=seed, **how))
    return found


def test_no_thread_waits_for_the_mma() -> None:
    silent()
    found = finds("data-race", "a load reads tensor memory that an MMA ", ((WAIT, ""),))
    assert found.notes[-1] == "the MMA is complete when the mbarrier of a `tcgen05.commit` after it completes"


def test_the_fence_after_the_wait() -> None:
    message = "a load of tensor memory may run ahead of the synchronization that orders it after an MMA"
    finds("missing-tensor-fence", message, ((AFTER, "    mul.lo.u32"),))


def test_a_wait_that_does_not_acquire_is_enough() -> None:
    relaxed = ("try_wait.parity.shared::cta", "try_wait.parity.relaxed.cta.shared::cta")
    silent((relaxed,))


def test_operands_that_threads_wrote() -> None:
    message = "an MMA reads shared memory written by a thread, with no proxy fence in between"
    finds("missing-proxy-fence", message, ((PROXY, ""),))


OVERWRITE = "    @%one st.shared.b32 [tile], 0;\n"


def test_operands_that_are_overwritten() -> None:
    silent(((AFTER, OVERWRITE + AFTER),))
    early = ((COMMIT, f"{COMMIT}\n{OVERWRITE}"),)
    finds("data-race", "a thread writes shared memory that an MMA still reads", early)


def test_the_commit_is_missing() -> None:
    (found,) = found_in(((COMMIT, ""),))
    assert found.code == "hang"


def test_stores_before_the_product() -> None:
    edits = (("    tcgen05.wait::st.sync.aligned;\n", ""),)
    finds("data-race", "an MMA writes tensor memory that a store still writes", edits)


@pytest.mark.parametrize("same", [True, False])
def test_products_wait_for_those_with_the_same_accumulator_only(same: bool) -> None:
    step = "add.u32 %r15, %r15, 8;"
    if same:
        silent()
    else:  # the next one begins eight columns further and is not ordered with the first
        message = "an MMA changes tensor memory that an MMA still writes"
        finds("data-race", message, ((step, f"{step} add.u32 %r14, %r14, 8;"),))


@pytest.mark.parametrize("rows", [64, 128])
def test_products_wait_for_those_of_the_same_shape_only(rows: int) -> None:
    first, second = Descriptor("f16", 64, 128, "f16", "f16"), Descriptor("f16", rows, 192 - rows, "f16", "f16")
    step = "add.u32 %r15, %r15, 8;"
    edits = ((step, f"{step} mov.b32 %r10, {second.encode()};"),)
    *_, found = multiply(Case(first, steps=2, edits=edits, how={"timeout": 60}))
    expected = [] if rows == 64 else ["an MMA changes tensor memory that an MMA still writes"]
    assert [one.message for one in found if one.code == "data-race"] == expected


def test_accumulators_side_by_side() -> None:
    step = "add.u32 %r15, %r15, 8;"
    edits = ((step, f"{step} add.u32 %r14, %r14, 16;"), ("setp.ne.u32 %p2, %r16, 0;", "setp.ne.u32 %p2, 0, 0;"))
    assert [found.code for found in found_in(edits)] == ["unread-accumulators"]  # of the second step


def test_a_descriptor_that_reaches_outside() -> None:
    edits = (("ld.global.u64 %rd12, [%rd2+48];", "ld.global.u64 %rd12, [%rd2+48]; add.u64 %rd10, %rd10, 0xa00;"),)
    (found,) = found_in(edits)
    assert found.code == "out-of-bounds"
    assert found.message == "matrix A reaches outside of shared memory"
    assert "the descriptor says: start 0xa" in found.notes[0]


@pytest.mark.parametrize(
    ("bit", "message"),
    [
        (2, "it says that A is sparse, which `.sp` must say, too"),
        (23 + 4, "a block alone multiplies 64 or 128 rows, and only 128 with scale factors"),
        (9, "this kind does not have the type of A or B"),
        (5, "this kind does not have the type of D with these types of A and B"),
    ],
)
def test_a_reserved_instruction_descriptor(bit: int, message: str) -> None:
    read = "ld.global.b32 %r10, [%rd2+16];"
    (found,) = found_in(((read, f"{read} xor.b32 %r10, %r10, {1 << bit};"),))
    assert found.code == "bad-descriptor"
    assert found.message == f"`tcgen05.mma`, kind `f16`: {message}"
    assert "says: " in found.notes[0]


def test_cells_that_are_not_allocated() -> None:
    read = "ld.global.b32 %r14, [%rd2+64];"
    (found,) = found_in(((read, f"{read} add.u32 %r14, %r14, 500;"),))
    assert found.code == "out-of-bounds"
    assert (
        found.message
        == "access to lanes 0..128, columns 500..516 of tensor memory, which has 128 lanes and 512 columns"
    )
