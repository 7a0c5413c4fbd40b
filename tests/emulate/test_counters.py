"""What a launch counts: instructions by class, bytes by state space, sectors and bank conflicts by line."""

import re

import numpy as np
import pytest

import ptxlab
from tests.tools import header

HEADER = header("8.0", "sm_80")
COUNTED = (
    HEADER
    + """\
.shared .align 16 .b8 buffer[8192];
.entry kernel(.param .u64 data)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 8;
    @%p1 st.shared.u32 [buffer], 1;
    @!%p1 add.u32 %r2, %r1, 1;
    mov.u32 %r3, 3;
loop:
    ld.global.v2.u32 {%r4, %r5}, [%rd1];
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra loop;
    atom.global.add.u32 %r6, [%rd1], 1;
    ret;
}
"""
)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def run(text: str, threads: int = 32, profile: bool = False) -> dict[str, object]:
    kernel = ptxlab.parse(text, name="kernel.ptx")["kernel"]
    data = np.zeros(65536, np.uint32)
    # What is counted here does not depend on the order of threads, and these kernels race.
    return kernel.launch(grid=1, block=threads, args=[data], device="cpu", detectors=False, profile=profile).counters


def test_instructions_by_class_and_by_mnemonic() -> None:
    found = run(COUNTED)
    assert found["by_instruction"] == {
        "setp": 32 + 96, "bra": 96, "ld": 32 + 96, "sub": 96, "mov": 64, "atom": 32, "ret": 32, "add": 24, "st": 8,
    }  # fmt: skip
    by_class = found["by_class"]
    assert by_class == {"arithmetic": 24 + 128 + 96, "memory": 128 + 8, "control": 128, "move": 64, "atomic": 32}
    assert found["instructions"] == sum(by_class.values())


def test_a_guarded_instruction_counts_where_its_guard_holds() -> None:
    lines = run(COUNTED)["lines"]
    assert lines[line_of(COUNTED, "@%p1 st")] == {"instructions": 8, "bytes": 32}
    assert lines[line_of(COUNTED, "@!%p1 add")] == {"instructions": 24}
    assert lines[line_of(COUNTED, "@%p2 bra")] == {"instructions": 96}


def test_bytes_by_state_space() -> None:
    assert run(COUNTED)["bytes"] == {
        "param": {"read": 8 * 32},
        "shared": {"written": 4 * 8},
        "global": {"read": 8 * 96, "updated": 4 * 32},
    }


def test_bytes_of_asynchronous_copies() -> None:
    text = HEADER + (
        ".shared .align 16 .b8 buffer[8192];\n.entry kernel(.param .u64 data)\n{\n.reg .b64 %rd<3>;\n"
        "ld.param.u64 %rd1, [data];\ncp.async.ca.shared.global [buffer], [%rd1], 16, 4;\ncp.async.wait_all;\nret;\n}\n"
    )
    found = run(text, threads=1)
    assert found["bytes"] == {"param": {"read": 8}, "shared": {"written": 16}, "global": {"read": 4}}
    assert found["by_class"]["copy"] == 2


def access(space: str, stride: int, type: str = "u32", offset: int = 0) -> str:
    """A kernel whose lane `i` reads at `i * stride + offset`."""
    registers = {"v2": "{%r3, %r4}", "v4": "{%r3, %r4, %r5, %r6}"}.get(type.partition(".")[0], "%r3")
    base = "mov.u64 %rd1, buffer;" if space == "shared" else "ld.param.u64 %rd1, [data];"
    return (
        f"{HEADER}.shared .align 16 .b8 buffer[8192];\n.entry kernel(.param .u64 data)\n{{\n"
        f".reg .b32 %r<9>; .reg .b64 %rd<5>;\n{base}\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd2, %r1, {stride}, %rd1;\n"
        f"ld.{space}.{type} {registers}, [%rd2+{offset}];\nret;\n}}\n"
    )


def requests(text: str, part: str, threads: int = 32) -> dict[str, int]:
    found = run(text, threads, profile=True)
    assert found["requests"]["split_requests"] == 0
    return found["lines"][line_of(text, part)]


@pytest.mark.parametrize(
    ("stride", "type", "wavefronts", "ideal"),
    [
        (4, "u32", 1, 1),
        (0, "u32", 1, 1),  # all lanes read one word
        (8, "u32", 2, 1),
        (128, "u32", 32, 1),
        (132, "u32", 1, 1),  # a padded row
        (1, "u8", 1, 1),  # four lanes read one word
        (8, "v2.u32", 2, 2),  # half a warp at a time
        (16, "v4.u32", 4, 4),  # a quarter at a time
        (128, "v4.u32", 32, 4),
    ],
)
def test_bank_conflicts(stride: int, type: str, wavefronts: int, ideal: int) -> None:
    found = requests(access("shared", stride, type), "ld.shared")
    assert (found["shared_requests"], found["wavefronts"], found["ideal_wavefronts"]) == (1, wavefronts, ideal)


