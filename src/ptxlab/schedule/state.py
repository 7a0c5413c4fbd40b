"""An algorithm with what steps have decided so far: the loops it is cut into, who runs them, where data is kept.

The loop over an axis is cut into parts, `i.0` the outermost: index `i` is the sum of each part's number times its
`weight`. Parts are run by blocks, by threads, or in order by each thread. Any order of these is right, since iterations
are independent: numbers that live from one loop to another are kept in registers, one for each iteration (`plan.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import NoReturn

from ptxlab.author.lines import SourcePosition, refuse
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Algorithm, Expression, Load, loads

MOST_THREADS = 1024
MOST_BLOCK_PARTS = 3
LANES = 128  # of tensor memory: rows of a tile, each of a thread
WARPGROUP = 128  # threads that `wgmma` is of
MOST_TENSOR_COLUMNS = 512
REGISTERS = 65536  # of an SM
OTHER_REGISTERS = 64  # of a thread, besides its accumulators
MOVED_REGISTERS = {2: (40, 232), 3: (32, 160)}  # by the number of warpgroups that compute


@dataclass(frozen=True)
class Part:
    """A part of the loop over an axis. `step` is the number of the step that said who runs it."""

    axis: str
    number: int
    weight: int
    """Iterations of the axis from one of this part to the next."""
    extent: int | None
    """None in the outermost part, whose extent follows from that of the axis."""
    role: str = "serial"
    unrolled: bool = False
    step: int = 0

    @property
    def name(self) -> str:
        """`i.0` is the outermost part of `i`."""
        return f"{self.axis}.{self.number}"


@dataclass(frozen=True)
class Stage:
    """A copy of what a loop reads of an array: one for each iteration of `at`, or where that is "" for the kernel."""

    array: str
    space: str
    at: str
    transposed: bool = False
    pad: int = 0
    swizzle: str = ""
    """How 16 bytes of a row are exchanged, as tensor maps name it: `128B`, `64B` or `32B`, the bytes of a row."""
    step: int = 0
    slots: int = 0
    """Of an array that is written: boxes that a warpgroup has memory for; 0: for all of its tile."""


@dataclass(frozen=True)
class Pipeline:
    """Copies that run ahead: those of the loop `at`, by `cp.async` or `tma`, in a ring of so many stages.

    There is none where `at` is "".
    """

    at: str = ""
    stages: int = 1
    by: str = ""
    step: int = 0


@dataclass(frozen=True)
class MulticastCopy:
    """What is copied of an array is for so many blocks: those with tiles beside each other in a part."""

    array: str
    blocks: int
    part: str
    apart: int
    """From the rank of one of these blocks in its cluster to that of the next."""
    step: int
    is_pair: bool = False
    """Whether each keeps what it copied, and the first of two multiplies by the parts of both."""


@dataclass(frozen=True)
class Tensor:
    """A sum that tensor cores compute: of `left`, with an axis of rows, and `right`, with one of columns."""

    unit: str
    """`mma.sync`, `wgmma` or `tcgen05`."""
    sum: str
    left: str
    right: str
    rows: str
    columns: str
    depth: str
    """The axis that is reduced over."""
    step: int = 0
    weight: str = ""
    """The number that is the left operand, from registers; `left` is then empty."""
    lane: str = ""
    """The part of the columns that the four lanes of a row run."""
    group: int = 0
    """Numbers that share a scale factor, where they have one."""

    @property
    def arrays(self) -> tuple[str, ...]:
        """The operands that are in shared memory."""
        return (self.left, self.right) if self.left else (self.right,)


@dataclass(frozen=True)
class Online:
    """One pass over an axis: `weight` is `exp((value - top) * factor)`, and `sums` are linear in it."""

    axis: str
    top: str
    weight: str
    value: Expression
    factor: Expression | None
    sums: tuple[str, ...]
    step: int


@dataclass(frozen=True)
class State:
    """What is decided; steps make another from it."""

    algorithm: Algorithm
    target: str
    fixed: Mapping[str, int]
    """Sizes that are known."""
    parts: Mapping[str, tuple[Part, ...]]
    order: tuple[str, ...]
    """All parts; those that threads run in order are nested as they are here."""
    blocks: tuple[str, ...] = ()
    cluster: str = ""
    """The part that the blocks of a cluster run, of a loop that is reduced over."""
    threads: tuple[str, ...] = ()
    """The last one changes from a thread to the next."""
    stages: tuple[Stage, ...] = ()
    results: tuple[Stage, ...] = ()
    """Those of arrays that are written."""
    vectors: Mapping[str, int] = field(default_factory=dict)
    """Elements of an array that one access takes, where they are neighbours."""
    vector_step: int = 0
    policies: Mapping[str, str] = field(default_factory=dict)
    """What the L2 cache does with the lines of an array: `evict_first` or `evict_last`."""
    pipeline: Pipeline = Pipeline()
    specialized: bool = False
    """Whether a warp of its own has TMA copy."""
    multicast: tuple[MulticastCopy, ...] = ()
    persistent: bool = False
    """Whether a block computes tile after tile."""
    stream_k: bool = False
    """Whether a block computes as many iterations as others, and tiles can be of several blocks."""
    tensors: tuple[Tensor, ...] = ()
    """The sums that tensor cores compute."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Parts that are run by the threads of another part: columns of a second product by those of the first."""
    online: Online | None = None
    prefetch: str = ""
    """The part in which registers are loaded one iteration before they are read."""
    group: int = 0
    """Rows of tiles that blocks with neighbouring numbers work on together."""
    resident: int = 0
    """Blocks on an SM that registers must suffice for."""
    tiled: tuple[str, ...] = ()
    """The parts that the last `tile` cut in two: what `blocks()` and `threads()` are about."""
    steps: tuple[str, ...] = ()
    """The text of each step."""
    position: SourcePosition | None = None
    """The line of the step that is being taken."""

    @staticmethod
    def start(algorithm: Algorithm, target: str, fixed: Mapping[str, int], position: SourcePosition) -> State:
        """One thread does all of it."""
        parts = {axis: (Part(axis, 0, 1, None),) for axis in algorithm.axes}
        order = [f"{axis}.0" for axis in algorithm.axes]
        return State(algorithm, target, dict(fixed), parts, tuple(order), position=position)

    def part(self, name: str) -> Part:
        """A part by its name."""
        axis, _, number = name.rpartition(".")
        return self.parts[axis][int(number)]

    def extent(self, axis: str) -> Linear:
        """That of an axis, with sizes that are known in it."""
        return self.algorithm.axes[axis].replaced(self.fixed)

    def count(self, part: Part) -> int | None:
        """How many iterations a part has, where that is known."""
        if part.extent is not None:
            return part.extent
        extent = self.extent(part.axis)
        return max(0, -(-extent.constant // part.weight)) if extent.is_constant else None

    def iterations(self, name: str, sizes: Mapping[str, int]) -> int:
        """How many a part has, for some sizes."""
        part = self.part(name)
        return part.extent or max(0, -(-self.extent(part.axis).value(sizes) // part.weight))

    def is_empty(self, sizes: Mapping[str, int]) -> bool:
        """Whether threads or blocks run a loop without iterations, so far as that is known: one block is launched."""
        for axis, parts in self.parts.items():
            extent = self.extent(axis).replaced(sizes)
            if extent.is_constant and extent.constant <= 0 and any(part.role != "serial" for part in parts):
                return True
        return False

    def with_parts(self, *changed: Part) -> State:
        """Parts in place of those of the same name."""
        parts = dict(self.parts)
        for one in changed:
            known = list(parts[one.axis])
            known[one.number] = one
            parts[one.axis] = tuple(known)
        return replace(self, parts=parts)

    def mapped(self, name: str, role: str) -> State:
        """A part that is run by blocks, threads or a cluster from now on."""
        part = self.part(name)
        if part.role != "serial":
            self.illegal(f"`{name}` is run by {part.role}s already")
        if name == self.once:
            self.illegal(f"each thread takes the pass over `{name}`", f"`tile({part.axis}=...)` first")
        if any(stage.at == name for stage in self.stages):
            self.illegal(f"data is staged in `{name}` already", "map before `stage`")
        return self.with_parts(replace(part, role=role, unrolled=False, step=len(self.steps)))

    def widths(self, array: str) -> list[int]:
        """Elements that one access to an array can take, the most first: where rows are not a multiple, half of it."""
        most = self.vectors.get(array, 1)
        return [most >> halves for halves in range(most.bit_length() - 1)]

    def needs(self, what: str, chip: int) -> None:
        """Refuse what a target does not have."""
        if int("".join(filter(str.isdigit, self.target))) < chip:
            self.illegal(f"{what} the target `sm_{chip}`, and this one is `{self.target}`")

    @property
    def loads(self) -> list[Load]:
        """All that is read of arrays."""
        return [load for one in self.algorithm.statements for load in loads(one)]

    def indexing(self, array: str) -> frozenset[str]:
        """The axes in indices of an array."""
        return frozenset(axis for load in self.loads if load.array == array for axis in load.names)

    def serial(self, axes: Iterable[str]) -> list[str]:
        """The parts of some axes that each thread runs in order, from the outermost loop."""
        wanted = set(axes)
        return [name for name in self.order if (p := self.part(name)).role == "serial" and p.axis in wanted]

    @property
    def unit(self) -> str:
        """The instruction by which tensor cores compute, or nothing."""
        return self.tensors[0].unit if self.tensors else ""

    @property
    def multiplies_later(self) -> bool:
        """Whether tensor cores read shared memory while threads continue."""
        return self.unit in ("wgmma", "tcgen05")

    @property
    def waits_for_all(self) -> bool:
        """Whether a thread that waits for multiplications knows that those of all threads are complete.

        Those of `wgmma` are of a warpgroup, and complete as a whole.
        """
        return self.unit == "tcgen05" or (self.unit == "wgmma" and self.thread_count == WARPGROUP)

    def tensor_of(self, sum: str) -> Tensor | None:
        """How tensor cores compute a sum, where they do."""
        return next((one for one in self.tensors if one.sum == sum), None)

    @property
    def operands(self) -> frozenset[str]:
        """The arrays that tensor cores read."""
        return frozenset(array for one in self.tensors for array in one.arrays)

    @property
    def tensor_columns(self) -> int:
        """Columns of tensor memory of a set of accumulators: those of the block's tile, for each 128 rows of it."""
        return self.of_block(self.tensors[0].rows) * self.of_block(self.tensors[0].columns) // LANES

    @property
    def factor_columns(self) -> tuple[int, int]:
        """Those of the scale factors of both operands."""
        tensor = self.tensors[0]
        if not tensor.group:
            return 0, 0
        depth = (self.count(self.parts[tensor.depth][-1]) or 0) // tensor.group
        return self.of_block(tensor.rows) // LANES * depth, self.of_block(tensor.columns) // LANES * depth

    def of_block(self, axis: str) -> int:
        """Iterations of rows or columns that the block has of a sum."""
        found = 1
        for part in self.parts[axis]:
            if part.role in ("serial", "thread"):
                count = self.count(part)
                if count is None:
                    said = f"`{self.tensors[0].sum}` is in tensor memory for each iteration of `{part.name}`"
                    self.refuse("unknown-extent", f"{said}, of which there are {self.extent(axis)}", "`blocks`")
                found *= count
        return found

    @property
    def accumulators(self) -> int:
        """Sets of accumulators: with a second one, tensor cores compute a tile while the one before is stored."""
        used = 2 * self.tensor_columns + sum(self.factor_columns)
        return 2 if self.persistent and used <= MOST_TENSOR_COLUMNS else 1

    @property
    def once(self) -> str:
        """The loop that is one pass, where one is."""
        return self.parts[self.online.axis][0].name if self.online is not None else ""

    def fragments(self, tensor: Tensor) -> frozenset[str]:
        """The parts whose iterations one multiplication by tensor cores takes: of rows and columns all, and a depth."""
        inner = [self.parts[tensor.depth][-1].name]
        if tensor.weight:
            inner = self.serial([tensor.depth])
        return frozenset([*self.serial([tensor.rows, tensor.columns]), *inner]) - {self.once}

    def named(self, text: str, role: str = "serial") -> list[str]:
        """The parts that a name means: one, or all of an axis that have a role."""
        if not isinstance(text, str):
            self.illegal(f"{text!r:.40} is not the name of a loop", '`"i"`, or `"i.0"` for a part of it')
        axis, dot, number = text.rpartition(".")
        if dot and axis in self.parts and number.isdigit() and int(number) < len(self.parts[axis]):
            return [text]
        if text not in self.parts:
            self.illegal(f"there is no loop `{text}`", f"loops are {quoted(self.order)}")
        found = [part.name for part in self.parts[text] if part.role == role]
        if not found:
            roles = {"block": "blocks", "thread": "threads", "cluster": "a cluster"}
            self.illegal(f"all of `{text}` is run by {roles[self.parts[text][-1].role]} already")
        return found

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        count = 1
        for name in self.threads:
            count *= self.count(self.part(name)) or 1
        return count

    @property
    def cluster_blocks(self) -> int:
        """Blocks that share a reduction."""
        return (self.count(self.part(self.cluster)) or 1) if self.cluster else 1

    def together(self, part: str = "") -> int:
        """Blocks of a cluster that copies are for; with a part, whose tiles are beside each other in it."""
        return prod(one.blocks for one in self.multicast if part in ("", one.part))

    @property
    def pair(self) -> int:
        """Blocks whose tensor cores multiply together: 2, or 1."""
        return 2 if any(one.is_pair for one in self.multicast) else 1

    @property
    def launched(self) -> int:
        """Threads of a block, with those of a warp, or where registers are moved of a warpgroup, that only copies.

        With `tcgen05`, one more warp only multiplies.
        """
        if not self.specialized:
            return self.thread_count
        return self.thread_count + (64 if self.unit == "tcgen05" else 128 if self.moved_registers else 32)

    @property
    def moved_registers(self) -> tuple[int, int] | None:
        """Registers of a thread that copies, and of one that computes, where the same number is not enough."""
        groups = self.thread_count // WARPGROUP
        if not self.specialized or self.unit != "wgmma":
            return None
        if len(self.tensors) == 1:
            tensor, most = self.tensors[0], REGISTERS // (self.thread_count + WARPGROUP)  # as on each scheduler
            sums = prod(self.count(self.part(p)) or most for p in self.serial([tensor.rows, tensor.columns]))
            if sums + OTHER_REGISTERS <= most:
                return None
        return MOVED_REGISTERS.get(groups)

    def illegal(self, message: str, *helps: str) -> NoReturn:
        """Refuse a step that is not possible, with its line."""
        self.refuse("illegal-step", message, *helps)

    def refuse(self, code: str, message: str, *helps: str, label: str = "") -> NoReturn:
        """Refuse a step for another reason."""
        refuse(code, message, label, helps=helps, position=self.position)


def quoted(names: Iterable[str]) -> str:
    """Names in a message."""
    return ", ".join(f"`{name}`" for name in names)


def illegal_here(message: str, *helps: str) -> NoReturn:
    """Refuse what is not possible, on the line that asks for it."""
    refuse_here("illegal-step", message, *helps)


def refuse_here(code: str, message: str, *helps: str) -> NoReturn:
    """Refuse what a user asks for, on the line that does."""
    refuse(code, message, helps=helps, position=here())


def here() -> SourcePosition:
    """The innermost line outside of ptxlab."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ptxlab."):
        frame = frame.f_back
    return SourcePosition(frame.f_code, frame.f_lineno, frame.f_lasti)
