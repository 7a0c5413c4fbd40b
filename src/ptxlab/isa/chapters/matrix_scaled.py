"""Multiplication of small matrices by a warp with a scale factor for each block: mma.block_scale (PTX ISA 9.7.14.5).

Each row of A and each column of B falls into one, two or four blocks (`.scale_vec::1X`, `2X`, `4X`), each of which is
multiplied by its own scale factor. A pair such as `{byte, thread}` selects the bytes of `scale_a` that hold the factors
and the lanes of four that supply them. nvcc writes `scale_a` and `scale_b` in braces, and ptxas does not count them.
"""

from ..form import Modifiers, Slots, Specification, form
from ..held import held_by_mma, holds
from ..machine import Machine, Value, Vector
from ..operation import computes
from ..units.fragment import registers
from ..units.layouts import FragmentLayouts, fragments
from ..units.warp_mma import collect, mma_of
from .matrix import FAMILY_120, ROW_COL

DENSE = (
    "mma.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec}.dtype.atype.btype.ctype.stype"
    " d, a, b, c, scale_a, select_a, scale_b, select_b"
)
SPARSE = (
    "mma.variant.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec}.dtype.atype.btype.ctype.stype"
    " d, a, b, c, e, f, scale_a, select_a, scale_b, select_b"
)
SPELLED = ("{.scale_vec}", ".scale_vec")  # mxf4nvf4 has no default

MXF8F6F4: Slots = {
    "kind": "kind::mxf8f6f4",
    "scale_vec": "scale_vec::1X",
    "atype": "e4m3 e5m2 e3m2 e2m3 e2m1",
    "btype": "e4m3 e5m2 e3m2 e2m3 e2m1",
    "stype": "ue8m0",
}
MXF4: Slots = {
    "kind": "kind::mxf4",
    "scale_vec": "scale_vec::2X",
    "atype": "e2m1",
    "btype": "e2m1",
    "stype": "ue8m0",
}
NVF4_2X: Slots = MXF4 | {"kind": "kind::mxf4nvf4"}
NVF4_4X: Slots = NVF4_2X | {"scale_vec": "scale_vec::4X"}
REST: Slots = {"dtype": "f32", "ctype": "f32", **ROW_COL}
ORDERED: Slots = {"variant": "sp::ordered_metadata", **REST}

# The bytes of a 32-bit register that a block's factors can start at, by the number of blocks.
FIRST_BYTES = {"scale_vec::1X": "0..3", "scale_vec::2X": "0|2", "scale_vec::4X": "0|0"}


def operands(bits: int, sparse: bool = False) -> dict[str, Specification]:
    """The operands of a multiplication whose elements take `bits` each."""

    def held(matrix: str, copies: float = 1) -> Specification:
        return lambda m: f"{registers(matrix, m.shape, getattr(m, f'{matrix}type'), bits=bits, copies=copies)} bits"

    def selected(threads: str) -> Specification:
        default = "scale_vec::1X" if bits == 8 else "scale_vec::2X"
        return lambda m: f"2 u16 within({FIRST_BYTES[m.scale_vec or default]}) within({threads})"

    return {
        "d": "4 f32 sink",
        "a": held("a", 0.5 if sparse else 1),
        "b": held("b"),
        "c": "4 f32 reg",
        "scale_a": "b32 reg single padded predicate",
        "select_a": selected("0..1"),
        "scale_b": "b32 reg single padded predicate",
        "select_b": selected("0..3"),
        **({"e": "b32 reg single padded predicate", "f": "imm(0..0)"} if sparse else {}),
    }


def bits_of(m: Modifiers) -> int:
    """The bits that an element of A or B takes in a register."""
    return 8 if m.kind == "kind::mxf8f6f4" else 4


def layouts_of(m: Modifiers) -> FragmentLayouts:
    """Which lane holds which element of the four matrices."""
    return fragments(m.shape, m.atype, m.btype, "f32", "f32", bits=bits_of(m), sparse=bool(m.variant))


@form(DENSE, shape="m16n8k32", **MXF8F6F4, **REST, types=operands(8), since=FAMILY_120)
@form(DENSE, shape="m16n8k64", **MXF4, **REST, types=operands(4), since=FAMILY_120)
@form(DENSE.replace(*SPELLED), shape="m16n8k64", **NVF4_2X, **REST, types=operands(4), since=FAMILY_120)
@form(
    DENSE.replace(*SPELLED),
    shape="m16n8k64",
    **NVF4_4X | {"stype": ("ue4m3", ("ue8m0", "9.1 sm_120"))},
    **REST,
    types=operands(4),
    since=FAMILY_120,
)
@form(SPARSE, shape="m16n8k64", **MXF8F6F4, **ORDERED, types=operands(8, sparse=True), since=FAMILY_120)
@form(SPARSE, shape="m16n8k128", **MXF4, **ORDERED, types=operands(4, sparse=True), since="8.7 sm_120a | 8.8 sm_121a")
@form(
    SPARSE.replace(*SPELLED),
    shape="m16n8k128",
    **NVF4_2X,
    **ORDERED,
    types=operands(4, sparse=True),
    since="8.7 sm_120a | 8.8 sm_121a",
)
@form(
    SPARSE.replace(*SPELLED),
    shape="m16n8k128",
    **NVF4_4X | {"stype": ("ue4m3", ("ue8m0", "9.1 sm_120"))},
    **ORDERED,
    types=operands(4, sparse=True),
    since="8.7 sm_120a | 8.8 sm_121a",
)
@computes("mma")
@holds(lambda m: held_by_mma(layouts_of(m), m.atype, m.btype, m.ctype, m.dtype, sparse=bool(m.variant)))
def mma_block_scale(
    k: Machine,
    m: Modifiers,
    a: Vector,
    b: Vector,
    c: Vector,
    scale_a: Value,
    select_a: Vector,
    scale_b: Value,
    select_b: Vector,
    e: Value | None = None,
    f: int | None = None,
) -> Vector:
    """Multiply `a` by `b`, each block of them by its scale factor, and add `c`; `.sp` stores half of `a` only."""
    bits = bits_of(m)
    blocks = int(m.scale_vec[len("scale_vec::")]) if m.scale_vec else 1 if bits == 8 else 2
    sparse = None if f is None else (m.shape, f)
    product = mma_of(m, layouts_of(m), a, b, c, sparse=sparse, bits=bits, scale=(blocks, m.stype))
    metadata = () if e is None else (e,)
    return collect(k, product, a, b, c, metadata, scale_a, select_a, scale_b, select_b)
