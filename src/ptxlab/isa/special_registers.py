"""The special registers: predefined and read-only (PTX ISA 10).

`special_register("%tid")` looks one up by its name without a component. Those with `vector` have the components
`.x .y .z .w` (also spelled `.r .g .b .a`; the fourth is unused and zero), and `mov.v4` reads them whole. What analyses
must know of a register is its `kind`: they ask for that, never for a name.
"""

from collections.abc import Iterable
from enum import StrEnum

from ptxlab.values import dataclass

from .targets import Since, since
from .types import Type, type_named

COMPONENTS = frozenset("xyzwrgba")


class SpecialKind(StrEnum):
    """What a special register holds, where analyses depend on it; a word of the keyword `kind` of `_declare`."""

    THREAD = "thread"  # the position of the thread in its block
    LANE = "lane"  # the number of the lane in its warp
    LANE_MASK = "lane-mask"  # bits that depend on the number of the lane
    WARP = "warp"  # the number of the warp in its block
    BLOCK_SIZE = "block-size"
    BLOCK = "block"  # where blocks and clusters are in the grid, and how many there are
    CLOCK = "clock"
    RESERVED = "reserved"  # where the shared memory is that the system keeps
    WORKSPACE = "workspace"  # the address of what blocks of a cooperative launch synchronize by
    OTHER = "other"  # the same in all threads of a block


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """One special register; `type` is that of a component where there are components."""

    name: str
    type: Type
    vector: int  # how many components it has; 0 is a scalar
    since: Since
    text: str
    narrower: tuple[Type, ...]  # what else `mov` may read of it: the type it had in earlier versions of PTX
    kind: SpecialKind

    @property
    def shape(self) -> str:
        """The register, or one component of it, as the shape of an operand (see `operand.py`)."""
        return "%" + "|".join(type.name for type in (*self.narrower, self.type))


SPECIAL_REGISTERS: dict[str, SpecialRegister] = {}


def special_register(name: str) -> SpecialRegister | None:
    """The special register `name`, spelled with its `%` and without a component."""
    return SPECIAL_REGISTERS.get(name)


def _declare(
    names: str | Iterable[str],
    type: str,
    available: str,
    text: str,
    vector: int = 0,
    old: str = "",
    kind: str = "other",
) -> None:
    narrower = tuple(type_named(word) for word in old.split())
    for name in names.split() if isinstance(names, str) else names:
        SPECIAL_REGISTERS[name] = SpecialRegister(
            name, type_named(type), vector, since(available), text, narrower, SpecialKind(kind)
        )


_declare("%tid", "u32", "1.0", "position of the thread in its block", vector=4, old="u16", kind="thread")
_declare("%ntid", "u32", "1.0", "threads of a block, in each dimension", vector=4, old="u16", kind="block-size")
_declare("%laneid", "u32", "1.3", "position of the thread in its warp, 0 to 31", kind="lane")
_declare("%warpid", "u32", "1.3", "number of the warp in its block; may change while the thread runs", kind="warp")
_declare("%nwarpid", "u32", "2.0 sm_20", "warp numbers there are")
_declare("%ctaid", "u32", "1.0", "position of the block in the grid", vector=4, old="u16", kind="block")
_declare("%nctaid", "u32", "1.0", "blocks of the grid, in each dimension", vector=4, old="u16", kind="block")
_declare("%smid", "u32", "1.3", "number of the SM; may change while the thread runs")
_declare("%nsmid", "u32", "2.0 sm_20", "how many SM numbers there are")
_declare("%gridid", "u64", "1.0", "number of this launch in its context", old="u16 u32")

