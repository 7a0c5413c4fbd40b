"""The product with tiles by `clusterlaunchcontrol`: a block that is done takes the tile of one that has not started.

There are as many blocks as tiles. One thread asks for the next tile while the block computes this one; the answer is
written to shared memory by the async proxy, and all roles read it. `fence.proxy.async` is between their reads and the
next answer at the same place: without it the next one may overwrite what a role still reads.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, b64, kernel, ptx, tensor_maps, u32
from ptxlab.kernels.nvfp4_gemm.kernel import Shape, Tile, Tiles, compute
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS, WRITERS

ANSWER = 16  # bytes
READERS = 2 + WRITERS  # threads that read an answer: the one that copies, the one that multiplies, the epilogue
ASK = ptx.clusterlaunchcontrol.try_cancel.async_.shared__cta["mbarrier::complete_tx::bytes"].b128
IS_TAKEN = ptx.clusterlaunchcontrol.query_cancel.is_canceled.pred.b128
BLOCK_OF = ptx.clusterlaunchcontrol.query_cancel["get_first_ctaid::x"].b32.b128


class TakenTiles(Tiles):
    """The block's own tile, and those of blocks that it takes the place of."""

    def __init__(self, shape: Shape, maps: Pointer, m: u32, n: u32, k: u32) -> None:
        super().__init__(shape, maps, m, n, k)
        self.answers = ptx.shared(b64, 2 * ANSWER // 8, align=ANSWER, name="answers")
        self.ring = ptx.barrier_pipeline(2, fills=1, reads=READERS, when=ptx.tid.x == 0)

    def each(self, asks: bool = False) -> Iterator[Tile]:
        """Each of them, on the GPU; one role asks for the next."""
        number, answer = u32(), self.ring.consumer()
        question = self.ring.producer() if asks else None
        ptx.mov.u32(ptx.ctaid.x, out=number)
        with ptx.loop():
            if question is not None:
                question.wait()
                question.expect(ANSWER)
                ASK(self._at(question.index), question.barrier)
                question.advance()
            yield Tile(self.maps, *self.order.origin(number), self.k)
            answer.wait()
            found = ptx.ld.shared.b128(self._at(answer.index))
            ptx.fence.proxy.async_["shared::cta"]()
            answer.arrive()
            answer.advance()
            ptx.leave_when(~IS_TAKEN(found))
            BLOCK_OF(found, out=number)

    def to_copy(self) -> Iterator[Tile]:
        """The thread that copies asks."""
        return self.each(asks=True)

    to_write = each

    def _at(self, stage: u32) -> Pointer:
        return self.answers.at(stage * (ANSWER // 8))


@cache
def specialize(shape: Shape) -> Kernel:
    """Build the kernel; its arguments are the tensor maps, as `Maps` reads them, m, n and k."""
    given: Any = tensor_maps(2 * shape.products + 3)

    @kernel(target="sm_100a", maxntid=THREADS, minnctapersm=1)
    def nvfp4_gemm_cancelling(maps: given, m: u32, n: u32, k: u32) -> None:
        compute(shape, None, TakenTiles(shape, maps, m, n, k))

    return nvfp4_gemm_cancelling
