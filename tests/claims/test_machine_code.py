"""What the texts say about the machine code, asked of ptxas and nvdisasm."""

import re

import pytest

from ptxlab.kernels import registers
from ptxlab.toolchain import assemble
from tests.claims.asking import machine_code, needs_disassembler, opcodes
from tests.tools import needs_ptxas

ACCUMULATORS = "{%f0, %f1, %f2, %f3}"
REDUCTION = "".join(
    f"shfl.sync.down.b32 temp, {{0}}, {distance}, 0x1f, 0xffffffff; add.f32 {{0}}, {{0}}, temp; "
    for distance in (16, 8, 4, 2, 1)
)


def accesses(statements: str) -> list[str]:
    """What is left of loads, stores and copies."""
    return [opcode for opcode in opcodes(statements) if re.match("LDG|STG|CCTL", opcode)]


@needs_disassembler
def test_cg_goes_by_the_first_cache_and_ca_does_not() -> None:
    copies = " ".join(f"cp.async.{way}.shared.global [buffer], [%rd0], 16;" for way in ("cg", "ca"))
    assert accesses(copies) == ["LDGSTS.E.BYPASS.128", "LDGSTS.E.128"]


@needs_disassembler
def test_cs_is_evict_first() -> None:
    assert accesses("ld.global.cs.f32 %f0, [%rd0]; st.global.cs.f32 [%rd0+4], %f0;") == ["LDG.E.EF", "STG.E.EF"]


@needs_disassembler
def test_wt_is_a_strong_store_and_no_way_around_caches() -> None:
    stores = ("st.global.wt", "st.volatile.global", "st.relaxed.sys.global")
    assert accesses(" ".join(f"{store}.f32 [%rd0], 0f3F800000;" for store in stores)) == ["STG.E.STRONG.SYS"] * 3


@needs_disassembler
def test_prefetch_is_an_instruction() -> None:
    assert accesses("prefetch.global.L2 [%rd0];") == ["CCTL.E.PF2"]


def products(target: str, *mma: str) -> list[str]:
    """What products of loaded fragments become."""
    loads = "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd0]; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0]; "
    multiply = " ".join(f"{one} {ACCUMULATORS};" for one in mma)
    found = opcodes(f"{loads} {multiply} st.global.v4.f32 [%rd0], {ACCUMULATORS};", target)
    return [opcode for opcode in found if re.match("[HQ]MMA", opcode)]


@needs_disassembler
def test_f16_and_bf16_are_one_instruction() -> None:
    operands = f"{ACCUMULATORS}, {{%r0, %r1, %r2, %r3}}, {{%r0, %r1}},"
    both = [f"mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32 {operands}" for type in ("f16", "bf16")]
    assert products("sm_90a", *both) == ["HMMA.16816.F32", "HMMA.16816.F32.BF16"]


@pytest.mark.slow
@needs_disassembler
def test_fp8_is_multiplied_as_such_where_the_unit_exists() -> None:
    fp8 = f"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {ACCUMULATORS}, {{%r0, %r1}}, {{%r2}},"
    assert products("sm_89", fp8) == ["QMMA.16816.F32.E4M3.E4M3"]
    assert products("sm_90a", fp8) == ["HMMA.1688.F32"] * 2


@needs_disassembler
def test_wmma_is_two_of_the_same_instruction() -> None:
    a, c = ("{" + ", ".join(f"%{kind}{i}" for i in range(8)) + "}" for kind in "rf")
    text = (
        f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a}, [%rd0]; "
        f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {c}, [%rd0]; "
        f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {c}, {a}, {a}, {c}; "
        f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd0], {c};"
    )
    assert [opcode for opcode in opcodes(text) if "HMMA" in opcode] == ["HMMA.16816.F32"] * 2


def reductions(address: str) -> list[str]:
    """What two sums over a warp become, each in a block of its own, of two floats that each lane loads."""
    blocks = " ".join(f"{{ .reg .f32 temp; {REDUCTION.format(value)} }}" for value in ("%f0", "%f1"))
    text = f"{address} ld.global.v2.f32 {{%f0, %f1}}, [%rd1]; {blocks} st.global.v2.f32 [%rd1], {{%f0, %f1}};"
    return [opcode for opcode in opcodes(text) if re.match("SHFL|FADD", opcode)]


@needs_disassembler
def test_a_block_of_statements_is_scheduled_like_any_other() -> None:
    order = reductions("mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 8, %rd0;")
    assert sorted(order) == ["FADD"] * 10 + ["SHFL.DOWN"] * 10
    assert order[:2] == ["SHFL.DOWN"] * 2  # the second block begins before the first has come to its first sum


@needs_disassembler
def test_exchanges_of_what_all_lanes_have_are_dropped() -> None:
    assert reductions("mov.u64 %rd1, %rd0;") == ["FADD"] * 10


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
