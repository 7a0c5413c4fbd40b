"""The program that compares the detectors with compute-sanitizer: how it reads what was printed, what it changes."""

import json

import ml_dtypes
import numpy as np

import ptxlab
from tests.gpu.sanitizer import read_output
from tests.gpu.sanitizer_kernels import keep_loads, name_anew, read_arguments, write_arguments

OUTPUT = """========= COMPUTE-SANITIZER
@@ 3 begins
========= Error: Race reported between Write access at case_3_k+0x50
=========     and Read access at case_3_k+0x80 [4 hazards]
=========
@@ 3 ends []
@@ 4 begins
@@ 4 ends []
@@ 5 begins
@@ 5 ends ["refused: the code is for another GPU"]
@@ 6 begins
========= Invalid __global__ write of size 4 bytes
=========     at case_6_k+0x30
=========     by thread (0,0,0) in block (0,0,0)
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) on CUDA API call to cuEventQuery.
=========
@@ 6 ends ["trap"]
========= ERROR SUMMARY: 2 errors
"""


def test_a_report_belongs_to_the_kernel_that_it_names() -> None:
    found: dict[int, dict[str, str]] = {}
    assert read_output(OUTPUT, "broken off", [3, 4, 5, 6, 7], found) == 4
    assert {number: one["verdict"] for number, one in found.items()} == {
        3: "found",
        4: "silent",
        5: "refused",
        6: "found",
    }
    assert found[3]["said"] == "Error: Race reported between Write access at k+0x50"


def test_kernels_that_do_not_end() -> None:
    for printed, unended, verdict in (
        ('@@ 1 begins\n@@ 1 ends ["timeout"]\n', "broken off", "hangs"),
        ("@@ 1 begins\n", "timeout", "hangs"),
        ('@@ 1 begins\n@@ 1 ends ["trap"]\n', "broken off", "stops"),
        ("Segmentation fault", "broken off", "other"),
    ):
        found: dict[int, dict[str, str]] = {}
        assert read_output(printed, unended, [1, 2], found) == 1
        assert found[1]["verdict"] == verdict
    assert read_output("@@ 1 begins\n", None, [1, 2], found := {}) == 1
    assert found == {}, "nothing is said of a kernel that the whole run had no time for"


def test_loads_are_kept_where_the_emulator_finds_the_same() -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.shared .u32 words[64];
.visible .entry k() {
    .reg .b32 %r<4>;
    mov.u32 %r1, words;
    st.shared.u32 [%r1], %r1;
    ld.shared.u32 %r2, [%r1];
    ret;
}
"""
    sizes = {"grid": (1, 1, 1), "block": (1, 1, 1), "shared": 0}
    case = {"text": text, "entry": "k", **sizes, "args": {"arrays": [], "values": []}, "emulator": []}
    changed = keep_loads(case)
    assert "ld.shared.u32 %r2, [%r1]; st.global.u32 [%kept_at], %r2;" in changed
    assert ptxlab.parse(name_anew(changed, "k", 7)).entries == ["case_7_k"]
    assert keep_loads(case | {"emulator": ["data-race"]}) == text


def test_arguments_are_what_they_were() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    halves = np.arange(64).reshape(8, 8).astype(ml_dtypes.bfloat16)
    map = ptxlab.tensor_map(halves, box=(4, 8))
    args = [array, array, np.float32(1.5), 7, b"abc", (map, 2), halves]
    written = json.loads(json.dumps(write_arguments(args)))
    first, second, *others, (read_map, two), read_halves = read_arguments(written)
    np.testing.assert_array_equal(first, array)
    assert second is first
    assert others == [1.5, 7, b"abc"]
    assert two == 2
    assert read_map.array is read_halves
    assert read_map.encode(1024) == map.encode(1024)
    np.testing.assert_array_equal(read_halves, halves.view(np.uint16))
