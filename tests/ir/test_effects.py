"""Which registers an instruction reads: an MMA reads its sum only if it adds to that."""

import pytest

from ptxlab.ir.effects import Effects, registers_in
from ptxlab.ir.shapes import match_of
from ptxlab.syntax import parse

WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2,"
TCGEN05 = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1"


@pytest.mark.parametrize(
    ("instruction", "read"),
    [
        (f"{WGMMA} 0, 1, 1, 0, 0;", "%rd1 %rd2"),
        (f"{WGMMA} 1, 1, 1, 0, 0;", "%f1 %f2 %f3 %f4 %rd1 %rd2"),
        (f"{WGMMA} %p1, 1, 1, 0, 0;", "%f1 %f2 %f3 %f4 %p1 %rd1 %rd2"),
        (f"{TCGEN05};", "%p1 %r1 %r2 %rd1 %rd2"),
        (f"{TCGEN05}, 0;", "%p1 %r1 %r2 %rd1 %rd2"),  # it divides the sum by one
    ],
)
def test_what_an_mma_reads(instruction: str, read: str) -> None:
    target = "sm_100a" if instruction.startswith("tcgen05") else "sm_90a"
    registers = ".reg .pred %p<2>; .reg .b32 %r<3>; .reg .f32 %f<5>; .reg .b64 %rd<3>;"
    module = parse(f".version 8.6\n.target {target}\n.entry k {{ {registers} {instruction} }}")
    (one,) = module["k"].instructions()
    (found,) = Effects([one], [match_of(one)]).reads
    names = {register.index: register.name for operand in one.operands for register in registers_in(operand)}
    assert sorted(names[index] for index in found) == read.split()
