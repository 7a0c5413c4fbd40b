"""Types where debug information has none: of shared arrays by the source, of variables by PTX."""

from pathlib import Path

import pytest

from ptxlab.debug.expressions import of_ptx
from ptxlab.debug.shared_arrays import declared_type
from ptxlab.debug.types import named
from tests.tools import header

from .kernels import debugger_of

SOURCE = """\
__global__ void k() {
    __shared__ float one, tile[T][T], rows[3][N], wide[2][N][M], cube[T][T][T];
    __shared__ __align__(16) volatile unsigned short halves[8];
    __shared__ long long sums [2] , more;
    extern __shared__ int open[];
}
"""


@pytest.mark.parametrize(
    ("name", "size", "type"),
    [
        ("one", 4, "float"),
        ("one", 8, None),
        ("tile", 4 * 256, "float [16][16]"),
        ("tile", 4 * 255, "float [255]"),  # no T has so many: the elements are right
        ("rows", 4 * 12, "float [3][4]"),
        ("rows", 4 * 13, "float [13]"),
        ("wide", 4 * 18, "float [18]"),  # N and M may be 3 and 3, or 1 and 9
        ("cube", 4 * 27, "float [3][3][3]"),
        ("halves", 16, "unsigned short [8]"),
        ("halves", 15, None),
        ("sums", 16, "long long [2]"),
        ("more", 8, "long long"),
        ("open", 0, "int []"),
        ("other", 4, None),
    ],
)
def test_a_shared_array_has_the_extents_that_fit(name: str, size: int, type: str | None, tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_text(SOURCE)
    found = declared_type(name, size, [str(tmp_path / "missing.cu"), str(file)], named)
    assert (None if found is None else str(found)) == type


@pytest.mark.parametrize(
    ("type", "name"),
    [
        ("s8", "signed char"), ("s16", "short"), ("s32", "int"), ("s64", "long long"),
        ("u8", "unsigned char"), ("u16", "unsigned short"), ("b32", "unsigned int"), ("b64", "unsigned long long"),
        ("f16", "__half"), ("bf16", "__nv_bfloat16"), ("f32", "float"), ("f64", "double"),
        ("f16x2", "__half [2]"), ("b128", "unsigned char [16]"),
    ],
)  # fmt: skip
def test_a_type_of_ptx_is_one_of_cuda(type: str, name: str) -> None:
    assert str(of_ptx(type)) == name


def test_packed_elements_are_shown_one_by_one() -> None:
    body = ".shared .f16x2 t[2]; st.shared.b32 [t+4], 0x40003c00; ret;"
    text = f"{header('8.0', 'sm_90')}.entry k(.param .u64 c) {{ {body} }}"
    debugger = debugger_of(text)
    debugger.go_to(debugger.trace.steps, 0)
    assert debugger.scope.text("t[1]") == "{1.0, 2.0}"
