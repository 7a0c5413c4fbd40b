"""Litmus tests as text: what is read, and what is said of what can't be read."""

import pytest

from ptxlab.litmus import read
from ptxlab.litmus.program import Atomic, Barrier, Branch, ClusterBarrier, Fence, Label, Load, Position, Store
from ptxlab.report import PtxError

HEAD = "PTX t\n{ x = 0; y = 1; P1:r3 = 7; }\n"


def instructions(*lines: str) -> list[object]:
    rows = "\n".join(f" {line} ;" for line in lines)
    return list(
        read(f"PTX t\n{{ x = 0; b @ mbarrier 2; }}\n P0@cta 0,gpu 0 ;\n{rows}\nexists (0 == 0)").threads[0].instructions
    )


def test_a_test_has_a_name_threads_variables_and_a_condition() -> None:
    text = """PTX some name
"what it is about" (* a comment *)
{ x = 3; z @ generic aliases x; s @ surface aliases z; P1:r3 = 7; }
 P0@cta 0,gpu 0 | P1@cta 1,cluster 2,gpu 1 ;
 st.weak x, 1   | ld.weak r0, z            ;
                | suld.weak r1, s          ;
filter (P1:r0 == 1)
forall (~(P1:r0 != 1 /\\ x == 0) \\/ 1:r3 >= 7);
"""
    test = read(text)
    assert test.name == "some name"
    assert [(thread.name, thread.position, len(thread.instructions)) for thread in test.threads] == [
        ("P0", Position(0, -1, 0), 1),
        ("P1", Position(1, 2, 1), 2),
    ]
    assert test.threads[1].initial == {"r3": 7}
    assert [(one.location, one.address, one.initial) for one in test.variables.values()] == [
        ("x", "x", 3),
        ("x", "z", 3),
        ("x", "z", 3),
    ]
    assert (test.quantifier, test.condition.operation) == ("forall", "or")
    assert test.filter is not None


def test_every_instruction_is_read() -> None:
    found = instructions(
        "ld.acquire.cta r0, [x]", "st.volatile x, 1", "atom.acq_rel.sys.cas r1, x, 0, r0", "red.release.gpu.add x, 2",
        "fence.sc.cluster", "membar.gl", "barrier.arrive 1, 2", "bar.cta.sync 0, 3, 2",
        "barrier.cluster.arrive.relaxed", "LC00:", "bne r0, 1, LC00", "goto LC00",
        "mbarrier.arrive b", "mbarrier.test_wait.relaxed.cluster r2, b",
    )  # fmt: skip
    kinds = [
        Load,
        Store,
        Atomic,
        Atomic,
        Fence,
        Fence,
        Barrier,
        Barrier,
        ClusterBarrier,
        Label,
        Branch,
        Branch,
        Atomic,
        Load,
    ]
    assert [type(one) for one in found] == kinds
    store, barrier = found[1], found[7]
    assert isinstance(store, Store)
    assert (store.order, store.scope) == ("relaxed", "sys")
    assert isinstance(barrier, Barrier)
    assert (barrier.number, barrier.count) == (3, 2)


@pytest.mark.parametrize(
    ("line", "message", "position"),
    [
        ("ld.aquire.gpu r0, x", "`ld.aquire.gpu` has no order that it can have", (4, 2)),
        ("ld.acquire r0, x", "`ld.acquire` needs one scope", (4, 2)),
        ("st.weak.gpu x, 1", "`st.weak.gpu`: a weak operation has no scope", (4, 2)),
        ("st.acquire.gpu x, 1", "`st.acquire.gpu` has no order that it can have", (4, 2)),
        ("atom.relaxed.gpu.inc r0, x, 1", "`atom.relaxed.gpu.inc` names no operation", (4, 2)),
        ("ldd.weak r0, x", "`ldd.weak` is not an instruction of litmus tests", (4, 2)),
        ("st.weak x 1", "expected `,`, found `1`", (4, 12)),
        ("bne r0, 1, NOWHERE", "thread `P0` has no label `NOWHERE`", (4, 2)),
        ("mbarrier.arrive x", "`x` is not an mbarrier", (4, 18)),
        ("fence.proxy.async", "there is no `fence.proxy.async` in litmus tests", (4, 2)),
        ("st.weak x, 1 ?", "a litmus test has no `?`", (4, 15)),
        ("st.weak x, 1 | st.weak x, 2", "expected `;` after an instruction, found `|`", (4, 15)),
    ],
)
def test_what_is_wrong_is_said_where_it_is(line: str, message: str, position: tuple[int, int]) -> None:
    with pytest.raises(PtxError) as raised:
        read(f"PTX t\n{{ x = 0; }}\n P0@cta 0,gpu 0 ;\n {line} ;\nexists (x == 1)")
    (found,) = raised.value.diagnostics
    assert (found.code, found.message, (found.line, found.column)) == ("bad-litmus", message, position)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AArch64 t\n{ }\n", "expected `PTX` or `ptx`, found `AArch64`"),
        ("PTX t\n", "expected `{` and the initial values, found the end of the file"),
        (HEAD + " P0@cta 0,gpu 0 | P2@cta 0,gpu 0 ;\n", "expected thread `P1`, found `P2`"),
        (HEAD + " P0@block 0 ;\n", "there is no level `block`"),
        (HEAD + " P0@cta 0 ;\n st.weak x, 1 ;\nexists (z == 1)", "there is no variable `z`"),
        (
            HEAD + " P0@cta 0 ;\n st.weak x, 1 ;\nexists (P3:r0 == 1)",
            "the condition names thread P3, and there is none",
        ),
        ("PTX t\n{ x @ surface aliases w; }\n", "there is no variable `w` to alias"),
    ],
)
def test_what_is_wrong_around_the_instructions(text: str, message: str) -> None:
    with pytest.raises(PtxError) as raised:
        read(text)
    assert raised.value.diagnostics[0].message == message
