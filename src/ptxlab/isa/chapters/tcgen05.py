"""Tensor memory: its allocation, loads and stores, copies into it, and waiting for all that (PTX ISA 9.7.16).

Tensor memory has its own 32-bit addresses, which no state space names. ptxas does not ask for the `.aligned` of loads
and stores. The multiplications are in tcgen05_mma.py.
"""

import functools
from collections.abc import Callable, Iterator

from ptxlab.numbers.extremum import maximum, minimum

from ..asynchronous import MatrixCopy
from ..bits import larger, smaller
from ..floats import extremum
from ..form import Modifiers, Slots, form, unknown
from ..held import Held, holds
from ..machine import AddressValue, Machine, Value, Vector
from ..units.rearrangement import agree, converge
from ..units.tensor_memory import SHAPES as MOVED
from ..units.tensor_memory import TWO_BLOCKS, first_cell, moved, next_cell
from ..units.warp_mma import ALL_LANES

BLACKWELL = "8.6 sm_100a sm_101a | 8.8 sm_100f sm_101f"
CTA_GROUP = "cta_group::1 cta_group::2"

# Registers of a lane for one repetition of each shape.
REGISTERS = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
TENSOR = "u32"  # an address in tensor memory is a register of 32 bits
SHAPES = "16x64b 16x128b 16x256b 32x32b"
REPETITIONS = "x1 x2 x4 x8 x16 x32 x64 x128"
EXCLUSIVE = [("exclusive", "9.4 sm_100f sm_110f")]


def is_pair(m: Modifiers) -> bool:
    """Whether it is an operation of two blocks."""
    return bool(m.cta_group == TWO_BLOCKS)


def count(m: Modifiers) -> int:
    """How many registers a lane loads or stores."""
    return REGISTERS[m.shape] * int(m.num[1:])


def vector(m: Modifiers) -> str:
    """The registers that a lane loads or stores."""
    return f"{count(m)} b32 apart"


def fits(m: Modifiers) -> str | None:
    """A lane moves at most 128 registers."""
    return None if count(m) <= 128 else f"`.{m.shape}.{m.num}` takes more than 128 registers"


def indices(m: Modifiers) -> str:
    """The registers for two bits of index for each element kept, one of two."""
    return f"{max(1, int(m.num[1:]) // 32)} b32 apart"


def half(m: Modifiers) -> str:
    """The registers for every second element."""
    return f"{int(m.num[1:]) // 2} b32 apart"


def moved_words(operand: str, verb: str, m: Modifiers) -> Iterator[Held]:
    """Which lane of the warp gets, or gives, which words of tensor memory."""
    layout = moved(m.shape, int(m.num[1:]), packed=bool(m.pack_16b or m.unpack_16b))
    half = ", the lower half of each" if layout.bits == 16 else ""
    split = "; the second half is as far to the right as the instruction says" if m.shape == "16x32bx2" else ""
    title = f"{verb} {layout.rows} lanes and {layout.columns} columns of tensor memory{half}{split}"
    yield Held(operand, title, layout)


REDUCED: Slots = {
    "num": "x2 x4 x8 x16 x32 x64 x128",
    "operation": "min max",
    "types": {"d": vector, "reduced": "b32", "taddr": TENSOR},
    "writes": "d reduced",
    "since": "8.8 sm_101f sm_103f",
}
REDUCED_SPLIT: Slots = REDUCED | {"types": {**REDUCED["types"], "split": "imm"}}


@form(
    "tcgen05.alloc{.exclusive}.cta_group.sync.aligned{.shared::cta}.b32 [dst], columns",
    exclusive=EXCLUSIVE,
    cta_group=CTA_GROUP,
    types={"dst": "full", "columns": lambda m: f"u32 within({'32..576/32' if m.exclusive else '32|64|128|256|512'})"},
    since=BLACKWELL,
)
def tcgen05_alloc(k: Machine, m: Modifiers, dst: AddressValue, columns: Value) -> None:
    """Wait for free columns of tensor memory, take them and write their address to shared memory."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    # PTX ISA 9.7.16.6.1: what it writes keeps its order with other instructions on that address, copies among them.
    k.store(dst, (k.tensor_memory.allocate(columns, is_pair(m)),), when=k.lane == 0, order="same-address")
    k.collect(converge, ALL_LANES, (), (), aligned=True, orders=True)


@form(
    "tcgen05.dealloc{.exclusive}.cta_group.sync.aligned.b32 taddr, columns",
    exclusive=EXCLUSIVE,
    cta_group=CTA_GROUP,
    types={"taddr": "u32", "columns": "u32 within(0..4294967295/32)"},
    since=BLACKWELL,
)
def tcgen05_dealloc(k: Machine, m: Modifiers, taddr: Value, columns: Value) -> None:
    """Give back columns of tensor memory."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.tensor_memory.free(taddr, columns, is_pair(m))


