"""Elements of memory as f32 in registers: vectors of f32, f16, bf16 or e4m3, read or written by one instruction.

These are macros for kernels in Python: each writes its instructions where it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, Scalar, b8, b16, b32, f16, f32, pred, ptx, u32, u64
from ptxlab.device.array_types import type_of

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SIZES = {"f32": 4, "f16": 2, "bf16": 2, "e4m3": 1}  # bytes of an element
WIDEST = 16  # bytes that one instruction reads or writes


def keep_what_is_read() -> u64:
    """A policy for the L2 cache, under which it gives up what was written before what was read.

    For kernels that write as much as they read: though nothing is read twice, an H200 moves 1 to 3 % more in the same
    time (`benchmarks/cache_policy.py`).
    """
    return ptx.createpolicy.fractional["L2::evict_last"].b64(1.0)


def inverse_root(number: f32) -> f32:
    """1 / √x, to the last digit: what the hardware has, with one step of Newton's; as it is for 0 and infinity."""
    root = ptx.rsqrt.approx.f32(number)
    rest = ptx.fma.rn.f32(ptx.neg.f32(number * root), root * 0.5, 0.5)
    better = ptx.fma.rn.f32(root, rest, root)
    return ptx.selp.f32(better, root, better == better)


def vector_of(columns: int, *arrays: Array) -> int:
    """How many elements one access takes: 16 bytes where each row of each array starts at such a multiple, else one."""
    whole = WIDEST // SIZES[type_of(arrays[0])]
    return whole if columns % whole == 0 and all(address_of(array) % WIDEST == 0 for array in arrays) else 1


def address_of(array: Any) -> int:
    """Where an array of NumPy, torch, or memory of a GPU starts."""
    if hasattr(array, "data_ptr"):
        return int(array.data_ptr())
    there = getattr(array, "__cuda_array_interface__", None)
    return int(array.ctypes.data if there is None else there["data"][0])


def element_pointer(array: Any, type: str, vector: int, *indices: Scalar) -> Any:
    """Where the vector at an element of an array starts; a number added to it counts vectors."""
    found = array.view(_IN_MEMORY[type])
    for index in indices:
        found = found + index
    return found.vector(vector)


def load(
    load: object, pointer: Pointer, type: str, vector: int, neutral: float = 0.0, inside: pred | None = None
) -> list[f32]:
    """One vector as f32, by the instruction `load`; `neutral` where it is not inside, and nothing is read."""
    return widened(load_bits(load, pointer, type, vector, neutral, inside), type)


