"""Pictures of fragments agree with what the instructions do: registers are filled and read by the picture alone."""

import re
from itertools import islice
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from ptxlab import draw
from ptxlab.draw import Panel
from ptxlab.isa import opcode
from ptxlab.isa.table import forms

PTX = """
.version 8.8
.target sm_90
.address_size 64
.visible .entry multiply(.param .u64 registers, .param .u64 results)
{{
    .reg .b32 %r<2>; .reg .b{width} %a<{a}>; .reg .b{width} %b<{b}>; .reg .b{width} %c<{d}>; .reg .b64 %p<4>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %p1, [registers];
    ld.param.u64 %p2, [results];
    mad.wide.u32 %p1, %r1, {taken}, %p1;
    mad.wide.u32 %p2, %r1, {given}, %p2;
    {body}
    ret;
}}
"""
# An instruction, the NumPy types of A and B and of D, and the bits of its registers.
PRODUCTS: list[tuple[str, Any, Any, int]] = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", np.float16, np.float32, 32),
    ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", ml_dtypes.bfloat16, np.float32, 32),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", np.float32, np.float32, 32),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", np.int8, np.int32, 32),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", None, np.float32, 32),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", np.float64, np.float64, 64),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", np.float16, np.float32, 32),
]


def positions(panel: Panel) -> dict[tuple[int, int], tuple[int, int]]:
    """For each row and column of a panel, the lane and the number of the element there."""
    found = {}
    for row, cells in enumerate(panel.cells):
        for column, cell in enumerate(cells):
            assert cell is not None
            lane, number = re.fullmatch(r"T(\d+)\.[abcd](\d+)", cell.text).groups()  # type: ignore[union-attr]
            found[row, column] = int(lane), int(number)
    return found


