"""PTX as Python: readable, and the module that it writes has the same machine code."""

import os
import re
from pathlib import Path

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
"""saxpy.ptx in Python."""

from ptxlab.author import Module, b32, f32, param, ptx, u32, u64

module = Module("sm_80", "7.0", untyped=True)

buffer = module.declare('.extern .shared .align 16 .b8 buffer[];')


@module.kernel(maxntid=256)
def saxpy(x: param[u64], a: param[f32], n: param[u32]):
    r3 = b32()
    rd1 = ptx.ld.param.u64(x)
    r5 = ptx.ld.param.b32(a)
    r2 = ptx.ld.param.u32(n)
    r1 = ptx.mov.u32('%tid.x')
    # the thread
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
        code.pop(".nv.global", None)  # zeros, which the file does not hold: what stands there belongs to other sections
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
    rd1 = ptx.ld.param.u64(x)
    made = []
    for i in range(4, 36, 4):
        v0 = ptx.ld["global"].b32(ptx.at(rd1, i))
        v1 = ptx.mul.f32(v0, 2.0)
        made.append(v1)
    r11, r12, r13, r14, r15, r16, r17, r18 = made
    r20 = ptx.add.rn.f32(r11, r12)
    v1 = r20
    for x_ in (1, 2, 4, 8, 16):
        v0 = ptx.shfl.sync.bfly.b32(v1, x_, 31, -1)
        v1 = ptx.add.f32(v1, v0)
    r30 = v1
    for i, x_ in zip(range(4, 32, 4), (r30, r13, r15, r14, r16, r17, r18), strict=True):
        ptx.st["global"].b32(ptx.at(rd1, i), x_)
    ptx.ret()
"""


def test_unrolled_runs_become_loops(tmp_path: Path) -> None:
    python = to_python(parse(UNROLLED), "sum.ptx")
    assert python.partition("):\n")[2] == ROLLED
    again = parse(written(python, tmp_path / "sum.py"))
    numbers: dict[str, str] = {}
    for module in (parse(UNROLLED), again):  # the same instructions; only registers have other numbers
        names: dict[str, str] = {}
        for instruction in module["sum"].instructions():
            for register in re.findall(r"%\w+", format_instruction(instruction)):
                names.setdefault(register, f"%{len(names)}")
        text = [format_instruction(instruction) for instruction in module["sum"].instructions()]
        renamed = "\n".join(re.sub(r"%\w+", lambda match: names[match[0]], line) for line in text)  # noqa: B023
        numbers[renamed] = ""
    assert len(numbers) == 1
