"""`contract`: products and sums that round once, and which of them ptxas contracts."""

from fractions import Fraction

import numpy as np
import pytest

import ptxlab
from tests.emulate.launching import kernel, launch
from tests.tools import header, needs_nvdisasm

LOADS = """
    ld.param.u64 %rd1, [x]
    ld.global.v2.f32 {%f1, %f2}, [%rd1]
    ld.global.v2.f32 {%f3, %f4}, [%rd1+8]
"""
# One and a bit, squared: the product needs more bits than f32 has, and the sum shows them.
A, B, C, D = (np.float32(value) for value in (1 + 2**-12, 1 + 2**-13, -1.0, 3.0))


def run(body: str, **how: object) -> float:
    """What `%f9` is after these statements."""
    x = np.array([A, B, C, D, 0], np.float32)
    lines = ";\n".join(
        line.strip().rstrip(";") for line in f"{LOADS}{body}\nst.global.f32 [%rd1+16], %f9\nret".strip().splitlines()
    )
    launch(f"{lines};", ".u64 x", [x], **how)
    return float(x[4])


def once(a: float, b: float, c: float) -> float:
    return float(np.float32(np.float64(a) * np.float64(b) + np.float64(c)))  # exact before it is rounded


def twice(a: float, b: float, c: float) -> float:
    return float(np.float32(np.float32(np.float32(a) * np.float32(b)) + np.float32(c)))


FUSED = once(A, B, C)
PLAIN = twice(A, B, C)


def test_none_is_the_default_and_all_rounds_once() -> None:
    body = "mul.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3"
    assert FUSED != PLAIN
    assert [run(body), run(body, contract="none"), run(body, contract="all")] == [PLAIN, PLAIN, FUSED]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mul.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f3, %f5", FUSED),
        ("mul.f32 %f5, %f1, %f2;\nneg.f32 %f6, %f3;\nsub.f32 %f9, %f5, %f6", FUSED),
        ("mul.f32 %f5, %f1, %f2;\nneg.f32 %f6, %f3;\nsub.f32 %f9, %f6, %f5", -FUSED),
        ("mul.f32 %f5, %f1, %f2;\nneg.f32 %f6, %f5;\nmov.f32 %f7, %f6;\nsub.f32 %f9, %f3, %f7", FUSED),
        # The factors are written again before the sum, and the product is also read by others.
        ("mul.f32 %f5, %f1, %f2;\nmov.f32 %f1, %f4;\nmov.f32 %f2, %f4;\nadd.f32 %f9, %f5, %f3", FUSED),
        ("mul.f32 %f5, %f1, %f2;\nst.global.f32 [%rd1], %f5;\nadd.f32 %f9, %f5, %f3", FUSED),
        # Not contracted: rounding is stated, types or `.ftz` differ, the product is clamped, or there are several.
        ("mul.rn.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3", PLAIN),
        ("mul.f32 %f5, %f1, %f2;\nadd.rn.f32 %f9, %f5, %f3", PLAIN),
        ("mul.ftz.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3", PLAIN),
        ("mul.sat.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3", 0.0),
        ("setp.gt.f32 %p1, %f4, %f1;\nmul.f32 %f5, %f3, %f3;\n@%p1 mul.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3",
         PLAIN),
        ("mul.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f5", float(np.float32(A * B)) * 2),
    ],
)  # fmt: skip
def test_what_may_be_contracted(body: str, expected: float) -> None:
    assert run(body, contract="all") == expected


def test_factors_of_a_loop_are_those_of_the_product() -> None:
    """The product is that of the iteration before, whose factor has changed since."""
    body = """mov.f32 %f5, 0f00000000
    mov.f32 %f9, 0f00000000
    mov.u32 %r1, 0
    again:
    mul.f32 %f6, %f1, %f2
    add.f32 %f1, %f1, %f4
    add.f32 %f9, %f6, %f3
    add.u32 %r1, %r1, 1
    setp.lt.u32 %p1, %r1, 2
    @%p1 bra again"""
    lines = body.replace("again:\n", "again: ")
    assert run(lines, contract="all") == once(np.float32(A + D), B, C)


def test_quotients_end_with_a_product() -> None:
    body = "div.full.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3"
    assert run(body, contract="all") != run(body)
    assert run(body, contract="all") == pytest.approx(float(A) / float(B) - 1, rel=1e-3)


