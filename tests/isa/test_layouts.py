"""Fragment layouts: each element has a position of its own, and the positions are those of the manual."""

from pathlib import Path

import pytest

from ptxlab.isa.table import forms_of
from ptxlab.isa.units.descriptor import TENSOR_MODES, Descriptor, tensor_chunk_offset
from ptxlab.isa.units.fragment import extents, registers
from ptxlab.isa.units.layouts import (
    FragmentLayouts,
    Layout,
    fragments,
    metadata,
    opaque_fragments,
)
from ptxlab.isa.units.layouts_rows import eight_rows, memory_rows, sixteen_columns, sixteen_rows
from tests.golden import compare


def _dense() -> dict[str, FragmentLayouts]:
    found = {}
    for form in forms_of("mma"):
        for choice in form.spellings():
            m = form.modifiers(choice)
            if form.semantics is None:
                continue
            bits = 4 if (m.kind or "").startswith("kind::mxf4") else None
            sparse = (m.variant or "").startswith("sp")
            key = f"{m.shape} {m.atype} {m.btype} {m.ctype} {m.dtype} {m.alayout} {m.blayout} {bits} {sparse}"
            found[key] = fragments(
                m.shape,
                m.atype,
                m.btype,
                m.ctype,
                m.dtype,
                alayout=m.alayout,
                blayout=m.blayout,
                bits=bits,
                sparse=sparse,
            )
    return found


DENSE = _dense()
OPAQUE = {
    f"{shape} {type} {wide}": opaque_fragments(shape, type, type, wide, wide)
    for shapes, type, wide in (
        ("m16n16k16 m8n32k16 m32n8k16", "f16", "f32"),
        ("m16n16k16 m8n32k16 m32n8k16", "f16", "f16"),
        ("m16n16k16 m8n32k16 m32n8k16", "u8", "s32"),
        ("m16n16k8", "tf32", "f32"),
        ("m8n8k4", "f64", "f64"),
        ("m8n8k32", "s4", "s32"),
        ("m8n8k128", "b1", "s32"),
    )
    for shape in shapes.split()
}


