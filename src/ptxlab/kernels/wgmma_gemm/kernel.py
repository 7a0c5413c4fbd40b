"""D = A·Bᵀ by `wgmma`: a persistent, warp-specialized kernel.

A block computes one tile of D after the other. One thread of its first warpgroup, the producer, issues the TMA copies
of K tiles of A and B, as many ahead as there are stages, also those of the next tile while the last is stored. The
other warpgroups, the consumers, have the registers that the first one gave up; each multiplies 64 rows, or twice that.

Blocks of a cluster either share the K tiles of B, each copying a part of them to all (`Shape.cluster`), or compute one
tile together, each a part of k (`Shape.split`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels.tile_order import TileOrder
from ptxlab.kernels.wgmma_gemm.epilogue import GROUP, CopyBack, Epilogue, PlainStore
from ptxlab.kernels.wgmma_gemm.exchange import ThroughCluster, ThroughMemory, meet
from ptxlab.kernels.wgmma_gemm.finish import Extras, Finish
from ptxlab.kernels.wgmma_gemm.operands import Operand
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, DEPTH, STRIPE, Layout, Shape

ALONG_K = Layout()


@cache
def specialize(type: str, shape: Shape, layout: Layout = ALONG_K, extras: Extras | None = None) -> Kernel:
    """Build the kernel; its arguments are the tensor maps of A, B and D, m, n and k.

    Where `needs_more` says so, there are others: D is a tensor map or
    a pointer, and after k come the distance of its rows, the bias, the residual, the distance of its rows, and memory
    for partial results and for counters, which are 0.
    """
    wanted: dict[str, Any] = {"maxntid": shape.threads}
    wanted |= {"reqnctapercluster": shape.blocks} if shape.blocks > 1 else {}
    wanted |= {"minnctapersm": shape.occupancy} if shape.occupancy > 1 else {}
    target: Any = tensor_map if layout.aligned else pointer[b16]

    @kernel(target="sm_90a", **wanted)
    def wgmma_gemm(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        block(type, shape, layout, (a, b), CopyBack(d.generic), None, (m, n, k))

    @kernel(target="sm_90a", **wanted)
    def wgmma_gemm_with_extras(
        a: tensor_map,
        b: tensor_map,
        d: target,
        m: u32,
        n: u32,
        k: u32,
        pitch: u32,
        bias: pointer[b16],
        residual: pointer[b16],
        residual_pitch: u32,
        partial: pointer[f32],
        counters: pointer[u32],
    ) -> None:
        is_map = target is tensor_map
        store = CopyBack(d.generic) if is_map else PlainStore(d, *((n, m) if shape.swapped else (m, n)), pitch)
        finish = Finish(type, extras, shape.swapped, (m, n), bias, residual, residual_pitch) if extras else None
        block(type, shape, layout, (a, b), store, finish, (m, n, k), (partial, counters))

    found: Kernel = wgmma_gemm_with_extras if needs_more(shape, layout, extras) else wgmma_gemm
    return found


def needs_more(shape: Shape, layout: Layout, extras: Extras | None) -> bool:
    """Whether there are other arguments than those of a plain product."""
    return not layout.aligned or extras is not None or (shape.split > 1 and not shape.clustered)


def operands(shape: Shape, layout: Layout) -> tuple[Operand, Operand]:
    """Both operands: blocks of a cluster share the one whose rows are columns of D."""
    return (
        Operand(shape.rows, layout.left_along_k, shape.stages),
        Operand(shape.columns, layout.right_along_k, shape.stages, shape.cluster),
    )


def block(
    type: str, shape: Shape, layout: Layout, maps: Any, store: Any, finish: Any, extents: Any, workspace: Any = None
) -> None:
    """What a block does; `extents` are m, n and k."""
    (m, n, k), thread = extents, ptx.tid.x
    rank = ptx.cluster_ctarank if shape.blocks > 1 else None
    memory = ptx.dynamic_shared(b16, align=1024)
    left, right = operands(shape, layout)
    a_tile = left.tile(memory)
    b_tile = right.tile(memory + shape.stages * shape.rows * DEPTH)
    free = memory + (shape.shared(layout) - shape.out_bytes) // 2
    reads = 4 * shape.groups * shape.cluster
    pipeline = ptx.barrier_pipeline(shape.stages, fills=1, reads=reads, when=thread == 0)
    sources = [(one.generic, tile) for one, tile in zip(maps, (a_tile, b_tile), strict=True)]
    with ptx.when(thread == 0):
        ptx.fence.mbarrier_init.release.cluster()
        for source, _ in sources:
            ptx.prefetch.tensormap(source)
    if shape.blocks > 1:
        meet("relaxed")  # the fence has made the barriers visible
    else:
        ptx.bar.sync(0)
    ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself, too
    ptx.griddepcontrol.wait()  # all before was preparation: from here on, what earlier kernels wrote is read
    work = Work(shape, (m, n, k), rank)
    timeline = ptx.timeline(blocks=shape.occupancy * BLOCKS, warps=shape.threads // 32, spans=shape.spans)
    with ptx.when(thread >= shape.consumers):
        if shape.registers:
            ptx.setmaxnreg.dec.sync.aligned.u32(shape.registers[0])
        with ptx.when(thread == shape.consumers):
            times = timeline.role("producer")
            produce(work, pipeline.producer(), (left, right), sources, shape.stage_bytes(layout), times)
        if shape.split > 1 and shape.clustered:
            meet()  # as the consumers do
    with ptx.otherwise():
        if shape.registers:
            ptx.setmaxnreg.inc.sync.aligned.u32(shape.registers[1])
        epilogue = Epilogue(type, shape, free, store, finish)
        sides = pipeline.consumer(), pipeline.consumer()
        exchange = None
        if shape.split > 1:
            through = ThroughCluster if shape.clustered else ThroughMemory
            exchange = through(shape, work.part, *([memory] if shape.clustered else workspace))
        consume(type, work, sides, (left, right), (a_tile, b_tile), epilogue, exchange, timeline.role("consumer"))
    if shape.blocks > 1:
        meet()  # no block exits while another one reads its memory, or arrives at its barriers


class Work:
    """The tiles that a block computes, and along k the part of each."""

    def __init__(self, shape: Shape, extents: Any, rank: Any) -> None:
        m, n, k = extents
        self.shape, self.rank, self.part = shape, rank, rank
        self.order = TileOrder(shape.rows * shape.cluster, shape.columns, shape.together, m, n, shape.blocks)
        self.first, self.end = u32(0), k
        if shape.split > 1:
            if not shape.clustered:
                self.part = ptx.ctaid.x // shape.cluster % shape.split
            count = (k + (DEPTH - 1)) // DEPTH
            self.first = self.part * count // shape.split * DEPTH
            self.end = (self.part + 1) * count // shape.split * DEPTH

    def tiles(self) -> Any:
        """The first row and column of each tile; after a split there is one."""
        shape = self.shape
        for number in [ptx.ctaid.x // (shape.split * shape.cluster)] if shape.split > 1 else self.order.each():
            row, column = self.order.origin(number)
            yield row + self.rank * shape.rows if shape.cluster > 1 else row, column

    def steps(self) -> Any:
        """Along k, the start of each K tile."""
        return ptx.range(self.first, self.end, DEPTH)


def produce(work: Work, stage: Any, operands: Any, sources: Any, bytes: int, times: Any) -> None:
    """The producer: one thread issues the copies of all K tiles, each as soon as a stage is empty."""
    for row, column in work.tiles():
        for start in work.steps():
            with times.span("wait for an empty stage"):
                stage.wait()
            with times.span("start copies"):
                ptx.mbarrier.arrive.expect_tx.shared.b64(stage.barrier, bytes)
                for operand, (source, tile), first in zip(operands, sources, (row, column), strict=True):
                    operand.copy(source, tile, stage, first, start, work.rank)
            stage.advance()


def consume(
    type: str,
    work: Work,
    stages: Any,
    operands: Any,
    tiles: Any,
    epilogue: Epilogue,
    exchange: Any,
    times: Any,
) -> None:
    """A consumer warpgroup: multiply its rows of each K tile, and store its part of D.

    While the MMAs of one K tile are in flight, those of the next are issued: `stages` are the one that is multiplied
    and the one that has been read.
    """
    stage, read = stages
    shape, own = work.shape, ptx.tid.x // GROUP  # the number of this warpgroup
    count = len(ptx.warpgroup_fragments(shape.product(type)).d.offsets)
    for row, column in work.tiles():
        accumulators = [[f32() for _ in range(count)] for _ in range(shape.tall)]
        adds = ptx.setp.ne.u32(own, own)  # whether the accumulators have a value
        for start in work.steps():
            with times.span("wait for a full stage"):
                stage.wait()
            with times.span("multiply"):
                multiply(shape.product(type), stage, operands, tiles, accumulators, own * shape.tall, adds)
                ptx.wgmma.wait_group.sync.aligned(1)  # the MMAs of the K tile before
            with ptx.when(start > work.first):
                release(shape, read)
            stage.advance()
        with times.span("multiply"):
            ptx.wgmma.wait_group.sync.aligned(0)
        release(shape, read)
        with times.span("store"):
            if exchange is None:
                epilogue.write(accumulators, row, column)
            else:
                exchange.deposit(accumulators)
                with ptx.when(work.part < shape.parts):
                    epilogue.write(exchange.collect(), row, column + work.part * shape.width)
                exchange.leave()
    epilogue.finish_all()


def multiply(product: Any, stage: Any, operands: Any, tiles: Any, accumulators: Any, first: Any, adds: Any) -> None:
    """Issue the MMAs of a K tile as one group: those of each 64 rows, from number `first` on."""
    transposed = [int(not one.along_k) for one in operands]
    ptx.wgmma.fence.sync.aligned()
    for step in range(0, DEPTH, 16):
        a, b = (one.descriptor(tile, stage, step) for one, tile in zip(operands, tiles, strict=True))
        for part, values in enumerate(accumulators):
            product(values, stripe(a, first + part), b, adds, 1, 1, *transposed)
        ptx.setp.eq.u32(first, first, out=adds)
    ptx.wgmma.commit_group.sync.aligned()


def release(shape: Shape, stage: Any) -> None:
    """A warp is done with a stage: it arrives in each block that copies to it."""
    if shape.cluster == 1:
        with ptx.when(ptx.laneid == 0):
            stage.arrive()
    else:
        with ptx.when(ptx.laneid < shape.cluster):
            there = ptx.mapa.shared__cluster.u32(stage.barrier, ptx.laneid)
            ptx.mbarrier.arrive.shared__cluster.b64(there)
    stage.advance()


def stripe(descriptor: Any, number: Any) -> Any:
    """The same matrix from another 64 rows on: they take 8192 bytes, and a descriptor counts in 16."""
    return descriptor + ptx.cvt.u64.u32(number * (STRIPE * 128 // 16))
