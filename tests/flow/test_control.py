"""Which branches decide whether a block runs."""

import random

import ptxlab
from ptxlab.check.program import Program
from ptxlab.flow.control import END, Control
from ptxlab.flow.effort import Effort


def control_of(body: str) -> Control:
    text = f".version 8.0\n.target sm_80\n.entry k() {{ .reg .pred %p<4>; .reg .b32 %r<9>;\n{body}\n}}"
    facts = Program(ptxlab.parse(text)).functions[0]
    return Control(facts, Effort(facts.instructions))


def test_both_sides_of_a_branch_depend_on_it_and_what_follows_does_not() -> None:
    control = control_of("@%p1 bra A; mov.b32 %r1, 1; bra B; A: mov.b32 %r1, 2; B: ret;")
    assert control.branches == {0: [], 1: [0], 2: [0], 3: []}
    assert control.merge(0) == 3
    assert control.post_dominates(3, 0)
    assert not control.post_dominates(2, 0)


def test_a_loop_decides_about_itself() -> None:
    control = control_of("mov.b32 %r1, 1; L: mov.b32 %r1, 2; @%p1 bra L; ret;")
    assert control.branches == {0: [], 1: [1], 2: []}


def test_leaving_is_a_way_like_any_other() -> None:
    control = control_of("@%p1 ret; mov.b32 %r1, 1; ret;")
    assert control.successors[0] == [1, END]
    assert control.branches == {0: [], 1: [0]}


def test_what_an_assertion_guards_does_not_depend_on_it() -> None:
    control = control_of("@%p1 bra A; trap; A: mov.b32 %r1, 1; ret;")
    assert control.branches == {0: [], 1: [], 2: []}
    control = control_of("@%p1 trap; mov.b32 %r1, 1; ret;")
    assert control.branches == {0: [], 1: []}
    control = control_of("@%p1 bra A; @%p2 bra B; mov.b32 %r1, 1; B: mov.b32 %r1, 2; trap; A: ret;")
    assert control.branches[4] == []
    assert control.post_dominates(4, 0)


def test_a_trap_on_one_of_two_ways_leaves_the_branch() -> None:
    control = control_of("@%p1 bra A; @%p2 trap; mov.b32 %r1, 1; A: ret;")
    assert control.branches == {0: [], 1: [0], 2: [0], 3: []}


def test_outer_branches_decide_as_well() -> None:
    control = control_of("@%p1 bra E; @%p2 bra E; mov.b32 %r1, 1; E: ret;")
    assert control.branches[2] == [1]
    assert control.deciding(2) == {0, 1}


def test_a_loop_without_an_end() -> None:
    control = control_of("@%p1 bra L; ret; L: mov.b32 %r1, 1; bra L;")
    assert control.branches == {0: [], 1: [0], 2: [0]}


def ends(control: Control, start: int, without: int) -> bool:
    """Whether a way leads from a block to the end past another block."""
    pending, seen = [start], {without}
    while pending:
        block = pending.pop()
        if block == END:
            return True
        if block not in seen:
            seen.add(block)
            pending.extend(control.successors[block])
    return False


def test_a_post_dominator_is_on_every_path_to_the_end() -> None:
    chance = random.Random(1)
    for _ in range(300):
        count = chance.randrange(2, 9)
        jumps = [chance.choice(["@%p1 bra L{};", "bra L{};", "@%p1 ret;", "ret;", ""]) for _ in range(count)]
        body = "".join(
            f"L{n}: mov.b32 %r1, 1; {jump.format(chance.randrange(count))}\n" for n, jump in enumerate(jumps)
        )
        control = control_of(body)
        if all(ends(control, block, without=-2) for block in control.order):
            for other in control.order:
                on_every_path = [block for block in control.order if not ends(control, other, without=block)]
                assert [block for block in control.order if control.post_dominates(block, other)] == on_every_path, body
