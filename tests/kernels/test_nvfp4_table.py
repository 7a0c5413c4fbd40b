"""docs/nvfp4.md: one table of all NVFP4 kernels, of what their READMEs have, with a bound for a B200."""

import os
from importlib import import_module
from typing import Any

import pytest

from ptxlab import kernels
from ptxlab.verify.bounds import PEAKS
from tests.doc_pages import DOCS

PAGE = DOCS / "nvfp4.md"
START, END = "<!-- made of the READMEs -->\n", "<!-- end -->\n"
COLUMNS = ["TMA loads", "global reads", "MMAs", "TMEM columns", "blocks", "waves"]
SIZES: dict[str, dict[str, Any]] = {  # those whose grids the READMEs count
    "nvfp4_gemv": {"m": 4096, "k": 7168, "l": 8},
    "nvfp4_gemm": {"format": "nvfp4", "m": 128, "n": 7168, "k": 16384},
    "nvfp4_dual_gemm": {"m": 512, "n": 3072, "k": 7168},
    "nvfp4_group_gemm": {"m": "80-176-128-72-64-248-96-160", "n": 4096, "k": 7168},
}


def rows_of(name: str) -> list[dict[str, str]]:
    """The steps in a README, by the names of the columns."""
    table = kernels.readme(name).partition("<!-- steps -->\n")[2].partition("<!-- end of steps -->")[0]
    head, _, *lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    return [dict(zip(head, line, strict=True)) for line in lines]


def table() -> str:
    lines = [f"| kernel | step | {' | '.join(COLUMNS)} | bytes, at least | MMAs, at least | bound |",
             f"|---|---|{'---:|' * (len(COLUMNS) + 3)}"]  # fmt: skip
    peak = PEAKS["B200"]
    for name, size in SIZES.items():
        work = import_module(f"ptxlab.kernels.{name}").entry.work(**size)
        moved = work.bytes / peak.dram * 1e6
        computed = work.flops / peak.flops["nvfp4"] * 1e6
        for row in rows_of(name):
            if row["step"] in ("mxf4", "mxf8"):
                continue
            counted = " | ".join(row.get(column, "-") for column in COLUMNS)
            by_mma = "-" if name == "nvfp4_gemv" else f"{computed:.1f} µs"
            bound = moved if name == "nvfp4_gemv" else max(moved, computed)
            lines.append(f"| {name} | {row['step']} | {counted} | {moved:.1f} µs | {by_mma} | {bound:.1f} µs |")
    return "\n".join(lines) + "\n"


def test_the_table_is_that_of_the_readmes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    made = before + START + table() + END + rest.partition(END)[2]
    if os.environ.get("BLESS"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made


@pytest.mark.parametrize("name", SIZES)
def test_the_size_is_the_one_of_the_readme(name: str) -> None:
    numbers = [int(part) for value in SIZES[name].values() for part in str(value).split("-") if part.isdigit()]
    sentence = kernels.readme(name).partition("<!-- steps -->\n")[2].partition("\n")[0].partition("grids are")[2]
    assert all(f"{number:,}" in sentence for number in numbers)
