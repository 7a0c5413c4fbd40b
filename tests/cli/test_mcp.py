"""`ptxlab mcp`, through the client of the `mcp` package, over standard input and output."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="needs `mcp` 2")

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from ptxlab.toolchain.tools import can_find

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # a server is started; others warn

RACE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry reverse(.param .u64 x)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 tile[128];
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    shl.b32 %r1, %r1, 2;
    mov.u32 %r2, tile;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %r1;
    sub.u32 %r3, 124, %r1;
    mov.u32 %r2, tile;
    add.u32 %r2, %r2, %r3;
    ld.shared.u32 %r3, [%r2];
    cvt.u64.u32 %rd2, %r1;
    add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
CLEAN = RACE.replace("    sub.u32 %r3", "    bar.sync 0;\n    sub.u32 %r3")
LOOP = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nL:\n    bra L;\n}\n"
MAIN = "int main() { return 7; }"  # code of a program itself is never run here
Tool = tuple[str, dict[str, Any]]
Ask = Callable[..., list[str]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Calls tools of one server, one after the other, and returns their answers."""
    (tmp_path / "race.ptx").write_text(RACE)
    (tmp_path / "kernel.py").write_text("raise SystemExit('was run')")
    (tmp_path / "link.ptx").symlink_to("/etc/passwd")

    async def talk(tools: Sequence[Tool]) -> list[str]:
        command = ["-m", "ptxlab", "mcp", "--root", str(tmp_path), "--timeout", "20"]
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=command))) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == NAMES
            answers = [await client.call_tool(name, arguments) for name, arguments in tools]
        return ["".join(part.text for part in answer.content) for answer in answers]

    return lambda *tools: anyio.run(talk, tools)


NAMES = {"check", "run", "equal", "estimate", "debug", "sass", "verify", "explain", "draw", "docs", "more"}
LAUNCH = {"block": "32", "args": ["u32[32]"]}
HAS_TOOLS = can_find("nvdisasm", "ptxas")
ANSWERS = [
    ("check", {"text": RACE.replace("shl.b32", "shl.f32")}, "error[illegal-modifier]"),
    ("check", {"path": "race.ptx"}, "no errors or warnings in race.ptx"),
    ("run", {"text": RACE, **LAUNCH}, "error[data-race]"),
    ("run", {"text": CLEAN, **LAUNCH}, "[exit status 0]"),
    ("debug", {"path": "race.ptx", **LAUNCH, "commands": ["break 14", "continue", "print %r1"]}, "%r1"),
    ("equal", {"text": CLEAN, "text_b": CLEAN.replace("], %r3", "], %r1"), **LAUNCH}, "different: a = reverse"),
    ("equal", {"path": "race.ptx", "text_b": CLEAN, **LAUNCH}, "error[data-race]"),
    ("estimate", {"text": CLEAN.replace("sm_80", "sm_90"), **LAUNCH}, "µs" if HAS_TOOLS else "missing-tool"),
    ("sass", {"text": CLEAN}, "STS" if HAS_TOOLS else "missing-tool"),
    ("explain", {"topic": "data-race"}, "Two threads access the same bytes"),
    ("draw", {"what": "tile", "arguments": ["8x64", "--type", "f16", "--swizzle", "128B"]}, "bank"),
    ("docs", {"words": "proxy fence"}, "[also: "),
    ("docs", {}, "memory-model: The memory model"),
]
REFUSED = [
    ("check", {"path": "../secret.ptx"}, "is not below the folder"),
    ("check", {"path": "/etc/passwd"}, "is not below the folder"),
    ("check", {"path": "kernel.py"}, "expected a file that ends in .ptx"),
    ("check", {}, "give either `text` or `path`"),
    ("check", {"path": "link.ptx"}, "is not below the folder"),
    ("check", {"text": "x" * (1 << 20) + "x"}, "1,048,576 are allowed"),
    ("check", {"text": 7}, "valid string"),
    ("check", {"text": "\0"}, "holds a NUL character"),
    ("check", {"path": "a\0.ptx"}, "`path` is not one"),
    ("check", {"path": "x" * 5000 + ".ptx"}, "`path` is not one"),
    ("explain", {"topic": "\0"}, "holds a NUL character"),
    ("equal", {"text": CLEAN, **LAUNCH}, "give either `text` or `path`"),
    ("equal", {"text": CLEAN, "path_b": "../secret.ptx", **LAUNCH}, "is not below the folder"),
    ("run", {"text": CLEAN, "block": "32", "args": ["u32[32]"] * 65}, "at most 64"),
    ("run", {"text": CLEAN, "block": "32", "args": ["f32[99999999,99999999]"]}, "[exit status 2]"),
    ("run", {"text": CLEAN, **LAUNCH, "shared": 1 << 40}, "[exit status 2]"),
    ("run", {"text": CLEAN, **LAUNCH, "seeds": 10**9}, "less than or equal to 1000"),
    ("debug", {"text": CLEAN, **LAUNCH, "commands": ["list"] * 41}, "at most 40"),
    ("run", {"text": CLEAN, "block": "32", "args": ["u32[32]=@/etc/hostname"]}, "is not below the folder"),
    ("run", {"text": CLEAN, "block": "--help"}, "pattern"),
    ("run", {"text": MAIN, "language": "cu", "block": "", "grid": ""}, "pattern"),
    ("debug", {"text": MAIN, "language": "cu", "block": "", "commands": ["where"]}, "pattern"),
    ("run", {"text": CLEAN, **LAUNCH, "entry": "--help"}, "no kernel"),
    ("draw", {"what": "tile", "arguments": ["8x64", "-oout.svg"]}, "nothing is written"),
    ("more", {"handle": "a99", "start": 0}, "there is no answer `a99`"),
    ("explain", {"topic": "--help"}, "--help"),
]


