"""Vectors of registers and constants that multiplications read: ptxas gives each one type, and so does the table."""

from itertools import product

import pytest

from ..tools import needs_ptxas
from .conformance import ask
from .mutants import is_legal

pytestmark = needs_ptxas

WORDS = ["%f32_0", "%b32_0", "%u32_0", "%f16x2_0", "5", "1.5", "0f3F800000"]
DOUBLES = ["%f64_0", "%b64_0", "%u64_0", "%b32_0", "5", "1.5", "0d3FF0000000000000"]
FLOAT = "{%f32_0, %f32_1, %f32_2, %f32_3}"
BITS = "{%b32_0, %b32_1, %b32_2, %b32_3}"
PAIR = "{%b32_4, %b32_5}"
MMA = "mma.sync.aligned.m16n8k"


@pytest.mark.parametrize(
    ("line", "count", "elements", "target"),
    [
        (f"{MMA}16.row.col.f32.f16.f16.f32 {FLOAT}, {BITS}, {PAIR}, V;", 4, [*WORDS[:2], *WORDS[4:]], "sm_80"),
        (f"{MMA}16.row.col.f32.f16.f16.f32 {FLOAT}, V, {PAIR}, {FLOAT};", 4, WORDS[1:], "sm_80"),
        (f"{MMA}8.row.col.f16.f16.f16.f16 {PAIR}, {{%b32_0, %b32_1}}, {{%b32_2}}, V;", 2, WORDS, "sm_80"),
        (f"{MMA}8.row.col.f32.tf32.tf32.f32 {FLOAT}, {BITS}, V, {FLOAT};", 2, WORDS, "sm_80"),
        (f"{MMA}8.row.col.f32.bf16.bf16.f32 {FLOAT}, V, {{%b32_0}}, {FLOAT};", 2, WORDS, "sm_80"),
        (f"{MMA}16.row.col.s32.s8.s8.s32 {BITS}, V, {{%b32_0}}, {BITS};", 2, WORDS, "sm_80"),
        (f"{MMA}16.row.col.s32.s8.s8.s32 {BITS}, {PAIR}, {{%b32_0}}, V;", 4, WORDS[2:], "sm_80"),
        (f"{MMA}16.row.col.s32.s8.s8.s32 {BITS}, {PAIR}, V, {BITS};", 1, WORDS, "sm_80"),
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%s32_0, %s32_1}, V, {%b32_0}, {%s32_2, %s32_3};", 1, WORDS,
         "sm_80"),
        (f"{MMA}32.row.col.f32.e4m3.e4m3.f32 {FLOAT}, {BITS}, V, {FLOAT};", 2, WORDS, "sm_89"),
        (f"mma.sp{MMA[3:]}16.row.col.f32.bf16.bf16.f32 {FLOAT}, V, {PAIR}, {FLOAT}, %b32_0, 0;", 2, WORDS, "sm_80"),
        (f"{MMA}32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 {FLOAT}, {BITS}, V, {FLOAT}, %b32_0, "
         "{%u16_0, %u16_1}, %b32_1, {%u16_0, %u16_1};", 2, WORDS, "sm_120a"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%f64_0, %f64_1}, V, {%f64_0}, {%f64_2, %f64_3};", 1, DOUBLES,
         "sm_80"),
        (f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {FLOAT}, V, %u64_0, %pred_0, 1, 1, 0;",
         4, WORDS[2:], "sm_90a"),
    ],
)  # fmt: skip
def test_what_is_read_has_the_type_that_ptxas_gives_it(line: str, count: int, elements: list[str], target: str) -> None:
    lines = [line.replace("V", "{" + ", ".join(chosen) + "}") for chosen in product(elements, repeat=count)]
    version = (9, 0)
    refused = {asked for asked, messages in zip(lines, ask(lines, version, target), strict=True) if messages}
    assert {asked for asked in lines if not is_legal(asked, version, target)} == refused
    assert refused
    assert len(refused) < len(lines)