_declare("%is_explicit_cluster", "pred", "7.8 sm_90", "whether the launch asked for clusters")
_declare("%clusterid", "u32", "7.8 sm_90", "position of the cluster in the grid", vector=4, kind="block")
_declare("%nclusterid", "u32", "7.8 sm_90", "clusters of the grid, in each dimension", vector=4, kind="block")
_declare("%cluster_ctaid", "u32", "7.8 sm_90", "position of the block in its cluster", vector=4, kind="block")
_declare("%cluster_nctaid", "u32", "7.8 sm_90", "blocks of a cluster, in each dimension", vector=4, kind="block")
_declare(
    "%cluster_ctarank",
    "u32",
    "7.8 sm_90",
    "number of the block in its cluster, counted over all dimensions",
    kind="block",
)
_declare("%cluster_nctarank", "u32", "7.8 sm_90", "blocks of a cluster, over all dimensions", kind="block")

_declare("%lanemask_eq", "u32", "2.0 sm_20", "mask with the bit of this lane", kind="lane-mask")
_declare("%lanemask_le", "u32", "2.0 sm_20", "mask with the bits of this lane and those before it", kind="lane-mask")
_declare("%lanemask_lt", "u32", "2.0 sm_20", "mask with the bits of the lanes before this one", kind="lane-mask")
_declare("%lanemask_ge", "u32", "2.0 sm_20", "mask with the bits of this lane and those after it", kind="lane-mask")
_declare("%lanemask_gt", "u32", "2.0 sm_20", "mask with the bits of the lanes after this one", kind="lane-mask")

_declare("%clock", "u32", "1.0", "cycle counter, low 32 bits", kind="clock")
_declare("%clock_hi", "u32", "5.0 sm_20", "cycle counter, high 32 bits", kind="clock")
_declare("%clock64", "u64", "2.0 sm_20", "cycle counter", kind="clock")
_declare("%globaltimer", "u64", "3.1 sm_30", "nanoseconds of a clock that all SMs share", kind="clock")
_declare("%globaltimer_lo", "u32", "3.1 sm_30", "low 32 bits of `%globaltimer`", kind="clock")
_declare("%globaltimer_hi", "u32", "3.1 sm_30", "high 32 bits of `%globaltimer`", kind="clock")
_declare((f"%pm{n}" for n in range(4)), "u32", "1.3", "performance counter")
_declare((f"%pm{n}" for n in range(4, 8)), "u32", "3.0 sm_20", "performance counter")
_declare((f"%pm{n}_64" for n in range(8)), "u64", "4.0 sm_50", "performance counter, 64 bits")
# The manual says PTX 2.1; ptxas knows them in every version.
_declare((f"%envreg{n}" for n in range(32) if n not in (1, 2)), "b32", "1.0", "value that the driver sets")
_declare(("%envreg1", "%envreg2"), "b32", "1.0", "value that the driver sets", kind="workspace")

_declare("%total_smem_size", "u32", "4.1 sm_20", "bytes of shared memory of the block, static and dynamic")
_declare("%dynamic_smem_size", "u32", "4.1 sm_20", "bytes of shared memory that the launch asked for")
_declare("%aggr_smem_size", "u32", "8.1 sm_90", "bytes of shared memory of the block and what the system keeps of it")
_declare("%reserved_smem_offset_begin", "b32", "7.6 sm_80", "where the shared memory that the system keeps begins",
         kind="reserved")  # fmt: skip
_declare("%reserved_smem_offset_end", "b32", "7.6 sm_80", "where the shared memory that the system keeps ends",
         kind="reserved")  # fmt: skip
_declare(
    "%reserved_smem_offset_cap", "b32", "7.6 sm_80", "bytes of shared memory that the system keeps", kind="reserved"
)
_declare("%reserved_smem_offset_0 %reserved_smem_offset_1", "b32", "7.6 sm_80",
         "offset in the shared memory that the system keeps", kind="reserved")  # fmt: skip
_declare("%current_graph_exec", "u64", "8.0 sm_50", "identifier of the device graph that the kernel runs in, or 0")
# These two only in a kernel with the directive `.minperctamemory`.
_declare("%perctamemoryoffset", "u64", "9.4 sm_80", "address of the block's slice of the per-block global memory")
_declare("%perctamemorysize", "u32", "9.4 sm_80", "bytes of the block's slice of the per-block global memory")
