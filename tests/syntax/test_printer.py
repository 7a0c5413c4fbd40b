"""Printing: one layout, nothing lost, the same program again, the same machine code."""

import os
import struct
import subprocess
from pathlib import Path

import pytest

from ptxlab.syntax import format, parse

from ..corpus import Case, files
from ..tools import assembler_for, needs_ptxas

CASES = files()
ALL = os.environ.get("PTXLAB_CORPUS") == "all"
SAMPLED = [case for n, case in enumerate(CASES) if ALL or (n % 12 == 0 and case.path.stat().st_size < 8_000)]


# One in four of the large files, and every other one of the small, in each run; all of them with --bulk.
LARGE = [case for case in CASES if case.path.stat().st_size > 16_000]
SELDOM = {case.name for n, case in enumerate(LARGE) if n % 4} | {case.name for case in CASES[1::2]}
MARKED = [pytest.param(case, marks=[pytest.mark.bulk] if case.name in SELDOM else []) for case in CASES]


@pytest.mark.bulk(one_in=5)
@pytest.mark.parametrize("case", MARKED, ids=lambda case: case.name)
def test_corpus_reads_prints_and_reads_back(case: Case) -> None:
    module = parse(case.text(), case.name)
    printed = format(module)
    again = parse(printed, case.name)
    assert again == module
    assert format(again) == printed


def test_layout_and_comments() -> None:
    text = (
        "/* first */ .version 8.0 .target sm_80 // tail\n"
        ".visible .entry k( // open\n.param .u64 a, // pointer\n// length\n.param .u32 n)\n.maxntid 128 {"
        ".reg .b32 %r<3>;mov.u32 %r1,%tid.x;// thread\n/* block */ {ret;}\nL:@%r1 bra L;// loop\n}\n"
    )
    assert format(parse(text)) == (
        "/* first */\n.version 8.0\n.target sm_80 // tail\n\n.visible .entry k(\n    // open\n"
        "    .param .u64 a, // pointer\n    // length\n    .param .u32 n\n)\n.maxntid 128\n{\n    .reg .b32 %r<3>;\n\n"
        "    mov.u32 %r1, %tid.x; // thread\n    /* block */\n    {\n        ret;\n    }\n\n"
        "L:\n    @%r1 bra L; // loop\n}\n"
    )


def test_long_initial_values_are_broken_into_lines() -> None:
    values = ", ".join(map(str, range(200)))
    module = parse(f".version 8.0\n.target sm_80\n.global .b8 a[200] = {{{values}}};\n")
    lines = format(module).splitlines()
    assert max(map(len, lines)) <= 120
    assert parse("\n".join(lines)) == module


@pytest.mark.parametrize(
    "operand",
    ["0x7fff", "-5", "7U", "0f3F800000", "0d3FF0000000000000", "1.5", "(.s64)0x8000000000000000", "0b101"],
)
def test_constants_print_as_they_were_written(operand: str) -> None:
    text = f".version 8.0\n.target sm_80\n\n.entry k\n{{\n    mov.b64 x, {operand};\n}}\n"
    assert format(parse(text)) == text


def machine_code(text: str, case: Case, folder: Path) -> dict[str, bytes]:
    """The sections of code and data that ptxas makes of a text."""
    folder.mkdir()
    (folder / "module.ptx").write_text(text)
    command = [
        assembler_for(case.version).path,
        "-arch",
        case.target,
        *case.assembler_flags,
        "module.ptx",
        "-o",
        "module.cubin",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    data = (folder / "module.cubin").read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * number) for number in range(count)]
    found = {}
    for head in heads:
        start = heads[names][4] + head[0]
        name = data[start : data.index(b"\0", start)].decode()
        if name.startswith((".text", ".nv.constant", ".nv.global")) and head[1] != 8:
            found[name] = data[head[4] : head[4] + head[5]]
    return found


@pytest.mark.bulk(one_in=3)
@needs_ptxas
@pytest.mark.parametrize("case", SAMPLED, ids=lambda case: case.name)
def test_printed_text_assembles_to_the_same_code(case: Case, tmp_path: Path) -> None:
    text = case.text()
    printed = format(parse(text))
    assert machine_code(printed, case, tmp_path / "printed") == machine_code(text, case, tmp_path / "original")
