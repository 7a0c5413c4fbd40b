"""The lines of a case that say how to run it, and what must come of it."""

import random
import tempfile
from pathlib import Path

from ptxlab.pytest_plugin.case import Case, CaseError, cases_of, differences
from ptxlab.report import PtxError
from tests.debug.kernels import EXCHANGE
from tests.fuzz.inputs.mutation import change_text

LINES = (
    "// run: grid=1 block=64 args=u32[64] seeds=2",
    "// run: grid=1,1 block=64,1,1 cluster=1 shared=64 args=u32[8,8]=arange timeout=1 detectors=no seeds=1",
    "// run: grid=1 block=64 entry=k args=f16[64]=random:-1:1 seeds=1",
    "// run: grid=1 block=64 args=u64=5,u32[2]=1,2 seeds=1",
    "// run: --grid 1 --block 64 --arg u32[64]=zeros --seeds 1",
    "// run: --block 64 --arg 'u32[]=@a.npy' --shared 16",
    "// run: grid=1 block=64 args=map:f16[16,64],box=8x64,swizzle=128B,x:u32[64],=x,at=2 seeds=1",
    "// run: --block 64 --arg '(u32[64]; 2; {0: 1.5, 8: null})' --arg 'map:=x,shape=2x8x8,strides=128x16,box=1x8x8'",
)
MORE = (
    "// expect: silent", "// expect: data-race 17 with 12 within 2 seeds", "// expect: warning unwritten-register 3",
    "// expect: results 64 66 68", "// expect: results[1] 0.5", "// says: nothing orders", "// check: silent",
)  # fmt: skip


def make(choose: random.Random) -> bytes:
    lines = [choose.choice(LINES), *choose.sample(MORE, choose.randrange(4))]
    for _ in range(choose.choice([1, 1, 2, 3])):
        at = choose.randrange(len(lines))
        lines[at] = change_text(lines[at], choose)
    text = "\n".join(lines) + "\n" + EXCHANGE
    if choose.random() < 0.2:
        text = text.replace("bar.sync 0;\n", "bar.sync 0;\n// or: bar.sync 1, 64;\n" * choose.randrange(1, 3))
    return text.encode("utf-8", "replace")


def examine(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.ptx"
        path.write_bytes(data)
        try:
            for case in cases_of(path)[:2]:
                run(case)
        except (CaseError, PtxError):
            pass


def run(case: Case) -> None:
    """What the plugin of pytest does with a case; no more than a second, and two seeds."""
    case.check(), case.checked, case.findings, case.results
    if not case.how:
        return
    case.how["timeout"] = "1"
    seen = [case.launch(seed) for seed in range(min(case.seeds, 2))]
    differences(case, seen)