def test_each_tool_answers(ask: Ask) -> None:
    answers = ask(*((name, arguments) for name, arguments, _ in ANSWERS))
    assert [wanted for (*_, wanted), found in zip(ANSWERS, answers, strict=True) if wanted not in found] == []
    assert [found for found in answers if len(found.encode()) > 2048] == []


def test_hostile_arguments_are_refused(ask: Ask) -> None:
    answers = ask(*((name, arguments) for name, arguments, _ in REFUSED))
    assert [found for (*_, wanted), found in zip(REFUSED, answers, strict=True) if wanted not in found] == []


NAMED = """\
.version 8.0
.target sm_80
.address_size 64
.file /* " */ 1 "FILE"
.visible .entry k()
{
    .reg .b32 %r<2>;
    .loc 1 1 1
    mov.u32 %r1, 1;
    ret;
}
"""


def test_files_that_a_text_names_are_not_shown(ask: Ask, tmp_path: Path) -> None:
    """PTX names its source by `.file`, and C++ headers by `#include`: both may be any file of the user."""
    (tmp_path.parent / "secret.txt").write_text("int secretword = 7;\n")
    inside, outside = tmp_path / "own.cu", tmp_path.parent / "secret.txt"
    inside.write_text("int ownword;\n")
    ptx = [NAMED.replace("FILE", str(one)) for one in (inside, outside, "../secret.txt")]
    tools = [("debug", {"text": one, "commands": ["list"]}) for one in ptx] + [("sass", {"text": ptx[1]})]
    own, *others = ask(*tools)
    assert "ownword" in own
    assert "secretword" not in "".join(others)
    directives = [f'#include "{outside}"', '#include "../secret.txt"', f"#include <{outside}>", "%: include FILE",
                  f'# 1 "{outside}"', f'# /* */ line 1 "{outside}"', f'#inc\\\nlude "{outside}"',
                  f'#if __has_include("{outside}")\n#endif']  # fmt: skip
    code = "\n__global__ void k() {}\n"
    answers = ask(*(("check", {"text": one + code, "language": "cu"}) for one in directives))
    assert [one for one in answers if "expected a header by its name" not in one] == []
    plain = '#include <cuda_fp16.h>  // 1/2\n#include "cooperative_groups/reduce.h"\n#line 3' + code
    assert "refused" not in ask(("check", {"text": plain, "language": "cu"}))[0]


def test_a_long_answer_continues(ask: Ask) -> None:
    explain = "explain", {"topic": "mma"}
    (first,) = ask(explain)
    assert "more characters: more(handle='a1', start=" in first
    _, second = ask(explain, ("more", {"handle": "a1", "start": int(first.rpartition("start=")[2].rstrip(")]"))}))
    assert second not in first
    assert len(second.encode()) <= 2048


def test_a_kernel_that_never_ends_is_stopped(ask: Ask) -> None:
    assert "stopped after 20 seconds" in ask(("run", {"text": LOOP, "block": "1"}))[0]


STALE = """// launch: k grid=1 block=32
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{
    ret;
}
"""


def test_verify(ask: Ask) -> None:
    wrong, unknown, file, python = ask(
        ("verify", {"problem": "reduction", "text": STALE, "seed": 1}),
        ("verify", {"problem": "reductions", "text": STALE}),
        ("verify", {"problem": "../race.ptx", "text": STALE}),
        ("verify", {"problem": "reduction", "path": "kernel.py"}),
    )
    assert "rejected for reduction" in wrong
    assert "stale-memory: no element of `y` is written" in wrong
    assert "did you mean `reduction`?" in unknown
    assert "pattern" in file
    assert "refused: `kernel.py`: expected a file that ends in .ptx" in python
