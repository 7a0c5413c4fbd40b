"""Basic blocks and the ways between them."""

from ptxlab.ir.flow import flow_of
from ptxlab.syntax import parse


def successors(body: str) -> list[list[int]]:
    """The successors of each block of a kernel."""
    text = f".version 8.0\n.target sm_80\n.entry k {{ .reg .pred %p; .reg .b32 %r;\n{body}\n}}"
    return [block.successors for block in flow_of(parse(text)["k"]).blocks]


def test_branches() -> None:
    assert successors("@%p bra L; mov.b32 %r, 1; bra.uni M; L: mov.b32 %r, 2; M: ret;") == [[2, 1], [3], [3], []]


def test_loop_and_guarded_return() -> None:
    assert successors("L: @%p ret; bra L;") == [[1], [0]]


def test_indexed_branch() -> None:
    assert successors("T: .branchtargets A, B; brx.idx %r, T; A: exit; B: trap;") == [[1, 2], [], []]


def test_labels_of_inner_blocks() -> None:
    assert successors("L: mov.b32 %r, 1; { L: @%p bra L; } bra L;") == [[1], [1, 2], [0]]


def test_targets_that_name_themselves_lead_nowhere() -> None:
    assert successors("T: .branchtargets T; brx.idx %r, T; ret;") == [[], []]


def test_unreachable_and_order() -> None:
    text = ".version 8.0\n.target sm_80\n.entry k { bra L; trap; L: ret; }"
    flow = flow_of(parse(text)["k"])
    assert flow.reachable() == [True, False, True]
    assert flow.ordered() == [0, 2]


def test_a_function_without_instructions_has_no_blocks() -> None:
    assert successors("done:") == []


def test_dominators() -> None:
    text = ".version 8.0\n.target sm_80\n.entry k { .reg .pred %p; @%p bra L; M: @%p bra N; L: bra M; N: ret; trap; }"
    flow = flow_of(parse(text)["k"])
    assert flow.dominators() == {0: 0, 1: 0, 2: 0, 3: 1}
    assert [flow.block_at(position) for position in range(5)] == [0, 1, 2, 3, 4]
