"""Code that nothing leads to."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "unreachable-code"
STORE = "st.shared.u32 [tile], 7;"
TILE = ".shared .u32 tile;"
LIST = """
list: .branchtargets first, second;
    ld.param.u32 %r1, [n];
    brx.idx %r1, list;"""

WRONG = {
    "after a branch": ("\n    bra done;\n    STORE\ndone:", "bra"),
    "after a return": ("\n    ret;\n    STORE", "ret"),
    "after an exit": ("\n    exit;\n    STORE", "exit"),
    "after a label that is not a target": ("\n    bra done;\nlost:\n    STORE\ndone:", "bra"),
    "a loop that only knows itself": (
        "\n    bra done;\nloop:\n    STORE\n    ld.param.u32 %r1, [n];\n    setp.eq.u32 %p1, %r1, 0;\n"
        "    @%p1 bra loop;\ndone:",
        "bra",
    ),
    "after an indirect branch": (LIST + "\n    STORE\nfirst:\n    ret;\nsecond:", "brx.idx"),
    "in a block of its own": ("\n    bra done;\n    {\n    STORE\n    }\ndone:", "bra"),
    "after branches both ways": (
        "\n    ld.param.u32 %r1, [n];\n    setp.eq.u32 %p1, %r1, 0;\n    @%p1 bra done;\n    bra done;\n"
        "    STORE\ndone:",
        "bra",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_code_that_nothing_leads_to_is_found(name: str) -> None:
    body, jump = WRONG[name]
    text = kernel(body.replace("STORE", STORE), before=TILE)
    (found,) = findings(text, CODE)
    assert found.message == "no path leads to this code"
    assert found.line == line_of(text, STORE)
    place = found.labels[1].span
    assert text[place.start : place.end].split()[0].rstrip(";") == jump
    assert found.helps[0].text.startswith(f"put a guard in front of `{jump}`")


RIGHT = {
    "guarded": "\n    ld.param.u32 %r1, [n];\n    setp.eq.u32 %p1, %r1, 0;\n    @%p1 bra done;\n    STORE\ndone:",
    "branched to from below": "\n    bra test;\nwork:\n    STORE\n    ret;\ntest:\n    bra work;",
    "listed": LIST + "\nfirst:\n    ret;\nsecond:\n    STORE",
    "a jump left over": "\n    STORE\n    bra done;\n    bra done;\ndone:",
    "a return left over": "\n    STORE\n    ret;",
    "after a trap": "\n    trap;\n    STORE",
    "an endless loop": "\nloop:\n    STORE\n    bra loop;",
}


@pytest.mark.parametrize("name", RIGHT)
def test_code_that_is_reached_or_only_leaves_is_fine(name: str) -> None:
    assert findings(kernel(RIGHT[name].replace("STORE", STORE), before=TILE), CODE) == []


def test_one_region_is_one_finding_with_its_size() -> None:
    text = kernel(
        f"\n    ret;\n    {STORE}\n    mov.u32 %r1, 1;\nagain:\n    st.shared.u32 [tile], %r1;\n    bra again;"
    )
    (found,) = findings(text.replace(".visible", TILE + ".visible"), CODE)
    assert found.notes == (f"5 instructions, up to line {line_of(text, '    bra again') + 1}",)
