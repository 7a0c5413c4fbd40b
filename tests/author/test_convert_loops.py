"""Runs of instructions that repeat become loops of the Python that writes them."""

from pathlib import Path

from ptxlab.author.convert import to_python
from ptxlab.syntax import parse

from .converting import body_of, kernel_of, written

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
    """Registers called like a class that the Python imports, like a parameter, like a Python keyword."""
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