@pytest.mark.parametrize(
    ("stride", "type", "offset", "sectors", "ideal"),
    [
        (4, "u32", 0, 4, 4),
        (4, "u32", 16, 5, 4),  # it begins in the middle of a sector
        (0, "u32", 0, 1, 1),
        (32, "u32", 0, 32, 4),
        (16, "v4.u32", 0, 16, 16),
        (1, "u8", 0, 1, 1),
    ],
)
def test_sectors(stride: int, type: str, offset: int, sectors: int, ideal: int) -> None:
    found = requests(access("global", stride, type, offset), "ld.global")
    assert (found["global_requests"], found["sectors"], found["ideal_sectors"]) == (1, sectors, ideal)


@pytest.mark.parametrize(
    ("stride", "type", "lines"), [(4, "u32", 1), (16, "v4.u32", 4), (128, "u32", 32), (0, "u32", 1)]
)
def test_lines_of_the_cache(stride: int, type: str, lines: int) -> None:
    found = requests(access("global", stride, type), "ld.global")
    assert (found["cache_lines"], found["fetched"]) == (lines, found["sectors"])


def test_sectors_that_were_requested_before_are_not_fetched_again() -> None:
    found = requests(access("global", 0), "ld.global", threads=96)
    assert (found["sectors"], found["fetched"]) == (3, 1)


def test_each_warp_makes_a_request() -> None:
    found = requests(access("global", 4), "ld.global", threads=80)
    assert (found["global_requests"], found["sectors"]) == (3, 4 + 4 + 2)


def test_a_generic_address_counts_where_it_leads() -> None:
    text = access("shared", 128).replace("mov.u64 %rd1, buffer;", "mov.u64 %rd1, buffer; cvta.shared.u64 %rd1, %rd1;")
    found = requests(text.replace("ld.shared.u32", "ld.u32"), "ld.u32")
    assert (found["shared_requests"], found["wavefronts"]) == (1, 32)


LOOP = (
    HEADER
    + """\
.entry kernel(.param .u64 data)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    mov.u32 %r2, 0;
loop:
    and.b32 %r3, %r1, 1;
    and.b32 %r4, %r2, 1;
    setp.ne.u32 %p1, %r3, %r4;
    @%p1 bra next;
    ld.global.u32 %r5, [%rd2];
next:
    add.u32 %r2, %r2, 1;
    setp.LIMIT
    @%p2 bra loop;
    ld.global.u32 %r6, [%rd2+4096];
    ret;
}
"""
)


def test_lanes_in_different_iterations_make_different_requests() -> None:
    """Even lanes read in even iterations, odd lanes in odd ones: never all of them at once."""
    text = LOOP.replace("setp.LIMIT", "setp.lt.u32 %p2, %r2, 200;")
    found = requests(text, "ld.global.u32 %r5")
    assert (found["global_requests"], found["sectors"]) == (200, 800)


def test_lanes_reconverge_after_a_loop() -> None:
    text = LOOP.replace("setp.LIMIT", "setp.le.u32 %p2, %r2, %r1;")  # each lane goes round once more than the last
    found = requests(text, "ld.global.u32 %r6")
    assert (found["global_requests"], found["sectors"]) == (1, 4)


def test_calls_from_different_places_make_different_requests() -> None:
    text = HEADER + (
        ".func read(.param .u64 at)\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\nld.param.u64 %rd1, [at];\n"
        "ld.global.u32 %r1, [%rd1];\nret;\n}\n.entry kernel(.param .u64 data)\n{\n.reg .pred %p; .reg .b32 %r<3>;"
        " .reg .b64 %rd<3>;\nld.param.u64 %rd1, [data];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd2, %r1, 4, %rd1;\n"
        "setp.lt.u32 %p, %r1, 16;\n@%p bra low;\n{ .param .u64 a; st.param.u64 [a], %rd2; call read, (a); }\nret;\n"
        "low:\n{ .param .u64 a; st.param.u64 [a], %rd2; call read, (a); }\nret;\n}\n"
    )
    found = requests(text, "ld.global.u32")
    assert (found["global_requests"], found["sectors"]) == (2, 4)
    together = re.sub(r"@%p bra low;\n", "", text)
    found = requests(together, "ld.global.u32")
    assert (found["global_requests"], found["sectors"]) == (1, 4)


def test_without_profile_no_requests_are_counted() -> None:
    assert "requests" not in run(COUNTED)
