"""A kernel that reads memory and does nothing else: how fast that can be done.

Each block has bulk copies of 32 KiB to its shared memory under way, six at a time. Of what was tried on an H200, plain
loads of 16 bytes with other numbers of threads among it, nothing was faster.
"""

from __future__ import annotations

from ptxlab.author import b8, b64, kernel, pointer, ptx, u32, u64
from ptxlab.author.pipelines import Ring

PIECE, STAGES = 32 << 10, 6
SHARED = PIECE * STAGES
COPY = ptx.cp.async_.bulk["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]


@kernel(target="sm_90", maxntid=32)
def read(source: pointer[b8], bytes: u64) -> None:
    """Read so many bytes, a multiple of 16: piece after piece, each by the next block."""
    ptx.griddepcontrol.launch_dependents()
    memory = ptx.dynamic_shared(b8, align=128)
    arrived = ptx.shared(b64, STAGES, name="arrived")
    with ptx.when(ptx.tid.x == 0):
        for number in range(STAGES):
            ptx.mbarrier.init.shared.b64(arrived.at(number), 1)
        ptx.fence.mbarrier_init.release.cluster()
        ptx.griddepcontrol.wait()
        first, step = u64(), u64()
        first.set(ptx.mul.wide.u32(ptx.ctaid.x, PIECE))
        step.set(ptx.mul.wide.u32(ptx.nctaid.x, PIECE))
        filling, reading = Ring(STAGES), Ring(STAGES, parity=0)

        def copy() -> None:
            """Ask for the next piece, if there is one."""
            with ptx.when(first < bytes):
                length = ptx.cvt.u32.u64(ptx.min.u64(bytes - first, PIECE), out=u32())
                mbarrier = arrived.at(filling.index)
                ptx.mbarrier.arrive.expect_tx.shared.b64(mbarrier, length)
                COPY(memory + filling.index * PIECE, source + first, length, mbarrier)
            first.set(first + step)
            filling.advance()

        left = u64()
        left.set(first)
        for _ in range(STAGES):
            copy()
        with ptx.when(left < bytes), ptx.loop():
            with ptx.loop():
                done = ptx.mbarrier.try_wait.parity.shared.b64(arrived.at(reading.index), reading.parity)
                ptx.repeat_when(~done)
            reading.advance()
            copy()
            left.set(left + step)
            ptx.leave_when(left >= bytes)