@form("tcgen05.relinquish_alloc_permit.cta_group.sync.aligned", cta_group=CTA_GROUP, since=BLACKWELL)
def tcgen05_relinquish_alloc_permit(k: Machine, m: Modifiers) -> None:
    """Promise that this block allocates no more tensor memory."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.tensor_memory.relinquish(is_pair(m))


@form(
    "tcgen05.ld.sync{.aligned}.shape.num{.pack::16b}.b32 d, [taddr]",
    shape=SHAPES,
    num=REPETITIONS,
    types={"d": vector, "taddr": TENSOR},
    where=fits,
    since=BLACKWELL,
)
@form(
    "tcgen05.ld.sync{.aligned}.shape.num{.pack::16b}.b32 d, [taddr], split",
    shape="16x32bx2",
    num=REPETITIONS,
    types={"d": vector, "taddr": TENSOR, "split": "imm"},
    since=BLACKWELL,
)
@holds(lambda m: moved_words("d", "read from", m))
def tcgen05_ld(k: Machine, m: Modifiers, taddr: AddressValue, split: int | None) -> Vector:
    """Start loading from tensor memory into the registers of a warp."""
    packed = bool(m.pack_16b)
    cell = start_move(k, m, k.tensor_memory.start_load, taddr, split, packed)
    found = []
    for register in range(count(m)):
        at = cell + next_cell(m.shape, register, packed=packed)
        value = k.tensor_memory.read(at)
        found.append(value & 0xFFFF | k.tensor_memory.read(at + 1) << 16 if packed else value)
    return tuple(found)


def start_move(
    k: Machine, m: Modifiers, start: Callable[..., None], taddr: AddressValue, split: int | None, packed: bool
) -> Value:
    """Start what a warp loads or stores together; the number of the first word of this thread."""
    address = k.tensor_memory.address(taddr)
    (is_uniform,) = k.collect(agree, ALL_LANES, (address,), ("u32",), aligned=True)
    address = k.tensor_memory.route(address)
    shape = MOVED[m.shape]
    columns = shape.columns * int(m.num[1:]) * (2 if packed else 1)
    start(address, is_uniform, shape.lanes, columns, split or 0)
    return first_cell(k, m.shape, address, split or 0, packed=packed)


@form(
    "tcgen05.ld.red.sync{.aligned}.shape.num.operation{.abs}{.NaN}.f32 d, reduced, [taddr]", shape="32x32b", **REDUCED
)
@form(
    "tcgen05.ld.red.sync{.aligned}.shape.num.operation{.abs}{.NaN}.f32 d, reduced, [taddr], split",
    shape="16x32bx2",
    **REDUCED_SPLIT,
)
@form(
    "tcgen05.ld.red.sync{.aligned}.shape.num.operation.type d, reduced, [taddr]",
    shape="32x32b",
    type="u32 s32",
    **REDUCED,
)
@form(
    "tcgen05.ld.red.sync{.aligned}.shape.num.operation.type d, reduced, [taddr], split",
    shape="16x32bx2",
    type="u32 s32",
    **REDUCED_SPLIT,
)
@holds(lambda m: moved_words("d", "read from", m))
def tcgen05_ld_red(k: Machine, m: Modifiers, taddr: AddressValue, split: int | None) -> tuple[Vector, Value]:
    """Start loading from tensor memory into the registers of a warp, and take the least or greatest of each thread's.

    That a NaN counts only with `.NaN`, and -0 is less than +0, is as with `min` and `max`; of `.16x32bx2`, each of the
    two threads of a lane takes its own half. Both are modelled, not measured.
    """
    cell = start_move(k, m, k.tensor_memory.start_load, taddr, split, False)
    words = tuple(
        k.tensor_memory.read(cell + next_cell(m.shape, register, packed=False)) for register in range(count(m))
    )
    if m.type in ("u32", "s32"):
        typed = [k.reinterpret(word, m.type) for word in words]
        found = functools.reduce(functools.partial(smaller if m.operation == "min" else larger, k), typed)
    else:
        typed = [k.reinterpret(word, "f32") for word in words]
        found = extremum(k, m, minimum if m.operation == "min" else maximum, *typed)
    return words, k.reinterpret(found, "b32")


@form(
    "tcgen05.ld.spcompress.sync.aligned.shape.num.operation.sp::2:4{.abs}.f32.b2 indices, d, [taddr]",
    shape="32x32b",
    num="x4 x8 x16 x32 x64 x128",
    operation="min max",
    types={"indices": indices, "d": half, "taddr": TENSOR},
    writes="indices d",
    since="9.4 sm_107a",
)
@form(
    "tcgen05.ld.red.spcompress.sync.aligned.shape.num.operation.sp::2:4{.abs}{.NaN}.f32.b2"
    " indices, d, reduced, [taddr]",
    shape="32x32b",
    num="x4 x8 x16 x32 x64 x128",
    operation="min max",
    types={"indices": indices, "d": half, "reduced": "b32", "taddr": TENSOR},
    writes="indices d reduced",
    since="9.4 sm_107a",
)
@unknown("the manual does not say which of equal elements are kept of four", effects="tensor_memory.load")
def tcgen05_ld_compressed() -> None:
    """Start loading from tensor memory into the registers of a warp, and compress or reduce what each lane loads."""


@form(
    "tcgen05.st.sync{.aligned}.shape.num{.unpack::16b}.b32 [taddr], a",
    shape=SHAPES,
    num=REPETITIONS,
    types={"a": vector, "taddr": TENSOR},
    where=fits,
    since=BLACKWELL,
)
@form(
    "tcgen05.st.sync{.aligned}.shape.num{.unpack::16b}.b32 [taddr], split, a",
    shape="16x32bx2",
    num=REPETITIONS,
    types={"a": vector, "taddr": TENSOR, "split": "imm"},
    since=BLACKWELL,
)
@holds(lambda m: moved_words("a", "written to", m))
def tcgen05_st(k: Machine, m: Modifiers, taddr: AddressValue, split: int | None, a: Vector) -> None:
    """Start storing registers of a warp to tensor memory."""
    unpacked = bool(m.unpack_16b)
    cell = start_move(k, m, k.tensor_memory.start_store, taddr, split, unpacked)
    for register, value in enumerate(a):
        at = cell + next_cell(m.shape, register, packed=unpacked)
        if unpacked:
            k.tensor_memory.write(at, value, 0xFFFF)
            k.tensor_memory.write(at + 1, value >> 16, 0xFFFF)
        else:
            k.tensor_memory.write(at, value, 0xFFFFFFFF)


@form("tcgen05.wait::ld.sync.aligned", since=BLACKWELL)
def tcgen05_wait_ld(k: Machine, m: Modifiers) -> None:
    """Wait until the loads of this thread from tensor memory are done."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.tensor_memory.wait(stores=False)


