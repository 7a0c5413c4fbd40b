"""Vectors in which a few of each group of elements are kept: spcompress, spdecompress (PTX ISA 9.4, 9.7.10).

A thread does it alone, in registers. Kept elements and the positions they belong to are packed each into registers of
their own, `kept` and `indices`.
"""

from ..form import Modifiers, form, unknown
from ..machine import Machine, Value

REPETITIONS = "x1 x2 x4 x8 x16 x32 x64"
FACTORS = "sp::1:2 sp::1:4 sp::1:8 sp::1:16 sp::2:4 sp::2:8 sp::2:16 sp::4:8 sp::4:16"


def words(bits: int) -> str:
    """The registers that hold so many bits."""
    return f"{-(-bits // 32)} b32"


def repetitions(m: Modifiers) -> int:
    """The number of groups, or of registers of kept elements."""
    return int(m.num[1:])


def element(m: Modifiers) -> int:
    """Bits of an element."""
    return int(m.element[1:])


def index(m: Modifiers) -> int:
    """Bits of an index."""
    return int(m.index[1:])


def chosen(m: Modifiers) -> int:
    """How many elements of a group are kept."""
    return int(m.factor.split(":")[2])


def group(m: Modifiers) -> int:
    """How many elements a group has."""
    return int(m.factor.split(":")[3])


def fits(m: Modifiers) -> str | None:
    """What an element, an index and a vector can hold."""
    if chosen(m) * element(m) > 32:
        return f"`.{m.factor}` keeps more than 32 bits of `.{m.element}` elements"
    if group(m) > 1 << index(m):
        return f"`.{m.index}` cannot count the {group(m)} elements of `.{m.factor}`"
    if not 32 <= group(m) * element(m) * repetitions(m) <= 4096:
        return "the dense vector must have 1 to 128 registers"
    return None


@form(
    "spcompress.element.index.sp::2:4.num indices, kept, a, selection",
    element="b8 b16",
    index="b2 b4",
    num=REPETITIONS,
    types={
        "indices": lambda m: f"{-(-repetitions(m) * index(m) // element(m))} b32",
        "kept": lambda m: f"{repetitions(m)} b32",
        "a": lambda m: f"{2 * repetitions(m)} b32 reg",
        "selection": "b32 reg",
    },
    writes="indices kept",
    name="spcompress",
    since="9.4 sm_107a",
)
@unknown("the manual leaves open which of equal elements are kept, and in which order")
def spcompress() -> None:
    """Keep two of each four elements, the largest or smallest as `selection` says, and return which they were."""


@form(
    "spdecompress.element.index.factor.num d, indices, kept",
    element="b8 b16",
    index="b2 b4",
    factor=FACTORS,
    num=REPETITIONS,
    types={
        "d": lambda m: words(group(m) * element(m) * repetitions(m)),
        "indices": lambda m: f"{words(chosen(m) * index(m) * repetitions(m))} reg",
        "kept": lambda m: f"{words(chosen(m) * element(m) * repetitions(m))} reg",
    },
    where=fits,
    name="spdecompress",
    since="9.4 sm_107a",
)
def spdecompress(k: Machine, m: Modifiers, indices: tuple[Value, ...], kept: tuple[Value, ...]) -> tuple[Value, ...]:
    """Put the kept elements of each group back to where their indices say, with zeros between them."""
    type, bits = f"b{element(m)}", index(m)
    positions = [
        (word >> at) & ((1 << bits) - 1)
        for word in (k.cast(word, "u32") for word in indices)
        for at in range(0, 32, bits)
    ]
    elements = [part for word in kept for part in k.unpack(word, type)]
    dense: list[Value] = []
    for start in range(0, chosen(m) * repetitions(m), chosen(m)):
        for position in range(group(m)):
            found = k.constant(type, 0)
            for at in range(start, start + chosen(m)):  # of two for one position the manual takes the later one
                found = k.select(positions[at] == position, elements[at], found)
            dense.append(found)
    size = 32 // element(m)
    return tuple(k.pack(dense[at : at + size], "b32") for at in range(0, len(dense), size))
