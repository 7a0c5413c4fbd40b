"""Accesses around the ends of memory, and addresses of nothing; more are in `tests/cases/addresses`."""

import numpy as np
import pytest

import ptxlab
from tests.emulate.launching import kernel, launch, problem


@pytest.mark.bulk(one_in=3)
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
        result = written.launch(1, 1, args, device="cpu", detectors=False, on_error="collect")
        aligned, inside = offset % size == 0, 0 <= offset <= bytes - size
        wanted = [] if aligned and inside else ["out-of-bounds" if aligned else "misaligned-access"]
        assert [found.code for found in result.diagnostics] == wanted, offset


def test_a_fault_of_all_blocks_is_reported_once() -> None:
    found = problem("mov.u64 %rd1, 0;\nld.global.u32 %r1, [%rd1];\nret;", grid=64, detectors=False, workers=2)
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


def test_a_call_of_a_function_whose_address_another_kernel_stored() -> None:
    """As of virtual functions of an object that an earlier kernel made."""
    module = ptxlab.parse("""
.version 8.0
.target sm_80
.address_size 64
.global .u64 table;
.func (.reg .u32 %out) f(.reg .u32 %in) { add.u32 %out, %in, 7; ret; }
.visible .entry store() { .reg .b64 %rd1; mov.u64 %rd1, f; st.global.u64 [table], %rd1; ret; }
.visible .entry use(.param .u64 to)
{
    .reg .b32 %r1, %r2;
    .reg .b64 %rd1, %rd2;
    mov.u32 %r1, 5;
    ld.global.u64 %rd1, [table];
    prototype: .callprototype (.reg .u32 _) _ (.reg .u32 _);
    call (%r2), %rd1, (%r1), prototype;
    ld.param.u64 %rd2, [to];
    st.global.u32 [%rd2], %r2;
    ret;
}
""")
    to = np.zeros(1, np.uint32)
    module["store"].launch(1, 1, [], device="cpu")
    module["use"].launch(1, 1, [to], device="cpu")
    assert to == 12