@form("tcgen05.wait::st.sync.aligned", since=BLACKWELL)
def tcgen05_wait_st(k: Machine, m: Modifiers) -> None:
    """Wait until the stores of this thread to tensor memory are done."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.tensor_memory.wait(stores=True)


COPIED: Slots = {"cta_group": CTA_GROUP, "types": {"taddr": TENSOR, "s_desc": "u64"}, "since": BLACKWELL}
EXPANDED: Slots = {"to": "b8x16", "from": "b6x16_p32 b4x16_p64"}
PAIRS = "warpx2::02_13 warpx2::01_23"
# How many lanes are between 32 rows and the next 32, how many between a row and its copy, and how many copies it has.
SPREAD = {None: (32, 0, 1), "warpx2::02_13": (32, 64, 2), "warpx2::01_23": (64, 32, 2), "warpx4": (0, 32, 4)}
SOURCE_BITS = {None: 8, "b6x16_p32": 6, "b4x16_p64": 4}


@form("tcgen05.cp.cta_group.shape [taddr], s_desc", shape="128x256b 128x128b", **COPIED)
@form("tcgen05.cp.cta_group.shape.multicast [taddr], s_desc", shape="64x128b", multicast=PAIRS, **COPIED)
@form("tcgen05.cp.cta_group.shape.multicast [taddr], s_desc", shape="32x128b", multicast="warpx4", **COPIED)
@form("tcgen05.cp.cta_group.shape [taddr], s_desc", shape="4x256b", **COPIED)
@form("tcgen05.cp.cta_group.shape.to.from [taddr], s_desc", shape="128x256b 4x256b 128x128b", **EXPANDED, **COPIED)
@form(
    "tcgen05.cp.cta_group.shape.multicast.to.from [taddr], s_desc",
    shape="64x128b",
    multicast=PAIRS,
    **EXPANDED,
    **COPIED,
)
@form(
    "tcgen05.cp.cta_group.shape.multicast.to.from [taddr], s_desc",
    shape="32x128b",
    multicast="warpx4",
    **EXPANDED,
    **COPIED,
)
def tcgen05_cp(k: Machine, m: Modifiers, taddr: AddressValue, s_desc: Value) -> None:
    """Start copying a matrix from shared memory, named by a descriptor, to tensor memory; elements may become bytes."""
    rows, bits = m.shape.removesuffix("b").split("x")
    step, further, copies = SPREAD[m.multicast]
    k.tensor_memory.copy(
        MatrixCopy(
            address=taddr,
            descriptor=s_desc,
            rows=int(rows),
            chunks=int(bits) // 128,
            group=1 if rows == "4" else 32,  # four rows go to the same lane of each sub-partition (CUTLASS's UTCCP_4dp)
            step=step,
            stride=further,
            copies=copies,
            bits=SOURCE_BITS[getattr(m, "from")],
            is_pair=is_pair(m),
        )
    )


@form(
    "tcgen05.shift.cta_group.down [taddr]",
    cta_group=CTA_GROUP,
    types={"taddr": TENSOR},
    since="8.6 sm_100a sm_101a | 8.8 sm_103a",
)
def tcgen05_shift(k: Machine, m: Modifiers, taddr: AddressValue) -> None:
    """Start moving the rows of a matrix in tensor memory down by one."""
    k.tensor_memory.shift(taddr, m.cta_group == "cta_group::2")


READ_A = [("sync_restrict::shared::read::mma::a", "9.4 sm_107f")]


@form(
    "tcgen05.commit.cta_group.mbarrier::arrive::one{.read}{.shared::cluster}.b64 [mbar]",
    cta_group=CTA_GROUP,
    read=READ_A,
    types={"mbar": "full"},
    since=BLACKWELL,
)
def tcgen05_commit(k: Machine, m: Modifiers, mbar: AddressValue) -> None:
    """Let an mbarrier know when all that this thread started on tensor memory so far is done."""
    k.tensor_memory.commit(mbar)


@form(
    "tcgen05.commit.cta_group.mbarrier::arrive::one{.read}{.shared::cluster}.multicast::cluster.b64 [mbar], mask",
    cta_group=CTA_GROUP,
    read=READ_A,
    types={"mbar": "full", "mask": "u16 reg"},  # ptxas 13.4 takes immediates too
    since=BLACKWELL,
)
@form(
    "tcgen05.commit.cta_group.mbarrier::arrive::one{.read}{.shared::cluster}.multicast.b64 [mbar], mask",
    cta_group=CTA_GROUP,
    read=READ_A,
    multicast=("multicast::cluster::16b", ("multicast::cluster::32b", "9.4 sm_107f")),
    types={"mask": lambda m: "u32 within(0..4294967295)" if m.multicast.endswith("32b") else "u16 within(0..65535)"},
    since="9.4 sm_100f sm_110f",
)
def tcgen05_commit_multicast(k: Machine, m: Modifiers, mbar: AddressValue, mask: Value) -> None:
    """Let mbarriers of several blocks know when all that this thread started on tensor memory so far is done."""
    k.tensor_memory.commit(mbar, k.cast(mask, "u32"))


@form("tcgen05.fence::before_thread_sync", since=BLACKWELL)
def tcgen05_fence_before(k: Machine, m: Modifiers) -> None:
    """Order operations on tensor memory before it with the synchronization of threads that follows."""
    k.tensor_memory.fence_before()


@form("tcgen05.fence::after_thread_sync", since=BLACKWELL)
def tcgen05_fence_after(k: Machine, m: Modifiers) -> None:
    """Order later operations on tensor memory after the synchronization of threads that comes before it."""
    k.tensor_memory.fence_after()
