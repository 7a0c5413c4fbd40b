"""PTX as Python: readable, and the module that it writes has the same machine code."""

import ast
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from ptxlab.author.convert import to_python
from ptxlab.cli.group import ptxlab
from ptxlab.syntax import format, parse
from ptxlab.syntax.printer import format_instruction

from ..corpus import Case, files
from ..syntax.test_printer import machine_code
from ..tools import needs_ptxas

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


def written(python: str, file: Path) -> str:
    """The PTX that a file of Python writes."""
    file.write_text(python)
    names: dict[str, object] = {"__name__": "converted"}
    exec(compile(python, str(file), "exec"), names)
    return str(names["module"].ptx)  # type: ignore[attr-defined]


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


UNROLLED = """\
.version 7.0
.target sm_80
.address_size 64

.visible .entry sum(
    .param .u64 x
)
{
    .reg .b32 %r<40>;
    .reg .b64 %rd<3>;

    ld.param.u64 %rd1, [x];
""" + "".join(
    f"    ld.global.b32 %r{n}, [%rd1+{4 * n}];\n    mul.f32 %r{10 + n}, %r{n}, 0f40000000;\n" for n in range(1, 9)
) + """\
    add.rn.f32 %r20, %r11, %r12;
""" + "".join(
    f"    shfl.sync.bfly.b32 %r{21 + 2 * n}, %r{20 + 2 * n}, {1 << n}, 31, -1;\n"
    f"    add.f32 %r{22 + 2 * n}, %r{20 + 2 * n}, %r{21 + 2 * n};\n"
    for n in range(5)
) + "".join(f"    st.global.b32 [%rd1+{4 * n}], %r{m};\n" for n, m in enumerate((30, 13, 15, 14, 16, 17, 18), 1)) + """\
    ret;
}
"""  # fmt: skip

ROLLED = """\
    r = {}  # registers by their numbers
    rd1 = ptx.ld.param.u64(x)
    for i in range(8):
        v = ptx.ld["global"].b32(ptx.at(rd1, 4 + 4 * i))
        r[11 + i] = ptx.mul.f32(v, 2.0)
    r20 = ptx.add.rn.f32(r[11], r[12])
    v1 = r20
    for x_ in (1, 2, 4, 8, 16):
        v0 = ptx.shfl.sync.bfly.b32(v1, x_, 31, -1)
        v1 = ptx.add.f32(v1, v0)
    r30 = v1
    for i, x_ in zip(range(4, 32, 4), (r30, r[13], r[15], r[14], r[16], r[17], r[18]), strict=True):
        ptx.st["global"].b32(ptx.at(rd1, i), x_)
    ptx.ret()
"""


def body_of(ptx: str, file: Path) -> str:
    """The body as Python; what that writes are the same instructions, only registers have other numbers."""
    python = to_python(parse(ptx), "module.ptx")
    texts = []
    for module in (parse(ptx), parse(written(python, file))):
        names: dict[str, str] = {}
        lines = [format_instruction(i) for name in module.entries for i in module[name].instructions()]
        texts.append([re.sub(r"%\w+", lambda m: names.setdefault(m[0], f"%{len(names)}"), line) for line in lines])  # noqa: B023
    assert texts[0] == texts[1]
    return python.partition("):\n")[2]


def kernel_of(body: str, parameters: str = ".param .u64 x") -> str:
    registers = ".reg .pred %p<90>; .reg .b32 %r<400>, %s<90>; .reg .b64 %rd<90>;"
    head = ".version 7.0\n.target sm_80\n.address_size 64\n"
    return f"{head}.visible .entry k({parameters})\n{{\n{registers}\n{body}ret;\n}}\n"


def test_unrolled_runs_become_loops(tmp_path: Path) -> None:
    assert body_of(UNROLLED, tmp_path / "sum.py") == ROLLED


def test_groups_of_runs_become_loops_in_loops(tmp_path: Path) -> None:
    text = kernel_of(
        "ld.param.u64 %rd1, [x];\n"
        + "".join(f"mov.b32 %s{n}, 0;\n" for n in range(8))
        + "".join(
            f"ld.global.f32 %r9, [%rd1+{256 * q}];\nld.global.v4.f32 {{%r0, %r1, %r2, %r3}}, [%rd1+{272 * q + 16}];\n"
            + "".join(f"fma.rn.f32 %s{n}, %r{n % 4}, %r9, %s{n};\n" for n in range(8))
            for q in range(8)
        )
    )
    assert (
        body_of(text, tmp_path / "module.py")
        == """\
    r9 = b32()
    s = b32.several(8)
    r = b32.several(4)
    rd1 = ptx.ld.param.u64(x)
    for i in range(8):
        ptx.mov.b32(0, out=s[i])
    for j in range(8):
        ptx.ld["global"].f32(ptx.at(rd1, 256 * j), out=r9)
        ptx.ld["global"].v4.f32(ptx.at(rd1, 16 + 272 * j), out=(r[0], r[1], r[2], r[3]))
        for i in range(4):
            ptx.fma.rn.f32(r[i], r9, s[i], out=s[i])
        for i in range(4):
            ptx.fma.rn.f32(r[i], r9, s[4 + i], out=s[4 + i])
    ptx.ret()
"""
    )


