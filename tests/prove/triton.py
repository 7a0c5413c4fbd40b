"""Which of Triton's kernels are proved: what its compiler made of `tests/corpus/triton`, for sm_80 and sm_90a.

    python -m tests.prove.triton [--processes 16] [--output FILE] [NAME ...]

Sizes, strides, the grid and the contents of arrays are arbitrary. What is assumed is what a launch shows: how long
arrays are, what strides are multiples of, and that the grid covers the sizes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import ptxlab
from ptxlab.measure.machine import commit
from tests.prove.pool import results

CORPUS = Path(__file__).parents[1] / "corpus" / "ptx"
MOST = 1 << 30  # elements: Triton's indices have 32 bits, and a block may be partly after the last
SHARED = 160 * 1024  # dynamic, as much as any of them needs


def covered(size: str, block: int, arrays: str) -> list[str]:
    """Arrays of `size` elements, a block of them for each program."""
    return [
        *(f"len({one}) == {size}" for one in arrays.split()),
        f"(grid.x - 1) * {block} < {size}",
        f"{size} <= {MOST}",
    ]


def rows(width: str, arrays: str) -> list[str]:
    """Matrices with a row for each program."""
    return [f"len({one}) == grid.x * {width}" for one in arrays.split()]


def fixed(elements: int, arrays: str) -> list[str]:
    """Arrays of so many elements for each program, of one program."""
    return [*(f"len({one}) == {elements}" for one in arrays.split()), "grid.x == 1"]


def product(m: int, n: int) -> list[str]:
    """A matrix product with tiles of m x n."""
    return ["len($0) == $3 * $6", "len($1) == $5 * $7", "len($2) == $3 * $8", "$5 <= $6", "$4 <= $7", "$4 <= $8",
            "$3 >= 1", "$4 >= 1", "$6 % 16 == 0", "$7 % 16 == 0", "$8 % 16 == 0", "$3 <= 65536", "$4 <= 65536",
            f"grid.x == (($3 + {m - 1}) // {m}) * (($4 + {n - 1}) // {n})"]  # fmt: skip


def heads(stride: str, length: str, rows: int, arrays: str) -> list[str]:
    """Queries and the like: one head for each program in y, `rows` positions for each in x."""
    return [*(f"len({one}) == grid.y * {length} * {stride}" for one in arrays.split()), f"{length} == grid.x * {rows}"]


ASSUMED: dict[str, list[str]] = {
    "elementwise.add_f32": covered("$3", 1024, "$0 $1 $2"),
    "elementwise.add_f16": [*covered("$3", 2048, "$0 $1 $2"), "$3 % 16 == 0"],
    "elementwise.gelu_bf16": [*covered("$2", 512, "$0 $1"), "$2 % 16 == 0"],
    "elementwise.dropout": covered("$2", 512, "$0 $1"),
    "elementwise.math_f32": covered("$2", 1024, "$0 $1"),
    "elementwise.math_f64": covered("$2", 128, "$0 $1"),
    "elementwise.integers": covered("$2", 512, "$0 $1"),
    "elementwise.cast_fp8": [*covered("$3", 1024, "$0 $1 $2"), "$3 % 16 == 0"],
    "elementwise.cast_bf16": [*covered("$3", 1024, "$0 $1 $2"), "$3 % 16 == 0"],
    "elementwise.inline": fixed(256, "$0 $1"),
    "reductions.softmax": [*rows("$2", "$0 $1"), "$3 <= $2", "$2 % 16 == 0"],
    "reductions.softmax_wide": [*rows("$2", "$0 $1"), "$3 <= $2", "$2 % 16 == 0"],
    "reductions.layer_norm": [*rows("$6", "$0 $1"), "len($2) == $6", "len($3) == $6", "len($4) == grid.x",
                              "len($5) == grid.x", "$6 % 16 == 0", "$6 <= 1000000"],
    "reductions.layer_norm_gradient": [*rows("$8", "$0 $1 $5"), "len($2) == $8", "len($3) == grid.x",
                                       "len($4) == grid.x", "len($6) == 64 * $8", "len($7) == 64", "$8 % 16 == 0"],
    "reductions.statistics": ["grid.x == 1", "len($0) == 2048", "len($1) == 32", "len($2) == 32"],
    "reductions.scan": fixed(2048, "$0 $1"),
    "reductions.recurrence": fixed(512, "$0 $1 $2"),
    "reductions.sort": fixed(256, "$0 $1"),
    "reductions.histogram": [*rows("1024", "$0"), "len($1) == 128"],
    "reductions.atomics": ["len($0) == 7", "len($1) == $3", "len($2) == 2 * $3", "$3 == 256 * grid.x",
                           f"$3 <= {MOST}"],
    "reductions.cross_entropy": [*rows("$3", "$0"), "len($1) == grid.x", "len($2) == grid.x", "$3 % 16 == 0"],
    "reductions.transpose": ["len($0) == $2 * $3", "len($1) == $2 * $3", "(grid.x - 1) * 64 < $2",
                             "(grid.y - 1) * 32 < $3", "$2 % 16 == 0", "$3 % 16 == 0",
                             f"$2 <= {MOST}", f"$3 <= {MOST}"],
    "reductions.gather": fixed(2048, "$0 $1 $2"),
    "matmul.f16": product(64, 64),
    "matmul.bf16": product(64, 128),
    "matmul.tf32": product(64, 64),
    "matmul.tf32x3": product(32, 32),
    "matmul.ieee": product(32, 32),
    "matmul.fp8": product(64, 128),
    "matmul.int8": product(64, 64),
    "matmul.f64": product(32, 32),
    "matmul.large": product(128, 256),
    "matmul.split_k": ["len($0) == $3 * $5", "len($1) == $4 * $5", "len($2) == $3 * $4", "$3 == 64 * grid.x",
                       "$4 == 64 * grid.y", "grid.z == 4", "$5 % 128 == 0"],
    "matmul.scaled_mxfp8": ["len($0) == 128 * grid.x * $5", "len($2) == 128 * grid.y * $5", "$5 % 128 == 0",
                            "len($1) == grid.x * $5 * 4", "len($3) == grid.y * $5 * 4", "grid.y <= 32",
                            "len($4) == 128 * grid.x * 4096"],
    "attention.forward": [*heads("$4", "$5", 64, "$0 $1 $2 $3"), "$4 % 16 == 0", "$4 >= 64"],
    "attention.forward_causal": [*heads("$4", "$5", 64, "$0 $1 $2 $3"), "$4 % 16 == 0", "$4 >= 128"],
    "attention.forward_fp8": [*heads("$4", "$5", 128, "$0 $1 $2 $3"), "$4 % 16 == 0", "$4 >= 64"],
    "attention.decode": [*rows("128", "$0 $5"), *rows("64", "$3"), "len($4) == grid.x"],
    "attention.gradient": [*heads("64", "$8", 64, "$0 $1 $2 $3 $6 $7"), "len($4) == grid.y * $8",
                           "len($5) == grid.y * $8"],
}  # fmt: skip


def files() -> list[str]:
    """The names of the files, each with its target."""
    found = [f"{name}.{target}" for name in ASSUMED for target in ("sm_80", "sm_90a")]
    return [one for one in found if (CORPUS / f"{one}.ptx.xz").exists()]


def judge(given: tuple[str, bool, float]) -> dict[str, Any]:
    """What is proved of a kernel."""
    name, bounds, timeout = given
    text = lzma.decompress((CORPUS / f"{name}.ptx.xz").read_bytes()).decode()
    module = ptxlab.parse(text, f"{name}.ptx")
    (entry,) = module.entries
    kernel = module[entry]
    assumed = ASSUMED[name.rpartition(".")[0]]
    for number in range(len(kernel.parameters) - 1, -1, -1):
        assumed = [one.replace(f"${number}", kernel.parameters[number].title) for one in assumed]
    start = process_time()
    found = ptxlab.prove(kernel, assume=assumed, shared=SHARED, replays=False, timeout=timeout, bounds=bounds)
    return {"kernel": name, "bounds": bounds, "level": found.level, "seconds": round(process_time() - start, 1),
            "gaps": [str(one) for one in found.gaps[:4]]}  # fmt: skip


def show(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each, and the counts."""
    lines = [f"{one['kernel']:40} {one['level']:12} {one['seconds']:6} s" for one in rows]
    return "\n".join([*lines, str(dict(Counter(one["level"] for one in rows)))])


def main() -> None:
    """Judge all, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--no-bounds", action="store_true")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    asked = [(one, not given.no_bounds, given.timeout) for one in files() if one.startswith(tuple(given.names) or "")]
    found = []
    for row in results(judge, asked, given.processes, given.seconds):
        print(json.dumps(row), flush=True)
        found.append(row)
    found.sort(key=lambda one: str(one["kernel"]))
    print(show(found))
    if given.output is not None:
        given.output.write_text(
            json.dumps({"commit": commit(), "processor": platform.machine(), "rows": found}, indent=1)
        )


if __name__ == "__main__":
    main()
