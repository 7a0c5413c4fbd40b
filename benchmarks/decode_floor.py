"""What bounds attention of one token to a short cache: `python benchmarks/decode_floor.py [FILE]`; needs a Hopper GPU.

Launches that overlap, as those of `decode_attention`, with as many blocks: one that only waits for the one before it,
one in which each block then reads its share of the cache, and one in which of 16 blocks, which share a head, all others
then send one number to the first through global memory, and that writes one. Nothing is multiplied. Beside them are the
kernel itself and a copy of as many bytes.
"""

from __future__ import annotations

import json
import statistics
import sys
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from ptxlab.author import Kernel, b8, b64, kernel, pointer, ptx, u32
from ptxlab.kernels import decode_attention
from ptxlab.kernels.decode_attention import arrays, entry
from ptxlab.launch.launches import Launch
from ptxlab.measure.ceilings import short_copy
from ptxlab.measure.data import Device
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import timer

ROOT = Path(__file__).resolve().parent.parent
BLOCKS, SHARING, PIECES = 128, 16, 4
COPY = ptx.cp.async_.bulk["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
STEPS = ("start", "read", "read and send")
SIZES = {"bf16, 1,024": ("bf16", 1024), "bf16, 2,048": ("bf16", 2048), "e4m3, 8,192": ("e4m3", 8192)}
ROUNDS = 15


@cache
def specialize(step: str) -> Kernel:
    """The kernel up to a step. What is sent is 1, and 0 again when it was received."""

    @kernel(target="sm_90", maxntid=32)
    def floor(source: pointer[b8], piece: u32, sent: pointer[u32], result: pointer[u32]) -> None:
        ptx.griddepcontrol.launch_dependents()
        memory = ptx.dynamic_shared(b8, align=128)
        arrived = ptx.shared(b64, 1, name="arrived").at(0)
        lane, block = ptx.tid.x, ptx.ctaid.x
        with ptx.when(lane == 0):
            ptx.mbarrier.init.shared.b64(arrived, 1)
            ptx.fence.mbarrier_init.release.cluster()
        ptx.bar.warp.sync(0xFFFFFFFF)
        ptx.griddepcontrol.wait()
        if step == STEPS[0]:
            return
        with ptx.when(lane == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(arrived, piece * PIECES)
            for number in range(PIECES):
                COPY(memory + piece * number, source + (block * PIECES + number) * piece, piece, arrived)
        with ptx.loop():
            ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(arrived, 0))
        if step == STEPS[1]:
            return
        is_first = block % SHARING == 0
        with ptx.when(~is_first & (lane == 0)):
            ptx.st.relaxed.gpu.global_.u32(sent + block, 1)
        with ptx.when(is_first):
            with ptx.when((lane > 0) & (lane < SHARING)):
                with ptx.loop():
                    ptx.repeat_when(ptx.ld.relaxed.gpu.global_.u32(sent + (block + lane)) == 0)
                ptx.st.relaxed.gpu.global_.u32(sent + (block + lane), 0)
            ptx.bar.warp.sync(0xFFFFFFFF)
            with ptx.when(lane == 0):
                result[block // SHARING] = u32(1)

    return floor


def launches(step: str, sources: list[Any], sent: Any, result: Any) -> list[Launch]:
    """A launch for each source."""
    piece = sources[0].nbytes // BLOCKS // PIECES
    made = specialize(step)
    return [Launch(made, BLOCKS, 32, [one, piece, sent, result], piece * PIECES, overlap=True) for one in sources]


def seconds(torch: Any, type: str, length: int) -> dict[str, list[float]]:
    """Samples of each: of one launch, among many in a CUDA graph, each on other memory."""
    stream, draw = torch.cuda.Stream(), Device(torch, 1)
    with torch.cuda.stream(stream):
        size = {"type": "bf16", "cache": type, "batch": 1, "heads": (32, 8), "length": length}
        bytes = 2 * length * 8 * 128 * (2 if type == "bf16" else 1)
        count = min(2 * torch.cuda.get_device_properties(0).L2_cache_size // bytes + 2, 64)
        given = [arrays(draw, **size) for _ in range(count)]
        sources = [torch.empty(bytes, dtype=torch.uint8, device="cuda").random_() for _ in range(count)]
        sent, result = (torch.zeros(BLOCKS, dtype=torch.int32, device="cuda") for _ in range(2))
        actions = {
            step: [one.prepare(stream).launch for one in launches(step, sources, sent, result)] for step in STEPS
        }
        actions["kernel"] = [
            one.prepare(stream).launch for each in given for one in entry.launches("equal shares", each)
        ]
        actions["function"] = [
            lambda one=one: decode_attention(*(one[name] for name in ("q", "k", "v", "lengths")), out=one["o"])
            for one in given
        ]
        actions["copy of as many bytes"] = list(short_copy(torch, bytes).actions)
        return take_turns({name: timer(torch, each, stream) for name, each in actions.items()}, ROUNDS)


def main() -> None:
    torch = require_torch()
    found: dict[str, Any] = {
        "command": "python benchmarks/decode_floor.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": describe(torch),
        "blocks": BLOCKS,
        "seconds": {name: seconds(torch, *one) for name, one in SIZES.items()},
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "decode_floor.json"
    path.write_text(json.dumps(found) + "\n", encoding="utf-8")
    for name, samples in found["seconds"].items():
        print(name, {one: f"{statistics.median(taken) * 1e6:.2f} µs" for one, taken in samples.items()})


if __name__ == "__main__":
    main()
