"""Every instruction is callable as it is spelled, and a wrong one is refused on its line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlab import render
from ptxlab.author import b32, f16, f32, kernel, pointer, pred, ptx, s32, u32
from ptxlab.isa.table import forms
from ptxlab.report import PtxError

from .writing import lines, refusal


@pytest.mark.parametrize(
    ("write", "written"),
    [
        (lambda x, n, s, a: ptx.fma.rn.f32(a, 2, a), "fma.rn.f32 %f2, %f1, 0f40000000, %f1;"),
        (lambda x, n, s, a: ptx.ld["global"].nc.v4.f32(x + 4), "ld.global.nc.v4.f32 {%f2, %f3, %f4, %f5}, [%rd2+16];"),
        (lambda x, n, s, a: ptx.ld.global_.f32(x), "ld.global.f32 %f2, [%rd2];"),
        (lambda x, n, s, a: ptx["ld.global.ca.f32"](x), "ld.global.ca.f32 %f2, [%rd2];"),
        (lambda x, n, s, a: ptx.and_.b32(n, s), "and.b32 %r3, %r1, %r2;"),
        (lambda x, n, s, a: ptx.st.global_.f32(x, a), "st.global.f32 [%rd2], %f1;"),
        (lambda x, n, s, a: ptx.bar.sync(0), "bar.sync 0;"),
        (lambda x, n, s, a: ptx.tid.x, "mov.u32 %r3, %tid.x;"),
        (lambda x, n, s, a: ptx.laneid, "mov.u32 %r3, %laneid;"),
        (lambda x, n, s, a: ptx.mov.u32("%tid.y"), "mov.u32 %r3, %tid.y;"),
        (lambda x, n, s, a: ptx.add.u32(n, 1, out=n), "add.u32 %r1, %r1, 1;"),
        (lambda x, n, s, a: ptx.mov.b64((n, n)), "mov.b64 %rd3, {%r1, %r1};"),
        (lambda x, n, s, a: ptx.red.global_.add.f32(x, a), "red.global.add.f32 [%rd2], %f1;"),
        (lambda x, n, s, a: ptx.cvta.global_.u64(x), "cvta.global.u64 %rd3, %rd2;"),
        (lambda x, n, s, a: ptx.prefetch.global_.L2(x), "prefetch.global.L2 [%rd2];"),
    ],
)
def test_spellings(write: Callable[..., Any], written: str) -> None:
    assert lines(write) == [written]


def test_several_results() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        value, inside = ptx.shfl.sync.bfly.b32(a, 1, 31, 0xFFFFFFFF, pair=True)
        assert (value.type.name, inside.type.name) == ("b32", "pred")
        low, high = ptx.mov.b64(x.address, out=(b32(), b32()))
        ptx.setp.lt.u32(low, high, out=(pred(), pred()))
        ptx.atom.global_.add.f32(x, a, out=(None,))
        ptx.mbarrier.arrive.shared.b64(n, out=(None,))

    assert lines(write) == [
        "shfl.sync.bfly.b32 %r3|%p1, %f1, 1, 31, 0xffffffff;",
        "mov.b64 {%r4, %r5}, %rd2;",
        "setp.lt.u32 %p2|%p3, %r4, %r5;",
        "atom.global.add.f32 _, [%rd2], %f1;",
        "mbarrier.arrive.shared.b64 _, [%r1];",
    ]


def test_predication() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        small = n < 3
        ptx.add.u32(n, 1, out=n, when=small)
        ptx.add.u32(n, 2, out=n, when=~small)

    assert lines(write)[1:] == ["@%p1 add.u32 %r1, %r1, 1;", "@!%p1 add.u32 %r1, %r1, 2;"]


MMA = ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
TMA = ptx.cp["async"].bulk.tensor
PREFETCH = ptx.cp["async"].bulk.prefetch.tensor["2d"]["L2"]["global"]


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (lambda x, n, s, a: ptx.fmaa, "unknown-instruction", "there is no instruction `fmaa`"),
        (lambda x, n, s, a: ptx.fma.rnn, "illegal-modifier", "`fma` takes no modifier `.rnn` here"),
        (
            lambda x, n, s, a: ptx.ld.f32.f32.f32.f32(x),
            "illegal-modifier",
            "`ld.f32.f32.f32.f32` has its modifiers in the wrong order",
        ),
        (lambda x, n, s, a: ptx.add.rn(a, a), "illegal-modifier", "`add.rn` lacks a modifier: `.f64`"),
        (
            lambda x, n, s, a: ptx.ld.const.v4.b64(x),
            "illegal-modifier",
            "`ld.const.v4.b64` is not legal: a vector holds at most 128 bits",
        ),
        (
            lambda x, n, s, a: ptx.cvt.f32.u32(n),
            "illegal-modifier",
            "`cvt.f32.u32` lacks a modifier: one of `.rn`, `.rz`, `.rm`, `.rp`",
        ),
        (lambda x, n, s, a: ptx.add.u32(n, 1, pred=n < 3), "unknown-argument", "`add.u32` takes no `pred=`"),
        (lambda x, n, s, a: ptx.add.u32(n, 1, pair=True), "operand-type", "`add.u32` has no second result"),
        (
            lambda x, n, s, a: ptx.st.global_.v4.f32(x, [a, a, a, n]),
            "operand-type",
            "`b` of `st.global.v4.f32` is a tuple of 4 (`f32`, `u32`), expected a vector of 4 `.f32` registers",
        ),
        (
            lambda x, n, s, a: ptx.fma.rn.f16(f16(1), 2.0, f16(1)),
            "operand-type",
            "`b` of `fma.rn.f16` is the Python float 2.0, expected a `.f16` register",
        ),
        (
            lambda x, n, s, a: ptx.fma.rn.f32(a, np.zeros(3), a),
            "not-an-operand",
            "ndarray array([0., 0., 0.]) is not an operand of an instruction",
        ),
        (
            lambda x, n, s, a: ptx.bar.sync(16),
            "immediate-range",
            "`a` of `bar.sync` is 16, expected a `.u32` register or immediate (0 to 15)",
        ),
        (lambda x, n, s, a: ptx.fma.rn.f32(a, a), "operand-count", "`fma.rn.f32` takes 3 operands, 2 given"),
        (
            lambda x, n, s, a: ptx.mbarrier.arrive["shared::cluster"].b64(n, out=a),
            "operand-count",
            "`mbarrier.arrive.shared::cluster.b64` has fewer results than `out=` names",
        ),
        (
            lambda x, n, s, a: ptx.fma.rn.f32(a, n, a),
            "operand-type",
            "`b` of `fma.rn.f32` is a `u32`, expected a `.f32` register or immediate",
        ),
        (
            lambda x, n, s, a: ptx.ld.shared.f32(x),
            "operand-type",
            "`a` of `ld.shared.f32` is a pointer into global memory, expected an address `[a]` in `.shared`",
        ),
        (
            lambda x, n, s, a: MMA([b32(n)] * 4, [b32(n)] * 2, [a] * 3),
            "operand-type",
            "`c` of `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` is a tuple of 3 (`f32`), "
            "expected a vector of 4 `.f32` registers",
        ),
        (
            lambda x, n, s, a: ptx.add.u32(n, 1 << 40),
            "immediate-range",
            "`b` of `add.u32` is 1099511627776, which `.u32` does not hold",
        ),
        (
            lambda x, n, s, a: ptx.add.u32(n, 1, out=a),
            "operand-type",
            "`add.u32` writes a `.u32` register, and `out=` is something else",
        ),
        (
            lambda x, n, s, a: ptx.add.u32(n, 1, when=n),
            "guard-type",
            "`when=` of `add.u32` is a `u32`, expected a predicate",
        ),
        (
            lambda x, n, s, a: ptx.add.u32(n, 1, when=n < 1),
            "unwritten-register",
            "`add.u32` with `when=` writes its result only where the predicate holds",
        ),
        (
            lambda x, n, s, a: ptx.cp["async"].bulk.commit_group(),
            "unavailable-instruction",
            "`cp.async.bulk.commit_group` needs PTX 8.0 with sm_90",
        ),
        (
            lambda x, n, s, a: ptx.st.bulk.weak["shared::cta"](ptx.shared(b32, 4).copy(), n, 0),  # `.u32`, not `.b32`
            "operand-type",
            "`size` of `st.bulk.weak.shared::cta` is a `u32`, expected a `.u64` register or immediate "
            "(0 to 16777216, a multiple of 8)",
        ),
        (lambda x, n, s, a: ptx.bra("nowhere"), "unknown-name", "there is no label `nowhere` in `k`"),
        (lambda x, n, s, a: ptx.tid.q, "unknown-name", "`%tid` has no component `.q`"),
    ],
)
def test_refused(write: Callable[..., Any], code: str, message: str) -> None:
    found = refusal(write)
    assert (found.code, found.message) == (code, message)
    assert found.file == __file__


@pytest.mark.parametrize(
    ("write", "label", "help"),
    [
        (lambda x, n, s, a: ptx.ld.golbal, "not a modifier of any form", "did you mean `.global`?"),
        (lambda x, n, s, a: ptx.add.rn.u32, "a modifier of other forms", None),
        (lambda x, n, s, a: ptx.mul.u32, "a modifier of other forms", None),
        (lambda x, n, s, a: ptx.threadIdx, "no instruction of PTX has this name", "did you mean `ptx.tid`?"),
        (
            lambda x, n, s, a: ptx.syncthreads(),
            "no instruction of PTX has this name",
            "did you mean `ptx.bar.sync(0)`?",
        ),
        (lambda x, n, s, a: ptx.bar.sync(0, 1, 2), "", None),
        (lambda x, n, s, a: ptx.st.global_.v2.f32(x, a, a), "a vector is one operand: a tuple", None),
        (
            lambda x, n, s, a: ptx.add.u32(n, n, n),
            "results are not operands here: they are returned, or named by `out=`",
            None,
        ),
        (lambda x, n, s, a: ptx.add.u32(n, x), "`x[i]` is what it points to, `x.address` the address", None),
        (lambda x, n, s, a: TMA["2D"], "not a modifier of any form", "did you mean `.2d`?"),
        (lambda x, n, s, a: PREFETCH((x, (n,))), "`coordinates` is a tuple of 2", None),
        (
            lambda x, n, s, a: ptx.cp["async"].bulk.commit_group(),
            "this kernel is for `sm_80`",
            'raise the target: `@kernel(target="sm_90")`, or that of its `Module`',
        ),
    ],
)
def test_what_to_write_instead(write: Callable[..., Any], label: str, help: str | None) -> None:
    found = refusal(write)
    assert found.labels[0].text == label
    assert [one.text for one in found.helps] == ([help] if help else [])


def test_the_user_sees_the_line() -> None:
    @kernel
    def wrong(n: u32) -> None:
        ptx.add.u32(n, n, n)

    with pytest.raises(PtxError) as raised:
        str(wrong)
    source = Path(__file__).read_text().splitlines()
    line = 1 + next(number for number, line in enumerate(source) if line.strip() == "ptx.add.u32(n, n, n)")
    margin = " " * len(str(line))
    assert render(raised.value.diagnostics).splitlines() == [
        "error[operand-count]: `add.u32` takes 2 operands, 3 given",
        f"{margin}--> {__file__}:{line}:9",
        f"{margin} |",
        f"{line} |         ptx.add.u32(n, n, n)",
        f"{margin} |         ^^^^^^^^^^^^^^^^^^^^ results are not operands here: they are returned, or named by `out=`",
        f"{margin} |",
        f"{margin} = note: legal: `add.type d, a, b`",
    ]


def test_every_form_can_be_spelled_word_by_word() -> None:
    for form in forms():
        chosen = next(form.spellings())
        spelling: Any = ptx
        for word in form.spell(chosen).split("."):
            spelling = spelling[word]
        assert spelling._text == form.spell(chosen)


def test_dir_lists_what_can_follow() -> None:
    assert "rn" in dir(ptx.fma)
    assert {"f32", "ftz", "f64"} <= set(dir(ptx.fma.rn))
    assert "global_" in dir(ptx.ld)
    assert {"fma", "tid", "when", "and_"} <= set(dir(ptx))


def test_tools_can_ask_for_names() -> None:
    assert not hasattr(ptx, "no_such_instruction")
    assert getattr(ptx.fma, "no_such_word", None) is None
    with pytest.raises(PtxError):
        _ = ptx.no_such_instruction


def test_outside_of_a_kernel() -> None:
    with pytest.raises(PtxError, match="is outside of a kernel"):
        ptx.bar.sync(0)


def test_a_register_of_another_kernel() -> None:
    kept: list[Any] = []

    @kernel
    def first(n: u32) -> None:
        kept.append(n)

    @kernel
    def second(x: pointer[f32]) -> None:
        ptx.add.u32(kept[0], 1)

    str(first)
    with pytest.raises(PtxError, match=r"`%r1` is a register of `first`, and this is `second`"):
        str(second)


def test_version_is_the_lowest_that_serves() -> None:
    assert str(_versioned("sm_80", lambda: ptx.bar.sync(0))).startswith(".version 7.0\n")
    assert str(_versioned("sm_90", lambda: ptx.cp["async"].bulk.commit_group())).startswith(".version 8.0\n")
    with pytest.raises(PtxError, match=r"needs PTX 8\.0"):
        str(_versioned("sm_90", lambda: ptx.cp["async"].bulk.commit_group(), version="7.8"))


def _versioned(target: str, write: Callable[[], Any], version: str | None = None) -> Any:
    @kernel(target=target, version=version)
    def k() -> None:
        write()

    return k


def test_for_a_wrong_modifier_the_legal_ones_are_listed() -> None:
    found = refusal(lambda x, n, s, a: ptx.fma.rx.f32(a, a, a))
    assert found.notes[0] == "after `fma` comes `.rn`, `.rz`, `.rm`, `.rp`, `.satfinite`, `.e5m2x4`, `.e4m3x4`"
    assert found.notes[1].startswith("legal: `fma.rnd")


def test_an_address_of_several_parts_is_a_tuple() -> None:
    texture = ptx.symbol("image", "texref")
    found = refusal(lambda x, n, s, a: ptx.tex["2d"].v4.f32.f32(texture, (a, a)))
    assert found.labels[0].text == "an address of several parts is one operand: a tuple"
    (written,) = lines(lambda x, n, s, a: ptx.tex["2d"].v4.f32.f32((texture, (a, a))))
    assert written.endswith("[image, {%f1, %f1}];")


def test_a_dot_product_of_bytes_has_the_sign_of_its_factors() -> None:
    for signs, result in (("u32.u32", u32), ("s32.u32", s32), ("u32.s32", s32), ("s32.s32", s32)):
        kinds: list[type] = []
        lines(lambda x, n, s, a: kinds.append(type(ptx.dp4a[signs](n, n, 0))))  # noqa: B023
        assert kinds == [result]
