"""The units of the abstract machine beside a thread: mbarriers, copies, tensor cores, tensor memory, and its stack.

Each is an attribute of `Machine`: `k.mbarrier`, `k.async_copy`, `k.bulk`, `k.wgmma`, `k.tensor_memory`, `k.stack`. A
semantic function calls their methods; every machine implements those it supports, for its own values and addresses.

`@step` says of a method what it means to an instruction's effects: the name of the step, which addresses it accesses,
and, if it starts an operation, how threads know that this is complete. The recording machine and the explanations of
races read it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from ptxlab.values import dataclass

from .async_operation import MBARRIER_BYTES, Action, AsyncOperation, step
from .units.multicast_unit import Multicast
from .units.texture_unit import Textures

# The values and addresses of a machine.
V = TypeVar("V")
A = TypeVar("A")
V_contra = TypeVar("V_contra", contravariant=True)
A_contra = TypeVar("A_contra", contravariant=True)

# What methods start.
_BY_COMMIT = "the {} is complete when the mbarrier of a `tcgen05.commit` after it completes"
_BY_WARP = "a {} is complete for its own warp after `{}`, for others after a later barrier"
THREAD_COPY = AsyncOperation(
    "copy", "the copy is complete for its thread after `cp.async.wait_group`, for others after a later barrier", True
)
COMPLETE_TX = AsyncOperation("`complete_tx`")
BULK_COPY = AsyncOperation(
    "copy",
    "the copy is complete when its mbarrier completes, or after `cp.async.bulk.wait_group` in its own thread",
    is_awaited=True,
)
REMOTE_STORE = AsyncOperation("store", "the store is complete when its mbarrier completes")
CANCELLATION = AsyncOperation("request", "the request is complete when its mbarrier completes")
WARPGROUP_MMA = AsyncOperation("MMA", "the MMA is complete after `wgmma.wait_group`", is_awaited=True)
TENSOR_MMA = AsyncOperation("MMA", _BY_COMMIT.format("MMA"))
DEALLOCATION = AsyncOperation("deallocation", "the deallocation is known to other warps after a later barrier")
TENSOR_COPY = AsyncOperation("copy", _BY_COMMIT.format("copy"))
TENSOR_SHIFT = AsyncOperation("shift", _BY_COMMIT.format("shift"))
TENSOR_LOAD = AsyncOperation("load", _BY_WARP.format("load", "tcgen05.wait::ld"), is_awaited=True)
TENSOR_STORE = AsyncOperation("store", _BY_WARP.format("store", "tcgen05.wait::st"), is_awaited=True)

_ON_MBARRIER: dict[str, Any] = {"bytes": MBARRIER_BYTES, "is_later": False}


class Mbarriers(Protocol[V, A_contra]):
    """mbarrier objects in shared memory; `order` of an operation is what `isa.chapters.mbarrier.order` returns."""

    @step("initialize", writes="barrier", **_ON_MBARRIER)
    def initialize(self, barrier: A_contra, count: V, layout: int) -> None:
        """Set up an mbarrier whose phases expect `count` arrivals each."""

    @step("invalidate", writes="barrier", **_ON_MBARRIER)
    def invalidate(self, barrier: A_contra) -> None:
        """End the life of an mbarrier."""

    @step("layout", reads="barrier", result="u32", **_ON_MBARRIER)
    def layout(self, barrier: A_contra) -> V:
        """The layout (a u32) that it was initialized with."""

    @step("expect", updates="barrier", **_ON_MBARRIER)
    def expect(self, barrier: A_contra, bytes: V, order: int = 0) -> None:
        """Add to the bytes (a u32) that the current phase waits for."""

    @step("complete", updates="barrier", starts=COMPLETE_TX, **_ON_MBARRIER)
    def complete(self, barrier: A_contra, bytes: V, order: int) -> None:
        """Take from the bytes (a u32) that the current phase waits for."""

    @step("arrive", updates="barrier", result="u64", **_ON_MBARRIER)
    def arrive(self, barrier: A_contra, count: V | int, order: int) -> V:
        """Count arrivals, and return the state before them."""

    @step("drop", updates="barrier", result="u64", **_ON_MBARRIER)
    def drop(self, barrier: A_contra, count: V | int, order: int) -> V:
        """Arrive, and expect as many arrivals less in the phases that follow."""

    @step("test", reads="barrier", result="pred", **_ON_MBARRIER)
    def test(self, barrier: A_contra, parity: V, order: int) -> V:
        """Whether the phase of that parity has completed: a predicate."""

    @step("wait", reads="barrier", result="pred", **_ON_MBARRIER)
    def wait(self, barrier: A_contra, parity: V, order: int) -> V:
        """The same, after suspending the thread for a while."""


class AsyncCopies(Protocol[V_contra, A_contra]):
    """The `cp.async` operations of a thread."""

    @step("start", writes="destination", reads="source", starts=THREAD_COPY)
    def start(self, destination: A_contra, source: A_contra, size: int, source_size: V_contra) -> None:
        """Copy `source_size` bytes from global to shared memory, and zeros up to `size`."""

    @step("commit")
    def commit(self) -> None:
        """Close the group of the copies started since the last group."""

    @step("wait")
    def wait(self, groups: int) -> None:
        """Wait until at most the latest `groups` groups are pending."""

    @step("arrive", completes="barrier", starts=THREAD_COPY)
    def arrive(self, barrier: A_contra, noinc: bool) -> None:
        """Arrive at an mbarrier once all copies started so far are complete."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a bulk operation does to the values at its destination: `operation` on elements of `type`."""

    operation: str
    type: str = ""  # empty where the tensor map says it


