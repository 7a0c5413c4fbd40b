"""PTX as Python: readable, and the module that it writes has the same machine code."""

import ast
import os
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from ptxlab.author.convert import to_python
from ptxlab.cli.group import ptxlab
from ptxlab.syntax import format, parse

from ..corpus import Case, files
from ..syntax.test_printer import machine_code
from ..tools import needs_ptxas
from .converting import body_of, kernel_of, written

CASES = files()
ALL = os.environ.get("PTXLAB_CORPUS") == "all"
SAMPLED = [case for n, case in enumerate(CASES) if ALL or (n % 18 == 4 and case.path.stat().st_size < 8_000)]

SAXPY = """\
.version 7.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 buffer[];

.visible .entry saxpy(
    .param .u64 x,
    .param .f32 a,
    .param .u32 n
)
.maxntid 256
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;

    ld.param.u64 %rd1, [x];
    ld.param.b32 %r5, [a];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x; // the thread
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra $done;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.b32 %r4, buffer;
$again:
    ld.global.f32 %r3, [%rd3+16];
    fma.rn.f32 %r3, %r3, %r5, 0f3F800000;
    st.global.v2.f32 [%rd3], {%r3, %r4};
    setp.lt.f32 %p2, %r3, 0f41000000;
    @%p2 bra $again;
$done:
    ret;
}
"""

PYTHON = '''\
"""saxpy.ptx in Python; `module.ptx` is the PTX that it writes.

Each call is one instruction. It returns the register that it writes, or writes the one after `out=`.
"""

from ptxlab.author import Module, b32, f32, param, ptx, u32, u64

module = Module("sm_80", "7.0", untyped=True)

buffer = module.declare('.extern .shared .align 16 .b8 buffer[];')


@module.kernel(maxntid=256)
def saxpy(x: param[u64], a: param[f32], n: param[u32]):
    r3 = b32()
    rd1 = ptx.ld.param.u64(x)
    r5 = ptx.ld.param.b32(a)
    r2 = ptx.ld.param.u32(n)
    r1 = ptx.mov.u32('%tid.x')  # the thread
    p1 = ptx.setp.ge.u32(r1, r2)
    with ptx.when(~p1):
        rd2 = ptx.mul.wide.u32(r1, 4)
        rd3 = ptx.add.s64(rd1, rd2)
        r4 = ptx.mov.b32(buffer)
        with ptx.loop():
            ptx.ld["global"].f32(ptx.at(rd3, 16), out=r3)
            ptx.fma.rn.f32(r3, r5, 1.0, out=r3)
            ptx.st["global"].v2.f32(rd3, (r3, r4))
            p2 = ptx.setp.lt.f32(r3, 8.0)
            ptx.repeat_when(p2)
    ptx.ret()
'''


def test_the_python_reads_well() -> None:
    assert to_python(parse(SAXPY), "saxpy.ptx") == PYTHON


@pytest.mark.bulk(one_in=3)
@needs_ptxas
@pytest.mark.parametrize("case", SAMPLED, ids=lambda case: case.name)
def test_the_python_writes_the_same_machine_code(case: Case, tmp_path: Path) -> None:
    text = case.text()
    again = written(to_python(parse(text), case.name), tmp_path / "module.py")
    made, original = machine_code(again, case, tmp_path / "again"), machine_code(text, case, tmp_path / "original")
    for code in (made, original):
        code.pop(".nv.global", None)  # zeros, which the file does not hold: what is there belongs to other sections
    assert made == original


