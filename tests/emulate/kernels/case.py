"""What a case is: a kernel's file, its launches on NumPy arrays, and what must come out.

A case is a function of a random generator under `@case`; it makes the arrays and returns a `Run`. Kernels write the
arrays in place, so what is expected is computed before the launch, from the same arrays:

    @case("elementwise", "sm_80 sm_90")
    def vector_add(rng):
        x, y = floats(rng, 1000), floats(rng, 1000)
        out = np.zeros_like(x)
        return Run([Launch("vector_add", 4, 256, [x, y, out, 1000])], [same(out, x + y)])
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent
CASES: list["Case"] = []

Check = Callable[[str], None]
"""Raises when the arrays, or the text that the kernel printed, are not as expected."""


@dataclass(frozen=True)
class Launch:
    """One launch: an integer is one dimension."""

    entry: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: list[Any]
    """Arrays for pointers, Python numbers for scalars, `bytes` for structs; one array twice is one memory."""
    shared: int = 0
    cluster: int | tuple[int, ...] | None = None


@dataclass(frozen=True)
class Run:
    """Launches in order, of one loaded module, and what holds after the last."""

    launches: list[Launch]
    checks: list[Check]
    fails: str = ""
    """For a kernel that stops with an error: a text which that error shows."""


@dataclass(frozen=True)
class Case:
    """One kernel in one build."""

    name: str
    path: Path
    make: Callable[[np.random.Generator], Run]
    synchronizes: frozenset[str]
    """How its threads are ordered, for tests that take the order away: barriers of the `block`, the `warp` or the
    `cluster`, a `fence` or release and acquire between blocks, an `mbarrier`, an asynchronous `copy` that is waited
    for."""


def case(
    source: str, builds: str = "", synchronizes: str = ""
) -> Callable[[Callable[[np.random.Generator], Run]], Callable[[np.random.Generator], Run]]:
    """Register a case for each build of `source`; a source without builds is a file of `hand/`."""
    paths = [ROOT / "ptx" / f"{source}.{build}.ptx" for build in builds.split()] or [ROOT / "hand" / f"{source}.ptx"]

    def register(make: Callable[[np.random.Generator], Run]) -> Callable[[np.random.Generator], Run]:
        order = frozenset(synchronizes.split())
        CASES.extend(Case(f"{make.__name__}-{path.stem}", path, make, order) for path in paths)
        return make

    return register


@lru_cache(8)
def load(path: Path) -> Any:
    """The module of a file; it is read and checked once for the cases of it, which come one after the other."""
    import ptxlab

    return ptxlab.load(path)


def execute(case: Case, random: int = 0, **options: Any) -> None:
    """Launch a case through ptxlab and check it; `random` seeds its data, `options` go to `launch`."""
    from ptxlab.launch.contexts import context_of

    run = case.make(np.random.default_rng(random))
    module = load(case.path)
    context_of(module).start_anew()  # its variables have their initial values
    printed = ""
    for launch in run.launches:
        grid = launch.grid if isinstance(launch.grid, tuple) else (launch.grid,)
        block = launch.block if isinstance(launch.block, tuple) else (launch.block,)
        how = {"shared": launch.shared, "cluster": launch.cluster, **options}
        result = module[launch.entry].launch(grid=grid, block=block, args=launch.args, **how)
        printed += result.output
    for check in run.checks:
        check(printed)


def same(actual: np.ndarray, expected: Any) -> Check:
    """The array ends up equal to `expected`, exactly; NaN equals NaN."""
    expected = np.array(expected, dtype=actual.dtype).reshape(actual.shape)
    return lambda printed: np.testing.assert_array_equal(actual, expected)


def close(actual: np.ndarray, expected: Any, relative: float, absolute: float = 0.0) -> Check:
    """The array ends up within `absolute` + `relative` of `expected`."""
    expected = np.array(expected, dtype=np.result_type(actual.dtype, np.float32)).reshape(actual.shape)
    return lambda printed: np.testing.assert_allclose(
        actual.astype(expected.dtype), expected, rtol=relative, atol=absolute
    )


def same_set(actual: np.ndarray, expected: Any) -> Check:
    """The first elements of the array are those of `expected`, in any order; what follows them is untouched."""
    expected = np.sort(np.array(expected, dtype=actual.dtype))
    rest = actual[len(expected) :].copy()

    def check(printed: str) -> None:
        np.testing.assert_array_equal(np.sort(actual[: len(expected)]), expected)
        np.testing.assert_array_equal(actual[len(expected) :], rest)

    return check


def prints(lines: list[str], any_order: bool = False) -> Check:
    """The kernel prints these lines."""

    def check(printed: str) -> None:
        found = printed.splitlines()
        assert (sorted(found) if any_order else found) == (sorted(lines) if any_order else lines)

    return check


def floats(rng: np.random.Generator, *shape: int, type: Any = np.float32) -> np.ndarray:
    """Normally distributed numbers."""
    return rng.standard_normal(shape).astype(type)


def whole(rng: np.random.Generator, low: int, high: int, *shape: int, type: Any = np.int32) -> np.ndarray:
    """Integers from `low` up to but not including `high`, also as floats."""
    return rng.integers(low, high, shape).astype(type)


def words(rng: np.random.Generator, *shape: int, type: Any = np.uint32) -> np.ndarray:
    """Integers of all bits."""
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(type).itemsize), type).reshape(shape).copy()


def to_bf16(x: np.ndarray) -> np.ndarray:
    """The bits of bf16 numbers nearest to `x`, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    """The numbers that bits of bf16 represent."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def shared_bytes(case_file: str) -> int:
    """The shared memory that a kernel of Triton asks for, from the head of its file."""
    text = (ROOT / "ptx" / f"{case_file}.ptx").read_text()
    match = re.search(r"^// shared: (\d+)$", text, re.MULTILINE)
    assert match, f"{case_file} does not say"
    return int(match[1])