@dataclass(frozen=True, slots=True)
class Box(Generic[V]):
    """Which elements of a tensor a copy moves: `mode` as its instruction has it, None for `tile`."""

    mode: str | None
    rank: int
    coordinates: Sequence[V]
    offsets: Sequence[V] = ()  # the offsets of im2col


class BulkCopies(Protocol[V, A_contra]):
    """Bulk and tensor copies (TMA), asynchronous stores, and requests to cancel a launch."""

    @step("start", writes="destination", reads="source", completes="barrier", starts=BULK_COPY)
    def load(
        self,
        destination: A_contra,
        source: A_contra,
        size: V,
        barrier: A_contra,
        blocks: V | None,
        ignored: tuple[V | int, V | int],
    ) -> None:
        """Copy from global to shared memory, of the blocks in the mask `blocks` if there is one.

        `ignored` are the bytes at both ends that need not exist.
        """

    @step("start", writes="destination", reads="source", starts=BULK_COPY)
    def store(
        self, destination: A_contra, source: A_contra, size: V, mask: V | int, reduction: Reduction | None
    ) -> None:
        """Copy from shared to global memory those bytes of every 16 that `mask` has."""

    @step("start", writes="destination", reads="source", completes="barrier", starts=BULK_COPY)
    def exchange(
        self, destination: A_contra, source: A_contra, size: V, barrier: A_contra, reduction: Reduction | None
    ) -> None:
        """Copy from shared memory to shared memory of the cluster."""

    @step("put", writes="destination", bytes="value", completes="barrier", starts=REMOTE_STORE)
    def put(self, destination: A_contra, value: V, barrier: A_contra, reduction: Reduction | None) -> None:
        """Store one value to shared memory of the cluster."""

    @step("start", writes="destination", reads="map", completes="barrier", starts=BULK_COPY)
    def load_tensor(
        self,
        destination: A_contra,
        map: A_contra,
        box: Box[V],
        barrier: A_contra,
        blocks: V | None,
    ) -> None:
        """Copy a box of a tensor to shared memory, of the blocks in the mask `blocks` if there is one."""

    @step("start", writes="map", reads="source", starts=BULK_COPY)
    def store_tensor(self, map: A_contra, box: Box[V], source: A_contra, reduction: Reduction | None) -> None:
        """Copy a box in shared memory to a tensor."""

    @step("prefetch")
    def prefetch(self, source: A_contra, size: V) -> None:
        """Bring global memory to the L2 cache."""

    @step("prefetch")
    def prefetch_tensor(self, map: A_contra, box: Box[V]) -> None:
        """Bring a box of a tensor to the L2 cache."""

    @step("change")
    def change_map(self, map: A_contra, is_warp: bool) -> None:
        """Report to the detectors that a thread, or all lanes of a warp together, change a tensor map."""

    @step("release")
    def release_maps(self, scope: str) -> None:
        """Have later acquires of tensor maps see what this thread wrote, and what it knows that others wrote."""

    @step("acquire")
    def acquire_map(self, map: A_contra, scope: str) -> None:
        """Have later copies of this block see the tensor map as it was released."""

    @step("cancel", writes="destination", bytes=16, completes="barrier", starts=CANCELLATION)
    def cancel(self, destination: A_contra, barrier: A_contra, multicast: bool) -> None:
        """Request that a cluster which has not started is not launched."""

    @step("commit")
    def commit(self) -> None:
        """Close the group of the bulk operations started since the last group."""

    @step("wait")
    def wait(self, groups: int, reads: bool) -> None:
        """Wait until at most the latest `groups` groups are pending, or (`reads`) have not yet read their source."""