def test_a_register_named_like_a_parameter_has_a_name_of_its_own(tmp_path: Path) -> None:
    text = """.version 7.0
.target sm_80
.address_size 64

.visible .entry k(
    .param .u64 x,
    .param .u64 ptx
)
{
    .reg .b64 %x, %ptx;

    ld.param.u64 %x, [x];
    ld.param.u64 %ptx, [ptx];
    ld.param.u64 %x, [x];
    st.global.u64 [%x], %ptx;
    ret;
}
"""
    again = parse(written(to_python(parse(text), "k.ptx"), tmp_path / "module.py"))
    loads = [str(line).split(", ")[1] for line in format(again).splitlines() if "ld.param" in line]
    assert loads == ["[x];", "[ptx];", "[x];"]


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "saxpy.ptx").write_text(SAXPY)
    result = CliRunner().invoke(ptxlab, ["python", str(tmp_path / "saxpy.ptx")])
    assert result.exit_code == 0
    assert result.stdout == PYTHON.replace("saxpy.ptx", str(tmp_path / "saxpy.ptx"))
    result = CliRunner().invoke(ptxlab, ["python", str(tmp_path / "saxpy.ptx"), "-o", str(tmp_path / "saxpy.py")])
    assert result.exit_code == 0
    assert (tmp_path / "saxpy.py").read_text().startswith('"""')
    (tmp_path / "wrong.ptx").write_text("nothing")
    assert CliRunner().invoke(ptxlab, ["python", str(tmp_path / "wrong.ptx")]).exit_code == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"// nothing\n", b".version 8.0\n.target sm_80\n.entry k { add.u32 ,; ", b"\xff\xfe.\0v\0", b"// \xe9\n"],
    ids=["empty", "only-a-comment", "broken", "utf-16", "latin-1"],
)
def test_what_is_not_ptx_is_refused_as_by_other_commands(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "module.ptx").write_bytes(data)
    for path in (str(tmp_path / "module.ptx"), "-"):
        python, other = (CliRunner().invoke(ptxlab, [name, path], input=data) for name in ("python", "format"))
        status = 2 if data.startswith(b"\xff\xfe") else 1  # what is not text cannot be read
        assert (python.exit_code, python.stdout, python.stderr) == (status, "", other.stderr)
        assert "error[" in python.stderr


def test_both_ways_of_a_branch(tmp_path: Path) -> None:
    text = kernel_of("""\
ld.param.u64 %rd1, [x];
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 7;
@%p1 bra $else;
add.u32 %r3, %r1, 5;
bra.uni $end;
$else:
mul.lo.u32 %r2, %r1, 3;
add.u32 %r3, %r2, 1;
$end:
st.global.u32 [%rd1], %r3;
""")
    python = to_python(parse(text), "module.ptx")
    assert (
        """\
    with ptx.when(~p1):
        ptx.add.u32(r1, 5, out=r3)
    with ptx.otherwise():
        r2 = ptx.mul.lo.u32(r1, 3)
        ptx.add.u32(r2, 1, out=r3)
    ptx.st["global"].u32(rd1, r3)
"""
        in python
    )
    assert written(python, tmp_path / "module.py").count("bra $") == 2


def test_comments_stay_in_place(tmp_path: Path) -> None:
    """After a line, or before it where it does not fit; not what compilers remark on their own work."""
    long = "a comment that is too long for the rest of its line, " * 2
    text = kernel_of(f"""\
ld.param.u64 %rd1, [x]; // where it goes, (in bytes)
/* two
 * lines */
// begin inline asm
st.global.u32 [%rd1], 0; // {long}
// end inline asm
// a\rcarriage\0return
st.global.u32 [%rd1+4], 0; /* zero */
st.global.u32 [%rd1+8], 0; /* zero */
st.global.u32 [%rd1+12], 0; /* zero */
st.global.u32 [%rd1+16], 0; /* zero */
""")
    assert (
        body_of(text, tmp_path / "module.py")
        == f"""\
    rd1 = ptx.ld.param.u64(x)  # where it goes, (in bytes)
    # two
    # lines
    # {long.strip()}
    ptx.st["global"].u32(rd1, 0)
    # a carriage return
    for i in range(4, 20, 4):
        ptx.st["global"].u32(ptx.at(rd1, i), 0)  # zero
    ptx.ret()
"""
    )


def test_comments_after_calls_that_return_something(tmp_path: Path) -> None:
    loads = "".join(f"ld.global.u32 %r{n}, [%rd1+{n * n}]; // load\n" for n in range(5))
    text = kernel_of(f"ld.param.u64 %rd1, [x];\n{loads}st.global.v4.u32 [%rd1], {{%r4, %r2, %r3, %r0}};\n")
    assert "  # load\n" in body_of(text, tmp_path / "module.py")


