"""`gpu` and `result.fidelity`: whose arithmetic it is, and how it is known."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.device.result import Result
from ptxlab.isa.evidence import Evidence, evidence_of
from ptxlab.isa.gpus import GPUS, gpu_named
from ptxlab.isa.opcode import opcode
from ptxlab.isa.table import forms
from tests.emulate.launching import launch
from tests.gpu import triton
from tests.tools import header

ROOT = Path(__file__).resolve().parents[2]
MMA = (
    header("8.0", "sm_80")
    + """.visible .entry k(.param .u64 x)
{
    .reg .b32 %r<12>;
    .reg .f32 %f<10>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %laneid;
    mul.wide.u32 %rd2, %r1, 16;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd3];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, {%r2, %r3},
        {0f00000000, 0f00000000, 0f00000000, 0f00000000};
    st.global.v4.f32 [%rd3], {%f1, %f2, %f3, %f4};
    ret;
}
"""
)


def multiply(**how: object) -> tuple[np.ndarray, Result]:
    x = (np.random.default_rng(0).standard_normal((32, 8)) * 3).astype(np.float16).view(np.float32)
    result = ptxlab.parse(MMA)["k"].launch(1, 32, [x], device="cpu", **how)  # type: ignore[arg-type]
    return x, result


def test_a_module_for_an_a100_computes_as_one_unless_another_gpu_is_named() -> None:
    own, result = multiply()
    assert str(result.fidelity).startswith("as on an A100: 2")
    assert result.fidelity.modelled == {"mma": 32}
    named, _ = multiply(gpu="A100")
    there, result = multiply(gpu="H200")
    assert result.fidelity.modelled == {}
    assert result.fidelity.is_measured
    newest, _ = multiply(gpu="NVIDIA H200")
    np.testing.assert_array_equal(own, named)
    np.testing.assert_array_equal(there, newest)
    assert (own != there).any()  # an A100 adds 8 products at a time, an H200 16
    np.testing.assert_allclose(own, there, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "gpu"),
    [("h200", "H200"), ("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA GeForce RTX 5090", "RTX 5090"),
     ("rtx5090", "RTX 5090"), ("NVIDIA GB200", "GB200"), ("sm_86", "sm_86")],
)  # fmt: skip
def test_names_of_gpus(name: str, gpu: str) -> None:
    assert gpu_named(name).name == gpu


def test_an_unknown_gpu_is_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match="gpu='H2000': did you mean 'H200'\\? expected one of V100,") as refused:
        multiply(gpu="H2000")
    assert all(name in str(refused.value) for name in GPUS)


def test_a_module_that_the_gpu_cannot_run_is_refused() -> None:
    with pytest.raises(ptxlab.KernelError, match="a module for `sm_80` can't run on V100, which is `sm_70`"):
        multiply(gpu="V100")


def test_the_gpu_decides_how_much_shared_memory_there_is() -> None:
    with pytest.raises(ptxlab.KernelError, match="`sm_80` has 166912 for a block"):
        launch("ret;", shared=200_000)
    launch("ret;", shared=200_000, gpu="H100")


def test_what_is_approximate_and_what_may_be_contracted_is_said() -> None:
    x = np.ones(2, np.float32)
    body = """ld.param.u64 %rd1, [x];
    ld.global.v2.f32 {%f1, %f2}, [%rd1];
    ex2.approx.f32 %f3, %f1;
    mul.f32 %f4, %f3, %f2;
    add.f32 %f5, %f4, %f1;
    st.global.f32 [%rd1], %f5;
    ret;"""
    line = (
        "as on an A100: 6 instructions measured on an H200 or defined by the manual, 1 approximate, with an H200's "
        "results (`ex2`); 1 pair of a product and a sum that ptxas may contract was not"
    )
    assert str(launch(body, ".u64 x", [x]).fidelity) == line
    contracted = launch(body, ".u64 x", [x], gpu="H100", contract="all").fidelity
    assert str(contracted) == (
        "as on an H100: 7 instructions measured on an H200 or defined by the manual; "
        "1 of 1 pair of a product and a sum contracted, all that may be"
    )
    assert (contracted.pairs, contracted.contracted) == (1, 1)


def test_what_a_blackwell_alone_has_is_modelled() -> None:
    for text in ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", "add.f32x2", "add.f32.bf16"):
        for candidate in opcode(text).candidates:
            assert evidence_of(candidate, "sm_100a") is Evidence.MODELLED, text


def test_kernels_of_triton_were_equal_on_the_gpu() -> None:
    evidence = json.loads((ROOT / "evidence" / "triton_gpu.json").read_text())
    assert [row["kernel"] for row in evidence["rows"] if not row["equal"]] == []
    assert {row["kernel"] for row in evidence["rows"]} == {case.name for case in triton.cases()}


@pytest.mark.slow
def test_what_is_called_measured_was_measured() -> None:
    """The rule, held against what was compared with an H200, form by form."""
    evidence = json.loads((ROOT / "evidence" / "agreement_gpu.json").read_text())["forms"]
    values: dict[str, int] = {}
    for row in evidence:
        values[row["form"]] = values.get(row["form"], 0) + row["values"]
    left_out = ("cvta", "isspacep", "elect", "createpolicy")  # addresses and lanes differ from run to run
    chapters = ("matrix_move", "texture", "surface")  # the last two have a test of their own: `tests/gpu/test_textures`
    measured: dict[str, bool] = {}
    for form in forms():
        if form.semantics is None or form.since.removed or form.name[0] in left_out or form.chapter in chapters:
            continue
        found = (
            candidate for chosen in islice(form.spellings(), 30) for candidate in opcode(form.spell(chosen)).candidates
        )
        kinds = (evidence_of(one, "sm_90a") for one in found if one.form is form)
        measured[form.syntax] = measured.get(form.syntax, False) or Evidence.MEASURED in kinds
    wrong = [syntax for syntax, is_measured in measured.items() if is_measured != bool(values.get(syntax))]
    assert wrong == []