@dataclass(frozen=True, slots=True)
class MatrixChunks(Generic[V]):
    """Chunks of 16 bytes of a matrix in shared memory, as `descriptor.py` lays them out.

    They are `chunks` chunks from `first_chunk` on in each of `rows` rows (columns, if `major` says so) from `first` on.
    """

    name: str  # "a" or "b"
    descriptor: V
    major: int
    bits: int  # the width of an element
    type: str  # of an element
    first: V | int
    rows: int
    first_chunk: V | int
    chunks: int


class WarpgroupMma(Protocol[V]):
    """The `wgmma` operations that a warp has started."""

    @step("start", starts=WARPGROUP_MMA)
    def read(self, matrix: MatrixChunks[V]) -> None:
        """Report to the detectors what the warp is about to read through the async proxy."""

    @step("fence")
    def fence(self) -> None:
        """Order the warp's earlier accesses to registers before the MMAs that follow."""

    def compare(self) -> None:
        """Check that the warps of the warpgroup gave the same descriptors."""

    @step("commit")
    def commit(self) -> None:
        """Close the group of the operations started since the last group."""

    @step("wait")
    def wait(self, groups: int) -> None:
        """Wait until at most the latest `groups` groups are pending."""


@dataclass(frozen=True, slots=True)
class Mma(Generic[V, A]):
    """A `tcgen05.mma`: D = A * B, or D += A * B where `accumulate` holds."""

    d: A
    a: V  # a shared memory descriptor, or an address in tensor memory
    a_in_tensor_memory: bool
    b: V
    instruction_descriptor: V
    kind: int  # see `isa.units.instruction_descriptor`
    accumulate: V
    scale_d: int
    disabled_lanes: Sequence[V]
    scale_a: A | None
    scale_b: A | None
    scale_factors: int  # scale factors per row
    form: int  # see `isa.units.instruction_descriptor`
    metadata: A | None = None  # of a sparse A
    is_shifted: bool = False  # whether a row of A is taken from the lane above its own
    collector: int = 0  # see `isa.units.collector`
    zero_columns: V | None = None  # see `isa.units.zero_column_mask`


@dataclass(frozen=True, slots=True)
class MatrixCopy(Generic[V, A]):
    """A `tcgen05.cp`: `rows` rows of `chunks` chunks of 16 bytes from shared to tensor memory.

    Groups of `group` rows are `step` lanes apart; each row is written `copies` times, `stride` lanes apart. `bits` are
    those of an element that becomes a byte, and 8 if nothing is expanded. Of two blocks, each copies what it has.
    """

    address: A
    descriptor: V
    rows: int
    chunks: int
    group: int
    step: int
    stride: int
    copies: int
    bits: int
    is_pair: bool