@pytest.mark.parametrize(
    ("instruction", "shown"),
    [
        ("mov.f32 %r1, 0f3DCCCCCD", "ptx.mov.f32(0.1)"),
        ("mov.f32 %r1, 0f3727C5AC", "ptx.mov.f32(1e-05)"),
        ("mov.f32 %r1, 0f80000000", "ptx.mov.f32(-0.0)"),
        ("mov.f32 %r1, 0f00000001", "ptx.mov.f32(1e-45)"),
        ("mov.f32 %r1, 0f7F7FFFFF", "ptx.mov.f32(3.4028235e+38)"),
        ("mov.b32 %r1, 0f3FB8AA3B", "ptx.mov.b32(1.442695)"),
        ("mov.f64 %rd1, 0d3FB99999A0000000", "ptx.mov.f64(0.10000000149011612)"),
        ("mov.f64 %rd1, 0d3FB999999999999A", "ptx.mov.f64(0.1)"),
        ("mov.f32 %r1, 0fFFC00001", "ptx.mov.f32(ptx.literal('0fFFC00001'))"),
    ],
)
def test_constants_are_as_short_as_they_can_be(instruction: str, shown: str, tmp_path: Path) -> None:
    assert shown in body_of(kernel_of(f"{instruction};\n"), tmp_path / "module.py")


def test_a_file_name_is_not_code() -> None:
    python = to_python(parse(".version 8.0\n.target sm_80\n.address_size 64\n"), 'C:\\"""\n1/0 #.ptx')
    compile(python, "module.py", "exec")
    assert (
        python
        == """\
\"\"\"C:/'''?1/0 #.ptx in Python; `module.ptx` is the PTX that it writes.

Each call is one instruction. It returns the register that it writes, or writes the one after `out=`.
\"\"\"

from ptxlab.author import Module

module = Module("sm_80", "8.0", untyped=True)
"""
    )


def lines_of_runs(lines: int) -> str:
    """Consecutive short runs, all of the same instruction: none is inspected beyond its end."""
    accumulate = "fma.rn.f32 %s{}, %r{}, %r{}, %s{};\n".format
    return "".join(accumulate(n % 64, 7 * n % 61, 100 + 3 * n % 53, n % 64) for n in range(lines))


def lines_of_cases(lines: int) -> str:
    """Branches to as many labels further down, over values that are read there: none is a Python block."""
    cases = range(lines // 4)
    tests = (f"add.u32 %t{n}, %r0, 1;\nsetp.eq.s32 %q{n}, %t{n}, {n};\n@%q{n} bra $case{n};\n" for n in cases)
    ends = (f"$case{n}:\nst.global.u32 [%rd1], %t{n};\n" for n in cases)
    return f".reg .pred %q<{lines}>; .reg .b32 %t<{lines}>;\n{''.join(tests)}{''.join(ends)}"


def lines_of_branches(lines: int) -> str:
    """Branches in branches, over and over."""
    both = "@%p{0} bra $outer{1};\n@%p{0} bra $inner{1};\nst.global.u32 [%rd1], {2};\n$inner{1}:\n$outer{1}:\n".format
    return "".join(both(n % 90, n, n * n % 97) for n in range(lines // 5))


@pytest.mark.bulk
@pytest.mark.parametrize("make", [lines_of_runs, lines_of_cases, lines_of_branches])
def test_time_grows_with_the_length_of_the_file(make: Callable[[int], str]) -> None:
    def seconds(lines: int) -> float:
        module = parse(kernel_of(make(lines)))
        start = time.process_time()
        to_python(module)
        return time.process_time() - start

    seconds(100)
    assert seconds(8000) < 25 * seconds(800)  # ten times the lines


def test_a_file_of_many_kernels_is_parsed_once(tmp_path: Path) -> None:
    branch = kernel_of("ld.param.u64 %rd1, [x];\n@%p1 bra $end;\nst.global.u32 [%rd1], 0;\n$end:\n")
    head, found, kernel = branch.partition(".visible")
    text = head + "".join(f"{found}{kernel.replace('entry k', f'entry k{n}')}" for n in range(9))
    with patch("ast.parse", wraps=ast.parse) as parsed:
        again = written(to_python(parse(text), "k.ptx"), tmp_path / "module.py")
    assert again.count(".entry") == 9
    assert parsed.call_count == 1
