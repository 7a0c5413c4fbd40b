"""Special registers: where the code of a thread finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device.layout import RESERVED
from ptxlab.emulate.abi import state
from ptxlab.emulate.translate.values import LlvmValue
from ptxlab.isa.occupancy import limits_of
from ptxlab.isa.types import type_named
from ptxlab.native import offset_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_U32, _U64, _PRED = type_named("u32"), type_named("u64"), type_named("pred")
_THREAD = {"%tid.x": "index.x", "%tid.y": "index.y", "%tid.z": "index.z", "%laneid": "lane"}
_BLOCK = {
    "%ctaid.x": "index.x",
    "%ctaid.y": "index.y",
    "%ctaid.z": "index.z",
    "%nwarpid": "warps",
    "%cluster_ctarank": "rank",
}
_WORKER = {
    "%ntid.x": "shape.block.x", "%ntid.y": "shape.block.y", "%ntid.z": "shape.block.z",
    "%nctaid.x": "shape.grid.x", "%nctaid.y": "shape.grid.y", "%nctaid.z": "shape.grid.z",
    "%total_smem_size": "shared.user", "%dynamic_smem_size": "shared.dynamic", "%aggr_smem_size": "shared.size",
    "%cluster_nctaid.x": "shape.cluster.x", "%cluster_nctaid.y": "shape.cluster.y",
    "%cluster_nctaid.z": "shape.cluster.z",
    "%cluster_nctarank": "shape.cluster_size", "%envreg1": "memory.workspace_high", "%envreg2": "memory.workspace_low",
}  # fmt: skip
_CONSTANTS = {
    "%nsmid": 1, "%smid": 0, "%tid.w": 0, "%ntid.w": 1, "%ctaid.w": 0, "%nctaid.w": 1,
    "%cluster_ctaid.w": 0, "%cluster_nctaid.w": 1, "%clusterid.w": 0, "%nclusterid.w": 1,
    "%reserved_smem_offset_begin": 0,
    "%reserved_smem_offset_end": RESERVED, "%reserved_smem_offset_cap": RESERVED, "%reserved_smem_offset_0": 0,
    "%reserved_smem_offset_1": RESERVED // 2,
    **{f"%pm{n}": 0 for n in range(8)}, **{f"%envreg{n}": 0 for n in range(32) if n not in (1, 2)},
}  # fmt: skip
# What follows from the position of a block in the grid, and how many blocks a cluster has in that direction.
_CLUSTER = {"%clusterid": "%ctaid", "%nclusterid": "%nctaid", "%cluster_ctaid": "%ctaid"}
_WIDE = {"%gridid": 1, "%current_graph_exec": 0, **{f"%pm{n}_64": 0 for n in range(8)}}
_MASKS = {"%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt"}
_ALLOCATED = {"%total_smem_size", "%aggr_smem_size"}  # in multiples of what an SM allocates
_CLOCKS = {
    "%clock": 0, "%clock_hi": 32, "%clock64": None,
    "%globaltimer": None, "%globaltimer_lo": 0, "%globaltimer_hi": 32,
}  # fmt: skip

NAMES = frozenset(
    name.partition(".")[0]
    for names in (
        _THREAD,
        _BLOCK,
        _WORKER,
        _CONSTANTS,
        _CLUSTER,
        _WIDE,
        _MASKS,
        _CLOCKS,
        ("%warpid", "%is_explicit_cluster"),
    )
    for name in names
)


def special_register(function: Function, operand: ir.SpecialRegister) -> LlvmValue:
    """The value of a special register, in the width that it has."""
    name = operand.name if operand.component is None else f"{operand.name}.{operand.component}"
    builder = function.builder
    if name in _CONSTANTS:
        return LlvmValue(function, _U32, str(_CONSTANTS[name]))
    if operand.name in _CLUSTER:
        rank = special_register(function, ir.SpecialRegister(_CLUSTER[operand.name], operand.component))
        size = special_register(function, ir.SpecialRegister("%cluster_nctaid", operand.component))
        return rank % size if operand.name == "%cluster_ctaid" else rank // size
    if name in _WIDE:
        return LlvmValue(function, _U64, str(_WIDE[name]))
    for names, owner, pointer in (
        (_THREAD, state.Thread, "%thread"),
        (_BLOCK, state.Block, "%block"),
        (_WORKER, state.Worker, "%worker"),
    ):
        if name in names:
            at = builder.value(f"getelementptr i8, ptr {pointer}, i64 {offset_of(owner, names[name])}")
            value = LlvmValue(function, _U32, builder.value(f"load i32, ptr {at}, !invariant.load !2"))
            return _allocated(function, value) if name in _ALLOCATED else value
    if name == "%is_explicit_cluster":
        at = builder.value(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'shape.is_explicit_cluster')}")
        return LlvmValue(function, _PRED, builder.value(f"icmp ne i32 {builder.value(f'load i32, ptr {at}')}, 0"))
    if name in _CLOCKS:
        ahead = function.flow.blocks[function.block_number].end - function.position - 1
        reader = function.unit.calls.runtime("read_clock")
        clock = builder.value(f"call i64 @{reader}(ptr %thread, i64 {ahead})")
        shift = _CLOCKS[name]
        value = LlvmValue(function, _U64, clock)
        if shift is None:
            return value
        return LlvmValue(function, _U32, builder.value(f"trunc i64 {(value >> shift).text} to i32"))
    if name == "%warpid":
        return LlvmValue(function, _U32, function.load_field("number", "i32")) >> 5
    assert name in _MASKS, name
    lane = LlvmValue(function, _U32, function.load_field("lane", "i32"))
    bit = LlvmValue(function, _U32, "1") << lane
    match name[-2:]:
        case "eq":
            return bit
        case "lt":
            return bit - 1
        case "le":
            return (bit - 1) | bit
        case "ge":
            return ~(bit - 1)
    return ~((bit - 1) | bit)


def _allocated(function: Function, bytes: LlvmValue) -> LlvmValue:
    """Bytes of shared memory as they are allocated, in units of 128 bytes where nothing else is known of a target."""
    limits = limits_of(function.unit.module.target)
    unit = 128 if limits is None else limits.shared_unit
    return (bytes + (unit - 1)) // unit * unit
