"""Instructions with `.aligned` are for whole warps: at one place, and before any lane has exited."""

import numpy as np
import pytest

import ptxlab

TEXT = """.version 7.8
.target sm_80
.address_size 64
.entry k(.param .u64 out) {{
    .reg .pred %low; .reg .b32 %lane, %turned; .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %lane, %tid.x;
    mad.wide.u32 %out, %lane, 4, %out;
    setp.lt.u32 %low, %lane, 16;
    {body}
    st.global.u32 [%out], %turned;
    ret;
}}
"""
TURN = "movmatrix.sync.aligned.m8n8.trans.b16 %turned, %lane;"
BRANCHES = f"""@%low bra $low;
    {TURN}
    bra $end;
$low:
    {TURN}
$end:"""


def findings(body: str, threads: int = 32) -> list[tuple[str, str, tuple[str, ...]]]:
    kernel = ptxlab.parse(TEXT.format(body=body))["k"]
    result = kernel.launch(1, threads, [np.zeros(64, np.uint32)], on_error="collect")
    return [(found.code, found.message, found.notes) for found in result.diagnostics]


@pytest.mark.parametrize("threads", [16, 32, 48])
def test_whole_warps_are_silent(threads: int) -> None:
    assert findings(TURN, threads) == []


def test_the_same_instruction_at_two_places_is_not_one() -> None:
    ((code, message, _),) = findings(BRANCHES)
    assert code == "barrier-divergence"
    assert message == (
        "lanes of one warp wait in `movmatrix.sync.aligned.m8n8.trans.b16` for lanes that never execute it"
    )


def test_a_lane_that_has_exited_is_missed() -> None:
    ((code, message, notes),) = findings(f"@%low ret;\n    {TURN}")
    assert code == "barrier-divergence"
    assert message == (
        "lanes of one warp have exited before `movmatrix.sync.aligned.m8n8.trans.b16`, which needs the whole warp"
    )
    assert list(notes) == ["lanes 0 to 15 of warp 0 have exited"]


def test_branches_that_whole_warps_take_are_silent() -> None:
    assert findings("setp.lt.u32 %low, %lane, 32;\n    " + BRANCHES, 64) == []