def load_bits(
    load: object,
    pointer: Pointer,
    type: str,
    vector: int,
    neutral: float = 0.0,
    inside: object = None,
    policy: u64 | u64 | None = None,
) -> list[Scalar]:
    """One vector as it is in memory: f32, words with several elements, or half a word with one.

    `policy` is for an instruction with `.L2::cache_hint`.
    """
    if type == "f32":
        found: list[Any] = [f32() if inside is None else f32(neutral) for _ in range(vector)]
        bits = "f32"
    elif vector == 1:
        found = [b16() if inside is None else b16(_pattern(neutral, type))]
        bits = f"b{8 * SIZES[type]}"
    else:
        count = 4 // SIZES[type]  # elements of a word
        pattern = sum(_pattern(neutral, type) << (32 // count * number) for number in range(count))
        found = [b32() if inside is None else b32(pattern) for _ in range(vector // count)]
        bits = "b32"
    hint = () if policy is None else (policy,)
    _vector(load, len(found))[bits](pointer, *hint, out=_several(found), when=inside)
    return found


def moved(one: Sequence[Any], other: Sequence[Scalar], shift: u32) -> list[Any]:
    """What is so many bytes after the start of a vector, of its words and those of the next one."""
    words, is_single = [*one, *other], one[0].type.name == "f32"
    select = ptx.selp.f32 if is_single else ptx.selp.b32
    for distance in (2, 1):  # words
        is_further = (shift & 4 * distance) != 0
        words = [select(b, a, is_further) for a, b in zip(words, words[distance:], strict=False)]
    if is_single:
        return words[: len(one)]
    return [ptx.shf.r.wrap.b32(a, b, (shift & 2) * 8) for a, b in pairwise(words[: len(one) + 1])]


def widened(bits: Sequence[Any], type: str) -> list[f32]:
    """What `load_bits` found, as f32."""
    if type == "f32":
        return list(bits)
    return [value for part in bits for value in _WIDENING[type, part.type.width](part)]


def _widened_bf16(half: b16) -> list[f32]:
    return [ptx.mov.b32((b16(0), half), out=f32())]  # a bf16 is the upper half of an f32


def _widened_bf16x2(word: b32) -> list[f32]:
    return [ptx.shl.b32(word, 16, out=f32()), ptx.and_.b32(word, 0xFFFF0000, out=f32())]


def _widened_f16x2(word: b32) -> list[f32]:
    return [ptx.cvt.f32.f16(part) for part in ptx.mov.b32(word, out=(f16(), f16()))]


def _widened_e4m3x2(half: b16) -> list[f32]:
    """One conversion makes two e4m3 two f16, which holds every one of them."""
    return [ptx.cvt.f32.f16(part) for part in ptx.mov.b32(ptx.cvt.rn.f16x2.e4m3x2(half), out=(f16(), f16()))]


def _widened_e4m3x4(word: b32) -> list[f32]:
    return [value for half in ptx.mov.b32(word, out=(b16(), b16())) for value in _widened_e4m3x2(half)]


_IN_MEMORY: dict[str, Any] = {"f32": f32, "f16": b16, "bf16": b16, "e4m3": b8}
_WIDENING: dict[tuple[str, int], Callable[[Any], list[Any]]] = {
    ("f16", 16): lambda half: [ptx.cvt.f32.f16(half)],
    ("f16", 32): _widened_f16x2,
    ("bf16", 16): _widened_bf16,
    ("bf16", 32): _widened_bf16x2,
    ("e4m3", 16): lambda one: _widened_e4m3x2(one)[:1],
    ("e4m3", 32): _widened_e4m3x4,
}


def store(pointer: Pointer, type: str, values: Sequence[f32], inside: pred | None = None) -> None:
    """Write f32 as one vector, rounded to the type that memory has."""
    store_bits(pointer, type, narrowed(values, type), inside)


def store_bits(pointer: Any, type: str, bits: Sequence[Any], inside: Any = None, store: Any = ptx.st.global_) -> None:
    """Write one vector of what `narrowed` makes, which is what `load_bits` reads."""
    width = "f32" if type == "f32" else f"b{bits[0].type.width}"
    if type == "e4m3" and len(bits) == 1 and width == "b16" and pointer.size == 1:
        width = "b8"
    _vector(store, len(bits))[width](pointer, _several(bits), when=inside)


def larger_of(type: str, one: Scalar, other: Scalar) -> Any:
    """The larger ones of what `load_bits` finds, element by element."""
    if type == "f32":
        return ptx.max.f32(one, other)
    pair = "x2" if one.type.width == 32 else ""
    return ptx[f"max.{type}{pair}"](one, other, out=b32() if pair else b16())


def narrowed(values: Sequence[f32], type: str) -> list[Any]:
    """f32 as they are in memory: the nearest of their type, an e4m3 no further than ±448."""
    if type == "f32":
        return list(values)
    if type == "e4m3":
        return _narrowed_e4m3(values)
    if len(values) == 1:
        return [ptx[f"cvt.rn.{type}.f32"](values[0], out=b16())]
    pairs = zip(values[::2], values[1::2], strict=True)
    return [ptx[f"cvt.rn.{type}x2.f32"](high, low, out=b32()) for low, high in pairs]


def _narrowed_e4m3(values: Sequence[f32]) -> list[Scalar]:
    convert = ptx.cvt.rn.satfinite.e4m3x2.f32
    if len(values) == 1:
        return [convert(0.0, values[0])]
    halves = [convert(high, low) for low, high in zip(values[::2], values[1::2], strict=True)]
    if len(halves) == 1:
        return halves
    return [ptx.mov.b32((low, high), out=b32()) for low, high in zip(halves[::2], halves[1::2], strict=True)]


def _vector(instruction: Any, count: int) -> Any:
    return instruction if count == 1 else instruction[f"v{count}"]


def _several(registers: Sequence[Scalar]) -> Scalar | tuple[Scalar, ...]:
    return registers[0] if len(registers) == 1 else tuple(registers)


def _pattern(number: float, type: str) -> int:
    """The bits of zero or of an infinity."""
    infinity = {"bf16": 0x7F80, "f16": 0x7C00}.get(type, 0)
    return {0.0: 0, float("inf"): infinity, float("-inf"): 0x8000 | infinity}[number]
