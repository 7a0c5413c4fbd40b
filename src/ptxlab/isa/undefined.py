"""Values that the manual leaves open: of memory that nothing wrote, of a lane that takes no part in `shfl`.

What is read there is NaN in every type of float of 16 bits or more, and a large number otherwise, so that a result that
uses it is wrong: zeros would hide the mistake.

Where such values are followed, a word beside each value is zero if it is defined. `Following` says what a warp
collective makes of these words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxlab.native import Pointer, array, copy_bytes, native, u8, u32, u64
from ptxlab.values import dataclass

from .operation import Operation

if TYPE_CHECKING:
    from .machine import Statics
    from .units.layouts import FragmentLayouts

UNDEFINED = 0x7FF17FF1
LOW, HIGH = 0xF1, 0x7F  # the bytes of each half of it
ALL_LANES = 0xFFFFFFFF
MOST_ROWS = 64  # of all matrices A, or columns of B, that a warp holds


def deciding(operation: Operation, modifiers: tuple[str, ...]) -> int | None:
    """The value of one operand that decides a result, whatever the others are; None where none does."""
    if operation is Operation.COMPARISON and "xor" in modifiers:
        return None
    return -1 if operation is Operation.OR or "or" in modifiers else 0


@native
def leave_undefined(start: Pointer[u8], size: u64) -> None:
    """Have memory hold what is read where nothing was written; `start` is aligned to two bytes."""
    if size == 0:
        return
    start[0] = LOW
    done: u64 = min(size, u64(2))
    start[done - 1] = HIGH if done == 2 else u8(LOW)
    while done < size:
        more: u64 = min(done, size - done)
        copy_bytes(start + done, start, more)
        done += more


def undefined_bytes(start: int, size: int) -> bytes:
    """What memory holds from an address on if nothing was written."""
    return (UNDEFINED.to_bytes(4, "little") * (size // 4 + 2))[start % 2 :][:size]


@dataclass(frozen=True)
class Following:
    """A function of the lane exchange buffer, as that of a warp collective, on words that are zero for defined values.

    They take the place of the first `inputs`, in words, and it gives those of the first `results`. With `parts` it
    moves parts of words, so that a word is all zeros or all ones.
    """

    function: Callable[..., Any]
    statics: Statics
    inputs: int
    results: int
    parts: bool = False


@native
def has_undefined(exchange: Pointer[u32], members: u32, words: u32, inputs: u32, followed: u32) -> u32:
    """Whether lanes bring undefined values, or may take them from lanes that do not take part.

    After the `words` of the values comes one that is not zero in a lane that has put words for what it brings after
    it; then those of the others are filled in, and what is not `followed` of the `inputs`, which says from which lanes
    values are taken, is copied. If there are none, the results are defined. Lanes that are not members may be on their
    way to another collective: their words stay as they are.
    """
    found: u32 = u32(followed != inputs and members != ALL_LANES)
    for lane in range(32):
        if members >> lane & 1 != 0:
            found |= exchange[32 * words + lane]
    first: u32 = 32 * (words + 1)
    if found == 0 and members == ALL_LANES:
        for index in range(first + 32 * inputs, first + 32 * words):
            exchange[index] = 0
        return 0
    for lane in range(32):
        if members >> lane & 1 == 0:
            continue
        for word in range(words):
            if word >= inputs or found == 0:
                exchange[first + 32 * word + lane] = 0
            elif word >= followed:
                exchange[first + 32 * word + lane] = exchange[32 * word + lane]
            elif exchange[32 * words + lane] == 0:
                exchange[first + 32 * word + lane] = 0
    return found


def following_mma(fragments: FragmentLayouts, registers: tuple[int, int, int], words: int) -> Following:
    """An element of D is undefined if one of its row of A or its column of B is, or that of C.

    `registers` are those of A, B and C, `words` of all operands.
    """
    first, second, _ = registers
    a, b, c, d = fragments.a, fragments.b, fragments.c, fragments.d
    held_a = sorted({position >> 5 << 8 | at // a.columns for at, position in enumerate(a.positions)})
    held_b = sorted({position >> 5 << 8 | at // b.columns for at, position in enumerate(b.after(first))})
    sums = set()
    added, results = c.after(first + second), d.after(words)
    for at, (addend, result) in enumerate(zip(added, results, strict=True)):
        row, column = divmod(at, d.columns)
        sums.add((result >> 5 << 8 | row, addend >> 5 << 8 | row // d.rows * d.columns + column))
    held_d, held_c = zip(*sorted(sums), strict=True)
    layout = len(held_a), len(held_b), len(sums), *held_a, *held_b, *held_d, *held_c
    return Following(follow_mma, (words, sum(registers), layout), words, d.registers)


@native
def follow_mma(
    exchange: Pointer[u32],
    members: u32,
    words: u32,
    matrices: u32,
    layout: Pointer[u32],
) -> None:
    """What an MMA makes of them.

    `layout` has three numbers, then so many words of the buffer and rows of A, words and columns of B, and words and
    elements of D and of C. Operands after the `matrices`, such as scale factors, go into all of D.
    """
    a_count: u32 = layout[0]
    b_count: u32 = layout[1]
    d_count: u32 = layout[2]
    a: Pointer[u32] = layout + 3
    b: Pointer[u32] = a + a_count
    d: Pointer[u32] = b + b_count
    c: Pointer[u32] = d + d_count
    others: u32 = 0
    for index in range(matrices * 32, words * 32):
        others |= exchange[index]
    rows: Pointer[u32] = array(u32, MOST_ROWS)
    columns: Pointer[u32] = array(u32, MOST_ROWS)
    for index in range(MOST_ROWS):
        rows[index] = 0
        columns[index] = 0
    for index in range(a_count):
        rows[a[index] & 255] |= exchange[a[index] >> 8]
    for index in range(b_count):
        columns[b[index] & 255] |= exchange[b[index] >> 8]
    for index in range(d_count):
        exchange[d[index] >> 8] = 0
    for index in range(d_count):
        sum: u32 = rows[d[index] & 255] | columns[c[index] & 255] | exchange[c[index] >> 8] | others
        exchange[d[index] >> 8] |= sum
