"""Tensor maps: 128 bytes that `explain` reads, and that a kernel changes in place and then copies a box by."""

import contextlib
import random
from functools import cache

import numpy as np

import ptxlab
from tests.fuzz.inputs.mutation import EDGES, change_bytes

SIZE = 128
KERNEL = """\
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 mask, .param .u64 place)
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
    .shared .align 1024 .b8 tile[65536]; .shared .align 8 .b64 bar;
    mov.b64 %rd1, map; ld.param.u64 %rd2, [mask]; ld.param.u64 %rd3, [place];
    mov.u32 %r1, 0;
next:
    cvt.u64.u32 %rd4, %r1;
    add.u64 %rd5, %rd1, %rd4; ld.param.u32 %r2, [%rd5];
    add.u64 %rd6, %rd2, %rd4; ld.global.u32 %r3, [%rd6];
    xor.b32 %r2, %r2, %r3;
    add.u64 %rd7, %rd3, %rd4; st.global.u32 [%rd7], %r2;
    add.u32 %r1, %r1, 4;
    setp.lt.u32 %p, %r1, 128;
    @%p bra next;
    fence.proxy.tensormap::generic.release.gpu;
    fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;
    mov.u32 %r4, tile; mov.u32 %r5, bar; mov.u32 %r6, 0;
    mbarrier.init.shared.b64 [%r5], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r5], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%rd3, {%r6, %r6}], [%r5];
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [%r5], 0;
    @!%p bra wait;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {%r6, %r6}], [%r4];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


@cache
def module() -> ptxlab.ir.Module:
    return ptxlab.parse(KERNEL)


def make(choose: random.Random) -> bytes:
    """What is changed in a right map, or the bytes of any map."""
    if choose.random() < 0.2:
        return choose.randbytes(SIZE)
    mask = bytearray(SIZE)
    for _ in range(choose.choice([0, 1, 1, 2, 3])):
        size = choose.choice([1, 4, 8])
        at = choose.randrange(SIZE // size) * size
        new = choose.choice([choose.choice(EDGES), 1 << choose.randrange(8 * size), choose.getrandbits(64)])
        mask[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    return (change_bytes(bytes(mask), choose) + bytes(SIZE))[:SIZE] if choose.random() < 0.2 else bytes(mask)


def examine(data: bytes) -> None:
    right = ptxlab.tensor_map(np.zeros((8, 32), np.float32), (4, 16))
    for encoded in (data, bytes(a ^ b for a, b in zip(data, right.encode(1 << 20), strict=True))):
        said = ptxlab.explain(encoded)
        str(said), said.as_dict()
    for detectors in (True, False):
        array, place = np.ones((8, 32), np.float32), np.zeros(SIZE, np.uint8)
        arguments = [ptxlab.tensor_map(array, (4, 16)), np.frombuffer(data, np.uint8).copy(), place]
        with contextlib.suppress(ptxlab.KernelError):
            module()["k"].launch(1, 1, arguments, device="cpu", on_error="collect", timeout=2, detectors=detectors)
