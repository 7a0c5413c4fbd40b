"""`multimem` on several emulated devices: a launch sees the arrays of all of them under one address."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from tests.tools import header


def run(body: str, replicas: list[Any], words: int = 4, target: str = "sm_90") -> Any:
    """Run a kernel with one thread: %rd0 is the multicast address, %r0 to %r3 are stored."""
    text = f""".entry k(.param .u64 a, .param .u64 out) {{
    .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .b16 %h<8>; .reg .f32 %f<8>; .reg .f64 %d<4>;
    ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [out];
    mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
    {body}
    st.global.v4.b32 [%rd1], {{%r0, %r1, %r2, %r3}};
    ret;
}}
"""
    out = np.zeros(4, np.uint32)
    module = ptxlab.parse(header("8.8", target) + text, name="k.ptx")
    argument = ptxlab.Multicast(replicas) if replicas else 0
    module["k"].launch(grid=1, block=1, args=[argument, out])
    return out[:words]


def arrays(*values: Any, dtype: Any = np.uint32) -> list[Any]:
    return [np.array(value, dtype) for value in values]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("add.u32", 60), ("min.s32", 5), ("max.u32", 30), ("and.b32", 4), ("or.b32", 31), ("xor.b32", 30 ^ 5 ^ 20 ^ 5)],
)
def test_loads_combine_all_replicas(operation: str, expected: int) -> None:
    found = run(
        f"multimem.ld_reduce.relaxed.sys.global.{operation} %r0, [%rd0+4];", arrays([0, 30], [0, 5], [0, 20], [0, 5])
    )
    assert found[0] == expected


def test_sums_of_floats_have_the_precision_that_is_asked_for() -> None:
    values = [[1.0, 2048.0], [1e-3, 1.0], [1e-3, 1.0], [1e-3, 1.0]]
    halves = arrays(*values, dtype=np.float16)
    found = run("multimem.ld_reduce.global.add.f16x2 %r0, [%rd0];", halves)[:1].view(np.float16)
    total = halves[0]
    for other in halves[1:]:
        total = total + other
    assert found.tolist() == total.tolist()
    wide = run("multimem.ld_reduce.global.add.acc::f32.f16x2 %r0, [%rd0];", halves)[:1].view(np.float16)
    assert wide.tolist() == sum(half.astype(np.float32) for half in halves).astype(np.float16).tolist()
    assert found[1] != wide[1]


def test_vectors_and_other_types() -> None:
    replicas = arrays([1.5, 2.5, 3.5, 4.5], [1.0, -2.0, 3.0, -4.0], dtype=np.float32)
    body = "multimem.ld_reduce.weak.global.add.v4.f32 {%r0, %r1, %r2, %r3}, [%rd0];"
    assert run(body, replicas).view(np.float32).tolist() == [2.5, 0.5, 6.5, 0.5]
    brains = arrays([1.0, -2.0], [3.0, 4.0], [2.0, -7.0], dtype=ml_dtypes.bfloat16)
    body = "multimem.ld_reduce.global.min.bf16x2 %r0, [%rd0];"
    assert run(body, brains)[:1].view(ml_dtypes.bfloat16).tolist() == [1.0, -7.0]
    bytes = arrays([1.0, 2.0, 3.0, 448.0], [0.5, 0.25, 16.0, 448.0], dtype=ml_dtypes.float8_e4m3fn)
    body = "multimem.ld_reduce.global.add.acc::f16.e4m3x4 %r0, [%rd0];"
    found = run(body, bytes, target="sm_100a")[:1].view(ml_dtypes.float8_e4m3fn)
    assert found.astype(float).tolist() == [1.5, 2.25, 20.0, 448.0]


def test_stores_and_reductions_act_on_all_replicas() -> None:
    replicas = arrays([1, 2], [3, 4], [5, 6])
    run("mov.b32 %r4, 100; multimem.red.relaxed.sys.global.add.u32 [%rd0+4], %r4;", replicas)
    assert [replica.tolist() for replica in replicas] == [[1, 102], [3, 104], [5, 106]]
    run("mov.b32 %r4, 7; multimem.st.weak.global.b32 [%rd0], %r4;", replicas)
    assert [replica.tolist() for replica in replicas] == [[7, 102], [7, 104], [7, 106]]
    floats = arrays([1.0, 2.0], [3.0, 4.0], dtype=np.float32)
    one = "mov.f32 %f0, 0f3F800000;"
    run(f"{one} multimem.red.release.gpu.global.add.v2.f32 [%rd0], {{%f0, %f0}};", floats)
    assert [replica.tolist() for replica in floats] == [[2.0, 3.0], [4.0, 5.0]]


@pytest.mark.parametrize(
    ("body", "replicas", "code"),
    [
        ("multimem.ld_reduce.global.add.u32 %r0, [%rd1];", [[1], [2]], "bad-multicast"),
        ("multimem.ld_reduce.global.add.u32 %r0, [%rd0+4];", [[1], [2]], "bad-multicast"),
        ("ld.global.u32 %r0, [%rd0];", [[1], [2]], "out-of-bounds"),
    ],
)
def test_multicast_addresses_are_for_multimem_alone(body: str, replicas: list[list[int]], code: str) -> None:
    with pytest.raises(ptxlab.KernelError) as raised:
        run(body, arrays(*replicas))
    assert [found.code for found in raised.value.diagnostics] == [code]


def test_arrays_that_are_not_replicas() -> None:
    with pytest.raises(ValueError, match="one type and one shape"):
        ptxlab.Multicast([np.zeros(4, np.float32), np.zeros(4, np.float16)])
    array = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="given twice"):
        ptxlab.Multicast([array, array])
    with pytest.raises(ValueError, match="0 arrays: there are 1 to 8 devices"):
        ptxlab.Multicast([])


@pytest.mark.parametrize(("store", "codes"), [("multimem.st.weak", ["data-race"]), ("multimem.st.relaxed.gpu", [])])
def test_weak_stores_of_two_blocks_race_on_every_device(store: str, codes: list[str]) -> None:
    text = f""".entry k(.param .u64 a) {{
    .reg .b64 %rd0; .reg .b32 %r0;
    ld.param.u64 %rd0, [a]; mov.u32 %r0, %ctaid.x;
    {store}.global.b32 [%rd0], %r0;
    ret;
}}
"""
    module = ptxlab.parse(header("8.1", "sm_90") + text, name="k.ptx")
    result = module["k"].launch(grid=2, block=1, args=[ptxlab.Multicast(arrays([9], [9]))], on_error="collect")
    assert [found.code for found in result.diagnostics][:1] == codes