class TensorMemory(Protocol[V, A]):
    """Tensor memory of the block and what works on it; a word is 32 bits at one lane and column."""

    @step("", result="u32")
    def address(self, taddr: A) -> V:
        """An address in tensor memory as a u32."""

    @step("allocate", result="u32")
    def allocate(self, columns: V, is_pair: bool) -> V:
        """The address of newly allocated columns; both blocks of a pair allocate together."""

    @step("free", starts=DEALLOCATION)
    def free(self, address: V, columns: V, is_pair: bool) -> None:
        """Deallocate columns; both blocks of a pair do it together."""

    @step("relinquish")
    def relinquish(self, is_pair: bool) -> None:
        """Promise that the block, or both of a pair, allocates no more."""

    @step("", result="u32")
    def route(self, address: V) -> V:
        """The address that the warp accesses by one that may leave out its lane."""

    @step("load", starts=TENSOR_LOAD)
    def start_load(self, address: V, is_uniform: V, lanes: int, columns: int, split: int) -> None:
        """Start loading words of a warp; `read` gives them."""

    @step("store", starts=TENSOR_STORE)
    def start_store(self, address: V, is_uniform: V, lanes: int, columns: int, split: int) -> None:
        """Start storing words of a warp; `write` takes them."""

    @step("", result="u32")
    def read(self, word: V) -> V:
        """The word of that number."""

    def write(self, word: V, value: V, mask: int) -> None:
        """Change the bits of `mask` in the word of that number."""

    @step("multiply", starts=TENSOR_MMA)
    def multiply(self, mma: Mma[V, A]) -> None:
        """Start an MMA."""

    @step("copy", starts=TENSOR_COPY)
    def copy(self, copy: MatrixCopy[V, A]) -> None:
        """Start a copy from shared memory."""

    @step("shift", starts=TENSOR_SHIFT)
    def shift(self, address: A, is_pair: bool) -> None:
        """Start moving the rows of 32 lanes down by one."""

    @step("commit", completes="barrier", starts=TENSOR_MMA)
    def commit(self, barrier: A, blocks: V | None = None) -> None:
        """Arrive at an mbarrier, of the blocks in the mask if there is one, once all started so far is complete."""

    @step("wait")
    def wait(self, stores: bool) -> None:
        """Wait until the thread's loads, or its stores, are complete."""

    @step("fence_before")
    def fence_before(self) -> None:
        """Order operations on tensor memory before the synchronization that follows."""

    @step("fence_after")
    def fence_after(self) -> None:
        """Order operations on tensor memory after the synchronization before."""


class Stack(Protocol[V]):
    """The stack of the thread in local memory."""

    @step("", result="type")
    def save(self, type: str) -> V:
        """The stack pointer."""

    @step("restore")
    def restore(self, pointer: V) -> None:
        """Set the stack pointer to what `save` gave."""

    @step("allocate", result="type")
    def allocate(self, size: V, alignment: int, type: str) -> V:
        """The address of `size` new bytes."""


UNITS: dict[str, type] = {
    "mbarrier": Mbarriers,
    "async_copy": AsyncCopies,
    "bulk": BulkCopies,
    "wgmma": WarpgroupMma,
    "tensor_memory": TensorMemory,
    "stack": Stack,
    "textures": Textures,
    "multicast": Multicast,
}


def actions_of(unit: str) -> list[Action]:
    """What the methods of a unit do."""
    return [method.action for method in vars(UNITS[unit]).values() if hasattr(method, "action")]


def started_by(unit: str, name: str) -> AsyncOperation | None:
    """What a step of that name starts, if it starts anything."""
    return next((action.starts for action in actions_of(unit) if action.step == name), None)
