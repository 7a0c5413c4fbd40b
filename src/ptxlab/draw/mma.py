"""A `tcgen05.mma` with all modifiers as the emulator starts it, without a kernel: what a picture of it is made from."""

from __future__ import annotations

import re
from types import SimpleNamespace

from ptxlab.isa import opcode
from ptxlab.isa.asynchronous import Mma
from ptxlab.isa.form import Form, Modifiers
from ptxlab.isa.units.instruction_descriptor import (
    KINDS,
    TF32,
    VIOLATIONS,
    InstructionDescriptor,
    columns_of,
    rows_of,
    type_codes,
    violation_in,
)
from ptxlab.isa.units.tensor_scale import Factors, columns_of_factors, describe_factors
from ptxlab.isa.units.tensor_tile import Tile, describe_tile

EXAMPLE = "tcgen05.mma.cta_group::1.kind::f16"


def started(
    instruction: str,
    shape: str | int,
    d: int,
    a: int | None,
    scale_a: int | None,
    scale_b: int | None,
    metadata: int | None,
) -> Mma[int, int]:
    """What the instruction starts, with numbers for its operands; addresses that are not given are placed after D."""
    text = instruction.split()[0].rstrip(";") if instruction.strip() else ""
    form, modifiers = _form(text, a is not None)
    given = {"d": d, "a": a, "scale_a": scale_a, "scale_b": scale_b, "sp_meta": metadata}
    first = _run(form, modifiers, given, 0)
    bits = _instruction_descriptor(first, shape)
    placed = _placed(_run(form, modifiers, given, bits), given)
    return _run(form, modifiers, placed, bits)


def _form(text: str, a_in_tensor_memory: bool) -> tuple[Form, Modifiers]:
    """The form of an MMA in tensor memory, and its modifiers."""
    known = opcode(text)
    spelled = [candidate for candidate in known.candidates if candidate.violation is None and candidate.in_order]
    does = [candidate for candidate in spelled if candidate.effects.does("tensor_memory", "multiply")]
    if not does:
        raise ValueError(f"`{text}` is not an MMA in tensor memory with all its modifiers, such as `{EXAMPLE}`")
    fitting = [candidate for candidate in does if ("a" in candidate.form.types) == a_in_tensor_memory]
    form = fitting[0].form
    if form.semantics is None:
        raise ValueError(f"what `{text}` does is not known: {form.unknown}")
    return form, fitting[0].modifiers


def _run(form: Form, modifiers: Modifiers, given: dict[str, int | None], bits: int) -> Mma[int, int]:
    """The MMA that the semantics of the form start, on a machine whose values are integers."""
    found: list[Mma[int, int]] = []
    unit = SimpleNamespace(address=lambda value: value, multiply=found.append)
    machine = SimpleNamespace(tensor_memory=unit, cast=lambda value, _: value)
    operands: dict[str, object] = {"a_desc": 0, "b_desc": 0, "idesc": bits, "enable_d": 0}
    for name, value in given.items():
        if name in form.types:
            operands[name] = value or 0
    assert form.semantics is not None
    names = form.semantics.__code__.co_varnames[2 : form.semantics.__code__.co_argcount]
    if "a" in form.types:
        operands["a_desc"] = None
    form.semantics(machine, modifiers, *(operands.get(name) for name in names))
    return found[0]


def _instruction_descriptor(mma: Mma[int, int], shape: str | int) -> int:
    """The bits that say the shape; a `ValueError` where there is no such MMA."""
    if mma.kind >= len(KINDS):
        raise ValueError("how this kind is computed is not known")
    kind, is_sparse = KINDS[mma.kind], mma.metadata is not None
    extents = re.fullmatch(r"(\d{1,4})x(\d{1,4})", shape) if isinstance(shape, str) else None
    if extents is not None:
        type = next(iter(type_codes(kind)))
        return InstructionDescriptor(
            kind, int(extents[1]), int(extents[2]), type, type, dtype="s32" if kind == "i8" else "f32",
            selector=0 if is_sparse else None, scale="ue4m3" if mma.scale_factors == 4 else "ue8m0", form=mma.form,
        ).encode()  # fmt: skip
    if isinstance(shape, str) and not re.fullmatch("0x[0-9a-fA-F]+", shape):
        raise ValueError(f"`{shape}` is neither rows and columns, such as 128x64, nor an instruction descriptor")
    bits = int(shape, 16) if isinstance(shape, str) else shape
    if not 0 <= bits < 1 << 32:
        raise ValueError(f"{bits:#x} is not an instruction descriptor: these have 32 bits")
    wrong = violation_in(bits, mma.kind, mma.form, int(is_sparse))
    if wrong:
        said = f"{rows_of(bits, mma.kind)}x{columns_of(bits)}"
        raise ValueError(f"the instruction descriptor {bits:#010x}, {said} of kind {kind}: {VIOLATIONS[wrong]}")
    return bits


def _placed(mma: Mma[int, int], given: dict[str, int | None]) -> dict[str, int | None]:
    """The addresses, those that are not given after the others."""
    plain = SimpleNamespace(**{name: getattr(mma, name) for name in Mma.__dataclass_fields__})
    plain.is_sparse = int(mma.metadata is not None)
    tile = Tile(cells=None, first=0, lane=0, rows=0, columns=0, width=0, disabled_lanes=None)  # type: ignore[arg-type]
    describe_tile(plain, tile)  # type: ignore[arg-type]
    sizes = {"d": tile.width}
    for name, is_b in (("scale_a", False), ("scale_b", True)):
        if mma.scale_factors:
            factors = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
            describe_factors(plain, is_b, factors)  # type: ignore[arg-type]
            sizes[name] = columns_of_factors(factors)
    if given["a"] is not None:
        sizes["a"] = 8
    if plain.is_sparse:
        sizes["sp_meta"] = 2
    ends = [(given[name] or 0) % 65536 + size for name, size in sizes.items() if given[name] is not None]
    free = max(ends)
    placed = dict(given)
    for name, size in sizes.items():
        if placed[name] is None:
            free += free % 2 if name == "sp_meta" and mma.kind <= TF32 else 0
            placed[name] = free
            free += size
    return placed
