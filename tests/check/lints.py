"""Small kernels to try a lint on: `findings` checks one, and asks ptxas, if there is one, whether it accepts it."""

import ptxlab
from ptxlab.report import Diagnostic
from ptxlab.toolchain import accepted, judge
from tests.tools import is_there

REGISTERS = """
    .reg .pred %p<10>;
    .reg .b16 %h<10>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<20>;
    .reg .f32 %f<80>;
"""


def kernel(body: str, target: str = "sm_80", version: str = "8.3", before: str = "", directives: str = "") -> str:
    """A module with one kernel; the first line of `body` is line 1 of what `line_of` counts."""
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{before}\n"
        f".visible .entry k(.param .u64 out, .param .u32 n) {directives} {{{REGISTERS}{body}\n    ret;\n}}\n"
    )


def findings(text: str, code: str) -> list[Diagnostic]:
    """What the lint finds; no other rule may find anything, and ptxas accepts the module."""
    found = ptxlab.check(ptxlab.parse(text, name="k.ptx"))
    assert [diagnostic.code for diagnostic in found if diagnostic.code != code] == []
    if is_there("ptxas"):
        verdicts = judge(text)
        assert accepted(verdicts), verdicts
    return found


def line_of(text: str, part: str) -> int:
    """The line of the first place where `part` is."""
    return text[: text.index(part)].count("\n") + 1
