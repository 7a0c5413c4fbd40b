"""Elements in memory: several at once as bits, or as numbers in f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.author import Pointer, b8, b16, b32, f32, s32
from ptxlab.author import bf16 as bf16_type
from ptxlab.author import f16 as f16_type
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Value
from ptxlab.schedule.expressions import register
from ptxlab.schedule.tree import BYTES

Hint = tuple[str, list[Value]]  # a modifier of an access, and its operand
NO_HINT: Hint = "", []
INTEGERS = {"s8": (-128, 128), "u8": (0, 256)}  # the least, and one more than the largest
ELEMENTS: dict[str, Any] = {"f32": f32, "f16": f16_type, "bf16": bf16_type, "s32": s32}
ELEMENTS |= dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), b8)


def shared_address(register: Value, offset: int) -> Pointer:
    """So many bytes after an address in shared memory."""
    return Pointer(b8, "shared", register, offset=offset)


def synchronize_cluster(aligned: str = "") -> None:
    """All threads of all blocks of a cluster wait for each other; `.aligned` where whole warps do."""
    emit(f"barrier.cluster.arrive.release{aligned}", [])
    emit(f"barrier.cluster.wait.acquire{aligned}", [])


def load_bits(source: object, space: str, size: int, when: Value, hint: Hint = NO_HINT) -> list[Value]:
    """So many bytes as bits; zeros where the predicate does not hold."""
    cls, count = (b16, 1) if size <= 2 else (b32, size // 4)
    values = [cls(0) if when is not None else cls() for _ in range(count)]
    lanes = f".v{count}" if count > 1 else ""
    outs = tuple(values) if count > 1 else values[0]
    emit(f"ld.{space}{hint[0]}{lanes}.b{min(8 * size, 32)}", [source, *hint[1]], out=outs, when=when)
    return values


def store_bits(target: Any, values: Sequence[Value], when: Value, width: int = 0, hint: Hint = NO_HINT) -> None:
    """Registers, or only so many bits of one."""
    lanes = f".v{len(values)}" if len(values) > 1 else ""
    width = width or values[0].type.width
    stored = tuple(values) if len(values) > 1 else values[0]
    emit(f"st.{target.space}{hint[0]}{lanes}.b{width}", [target, stored, *hint[1]], when=when)


def split_bits(values: Sequence[Value], size: int) -> list[Value]:
    """Elements of so many bytes, each in the low bits of a register."""
    if size == 4:
        return list(values)
    halves: list[Value] = []
    for word in values:
        halves += [word] if word.type.width == 16 else emit("mov.b32", [word], out=(b16(), b16()))
    return halves if size == 2 else [one for half in halves for one in (half, emit("shr.b16", [half, 8], out=b16()))]


def load_numbers(
    source: object, space: str, element: str, width: int, when: Value, outs: list[Value] | None, hint: Hint = NO_HINT
) -> list[Value]:
    """Elements as f32; zeros where the predicate does not hold."""
    if element == "f32":
        values = outs or [f32(0.0) if when is not None else f32() for _ in range(width)]
        lanes = f".v{width}" if width > 1 else ""
        several = tuple(values) if width > 1 else values[0]
        emit(f"ld.{space}{hint[0]}{lanes}.f32", [source, *hint[1]], out=several, when=when)
        return values
    bits = load_bits(source, space, width * BYTES[element], when, hint)
    outs = outs or [f32() for _ in range(width)]
    if element in INTEGERS:
        return [
            emit(f"cvt.rn.f32.{element}", [byte], out=out)
            for byte, out in zip(split_bits(bits, 1)[:width], outs, strict=True)
        ]
    halves = split_bits(bits, 2)
    if BYTES[element] == 1:  # each of these is two elements
        pairs = [emit(f"cvt.rn.f16x2.{element}x2", [pair], out=b32()) for pair in halves]
        halves = [half for pair in pairs for half in emit("mov.b32", [pair], out=(b16(), b16()))][:width]
        element = "f16"
    return [
        emit(f"cvt.f32.{element}", [half.view(ELEMENTS[element])], out=out)
        for half, out in zip(halves, outs, strict=True)
    ]


def as_words(element: str, values: Sequence[Value]) -> list[Value]:
    """Two numbers as words of 32 bits: one of halves, or two of f32."""
    if element == "f32":
        return [value.view(b32) for value in values]
    low, high = (emit(f"cvt.rn.{element}.f32", [value]) for value in values)
    return [emit("mov.b32", [(low, high)], out=b32())]


def store_numbers(target: object, element: str, values: Sequence[Value], when: Value, hint: Hint) -> None:
    """Numbers in f32 as elements."""
    values = [register(value) for value in values]
    if element != "f32":
        halves = [emit(f"cvt.rn.{element}.f32", [value]) for value in values]
        pairs = zip(halves[::2], halves[1::2], strict=len(halves) > 1)
        values = [emit("mov.b32", [pair], out=b32()) for pair in pairs] or halves
    store_bits(target, values, when, 0, hint)
