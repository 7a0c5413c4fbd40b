"""What the numbered messages of ptxas mean, and what to do about them.

ptxas prints them as information, so build logs lose them, yet they report kernels made several times slower, or
code changed without the author's knowledge. They are known by their text: the numbers shift between releases (13.0 says
C7519 for an inserted `wgmma.fence` and C7520 for the divergent case, 13.4 says C7519 for the latter).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advisory:
    """One kind of message: how to know it, our code for it, what it is about, what it means and what to do."""

    code: str
    pattern: re.Pattern[str]
    numbers: tuple[str, ...]
    instruction: str
    message: str
    explanation: str
    help: str


def _serialized(code: str, number: str, cause: str, message: str, help: str, *others: str) -> Advisory:
    pattern = re.compile(rf"wgmma\.mma_async instructions are serialized due to {cause}")
    explanation = "ptxas waits for each `wgmma` before it issues the next, so tensor cores idle in between"
    return Advisory(code, pattern, (number, *others), "wgmma.mma_async", message, explanation, help)


def _setmaxnreg(code: str, number: str, cause: str, message: str, help: str) -> Advisory:
    pattern = re.compile(rf"'setmaxnreg' ignored;? {cause}")
    explanation = "every warp keeps the register count of the launch, as if the instruction were not there"
    return Advisory(code, pattern, (number,), "setmaxnreg", message, explanation, help)


ADVISORIES = (
    _setmaxnreg(
        "ignored-setmaxnreg-separate-compilation",
        "C7504",
        "to maintain compatibility across compilation units",
        "`setmaxnreg` is ignored in a relocatable object",
        "assemble the whole program at once, without `-c`",
    ),
    _setmaxnreg(
        "ignored-setmaxnreg-debugging",
        "C7505",
        "to allow debugging",
        "`setmaxnreg` is ignored in a debug build",
        "assemble without `-g`; `-lineinfo` keeps the source lines",
    ),
    _setmaxnreg(
        "ignored-setmaxnreg-call",
        "C7506",
        "to maintain compatibility into 'extern' call",
        "`setmaxnreg` is ignored because of a call to unknown code",
        "inline the call, or call a function of this module by its name",
    ),
    _setmaxnreg(
        "ignored-setmaxnreg-minimum",
        "C7507",
        "to maintain minimum register requirements",
        "`setmaxnreg` is ignored because the code needs more registers",
        "ask for more registers in this warp, or keep fewer values alive",
    ),
    _setmaxnreg(
        "ignored-setmaxnreg",
        "C7508",
        "unable to determine register count at entry",
        "`setmaxnreg` is ignored because the register count at entry is unknown",
        "state the block size: `.maxntid` with `.minnctapersm 1`, or `.maxnreg`, on the entry",
    ),
    _serialized(
        "serialized-wgmma-extern-call",
        "C7509",
        "the presence of Extern calls",
        "`wgmma` is serialized because of a call",
        "keep calls out of the function, or move them after `wgmma.wait_group`",
    ),
    _serialized(
        "serialized-wgmma-function-boundary",
        "C7510",
        "wgmma pipeline crossing function boundary",
        "`wgmma` is serialized because its pipeline crosses a function call",
        "issue, commit and wait in one function, or have the callee inlined",
    ),
    _serialized(
        "serialized-wgmma-pipeline-registers",
        "C7511",
        "insufficient register resources for the wgmma pipeline",
        "`wgmma` is serialized because its pipeline needs more registers than there are",
        "use a smaller N or fewer stages in flight, or allow more registers (`.maxnreg`, `setmaxnreg.inc`)",
    ),
    _serialized(
        "serialized-wgmma-registers",
        "C7512",
        "insufficient register resources for the function",
        "`wgmma` is serialized because the function needs more registers than there are",
        "keep fewer values alive across the pipeline, or allow more registers (`.maxnreg`, `setmaxnreg.inc`)",
    ),
    _serialized(
        "serialized-wgmma-written-input",
        "C7513",
        "non wgmma instructions defining input registers",
        "`wgmma` is serialized because other code writes its input registers while it runs",
        "write the A registers before `wgmma.fence`, and other registers than those in flight",
    ),
    _serialized(
        "serialized-wgmma-read-accumulator",
        "C7514",
        "non wgmma instructions reading accumulator registers",
        "`wgmma` is serialized because other code reads its accumulators while it runs",
        "read accumulators after the `wgmma.wait_group` that covers their group",
    ),
    _serialized(
        "serialized-wgmma-written-accumulator",
        "C7515",
        "non wgmma instructions defining accumulator registers",
        "`wgmma` is serialized because other code writes its accumulators while it runs",
        "write accumulators before `wgmma.fence`; to start from zero set the `scale-d` operand to false",
    ),
    _serialized(
        "serialized-wgmma-stage",
        "C7516",
        "ill formed pipeline stage",
        "`wgmma` is serialized because its pipeline stage is not well formed",
        "on every path: `wgmma.fence`, the `wgmma.mma_async`s, `wgmma.commit_group`, `wgmma.wait_group`",
    ),
    _serialized(
        "serialized-wgmma-divergent-wait",
        "C7518",
        r"program dependence on compiler-inserted WG\.DP in divergent path",
        "`wgmma` is serialized because a wait is missing on some path",
        "wait with `wgmma.wait_group` on every path before the accumulators are used",
    ),
    _serialized(
        "serialized-wgmma-divergent-fence",
        "C7520",
        r"program dependence on compiler-inserted WG\.AR in divergent path",
        "`wgmma` is serialized because a `wgmma.fence` is missing on some path",
        "put `wgmma.fence.sync.aligned` before the first `wgmma.mma_async` on every path, and keep branches uniform",
        "C7519",
    ),
    Advisory(
        "inserted-wgmma-wait",
        re.compile(r"(?:warpgroup\.wait|wgmma\.wait_group) is injected"),
        ("C7517",),
        "wgmma.mma_async",
        "ptxas inserts a wait for `wgmma` here",
        "the registers of a running `wgmma` are used before a `wgmma.wait_group` covers it",
        "put `wgmma.wait_group.sync.aligned` where you mean the wait to be",
    ),
    Advisory(
        "inserted-wgmma-fence",
        re.compile(r"warpgroup\.arrive is injected"),
        ("C7519",),
        "wgmma.mma_async",
        "ptxas inserts a `wgmma.fence` here",
        "registers written by other instructions need `wgmma.fence` before `wgmma` may read or accumulate into them",
        "put `wgmma.fence.sync.aligned` before the first `wgmma.mma_async` of the group",
    ),
    Advisory(
        "oversized-setmaxnreg",
        re.compile(r"setmaxnreg\.dec has register count"),
        ("C7406",),
        "setmaxnreg.dec",
        "",
        "`.dec` releases registers, so it cannot ask for more than the warp has",
        "lower the count below the one at entry (65536 / threads, rounded down to 8), or use `setmaxnreg.inc`",
    ),
    Advisory(
        "insufficient-registers",
        re.compile(r"Insufficient registers \(\d+\) to compile"),
        ("C7602",),
        "",
        "",
        "all operands of one instruction must be in registers at once",
        "raise `.maxnreg`, launch fewer threads (`.maxntid`, `.minnctapersm`), or use a smaller shape",
    ),
)


def find_advisory(text: str) -> Advisory | None:
    """The advisory a message is, if it is one.

    >>> find_advisory("'setmaxnreg' ignored to allow debugging.").code
    'ignored-setmaxnreg-debugging'
    """
    return next((advisory for advisory in ADVISORIES if advisory.pattern.search(text)), None)