def fill(panel: Panel, matrix: np.ndarray, registers: int, width: int) -> np.ndarray:
    """The registers of 32 lanes that hold a matrix as the picture says."""
    size = matrix.dtype.itemsize
    filled = np.zeros((32, registers * width // 8 // size), matrix.dtype)
    for (row, column), (lane, number) in positions(panel).items():
        filled[lane, number] = matrix[row, column]
    return np.ascontiguousarray(filled).view(np.uint8).reshape(32, -1)


@pytest.mark.parametrize(("instruction", "kind", "result", "width"), PRODUCTS, ids=[row[0] for row in PRODUCTS])
def test_a_product_by_the_picture_is_the_product(instruction: str, kind: Any, result: Any, width: int) -> None:
    a_panel, b_panel, d_panel = draw.fragments(instruction).panels
    kinds = (kind, kind) if kind is not None else (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    rng = np.random.default_rng(1)
    a = rng.integers(-8, 9, (len(a_panel.row_names), len(a_panel.column_names))).astype(kinds[0])
    b = rng.integers(-8, 9, (len(b_panel.row_names), len(b_panel.column_names))).astype(kinds[1])
    per_lane = width // 8 * 32
    counts = [a.nbytes // per_lane, b.nbytes // per_lane]
    if instruction.startswith("wmma"):
        counts = [8, 8]
    d_count = len(d_panel.row_names) * len(d_panel.column_names) * np.dtype(result).itemsize // per_lane
    lines = [
        *(f"ld.global.b{width} %a{i}, [%p1+{i * width // 8}];" for i in range(counts[0])),
        *(f"ld.global.b{width} %b{i}, [%p1+{(counts[0] + i) * width // 8}];" for i in range(counts[1])),
        *(f"mov.b{width} %c{i}, 0;" for i in range(d_count)),
    ]
    if width == 64:
        lines[-d_count:] = [f"mov.f64 %c{i}, 0d0000000000000000;" for i in range(d_count)]
    vectors = [f"{{{', '.join(f'%{name}{i}' for i in range(count))}}}" for name, count in
               zip("cabc", [d_count, *counts, d_count], strict=True)]  # fmt: skip
    lines += [f"{instruction} {', '.join(vectors)};"]
    lines += [f"st.global.b{width} [%p2+{i * width // 8}], %c{i};" for i in range(d_count)]
    text = PTX.format(
        width=width, a=counts[0], b=counts[1], d=d_count, taken=sum(counts) * width // 8, given=d_count * width // 8,
        body="\n    ".join(lines),
    )  # fmt: skip
    if instruction.startswith("wmma"):  # f16 fragments have eight registers of two elements
        text = text.replace(".reg .b32 %a", ".reg .f16x2 %a").replace(".reg .b32 %b", ".reg .f16x2 %b")
        text = (
            text.replace(".reg .b32 %c", ".reg .f32 %c")
            .replace("mov.b32 %c", "mov.f32 %c")
            .replace(", 0;", ", 0f00000000;")
        )
    module = ptxlab.parse(text)
    taken = np.concatenate([fill(a_panel, a, counts[0], width), fill(b_panel, b, counts[1], width)], axis=1)
    given = np.zeros((32, d_count * width // 8), np.uint8)
    module["multiply"].launch(1, 32, [np.ascontiguousarray(taken), given])
    registers = given.view(result)
    d = np.zeros((len(d_panel.row_names), len(d_panel.column_names)), result)
    for position, (lane, number) in positions(d_panel).items():
        d[position] = registers[lane, number]
    assert (d == a.astype(np.float64) @ b.astype(np.float64)).all()


@pytest.mark.parametrize("turned", ["", ".trans"])
def test_a_loaded_matrix_is_where_the_picture_says(turned: str) -> None:
    instruction = f"ldmatrix.sync.aligned.m8n8.x4{turned}.shared.b16"
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry load(.param .u64 rows, .param .u64 out)
{{
    .shared .align 16 .b8 room[512];
    .reg .b32 %r<12>; .reg .b64 %p<4>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %p1, [rows];
    ld.param.u64 %p2, [out];
    mad.wide.u32 %p1, %r1, 16, %p1;
    mad.wide.u32 %p2, %r1, 16, %p2;
    mov.u32 %r2, room;
    mad.lo.u32 %r2, %r1, 16, %r2;
    ld.global.v4.b32 {{%r3, %r4, %r5, %r6}}, [%p1];
    st.shared.v4.b32 [%r2], {{%r3, %r4, %r5, %r6}};
    bar.warp.sync 0xffffffff;
    {instruction} {{%r7, %r8, %r9, %r10}}, [%r2];
    st.global.v4.b32 [%p2], {{%r7, %r8, %r9, %r10}};
    ret;
}}
"""
    rows = np.arange(256, dtype=np.uint16).reshape(32, 8)  # lane l points to row l
    out = np.zeros((32, 8), np.uint16)
    ptxlab.parse(text)["load"].launch(1, 32, [rows, out])
    panels = draw.fragments(instruction).panels
    assert len(panels) == 4
    for panel in panels:
        for (row, column), (lane, number) in positions(panel).items():
            pointing = int(re.match(r"T(\d+)", panel.row_names[row])[1])  # type: ignore[index]
            assert out[lane, number] == rows[pointing, column]


def test_one_lane_is_highlighted() -> None:
    picture = draw.fragments("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", operand="a", lane=5)
    (panel,) = picture.panels
    strong = [cell.text for row in panel.cells for cell in row if cell is not None and cell.strong]
    assert sorted(strong) == [f"T5.a{number}" for number in range(8)]
    assert picture.text().count("T5.a") == 8
    assert "T6.a0" not in picture.text()


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("add.u32", "`add.u32` holds no matrix in registers"),
        ("", "holds no matrix"),
        ("ldmatri.sync", "did you mean `ldmatrix`?"),
        ("mma.sync", "`mma.sync` is not an instruction with all its modifiers; `ptxlab explain mma` lists its forms"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f33", "is not an instruction with all its modifiers"),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4", "is not known"),
    ],
)
def test_what_can_not_be_drawn_is_reported(instruction: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=re.escape(wanted)):
        draw.fragments(instruction)


def test_wrong_operands_and_lanes_are_reported() -> None:
    instruction = "ldmatrix.sync.aligned.m8n8.x1.shared.b16"
    with pytest.raises(ValueError, match="has no matrix `a`: it has d"):
        draw.fragments(instruction, operand="a")
    with pytest.raises(ValueError, match="lanes 0 to 31"):
        draw.fragments(instruction, lane=32)


def is_legal(spelling: str) -> bool:
    return any(candidate.violation is None for candidate in opcode(spelling).candidates)


@pytest.mark.slow
def test_every_multiplication_with_semantics_can_be_drawn() -> None:
    drawn = 0
    for form in forms():
        if form.name[:2] in (("wgmma", "fence"), ("wgmma", "commit_group"), ("wgmma", "wait_group")):
            continue
        moved = form.syntax.startswith(("tcgen05.ld", "tcgen05.st"))
        known = form.name[0] in ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix") or moved
        if known and form.semantics is not None:
            legal = (spelling for spelling in map(form.spell, islice(form.spellings(), 40)) if is_legal(spelling))
            for spelling in islice(legal, 3):
                picture = draw.fragments(spelling)
                assert picture.panels, spelling
                assert re.match("<svg [^>]*viewBox='0 0 [0-9]+ [0-9]+'", picture.svg())
                drawn += 1
    assert drawn > 100


def test_tensor_memory_and_the_registers_of_a_warp() -> None:
    (panel,) = draw.fragments("tcgen05.ld.sync.aligned.16x256b.x1.b32").panels
    assert [cell.text for cell in panel.cells[0]] == [
        f"T{lane}.d{register}" for lane in range(4) for register in (0, 1)
    ]
    assert [cell.text for cell in panel.cells[8][:2]] == ["T0.d2", "T0.d3"]
    with pytest.raises(ValueError, match="holds no matrix in registers"):
        draw.fragments("tcgen05.wait::ld.sync.aligned")
