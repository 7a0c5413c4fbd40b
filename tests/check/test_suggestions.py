"""What is probably meant by a small mistake: the help says it, and `--fix` writes it where that is safe."""

import pytest

import ptxlab
from ptxlab.check import check_partly
from ptxlab.report import Diagnostic, apply_edits, certain_edits
from ptxlab.syntax import read

from .lints import kernel

TILE = ".shared .align 16 .b8 tile[64];\n.global .align 16 .b8 data[64];"
START = """
    mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
    ld.param.u64 %rd1, [out];
    """


def module(line: str) -> str:
    return kernel(f"{START}{line}\nDONE:", before=TILE)


def found(text: str) -> list[Diagnostic]:
    program, faults = read(text, "k.ptx")
    return [*faults, *(check_partly(program) if faults else ptxlab.check(program))]


# The line, the help, and the line that `--fix` makes of it.
SAFE = {
    "ld.golbal.u32 %r1, [%rd1];": ("did you mean `.global`?", "ld.global.u32 %r1, [%rd1];"),
    "bar.snyc 0;": ("did you mean `.sync`?", "bar.sync 0;"),
    "st.global.fp32 [%rd1], %f2;": ("did you mean `.f32`?", "st.global.f32 [%rd1], %f2;"),
    "mov.u32 %r1, %ctadi.x;": ("did you mean `%ctaid`?", "mov.u32 %r1, %ctaid.x;"),
    "bra NEXT;\nNEXT\n    mov.u32 %r4, 0;": ("write `NEXT:`", "bra NEXT;\nNEXT:\n    mov.u32 %r4, 0;"),
    "bra next;\nnext\n    mov.u32 %r4, 0;": ("write `next:`", "bra next;\nnext:\n    mov.u32 %r4, 0;"),
    "bra DNOE;": ("did you mean `DONE`?", "bra DONE;"),
    "add.f32 %f1, %f2, 2;": ("write `2.0`", "add.f32 %f1, %f2, 2.0;"),
    "ldmatrix.sync.m8n8.x1.shared.b16 {%r1}, [tile];": (
        "write `ldmatrix.sync.aligned.m8n8.x1.shared.b16`",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [tile];",
    ),
}
# What is said, and not written: something else may be meant.
SAID = {
    "LD.global.u32 %r1, [%rd1];": "did you mean `ld`?",
    "adn.b32 %r1, %r2, %r3;": "did you mean `and`?",
    "ad.u32 %r1, %r2, %r3;": "did you mean `add`?",
    "add.f32 %f1, f3, %f2;": "did you mean `%f3`?",
    "__syncthreads();": "write `bar.sync 0;`",
    "atomicAdd(%rd1, 1);": "`call` calls a function: `call f, (a, b);`",
    "mov.u32 %r1, tid.x;": "did you mean `%tid`?",
    "mov.u32 %r1, blockIdx.x;": "did you mean `%ctaid`?",
    "cp.async.cg.shared.global [tile], [data], 8; cp.async.wait_all;": "`cp.async.ca.shared.global` takes it",
    """mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32
        {%f4, %f5, %f6, %f7}, {%r1, %r2, %r3, %r1}, {%r2, %r3}, {%f2, %f3, %f2, %f3};""": "write `.col`",
}


@pytest.mark.parametrize("line", SAFE)
def test_a_safe_fix(line: str) -> None:
    help, fixed = SAFE[line]
    (wrong,) = [one for one in found(module(line)) if one.level == "error"]
    assert [one.text for one in wrong.helps] == [help]
    text = apply_edits(module(line), certain_edits([wrong]))
    assert text == module(fixed)
    assert [one for one in found(text) if one.level == "error"] == []


@pytest.mark.parametrize("line", SAID)
def test_a_suggestion(line: str) -> None:
    (wrong,) = [one for one in found(module(line)) if one.level == "error"]
    assert [(one.text, one.edits) for one in wrong.helps] == [(SAID[line], ())]


def test_registers_that_are_too_few_are_declared() -> None:
    text = kernel("    mov.u32 %r45, 0;")
    (wrong,) = found(text)
    assert wrong.helps[0].text == "`%r<40>` declares `%r0` to `%r39`: write `%r<46>`"
    fixed = apply_edits(text, certain_edits([wrong]))
    assert ".reg .b32 %r<46>;" in fixed
    assert found(fixed) == []


def test_which_layout_a_shape_has() -> None:
    line = next(line for line in SAID if line.startswith("mma"))
    (wrong,) = [one for one in found(module(line)) if one.level == "error"]
    assert wrong.message == "`mma` takes no modifier `.row` here"
    assert wrong.labels[0].text == "with the other modifiers, only `.col` is legal here"
    assert len(wrong.notes) == len(set(wrong.notes))


def test_a_special_register_is_named_with_its_type() -> None:
    (wrong,) = found(kernel("    mov.u64 %rd5, %tid.x;"))
    assert "is the special register `%tid.x`, a `.u32`, expected a `.u64` register" in wrong.message
