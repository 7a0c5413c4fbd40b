"""The tables of steps in the READMEs: what the emulator counts and ptxas says is what is written there."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ptxlab import kernels
from ptxlab.measure.steps import Steps, resources_of
from tests.tools import needs_ptxas

START, END = "<!-- steps -->\n", "<!-- end of steps -->\n"
NAMES = [name for name in kernels.names() if START in kernels.readme(name)]


def steps_of(name: str) -> Steps:
    module: Any = import_module(f"ptxlab.kernels.{name}")
    found: Steps = module.steps()
    return found


def table_of(name: str) -> str:
    """What the README has between the marks."""
    return kernels.readme(name).partition(START)[2].partition(END)[0]


def test_kernels_of_blackwell_have_one() -> None:
    assert {"tcgen05_gemm", "block_scaled_mma", *(name for name in kernels.names() if "nvfp4" in name)} == set(NAMES)


@needs_ptxas
@pytest.mark.bulk
@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_true(name: str) -> None:
    table = str(steps_of(name))
    if os.environ.get("BLESS"):
        page = Path(kernels.__file__).parent / name / "README.md"
        before, _, rest = kernels.readme(name).partition(START)
        page.write_text(before + START + table + END + rest.partition(END)[2], encoding="utf-8")
    assert table_of(name) == table


@needs_ptxas
@pytest.mark.parametrize(("name", "number"), [("tcgen05_gemm", 2), ("nvfp4_gemv", 0)])
def test_a_row_is_true(name: str, number: int) -> None:
    """One of the table: the others are in the bulk tier."""
    steps = steps_of(name)
    row = steps.row(steps.rows[number])
    head, _, *written = [line.strip("| ").split(" | ") for line in table_of(name).splitlines() if line.startswith("|")]
    assert dict(zip(head, written[number], strict=True)) == {key: row[key] or "-" for key in head}


@needs_ptxas
@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.bulk)])
@pytest.mark.parametrize("name", NAMES)
def test_no_step_spills(name: str, number: int) -> None:
    """For sm_100a or sm_120a, and then for sm_103a."""
    steps = steps_of(name)
    launches = [launch for step in steps.rows for launch in step.launches[:1]]
    found = [resources_of(launch, target) for launch in launches for target in steps.targets[number : number + 1]]
    assert [(one.spill_stores, one.spill_loads, one.stack) for one in found] == [(0, 0, 0)] * len(found)