def _is_one_to_one(layout: Layout) -> bool:
    """Whether every bit of the registers belongs to one element, but for the padding of tf32 and of fp4 in bytes."""
    starts = {position // layout.bits * layout.bits if layout.bits < 64 else position for position in layout.positions}
    room = layout.registers * 32 * 32
    return len(starts) == len(layout.positions) == layout.copies * layout.rows * layout.columns == room // layout.bits


@pytest.mark.parametrize("layouts", [*DENSE.values(), *OPAQUE.values()], ids=[*DENSE, *OPAQUE])
def test_every_element_has_a_place_of_its_own(layouts: FragmentLayouts) -> None:
    for layout in (layouts.a, layouts.b, layouts.c, layouts.d):
        assert _is_one_to_one(layout)


@pytest.mark.parametrize("name", DENSE)
def test_a_lane_has_as_many_registers_as_the_instruction_says(name: str) -> None:
    shape, atype, _, _, dtype, *_, bits, sparse = name.split()
    layouts = DENSE[name]
    copies = layouts.a.copies * (0.5 if sparse == "True" else 1)
    width = None if bits == "None" else int(bits)
    for layout, matrix, type, times in ((layouts.a, "a", atype, copies), (layouts.d, "d", dtype, layouts.a.copies)):
        count, held = registers(matrix, shape, type, bits=width if matrix == "a" else None, copies=times).split()
        assert layout.registers == int(count) * (2 if held == "b64" else 1)


# Row and column of a0, a1, ... of lane 13 (group 3, thread 1 of it), by the formulas of PTX ISA 9.7.14.5.
@pytest.mark.parametrize(
    ("shape", "type", "held"),
    [
        ("m16n8k8", "f16", [(3, 2), (3, 3), (11, 2), (11, 3)]),
        ("m16n8k16", "bf16", [(3, 2), (3, 3), (11, 2), (11, 3), (3, 10), (3, 11), (11, 10), (11, 11)]),
        ("m16n8k8", "tf32", [(3, 1), (11, 1), (3, 5), (11, 5)]),
        ("m16n8k16", "f64", [(3, 1), (11, 1), (3, 5), (11, 5), (3, 9), (11, 9), (3, 13), (11, 13)]),
        ("m8n8k16", "s8", [(3, 4), (3, 5), (3, 6), (3, 7)]),
        ("m16n8k16", "u8", [(3, 4), (3, 5), (3, 6), (3, 7), (11, 4), (11, 5), (11, 6), (11, 7)]),
    ],
)
def test_a_is_held_as_the_manual_says(shape: str, type: str, held: list[tuple[int, int]]) -> None:
    wide = "s32" if type[0] in "us" else "f64" if type == "f64" else "f32"
    assert list(fragments(shape, type, type, wide, wide).a.held(13)) == held


def test_b_and_c_are_held_as_the_manual_says() -> None:
    layouts = fragments("m16n8k16", "f16", "f16", "f32", "f16")
    assert layouts.b.held(13) == ((3, 2), (3, 3), (3, 10), (3, 11))  # column, row
    assert layouts.c.held(13) == layouts.d.held(13) == ((3, 2), (3, 3), (11, 2), (11, 3))
    assert (layouts.c.registers, layouts.d.registers) == (4, 2)


def test_four_products_are_held_as_the_manual_says() -> None:
    layouts = fragments("m8n8k4", "f16", "f16", "f32", "f16", alayout="row", blayout="row")
    # Lane 21 is the second of the upper lanes that compute the second product.
    assert layouts.a.held(21) == tuple((5, column) for column in range(4))
    assert layouts.b.held(21) == tuple((4 + index, 1) for index in range(4))
    assert layouts.c.held(21) == ((5, 0), (5, 1), (7, 0), (7, 1), (5, 4), (5, 5), (7, 4), (7, 5))
    assert layouts.d.held(21) == tuple((5, column) for column in range(8))
    assert {layouts.a.position(5, 0, copy)[1] for copy in range(4)} == {17, 21, 25, 29}


@pytest.mark.parametrize(
    ("shape", "type", "suppliers"),
    [("m16n8k16", "f16", 1), ("m16n8k32", "bf16", 2), ("m16n8k8", "tf32", 1), ("m16n8k16", "tf32", 2),
     ("m16n8k32", "s8", 2), ("m16n8k64", "u8", 4), ("m16n8k64", "s4", 2), ("m16n8k128", "u4", 4)],
)  # fmt: skip
def test_metadata_fill_the_registers_of_their_suppliers(shape: str, type: str, suppliers: int) -> None:
    for selector in range(4 // suppliers):
        layout = metadata(shape, type, selector)
        lanes = {position >> 5 for position in layout.positions}
        assert {lane % 4 for lane in lanes} == set(range(selector * suppliers, (selector + 1) * suppliers))
        _, _, k = extents(shape)
        indices = 16 * k // 2 // (2 if type in ("s4", "u4") else 1)
        assert len(set(layout.positions)) == indices


def test_rows_of_memory_and_their_fragments_hold_the_same_elements() -> None:
    for count in (1, 2, 4):
        rows = memory_rows(8, 8, 16, count)
        for target in (eight_rows(8, 16, count), eight_rows(8, 16, count, transposed=True)):
            assert _is_one_to_one(target)
            assert len(target.positions) == len(rows.positions)
        assert _is_one_to_one(sixteen_columns(count))
        assert _is_one_to_one(eight_rows(16, 8, count))
    assert _is_one_to_one(sixteen_rows(2))


def test_every_layout_is_what_it_was() -> None:
    named = {getattr(one, what): f"{name} {what}" for name, one in (DENSE | OPAQUE).items() for what in "abcd"}
    found: dict[str, object] = {name: (layout.registers, layout.positions) for layout, name in named.items()}
    for shape, type in [("m16n8k16", "f16"), ("m16n8k32", "s8"), ("m16n8k64", "u4"), ("m16n8k8", "tf32")]:
        found |= {f"metadata {shape} {type} {one}": metadata(shape, type, one).positions for one in range(2)}
    for count in (1, 2, 4):
        found |= {
            f"{count} of {name}": (layout.positions, layout.by_columns.positions)
            for name, layout in {
                "8x8 in memory": memory_rows(8, 8, 16, count),
                "16x16 in memory": memory_rows(16, 16, 8, count),
                "8x8": eight_rows(8, 16, count),
                "8x8 transposed": eight_rows(8, 16, count, transposed=True),
                "16x8": eight_rows(16, 8, count),
                "16 columns": sixteen_columns(count),
                "16 rows": sixteen_rows(count),
            }.items()
        }
    for name in ("none", *TENSOR_MODES):
        descriptor = Descriptor(0x400, 3072, 5120, name)
        found[f"chunks of tcgen05 in mode {name}"] = [
            tensor_chunk_offset(descriptor.encode_for_tcgen05(), row, chunk, major)
            for row in (0, 1, 3, 4, 7, 8, 21)
            for chunk in (0, 1, 2, 5, 9, 17)
            for major in (0, 1)
        ]
    compare(Path(__file__).with_name("layouts.txt"), found)
