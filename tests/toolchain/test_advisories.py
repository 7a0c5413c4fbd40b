"""The numbered messages of ptxas: real ones provoked, and the wording of both releases recognized."""

from __future__ import annotations

import pytest
from tests.tools import header

from ptxlab.toolchain import ADVISORIES, Tool, assemble
from ptxlab.toolchain.advisories import find_advisory

HEADER = header("8.0", "sm_90a")
FENCE = "wgmma.fence.sync.aligned;\n"
MULTIPLY = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd2, %rd3, 1, 1, 1, 0, 0;\n"
COMMIT = "wgmma.commit_group.sync.aligned;\n"
WAIT = "wgmma.wait_group.sync.aligned 0;\n"
STORE = "".join(f"st.global.f32 [%rd1+{4 * i}], %f{i};\n" for i in range(4))


def _kernel(body: str, directives: str = "") -> str:
    clear = "".join(f"mov.f32 %f{i}, 0f00000000;\n" for i in range(4))
    return f"""{HEADER}.visible .entry k(.param .u64 p, .param .u64 q)
{directives}{{
.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<10>; .reg .pred %p1;
ld.param.u64 %rd1, [p];
ld.param.u64 %rd2, [q];
add.u64 %rd3, %rd2, 64;
mov.u32 %r1, %tid.x;
setp.gt.u32 %p1, %r1, 128;
{clear}{body}ret;
}}
"""


def _codes(text: str, tool: Tool, *options: str) -> dict[str, str]:
    found = assemble(text, options=options, tool=tool).diagnostics
    return {item.code: item.labels[0].span.text for item in found}


def test_a_well_formed_pipeline_is_silent(ptxas: Tool) -> None:
    assert _codes(_kernel(FENCE + MULTIPLY + COMMIT + WAIT + STORE), ptxas) == {}


def test_a_missing_wait_is_reported_where_it_is_inserted(ptxas: Tool) -> None:
    found = _codes(_kernel(FENCE + MULTIPLY + COMMIT + STORE), ptxas)
    assert found == {"inserted-wgmma-wait": "st.global.f32 [%rd1+0], %f0;"}


def test_an_accumulator_read_too_early_serializes(ptxas: Tool) -> None:
    early = "add.f32 %f9, %f1, %f2;\nst.global.f32 [%rd1+64], %f9;\n"
    found = _codes(_kernel(FENCE + MULTIPLY + early + MULTIPLY + COMMIT + WAIT + STORE), ptxas)
    assert list(found) == ["serialized-wgmma-read-accumulator"]
    assert found["serialized-wgmma-read-accumulator"].startswith("wgmma.mma_async")


def test_a_fence_on_one_path_only_serializes(ptxas: Tool) -> None:
    found = _codes(_kernel("@%p1 bra OVER;\n" + FENCE + "OVER:\n" + MULTIPLY + COMMIT + WAIT + STORE), ptxas)
    assert "serialized-wgmma-divergent-fence" in found


def test_setmaxnreg_without_a_block_size_is_ignored(ptxas: Tool) -> None:
    body = "setmaxnreg.inc.sync.aligned.u32 232;\n"
    assert _codes(_kernel(body), ptxas) == {"ignored-setmaxnreg": "setmaxnreg.inc.sync.aligned.u32"}
    assert _codes(_kernel(body, ".maxntid 384\n.minnctapersm 1\n"), ptxas) == {}
    assert "ignored-setmaxnreg-separate-compilation" in _codes(_kernel(body), ptxas, "-c")


def test_too_few_registers_is_an_error(ptxas: Tool) -> None:
    registers = ", ".join(f"%a{i}" for i in range(128))
    multiply = f"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{registers}}}, %rd2, %rd3, 0, 1, 1, 0, 0;\n"
    wide = f".reg .f32 %a<128>;\n{FENCE}{multiply}"
    store = "".join(f"st.global.f32 [%rd1+{4 * i}], %a{i};\n" for i in range(128))
    found = _codes(_kernel(wide + COMMIT + WAIT + store, ".maxnreg 64\n"), ptxas)
    assert list(found) == ["insufficient-registers"]
    assert found["insufficient-registers"].startswith("wgmma.mma_async")


SERIALIZED = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SERIALIZED + "the presence of Extern calls in the function 'f'", "serialized-wgmma-extern-call"),
        (
            SERIALIZED + "wgmma pipeline crossing function boundary at a function call in the function 'f' in line 4",
            "serialized-wgmma-function-boundary",
        ),
        (SERIALIZED + "insufficient register resources for the function 'f'", "serialized-wgmma-registers"),
        (
            SERIALIZED + "insufficient register resources for the wgmma pipeline in the function 'f'",
            "serialized-wgmma-pipeline-registers",
        ),
        (SERIALIZED + "ill formed pipeline stage in the function 'f'", "serialized-wgmma-stage"),
        (
            "warpgroup.wait is injected in around line 21 by compiler to allow use of registers defined by GMMA",
            "inserted-wgmma-wait",
        ),
        ("wgmma.wait_group is injected in around line 21 by compiler to allow use of", "inserted-wgmma-wait"),
        ("warpgroup.arrive is injected in around line 18 by compiler to allow use of", "inserted-wgmma-fence"),
        (
            "Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.",
            "ignored-setmaxnreg-minimum",
        ),
    ],
)
def test_wording_of_both_releases(text: str, code: str) -> None:
    advisory = find_advisory(text)
    assert advisory
    assert advisory.code == code


def test_every_advisory_says_what_to_do() -> None:
    assert len({advisory.code for advisory in ADVISORIES}) == len(ADVISORIES)
    assert all(advisory.explanation and advisory.help and advisory.numbers for advisory in ADVISORIES)
