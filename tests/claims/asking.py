"""Statements put to ptxlab, to ptxas and to the disassembler, where the tests of claims need an answer."""

from __future__ import annotations

import pytest

import ptxlab
from ptxlab.toolchain import accepted, assemble, disassemble, judge
from tests.tools import is_there

REGISTERS = """
    .reg .b8 %b<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<128>;
    .reg .pred %p<4>;
    .shared .align 128 .b8 buffer[1024];
"""
needs_disassembler = pytest.mark.skipif(
    not (is_there("ptxas") and is_there("nvdisasm")), reason="no ptxas or no nvdisasm: install `ptxlab[toolchain]`"
)


def module(statements: str, target: str = "sm_90a", version: str = "8.7", before: str = "") -> str:
    """A kernel of these statements; `%rd0` is its parameter, an address of global memory."""
    return (
        f"{before}.version {version}\n.target {target}\n.address_size 64\n"
        f".visible .entry k(.param .u64 pointer)\n{{{REGISTERS}"
        f"    ld.param.u64 %rd0, [pointer];\n    cvta.to.global.u64 %rd0, %rd0;\n    {statements}\n    ret;\n}}\n"
    )


def is_legal(statements: str, target: str = "sm_90a", version: str = "8.7") -> bool:
    """Whether ptxlab takes the statements for legal; where there is a ptxas, it must agree."""
    text = module(statements, target, version)
    ours = _is_clean(text)
    if is_there("ptxas"):
        assert ours == accepted(judge(text)), judge(text)
    return ours


def _is_clean(text: str) -> bool:
    try:
        found = ptxlab.check(ptxlab.parse(text))
    except ptxlab.PtxError:
        return False
    return all(diagnostic.level != "error" for diagnostic in found)


def machine_code(text: str, target: str = "sm_90a") -> dict[str, list[str]]:
    """The SASS of the kernels of a text, without padding."""
    assembly = assemble(text, target)
    assert assembly.cubin, assembly.diagnostics
    return {
        function.name: [one.text for one in function.instructions if one.opcode != "NOP"]
        for function in disassemble(assembly.cubin)
    }


def opcodes(kernels: dict[str, str], target: str = "sm_90a") -> dict[str, list[str]]:
    """The operations that the statements of kernels become, with their modifiers.

    They are kernels of one module: a disassembler takes most of a second to start.
    """
    head, entry = module("STATEMENTS", target).split(".visible", 1)
    text = head + "".join(
        f".visible{entry}".replace("entry k(", f"entry {name}(").replace("STATEMENTS", statements)
        for name, statements in kernels.items()
    )
    return {
        name: [one.split()[1 if one.startswith("@") else 0] for one in code]
        for name, code in machine_code(text, target).items()
    }
