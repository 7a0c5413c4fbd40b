"""Damaged files: ptxas and the parser agree on whether the syntax is wrong, and on the line."""

import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ptxlab.syntax import read
from ptxlab.toolchain import find

from ..tools import needs_ptxas

COUNT = 60
_TOKEN = re.compile(r'"[^"\n]*"|[%$\w.:]+|[^\s\w]')
_STRAY = [*";,{}[]()@!:=<>|+-*.", "foo", "%r1", "5", ".reg", ".b32", '"', "#"]
SAMPLE = """.version 8.0
.target sm_90
.address_size 64
.global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
.func (.param .b32 result) twice(.param .b32 value)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [value];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [result+0], %r2;
    ret;
}
.visible .entry kernel(
    .param .u64 pointer,
    .param .u32 length
)
.maxntid 256, 1, 1
{
    .reg .pred %p<3>;
    .reg .b32 %r<12>;
    .reg .f32 %f<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [pointer];
    ld.param.u32 %r1, [length];
    mov.u32 %r2, %tid.x;
    setp.ge.s32 %p1, %r2, %r1;
    @%p1 bra $done;
    mul.wide.s32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.v2.f32 {%f1, %f2}, [%rd4+8];
    fma.rn.f32 %f3, %f1, %f2, 0f3F800000;
    st.global.f32 [%rd4], %f3;
    {
        .param .b32 argument;
        .param .b32 returned;
        st.param.b32 [argument+0], %r2;
        call.uni (returned), twice, (argument);
        ld.param.b32 %r5, [returned+0];
    }
    setp.lt.and.s32 %p2|%p1, %r5, 10, !%p1;
    mov.b32 %r7, (3 + 4) * 2 - 1;
$done:
    ret;
}
"""


def damage(text: str, generator: random.Random) -> str:
    """Drop, repeat, exchange or insert one token."""
    tokens = list(_TOKEN.finditer(text))
    kind = generator.choice(["drop", "drop sign", "repeat", "exchange", "insert"])
    if kind == "drop sign":
        tokens = [token for token in tokens if token[0] in ";,{}[]()"]
    place = generator.randrange(len(tokens) - 1)
    token, following = tokens[place], tokens[place + 1]
    if kind == "repeat":
        return f"{text[: token.end()]} {token[0]}{text[token.end() :]}"
    if kind == "insert":
        return f"{text[: token.start()]}{generator.choice(_STRAY)} {text[token.start() :]}"
    if kind == "exchange":
        between = text[token.end() : following.start()]
        return f"{text[: token.start()]}{following[0]}{between}{token[0]}{text[following.end() :]}"
    return text[: token.start()] + text[token.end() :]


def verdict(text: str, folder: Path) -> tuple[bool, int | None]:
    """Whether ptxas accepts a text, and the line of its first syntax error."""
    folder.mkdir()
    (folder / "module.ptx").write_text(text)
    command = [find("ptxas").path, "-arch", "sm_90", "-O0", "-c", "module.ptx", "-o", "module.cubin"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"line (\d+); fatal\s*: (?:Parsing|Missing)", result.stdout + result.stderr)
    return result.returncode == 0, int(found[1]) if found else None


@needs_ptxas
def test_damaged_files(tmp_path: Path) -> None:
    generator = random.Random(7)
    texts = [damage(SAMPLE, generator) for _ in range(COUNT)]
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(verdict, texts, [tmp_path / str(number) for number in range(COUNT)]))
    wrong_line = 0
    for text, (accepted, line) in zip(texts, verdicts, strict=True):
        found = read(text)[1]
        assert not (accepted and found), text
        assert found or line is None, text
        wrong_line += line is not None and found[0].line != line
    assert wrong_line <= COUNT // 50
