"""The NVFP4 kernels: factors as they are arranged, what the kernels are not for, and the sizes of the public problems.

What is found when a synchronization is left out is in `test_left_out.py`, what ptxas makes of them in `test_steps.py`.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab import kernels
from ptxlab.kernels import nvfp4_dual_gemm, nvfp4_gemm, nvfp4_gemv, nvfp4_group_gemm
from ptxlab.launch.launches import Arrays, UnsuitedError
from ptxlab.measure import Host, check
from ptxlab.measure.block_scaled import BLOCK, FORMATS, arrange, numbers
from ptxlab.measure.checking import expect
from ptxlab.measure.entry import Entry, Size


def test_factors_are_arranged_as_they_are_read() -> None:
    random = np.random.default_rng(0)
    for format in FORMATS.values():
        rows, k = 200, 320
        scale_factors = random.integers(120, 130, (rows, k // format.group)).astype(np.float64)
        stored = np.full((rows, k // 2), 0x22) if format.bits == 4 else np.ones((rows, k))  # ones
        scales = scale_factors if format.factor == "ue4m3" else 2.0 ** (scale_factors - 127)
        assert np.array_equal(numbers(np, format, stored, arrange(scale_factors)), scales.repeat(format.group, axis=1))


def decoded(format: str, stored: Any, scale_factors: Any) -> Any:
    """A matrix in float64 by the tables of ml_dtypes, from its bytes: a factor is where the PTX manual shows it."""
    found = stored.view(np.uint8)
    if format == "mxf8":
        elements = found.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    else:
        codes = np.stack([found & 15, found >> 4], -1).reshape(len(found), -1)
        elements = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    group, type = (16, ml_dtypes.float8_e4m3fn) if format == "nvfp4" else (32, ml_dtypes.float8_e8m0fnu)
    row, factor = np.indices((len(elements), elements.shape[1] // group))
    block = row // 128 * scale_factors.shape[1] + factor // 4
    place = 512 * block + 16 * (row % 32) + 4 * (row % 128 // 32) + factor % 4
    scales = scale_factors.reshape(-1).view(type)[place].astype(np.float64)
    return elements * scales.repeat(group, axis=1)


@pytest.mark.parametrize(("format", "m", "n", "k"), [("nvfp4", 130, 8, 288), ("mxf4", 130, 8, 352),
                                                     ("mxf8", 130, 8, 416)])  # fmt: skip
def test_products_are_those_of_the_bytes(format: str, m: int, n: int, k: int) -> None:
    """The kernel and its reference, which is right for bytes of factors, too: these are below 127."""
    given = nvfp4_gemm.arrays(Host(7), format, m, n, k)
    nvfp4_gemm.product(**given).run(device="cpu")
    a, b = (decoded(format, given[name], given[f"{name}_factors"]) for name in "ab")
    wanted = a @ b.T
    assert np.linalg.norm(given["d"] - wanted) < nvfp4_gemm.entry.tolerance * np.linalg.norm(wanted)
    assert np.array_equal(expect(np, nvfp4_gemm.entry, given)["d"], wanted)
    assert np.array_equal(nvfp4_gemm.reference(np, **given)["d"], wanted)


def test_the_reference_of_the_warp_wide_product_takes_bytes() -> None:
    entry = kernels.entry("block_scaled_mma")
    for size in entry.small:
        given = entry.arrays(Host(7), **size)
        assert np.array_equal(entry.reference(np, **given)["d"], expect(np, entry, given)["d"])


def test_what_they_are_not_for() -> None:
    given = nvfp4_gemm.arrays(Host(1), "nvfp4", 16, 8, 64)
    with pytest.raises(UnsuitedError, match="factors of A are float8_e4m3fn"):
        nvfp4_gemm.product(**given | {"a_factors": given["a_factors"][:, :0]})
    with pytest.raises(UnsuitedError, match="A is uint8, 80 numbers a row"):
        nvfp4_gemm.product(**given | {"a": given["a"][:, :16].repeat(4, axis=1)[:, :40]})
    with pytest.raises(UnsuitedError, match="n a multiple of 8"):
        nvfp4_gemm.product(**nvfp4_gemm.arrays(Host(1), "nvfp4", 16, 12, 64))


@pytest.mark.bulk
@pytest.mark.parametrize(("format", "m", "n", "k"), [("nvfp4", 200, 136, 544), ("mxf4", 130, 128, 352),
                                                     ("mxf8", 128, 136, 416)])  # fmt: skip
def test_results_in_the_readme(format: str, m: int, n: int, k: int) -> None:
    given = nvfp4_gemm.arrays(Host(7), format, m, n, k)
    nvfp4_gemm.product(**given).run(device="cpu")
    floats = {name: array if name == "format" else array.astype(np.float64) for name, array in given.items()}
    d, wanted = given["d"], nvfp4_gemm.reference(np, **floats | {"d": None})["d"]
    error = np.linalg.norm(d - wanted) / np.linalg.norm(wanted)
    other = (d != wanted.astype(np.float16)).sum()
    row = f"| {format} | {m}, {n}, {k} | {error:.2e} | {other} of {d.size:,} |"
    assert row in kernels.readme("nvfp4_gemm").splitlines()


CASES = [
    pytest.param(name, variant, size, id=f"{name}-{variant}-{number}")
    for name in kernels.names()
    if "nvfp4" in name or name == "block_scaled_mma"
    for variant in kernels.entry(name).variants
    for number, size in enumerate(kernels.entry(name).small)
]


@pytest.mark.bulk
@pytest.mark.parametrize(("name", "variant", "size"), CASES)
def test_they_are_right_and_silent_under_many_seeds(name: str, variant: str, size: Size) -> None:
    entry = kernels.entry(name)
    arrays = entry.arrays(Host(7), **size)
    expected = expect(np, entry, arrays)
    (launch,) = entry.launches(variant, arrays)
    for seed in range(20):
        assert launch.run(device="cpu", seed=seed, on_error="collect").diagnostics == []
        check(np, entry, size, arrays, expected, variant)


def size(entry: Entry, number: int) -> dict[str, Any]:
    """One of the sizes to measure, which are those of the public problems."""
    return dict(entry.sizes[number])


def compare(module: Any, computed: Any, parts: Arrays, **more: Any) -> int:
    """Compare each tile of D that was computed with float64; how many there are.

    `parts` are the matrices and factors that D is computed from; those of which D has rows have names with `a`.
    """
    tiles = 0
    for row in range(0, computed.shape[0], BLOCK):
        for column in range(0, computed.shape[1], BLOCK):
            tile = computed[row : row + BLOCK, column : column + BLOCK].astype(np.float64)
            if np.isnan(tile).all():
                continue
            given = {}
            for name, array in parts.items():
                start = row if name.startswith("a") else column
                step = 1 if "factors" not in name else BLOCK
                given[name] = array[start // step : -(-(start + BLOCK) // step)].astype(np.float64)
            (wanted,) = module.reference(np, **given, **more).values()
            assert np.linalg.norm(tile - wanted) < module.entry.tolerance * np.linalg.norm(wanted)
            tiles += 1
    return tiles


@pytest.mark.bulk
@pytest.mark.optimized
@pytest.mark.parametrize("number", range(3))
def test_public_sizes_of_the_product(number: int) -> None:
    """Two blocks of the whole grid: each computes one or two tiles of 128 by 128."""
    given = nvfp4_gemm.arrays(Host(1), **size(nvfp4_gemm.entry, number))
    launch = nvfp4_gemm.product(**given)
    assert launch.run(device="cpu", blocks=[0, launch.grid - 1]).diagnostics == []  # type: ignore[operator]
    d, format = given["d"], given["format"]
    parts = {name: given[name] for name in ("a", "a_factors", "b", "b_factors")}
    assert compare(nvfp4_gemm, d, parts, d=None, format=format) == 2


@pytest.mark.bulk
@pytest.mark.optimized
@pytest.mark.parametrize("number", range(4))
def test_public_sizes_of_the_gated_product(number: int) -> None:
    given = nvfp4_dual_gemm.arrays(Host(1), **size(nvfp4_dual_gemm.entry, number))
    launch = nvfp4_dual_gemm.product(**given)
    assert launch.run(device="cpu", blocks=[0, launch.grid - 1]).diagnostics == []  # type: ignore[operator]
    assert compare(nvfp4_dual_gemm, given.pop("d"), given, d=None) == 2


@pytest.mark.bulk
@pytest.mark.optimized
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("number", range(4))
def test_public_sizes_of_the_group_product(number: int, changed: bool) -> None:
    """One block goes through tiles of several groups."""
    given = nvfp4_group_gemm.arrays(Host(1), **size(nvfp4_group_gemm.entry, number))
    launch = nvfp4_group_gemm.product(**given, changed=changed)
    assert launch.run(device="cpu", blocks=[0]).diagnostics == []
    tiles = 0
    for group in range(len(given) // 5):
        parts = {part: given[f"{part}{group}"] for part in ("a", "a_factors", "b", "b_factors")}
        tiles += compare(nvfp4_gemm, given[f"d{group}"], parts, d=None, format="nvfp4")
    assert tiles == -(-sum(-(-int(m) // 128) * (given["b0"].shape[0] // 128) for m in rows(number)) // launch.grid)  # type: ignore[operator]


def rows(number: int) -> list[str]:
    """The rows of each group."""
    found: list[str] = size(nvfp4_group_gemm.entry, number)["m"].split("-")
    return found


@pytest.mark.bulk
@pytest.mark.optimized
@pytest.mark.parametrize("number", range(3))
def test_public_sizes_of_the_product_with_vectors(number: int) -> None:
    """The first and the last block, of eight rows each."""
    given = nvfp4_gemv.arrays(Host(1), **size(nvfp4_gemv.entry, number))
    launch = nvfp4_gemv.product(**given)
    across, batch = launch.grid  # type: ignore[misc]
    assert launch.run(device="cpu", blocks=[(0, 0, 0), (across - 1, batch - 1, 0)]).diagnostics == []
    for one, part in ((0, slice(0, 8)), (batch - 1, slice(-8, None))):
        some = {name: given[name][one : one + 1].astype(np.float64) for name in given}
        some["a"], some["a_factors"] = some["a"][:, part], some["a_factors"][:, part]
        wanted = nvfp4_gemv.reference(np, **some)["y"][0]
        assert np.linalg.norm(given["y"][one, part] - wanted) < nvfp4_gemv.entry.tolerance * np.linalg.norm(wanted)
