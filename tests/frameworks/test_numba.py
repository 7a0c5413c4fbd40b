"""Numba's kernels on the emulator, compiled by Numba itself."""

import re
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.frameworks.numba.linking import _joined
from tests.processes import run as run_apart

KERNEL = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 x);
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], 21; call (b), twice, (a); ld.param.b32 %r1, [b]; }
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
FUNCTION = """\
.version 8.1
.target sm_80
.address_size 64
.file 1 "twice.cu"
.visible .func (.param .b32 result) twice(.param .b32 x) {
    .reg .b32 %r<3>;
    .loc 1 2 3
    ld.param.b32 %r1, [x];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [result], %r2;
    ret;
}
"""


def test_what_is_linked_is_put_before_the_kernel() -> None:
    text = _joined(KERNEL, (FUNCTION, FUNCTION))
    assert re.findall(r"\.version .*", text) == [".version 8.1"]
    assert text.count("twice(.param") == 1
    out = np.zeros(1, np.uint32)
    ptxlab.parse(text)["k"].launch(1, 1, [out])
    assert out[0] == 42


def test_a_function_of_c_without_a_result() -> None:
    """Numba declares and calls it as if it returned `None`, which is a pointer."""
    kernel = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 result) store(.param .b64 x);
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd1;
    call.uni (b),
    store,
    (a); ld.param.b64 %rd2, [b]; }
    ret;
}
"""
    function = """\
.version 8.1
.target sm_80
.address_size 64
.visible .func store(.param .b64 x) {
    .reg .b64 %rd<2>;
    ld.param.b64 %rd1, [x];
    st.global.u32 [%rd1], 7;
    ret;
}
"""
    out = np.zeros(1, np.uint32)
    module = ptxlab.parse(_joined(kernel, (function,)))
    assert ptxlab.check(module) == []
    module["k"].launch(1, 1, [out])
    assert out[0] == 7


def test_what_is_declared_before_its_definition_stays_declared() -> None:
    """Kernels with `debug=True` declare their device functions first; linked code may need another's function.

    The variables that each function of Numba has are declared wherever it is linked.
    """
    part = re.sub(r"\.(version|target|address_size).*\n|\.visible ", "", FUNCTION[: FUNCTION.index("{")])
    declared_first = KERNEL.replace(".extern .func (.param .b32 result) twice(.param .b32 x)", part.strip())
    caller = FUNCTION.replace("twice", "other").replace(".visible", KERNEL.splitlines()[3] + "\n.visible")
    caller += ".common .global .align 8 .u64 environment;\n"
    assert _joined(KERNEL, (FUNCTION, caller, caller.replace("other", "third"))).count("environment;") == 1
    for text in (
        _joined(declared_first + FUNCTION[FUNCTION.index(".visible") :].replace(".visible ", ""), (caller,)),
        _joined(KERNEL, (caller, FUNCTION)),
    ):
        out = np.zeros(1, np.uint32)
        ptxlab.parse(text)["k"].launch(1, 1, [out])
        assert out[0] == 42


@pytest.mark.parametrize("wrong", [{"target": "sm_1"}, {"grids": 3}])
def test_wrong_options(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)), ptxlab.numba.emulated(**wrong):
        pass
    with pytest.raises(TypeError, match=r"a function with @cuda\.jit, not 3"):
        ptxlab.numba.run(3, 1, 1)


needs_numba = pytest.mark.skipif(find_spec("numba_cuda") is None, reason="numba-cuda is not installed")


@pytest.mark.slow
@needs_numba
def test_a_race_is_shown_on_its_python_line() -> None:
    from numba import cuda  # type: ignore[import-not-found, unused-ignore]

    @cuda.jit
    def turned(x: Any, out: Any) -> None:
        tile = cuda.shared.array(64, dtype=np.float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        out[i] = tile[63 - i]

    @cuda.jit
    def turned_in_order(x: Any, out: Any) -> None:
        tile = cuda.shared.array(64, dtype=np.float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        cuda.syncthreads()
        out[i] = tile[63 - i]

    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    found = ptxlab.numba.run(turned, 1, 64, x, out, on_error="collect").diagnostics
    assert [one.code for one in found] == ["data-race"]
    assert "out[i] = tile[63 - i]" in ptxlab.render(found)
    assert ptxlab.numba.run(turned_in_order, 1, 64, x, out, target="sm_80").diagnostics == []
    np.testing.assert_array_equal(out, x[::-1])


@pytest.mark.slow
@needs_numba
def test_host_code_as_it_is() -> None:
    from numba import cuda

    @cuda.jit
    def scale(x: Any, pair: Any, factor: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            x[i] = x[i] * factor + pair[1][i]

    @cuda.jit(debug=True, opt=False)
    def divide(x: Any, by: int) -> None:
        x[0] = x[0] // by

    with ptxlab.numba.emulated() as session:
        halves, added = np.arange(8, dtype=np.float16), cuda.to_device(np.ones(8, np.float16))
        scale[2, 4](halves, (1, added), np.float16(2))
        scale.forall(8)(halves, (1, added), np.float16(1))
        with pytest.raises(ZeroDivisionError, match="tid="):
            divide[1, 1](np.ones(1, np.int64), 0)
    np.testing.assert_array_equal(halves, 2 * np.arange(8) + 2)
    assert [one.name for one in session.launches] == ["scale", "scale", "divide"]


@pytest.mark.slow
@needs_numba
def test_a_numpy_that_numba_does_not_know() -> None:
    """NumPy 2.5 has no `row_stack`."""
    code = """
import numpy as np
if vars(np).pop("row_stack", None):
    np.__all__.remove("row_stack")
import ptxlab
from numba import cuda
def double(x):
    x[cuda.threadIdx.x] *= 2
x = np.arange(32)
ptxlab.numba.run(cuda.jit(double), 1, 32, x)
print(x[5], hasattr(np, "row_stack"))
"""
    assert run_apart(code) == "10 False\n"
