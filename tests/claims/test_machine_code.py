"""What the texts say about the machine code, asked of ptxas and nvdisasm."""

import re

import pytest

from ptxlab.kernels import registers
from ptxlab.toolchain import assemble
from tests.claims.asking import machine_code, needs_disassembler, opcodes
from tests.tools import needs_ptxas

ACCUMULATORS = "{%f0, %f1, %f2, %f3}"
OPERANDS = f"{ACCUMULATORS}, {{%r0, %r1, %r2, %r3}}, {{%r0, %r1}},"
FP8 = f"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {ACCUMULATORS}, {{%r0, %r1}}, {{%r2}},"
STORES = ("st.global.wt", "st.volatile.global", "st.relaxed.sys.global")
A, C = ("{" + ", ".join(f"%{kind}{i}" for i in range(8)) + "}" for kind in "rf")
REDUCTION = "".join(
    f"shfl.sync.down.b32 temp, {{0}}, {distance}, 0x1f, 0xffffffff; add.f32 {{0}}, {{0}}, temp; "
    for distance in (16, 8, 4, 2, 1)
)


def products(*mma: str) -> str:
    """Products of loaded fragments."""
    loads = "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd0]; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0]; "
    multiply = " ".join(f"{one} {ACCUMULATORS};" for one in mma)
    return f"{loads} {multiply} st.global.v4.f32 [%rd0], {ACCUMULATORS};"


def reductions(address: str) -> str:
    """Two sums over a warp, each in a block of its own, of two floats that each lane loads."""
    blocks = " ".join(f"{{ .reg .f32 temp; {REDUCTION.format(value)} }}" for value in ("%f0", "%f1"))
    return f"{address} ld.global.v2.f32 {{%f0, %f1}}, [%rd1]; {blocks} st.global.v2.f32 [%rd1], {{%f0, %f1}};"


KERNELS = {
    "copies": " ".join(f"cp.async.{way}.shared.global [buffer], [%rd0], 16;" for way in ("cg", "ca")),
    "streaming": "ld.global.cs.f32 %f0, [%rd0]; st.global.cs.f32 [%rd0+4], %f0;",
    "written_through": " ".join(f"{store}.f32 [%rd0], 0f3F800000;" for store in STORES),
    "prefetch": "prefetch.global.L2 [%rd0];",
    "f16_and_bf16": products(
        *(f"mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32 {OPERANDS}" for type in ("f16", "bf16"))
    ),
    "fp8": products(FP8),
    "wmma": f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {A}, [%rd0]; "
    f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {C}, [%rd0]; "
    f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {C}, {A}, {A}, {C}; "
    f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd0], {C};",
    "two_sums": reductions("mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 8, %rd0;"),
    "sums_of_the_same": reductions("mov.u64 %rd1, %rd0;"),
}


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """What the kernels become on sm_90a."""
    return opcodes(KERNELS)


def named(pattern: str, found: list[str]) -> list[str]:
    return [opcode for opcode in found if re.match(pattern, opcode)]


ACCESSES = "LDG|STG|CCTL"


@needs_disassembler
def test_cg_goes_by_the_first_cache_and_ca_does_not(found: dict[str, list[str]]) -> None:
    assert named(ACCESSES, found["copies"]) == ["LDGSTS.E.BYPASS.128", "LDGSTS.E.128"]


@needs_disassembler
def test_cs_is_evict_first(found: dict[str, list[str]]) -> None:
    assert named(ACCESSES, found["streaming"]) == ["LDG.E.EF", "STG.E.EF"]


@needs_disassembler
def test_wt_is_a_strong_store_and_no_way_around_caches(found: dict[str, list[str]]) -> None:
    assert named(ACCESSES, found["written_through"]) == ["STG.E.STRONG.SYS"] * 3


@needs_disassembler
def test_prefetch_is_an_instruction(found: dict[str, list[str]]) -> None:
    assert named(ACCESSES, found["prefetch"]) == ["CCTL.E.PF2"]


@needs_disassembler
def test_f16_and_bf16_are_one_instruction(found: dict[str, list[str]]) -> None:
    assert named("[HQ]MMA", found["f16_and_bf16"]) == ["HMMA.16816.F32", "HMMA.16816.F32.BF16"]


@pytest.mark.slow
@needs_disassembler
def test_fp8_is_multiplied_as_such_where_the_unit_exists(found: dict[str, list[str]]) -> None:
    assert named("[HQ]MMA", opcodes({"fp8": KERNELS["fp8"]}, "sm_89")["fp8"]) == ["QMMA.16816.F32.E4M3.E4M3"]
    assert named("[HQ]MMA", found["fp8"]) == ["HMMA.1688.F32"] * 2


@needs_disassembler
def test_wmma_is_two_of_the_same_instruction(found: dict[str, list[str]]) -> None:
    assert named(".*HMMA", found["wmma"]) == ["HMMA.16816.F32"] * 2


@needs_disassembler
def test_a_block_of_statements_is_scheduled_like_any_other(found: dict[str, list[str]]) -> None:
    order = named("SHFL|FADD", found["two_sums"])
    assert sorted(order) == ["FADD"] * 10 + ["SHFL.DOWN"] * 10
    assert order[:2] == ["SHFL.DOWN"] * 2  # the second block begins before the first has come to its first sum


@needs_disassembler
def test_exchanges_of_what_all_lanes_have_are_dropped(found: dict[str, list[str]]) -> None:
    assert named("SHFL|FADD", found["sums_of_the_same"]) == ["FADD"] * 10


@pytest.mark.slow
@needs_disassembler
def test_where_registers_are_declared_makes_no_difference() -> None:
    scoped = registers.text("")
    declaration = "        .reg .f32   %deviation;\n"
    assert declaration in scoped
    outside = scoped.replace(declaration, "").replace("    mov.u32 ", f"{declaration}    mov.u32 ", 1)
    assert machine_code(outside) == machine_code(scoped)


@needs_ptxas
def test_registers_are_spilled_by_ptxas_and_not_in_the_text() -> None:
    text = registers.text(".maxnreg 24")
    assert ".local" not in text
    (needed,) = assemble(text, "sm_90a").resources
    assert needed.registers == 24
    assert needed.spill_stores > 0


@needs_ptxas
def test_blocks_for_each_sm_bound_the_registers() -> None:
    used = {
        blocks: assemble(registers.text(f".maxntid 256\n.minnctapersm {blocks}"), "sm_90a").resources[0].registers
        for blocks in (4, 8)
    }
    assert used[4] is not None
    assert used[8] is not None
    assert used[4] <= 65536 // (4 * 256)
    assert used[8] <= 65536 // (8 * 256) < used[4]
