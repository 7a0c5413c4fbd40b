"""Accesses around the ends of memory, and addresses of nothing; more are in `tests/cases/addresses`."""

import numpy as np
import pytest

from tests.emulate.launching import kernel, launch, problem


@pytest.mark.parametrize("space", ["global", "shared", "local"])
@pytest.mark.parametrize(("type", "size"), [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("v2.u64", 16)])
def test_every_address_around_the_ends_is_distinguished(space: str, type: str, size: int) -> None:
    """An access that is right comes first, so that the emulator knows where to look."""
    bytes = 48 if space == "local" else 47  # local memory is a multiple of 16 bytes
    base = "ld.param.u64 %rd1, [p];" if space == "global" else "mov.u64 %rd1, memory;"
    result = "{%rd5, %rd6}" if size == 16 else "%rd5"
    body = f"""
    {"" if space == "global" else f".{space} .align 16 .b8 memory[{bytes}];"}
    {base}
    ld.param.u64 %rd2, [at];
    mov.u32 %r1, 0;
again:
    ld.{space}.{type} {result}, [%rd1];
    add.u64 %rd1, %rd1, %rd2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra again;
    ret;
    """
    written = kernel(body, ".u64 p, .u64 at")
    for offset in range(-17, 66):
        args = [np.zeros(bytes, "u1"), offset % (1 << 64)]
        result = written.launch(1, 1, args, device="cpu", checks=False, on_error="collect")
        aligned, inside = offset % size == 0, 0 <= offset <= bytes - size
        wanted = [] if aligned and inside else ["out-of-bounds" if aligned else "misaligned"]
        assert [found.code for found in result.diagnostics] == wanted, offset


def test_a_fault_of_all_blocks_is_reported_once() -> None:
    found = problem("mov.u64 %rd1, 0;\nld.global.u32 %r1, [%rd1];\nret;", grid=64, checks=False, workers=2)
    assert found.code == "out-of-bounds"


def test_a_call_of_a_function_that_the_kernel_does_not_name() -> None:
    """It has an address in the module, but no code in this kernel."""
    before = """.func f() { ret; }
.visible .entry other() { call f; ret; }
"""
    body = """
    ld.param.u64 %rd1, [p];
    prototype: .callprototype _ ();
    call %rd1, prototype;
    ret;
    """
    codes = set()
    for number in range(5):
        result = launch(body, ".u64 p", [(4 << 56) + 16 * number], before=before, on_error="collect")
        codes.update(found.code for found in result.diagnostics)
    assert codes == {"bad-call"}
