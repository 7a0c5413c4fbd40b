"""Programs of several parts, whose device code is linked."""

from pathlib import Path

import pytest

from ptxlab.programs.building import build
from ptxlab.programs.linking import link
from ptxlab.programs.program import ProgramOptions, run_program
from ptxlab.syntax import parse
from tests.programs.tools import needs_compilers

SOURCES = Path(__file__).parent / "linked.cu", Path(__file__).parent / "linked_second.cu"
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


@needs_compilers
@pytest.mark.parametrize(
    "options",
    [
        ["-G"],
        pytest.param([], marks=pytest.mark.bulk),
        pytest.param(["-gencode=arch=compute_90,code=sm_90"], marks=pytest.mark.bulk),
    ],
)
def test_parts_are_one_program(tmp_path: Path, options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """With PTX, with debug information, and with machine code, which keeps its PTX with `-lineinfo`."""
    made = tmp_path / "linked"
    build(SOURCES[0], made, None, ["-rdc=true", str(SOURCES[1]), *options])
    result = run_program([str(made)], ProgramOptions())
    assert capfd.readouterr().out == "part 1\n1127\npart 2, the second\n23\n"
    assert (result.status, [str(one) for one in result.findings]) == (0, [])


@needs_compilers
@pytest.mark.bulk
def test_kernels_launch_kernels(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "launches"
    build(SOURCES[0], made, None, ["-rdc=true", str(SOURCES[1]), "-DLAUNCHES"])
    result = run_program([str(made)], ProgramOptions())
    assert capfd.readouterr().out == "depth 2\ndepth 1\n1 63 33 -1\n"
    assert [str(one) for one in result.findings] == []
    assert {name: one.count for name, one in result.launches.items()} == {"parent": 3, "child": 6}


def test_names() -> None:
    """What is weak is there once, what is a part's own is renamed, and what is declared only stays declared."""
    weak = ".weak .func weak() { ret; }"
    first = f"{HEADER}.extern .func used();\n.extern .func vprintf();\n.global .u32 $str = 1;\n{weak}\n"
    second = f"{HEADER}.global .u32 $str = 2;\n.extern .func vprintf();\n{weak}\n.visible .func used() {{ ret; }}\n"
    module = parse(link([first, second], "linked"))
    functions = [(one.name, one.linkage, one.body is not None) for one in module.functions]
    assert sorted(functions) == [
        ("used", "visible", False), ("used", "visible", True), ("vprintf", "extern", False), ("weak", "weak", True),
    ]  # fmt: skip
    assert [one.name for one in module.variables] == ["$str", "$str$part1"]


def test_files_are_renumbered() -> None:
    def part(name: str) -> str:
        body = f".visible .entry {name}() {{ .loc 2 7 1, function_name $L__x, inlined_at 1 3 0\nret; }}"
        files = f'.file 1 "{name}.cu"\n.file 2 "header.h"'
        return f"{HEADER}{body}\n{files}\n.section .debug_str {{ $L__x: .b8 65,0 }}\n"

    text = link([part("a"), part("b")], "linked")
    assert ".loc 4 7 1, function_name $L__x$part1, inlined_at 3 3 0" in text
    assert '.file 3 "b.cu"' in text
    parse(text)