def test_results_of_a_run_that_later_rows_read(tmp_path: Path) -> None:
    """A tree of maxima: the row number 3 reads what the row 0 returned, so that it must have it by then."""
    loads = "".join(f"ld.global.f32 %r{n}, [%rd1+{4 * n}];\n" for n in range(8))
    tree = "".join(f"max.f32 %r{8 + n}, %r{2 * n}, %r{2 * n + 1};\n" for n in range(7))
    text = kernel_of(f"ld.param.u64 %rd1, [x];\n{loads}{tree}st.global.f32 [%rd1], %r14;\n")
    assert """\
    for i in range(7):
        r[8 + i] = ptx.max.f32(r[2 * i], r[1 + 2 * i])
    ptx.st["global"].f32(rd1, r[14])
""" in body_of(text, tmp_path / "module.py")


def test_results_of_an_inner_loop_that_the_outer_one_cannot_list(tmp_path: Path) -> None:
    """Each row begins with what another line of the row before returned: that is not there before the loop."""
    first = [1, 13, 17, 23, 27]
    rows = "".join(
        f"add.s64 %rd{11 + 5 * row}, %rd{start}, 16;\n"
        + "".join(
            f"add.s64 %rd{12 + 5 * row + n}, %rd{11 + 5 * row + n}, 8;\nst.global.u32 [%rd{12 + 5 * row + n}], {n};\n"
            for n in range(4)
        )
        for row, start in enumerate(first)
    )
    body = body_of(kernel_of(f"ld.param.u64 %rd1, [x];\n{rows}"), tmp_path / "module.py")
    assert "rd[12 + i] = ptx.add.s64(rd[11 + i], 8)" in body


def test_vectors_of_one_stay_vectors(tmp_path: Path) -> None:
    """ptxas may make other code of `ld.b16 {d}` than of `ld.b16 d`."""
    text = kernel_of(
        "ld.param.u64 %rd1, [x];\nld.global.b32 {%r1}, [%rd1];\n@%p1 ld.global.b32 {%r2}, [%rd1];\n"
        "ld.global.b32 %r3, [%rd1];\nst.global.b32 [%rd1], {%r1};\nadd.u32 %r4, %r1, %r2;\n"
    )
    assert 'ptx.ld["global"].b32(rd1, out=(r1,))' in body_of(text, tmp_path / "module.py")


def test_blocks_repeat_too(tmp_path: Path) -> None:
    text = kernel_of(
        "ld.param.u64 %rd1, [x];\nmov.u32 %r1, %tid.x;\n"
        + "".join(
            f"setp.ge.u32 %p{n}, %r1, {8 * n};\n@%p{n} bra $skip{n};\nst.global.u32 [%rd1+{4 * n}], %r1;\n$skip{n}:\n"
            for n in range(1, 5)
        )
    )
    body = to_python(parse(text), "module.ptx").partition("):\n")[2]
    assert (
        body
        == """\
    rd1 = ptx.ld.param.u64(x)
    r1 = ptx.mov.u32('%tid.x')
    for i in range(4):
        v = ptx.setp.ge.u32(r1, 8 + 8 * i)
        with ptx.when(~v):
            ptx.st["global"].u32(ptx.at(rd1, 4 + 4 * i), r1)
    ptx.ret()
"""
    )
    assert written(to_python(parse(text), "module.ptx"), tmp_path / "module.py").count("@%p") == 4


def test_names_of_families_are_free(tmp_path: Path) -> None:
    """Registers called like a class that the Python imports, like a parameter, like a word of Python."""
    text = (
        kernel_of(
            "".join(
                f"mov.b32 %pred{n}, {n};\nadd.u32 %in{n}, %pred{n}, 1;\nadd.u32 %x{n}, %in{n}, 1;\n" for n in range(5)
            )
            + "".join(f"st.global.u32 [%rd1+{4 * n}], %{name}{n};\n" for name in ("x", "in", "pred") for n in range(5))
        )
        .replace("%r<400>", "%pred<9>, %in<9>, %x<9>")
        .replace("%rd<90>;", "%rd<90>;\nld.param.u64 %rd1, [x];")
    )
    assert "in_, pred_, x_ = {}, {}, {}  # registers by their numbers\n" in body_of(text, tmp_path / "module.py")


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
    """Branches to as many labels further down, over values that are read there: none is a block of Python's."""
    cases = range(lines // 4)
    tests = (f"add.u32 %t{n}, %r0, 1;\nsetp.eq.s32 %q{n}, %t{n}, {n};\n@%q{n} bra $case{n};\n" for n in cases)
    ends = (f"$case{n}:\nst.global.u32 [%rd1], %t{n};\n" for n in cases)
    return f".reg .pred %q<{lines}>; .reg .b32 %t<{lines}>;\n{''.join(tests)}{''.join(ends)}"


def lines_of_branches(lines: int) -> str:
    """Branches in branches, over and over."""
    both = "@%p{0} bra $outer{1};\n@%p{0} bra $inner{1};\nst.global.u32 [%rd1], {2};\n$inner{1}:\n$outer{1}:\n".format
    return "".join(both(n % 90, n, n * n % 97) for n in range(lines // 5))


@pytest.mark.slow
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
