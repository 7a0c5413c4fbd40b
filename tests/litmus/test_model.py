"""The axioms, one by one: programs in which only this one forbids an outcome, or allows it."""

import pytest

from ptxlab.litmus import read
from ptxlab.litmus.budget import TooManyError
from ptxlab.litmus.executions import judge
from ptxlab.litmus.program import Litmus
from ptxlab.litmus.verdict import verdict


def made(columns: list[str], condition: str, initial: str, places: str) -> Litmus:
    places = places or " ".join("0" * len(columns))
    heads = " | ".join(f"P{number}@cta {cta},gpu 0" for number, cta in enumerate(places.split()))
    rows = [column.split("; ") for column in columns]
    height = max(map(len, rows))
    lines = [" | ".join(row[line] if line < len(row) else "" for row in rows) + " ;" for line in range(height)]
    return read(f"PTX t\n{{ {initial} }}\n {heads} ;\n" + "\n".join(lines) + f"\n{condition}\n")


def holds(columns: list[str], condition: str, initial: str = "x = 0; y = 0;", places: str = "") -> bool:
    test = made(columns, condition, initial, places)
    return verdict(test, judge(test)).holds


def test_a_read_in_a_loop_may_read_what_comes_later() -> None:
    loop = "L:; ld.relaxed.gpu r0, x; beq r0, 0, L"
    assert holds(["st.relaxed.gpu x, 1", loop], "forall (P1:r0 == 1)")


def test_control_dependencies_carry_no_values_out_of_thin_air() -> None:
    thread = "ld.relaxed.gpu r0, {0}; bne r0, 1, END; st.relaxed.gpu {1}, 1; END:"
    assert holds([thread.format("x", "y"), thread.format("y", "x")], "forall (x == 0 /\\ y == 0)")


def test_an_exchange_does_not_depend_on_what_it_reads() -> None:
    columns = ["atom.relaxed.gpu.exch r0, x, 1; st.relaxed.gpu y, 1", "ld.relaxed.gpu r0, y; st.relaxed.gpu x, 2"]
    assert holds(columns, "exists (P0:r0 == 2 /\\ P1:r0 == 1)")


def test_fence_sc_orders_are_per_pair_in_scope() -> None:
    """Of three fences two are in each other's scope, and the third is with neither."""
    thread = "st.relaxed.gpu {0}, 1; fence.sc.{2}; ld.relaxed.gpu r0, {1}"
    columns = [thread.format("x", "y", "cta"), thread.format("y", "x", "cta")]
    assert holds(columns, "~exists (P0:r0 == 0 /\\ P1:r0 == 0)", places="0 0")
    assert holds(columns, "exists (P0:r0 == 0 /\\ P1:r0 == 0)", places="0 1")


@pytest.mark.parametrize(("order", "verdict"), [("release", "~exists"), ("relaxed", "exists")])
def test_coherence_follows_causality(order: str, verdict: str) -> None:
    columns = [f"st.weak x, 1; st.{order}.gpu y, 1", "ld.acquire.gpu r0, y; st.weak x, 2"]
    assert holds(columns, f"{verdict} (P1:r0 == 1 /\\ x == 1)")


def test_a_barrier_with_a_count_completes_without_the_others() -> None:
    columns = ["st.weak x, 1; barrier.sync 1, 2", "barrier.sync 1, 2; ld.weak r0, x", "ld.weak r0, x"]
    assert holds(columns, "forall (P1:r0 == 1)")
    assert holds(columns, "exists (P2:r0 == 0)")


def test_a_deadlock_has_no_outcome() -> None:
    columns = ["barrier.sync 1; barrier.sync 2", "barrier.sync 2; barrier.sync 1"]
    assert holds(columns, "~exists (0 == 0)")


def test_barriers_of_a_cluster_have_phases() -> None:
    barrier = "barrier.cluster.arrive; barrier.cluster.wait"
    columns = [f"{barrier}; st.weak x, 1; {barrier}", f"ld.weak r0, x; {barrier}; {barrier}; ld.weak r1, x"]
    heads = "P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 0"
    rows = [column.split("; ") for column in columns]
    lines = [" | ".join(row[line] if line < len(row) else "" for row in rows) + " ;" for line in range(6)]
    test = read(f"PTX t\n{{ x = 0; }}\n {heads} ;\n" + "\n".join(lines) + "\nforall (P1:r0 == 0 /\\ P1:r1 == 1)\n")
    found = verdict(test, judge(test))
    assert found.holds
    assert not found.racy


def test_a_search_that_completes_no_execution_ends_too() -> None:
    reads = [f"ld.relaxed.gpu r{number}, x" for number in range(4)]
    columns = ["; ".join([*reads, "L:; ld.relaxed.gpu r4, x; bne r4, 7, L"])]
    columns.append("st.relaxed.gpu x, 1; st.relaxed.gpu x, 2; st.relaxed.gpu x, 3")
    test = made(columns, "exists (x == 3)", "x = 0;", "0 1")
    assert not judge(test).finals
    with pytest.raises(TooManyError):
        judge(test, most=500)
