"""Whether a block may exit while its bulk stores still read its shared memory, on a GPU.

`python benchmarks/exiting_block.py` has each block of a large grid fill its shared memory with its own number, start
stores of it to global memory and exit, at once or after `cp.async.bulk.wait_group.read 0`. The blocks that come after
it on the SM overwrite the memory at once. It prints how many words were wrong; `--evidence` writes
evidence/exiting_block.json.
"""

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.measure.machine import commit, describe, require_torch

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "exiting_block.json"
KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 memory[];
.visible .entry k(.param .u64 out, .param .u32 bytes, .param .u32 piece)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [bytes];
    ld.param.u32 %r9, [piece];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, memory;
    shl.b32 %r5, %r2, 4;
fill:
    add.u32 %r6, %r4, %r5;
    st.shared.v4.u32 [%r6], {{%r3, %r3, %r3, %r3}};
    add.u32 %r5, %r5, 4096;
    setp.lt.u32 %p1, %r5, %r1;
    @%p1 bra fill;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra end;
    mul.wide.u32 %rd2, %r3, %r1;
    add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r7, 0;
copy:
    cvt.u64.u32 %rd3, %r7;
    add.u64 %rd4, %rd1, %rd3;
    add.u32 %r8, %r4, %r7;
    cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r8], %r9;
    add.u32 %r7, %r7, %r9;
    setp.lt.u32 %p3, %r7, %r1;
    @%p3 bra copy;
    cp.async.bulk.commit_group;
    {wait}
end:
    ret;
}}
"""
CASES = {"exits at once": "", "waits until read": "cp.async.bulk.wait_group.read 0;"}
SIZES = ((98304, 98304), (98304, 4096), (32768, 32768), (16384, 1024), (196608, 65536))  # of memory, of a store
BLOCKS, ROUNDS, THREADS = 132 * 24, 200, 256


def count_wrong(torch: Any, wait: str, bytes: int, piece: int) -> int:
    """Words of global memory that are not what their block wrote, over all rounds."""
    kernel = ptxlab.parse(KERNEL.format(wait=wait), name="exiting_block.ptx")["k"]
    out = torch.zeros((BLOCKS, bytes // 4), dtype=torch.int32, device="cuda")
    wanted = torch.arange(BLOCKS, dtype=torch.int32, device="cuda")[:, None]
    wrong = 0
    for _ in range(ROUNDS):
        out[:] = -1
        kernel.launch(grid=BLOCKS, block=THREADS, args=[out, bytes, piece], shared=bytes, device="cuda")
        wrong += int((out != wanted).sum())
    return wrong


def main() -> None:
    """Run all cases and print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evidence", action="store_true")
    writes = parser.parse_args().evidence
    torch = require_torch()
    cases = []
    for name, wait in CASES.items():
        for bytes, piece in SIZES:
            wrong = count_wrong(torch, wait, bytes, piece)
            cases.append({"case": name, "bytes": bytes, "piece": piece, "wrong": wrong})
            print(cases[-1], flush=True)
    if writes:
        about = {"date": date.today().isoformat(), "commit": commit(), **describe()}
        found = {"about": about, "rounds": ROUNDS, "blocks": BLOCKS, "cases": cases}
        EVIDENCE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
