"""D = A·B + C for each kind of `mma.sync`: one kernel, written once for all types."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.author import Kernel, Pointer, Scalar, b32, f32, kernel, pointer, ptx, s32
from ptxlab.device.array_types import type_of
from ptxlab.isa.units.fragment import ELEMENT_BITS
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.author.fragments import Fragment
    from ptxlab.device.arrays import Array

# The depth of the widest multiplication that takes this type, and the accumulators it has.
KINDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "f16": (16, ("f16", "f32")),
    "bf16": (16, ("f32",)),
    "tf32": (8, ("f32",)),
    "e4m3": (32, ("f16", "f32")),
    "e5m2": (32, ("f16", "f32")),
    "s8": (32, ("s32",)),
    "u8": (32, ("s32",)),
}
_WORDS = {"f16": b32, "f32": f32, "s32": s32}  # registers of accumulators; f16 come two in a register
_STORED = {"tf32": "f32"}  # tf32 is kept as f32; the multiplication ignores the low 13 bits
_MULTIPLIED = {"f32": "tf32"}


def spell(type: str, accumulator: str) -> str:
    """The instruction: `m16n8k16.row.col.f32.f16.f16.f32`."""
    depth, known = KINDS[type]
    if accumulator not in known:
        raise UnsuitedError(f"`mma` of {type} has accumulators of {', '.join(known)}, not of {accumulator}")
    return f"m16n8k{depth}.row.col.{accumulator}.{type}.{type}.{accumulator}"


@kernel(target="sm_89", reqntid=32)
def multiply(a: pointer[b32], b: pointer[b32], c: pointer[b32], d: pointer[b32], *, SPELLING: str) -> None:  # noqa: N803
    """A tile a warp: A by rows, B by columns, C and D by rows, each tile after the other in memory."""
    instruction: Any = ptx.mma.sync.aligned
    for word in SPELLING.split("."):
        instruction = getattr(instruction, word)
    held = ptx.fragments(instruction)
    lane, tile = ptx.tid.x, ptx.ctaid.x

    def elements(base: Pointer, fragment: Fragment, word: type[Scalar] = b32) -> list[Pointer]:
        """Where each register of this lane is in memory: its elements are neighbours there."""
        each = 32 // fragment.bits
        rows, columns = fragment.layout.rows, fragment.layout.columns
        row, column = fragment.first(lane)
        corner = base.view(word) + (tile * (rows * columns // each) + row * (columns // each) + column // each)
        return [corner + (down * columns + right) // each for down, right in fragment.offsets[::each]]

    sum_word = _WORDS[SPELLING.split(".")[3]]
    left = [element[0] for element in elements(a, held.a)]
    right = [element[0] for element in elements(b, held.b)]
    sums = [element[0] for element in elements(c, held.c, sum_word)]
    for element, value in zip(elements(d, held.d, sum_word), instruction(left, right, sums), strict=True):
        element[0] = value


def one_tile_a_warp(a: Array, b: Array, c: Array, d: Array) -> Launch:
    """A warp multiplies one tile."""
    chosen: Kernel = multiply.specialize(SPELLING=spell(_MULTIPLIED.get(type_of(a), type_of(a)), type_of(c)))
    return Launch(chosen, a.shape[0], 32, [a, b, c, d])


def arrays(draw: Draw, type: str, accumulator: str, tiles: int) -> Arrays:
    """Tiles of A, of B by columns, of C, and space for those of D."""
    depth = KINDS[type][0]

    def numbers(shape: tuple[int, ...], type: str) -> Any:
        if type in ("s8", "u8", "s32"):
            low, high = {"s8": (-128, 128), "u8": (0, 256), "s32": (-100_000, 100_000)}[type]
            return draw.integers(shape, type, low, high)
        return draw.normal(shape, _STORED.get(type, type))

    return {
        "a": numbers((tiles, 16, depth), type),
        "b": numbers((tiles, 8, depth), type),
        "c": numbers((tiles, 16, 8), accumulator),
        "d": draw.empty((tiles, 16, 8), accumulator),
    }


def reference(xp: ModuleType, a: Array, b: Array, c: Array, d: Array) -> Arrays:
    """The products, and what was there already."""
    return {"d": a @ b.swapaxes(-1, -2) + c}


def work(type: str, accumulator: str, tiles: int) -> Work:
    """16 by 8 elements of D, each as many multiplications and additions as A is wide."""
    depth = KINDS[type][0]
    moved = 24 * depth * ELEMENT_BITS[type] + 2 * 128 * ELEMENT_BITS[accumulator]
    return Work(flops=2 * 128 * depth * tiles, bytes=moved // 8 * tiles, rate=type)


def tolerance(type: str, accumulator: str, tiles: int) -> float:
    """What may come of the accumulator's rounding, of cutting f32 to tf32, and of Ada's 13 bits for fp8."""
    own = {"s32": 0.0, "f32": 1e-6, "f16": 1e-3}[accumulator]
    return max(own, {"tf32": 1e-3, "e4m3": 2e-4, "e5m2": 2e-4}.get(type, 0.0))


PAIRS = [(type, accumulator) for type, (_, known) in KINDS.items() for accumulator in known]

entry = Entry(
    title="D = A·B + C, a tile a warp, for each kind of mma.sync",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"one tile a warp": one_tile_a_warp},
    sizes=[{"type": type, "accumulator": accumulator, "tiles": 1 << 17} for type, accumulator in PAIRS],
    small=[{"type": type, "accumulator": accumulator, "tiles": 3} for type, accumulator in PAIRS],
    tolerance=tolerance,
)