@pytest.mark.parametrize("type", ["f16", "f64", "bf16", "f16x2"])
def test_every_type_of_floats(type: str) -> None:
    import ml_dtypes

    kind, count = {"f16": (np.float16, 1), "f64": (np.float64, 1), "bf16": (ml_dtypes.bfloat16, 1)}.get(
        type, (np.float16, 2)
    )
    bits = np.dtype(kind).itemsize * 8 * count
    eps = {16: 2**-6, 64: 2**-30, 32: 2**-6}[bits] if type != "bf16" else 2**-5
    x = np.array([1 + eps, 1 + 2 * eps, -1, 0], kind).repeat(count)
    register, kept = {16: ("b16", "h"), 32: ("b32", "w"), 64: ("b64", "d")}[bits]
    text = (
        header("8.0", "sm_90")
        + f""".visible .entry k(.param .u64 x)
{{
    .reg .{register} %{kept}<6>;
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [x];
    ld.global.{register} %{kept}1, [%rd1];
    ld.global.{register} %{kept}2, [%rd1+{bits // 8}];
    ld.global.{register} %{kept}3, [%rd1+{bits // 4}];
    mul.{type} %{kept}4, %{kept}1, %{kept}2;
    add.{type} %{kept}5, %{kept}4, %{kept}3;
    st.global.{register} [%rd1+{3 * bits // 8}], %{kept}5;
    ret;
}}
"""
    )
    ptxlab.parse(text)["k"].launch(1, 1, [x], contract="all", device="cpu")
    exact = Fraction(float(x[0])) * Fraction(float(x[count])) + Fraction(float(x[2 * count]))
    assert [float(value) for value in x[3 * count :]] == [float(np.array(float(exact)).astype(kind))] * count


def test_nans_of_f64_keep_their_sign() -> None:
    """As on an H200 (programs 35, 94 and 163 of evidence/contraction_gpu.json), whichever operand is negated."""
    nan = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]
    for sub in ("%fd3, %fd4", "%fd4, %fd3"):
        for values in ((nan, 1.5, 2.0), (1.5, 2.0, nan)):
            x = np.array([*values, 0], np.float64)
            body = f""".reg .f64 %fd<6>;
                ld.param.u64 %rd1, [x];
                ld.global.v2.f64 {{%fd1, %fd2}}, [%rd1];
                ld.global.f64 %fd4, [%rd1+16];
                mul.f64 %fd3, %fd1, %fd2;
                sub.f64 %fd5, {sub};
                st.global.f64 [%rd1+24], %fd5;
                ret;"""
            launch(body, ".u64 x", [x], contract="all")
            assert x.view(np.uint64)[3] == 0xFFF8000000000000


@needs_nvdisasm
def test_ptxas_contracts_what_nothing_else_reads() -> None:
    alone = "mul.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f3"
    shared = "mul.f32 %f5, %f1, %f2;\nst.global.f32 [%rd1], %f5;\nadd.f32 %f9, %f5, %f3"
    assert [run(alone, contract="ptxas"), run(shared, contract="ptxas")] == [FUSED, PLAIN]
    both = "mul.f32 %f5, %f1, %f2;\nmul.f32 %f6, %f2, %f2;\nsub.f32 %f9, {}, {}"
    first, second = once(A, B, -np.float32(B * B)), once(B, B, -np.float32(A * B))
    assert first != -second
    assert [run(both.format(*order), contract="ptxas") for order in (("%f5", "%f6"), ("%f6", "%f5"))] == [first, second]


@needs_nvdisasm
def test_ptxas_computes_the_reciprocals_of_constants() -> None:
    """Rounded to nearest, which that of 33 by the function unit is not."""
    third = np.float32(1) / np.float32(33)
    bodies = [
        "div.full.f32 %f9, %f4, 0f42040000",
        "mov.b32 %r1, 0f42040000;\nmov.f32 %f5, %r1;\ndiv.approx.ftz.f32 %f9, %f4, %f5",
    ]
    for body in bodies:
        assert run(body, contract="ptxas") == float(D * third) != run(body)
    assert run(f"{bodies[0]};\nadd.f32 %f9, %f9, %f1", contract="ptxas") == once(D, third, A)


def test_a_kernel_without_pairs_needs_no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_PTXAS", "/nowhere")
    assert run("mul.rn.f32 %f9, %f1, %f2", contract="ptxas") == float(np.float32(A * B))
    with pytest.raises(ptxlab.PtxError, match="nowhere"):
        run("mul.f32 %f5, %f1, %f2;\nadd.f32 %f9, %f5, %f4", contract="ptxas")


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="contract='fast': expected one of 'none', 'all', 'ptxas'"):
        kernel("ret;").launch(1, 1, [], contract="fast")
