"""Litmus tests of the memory model (PTX ISA 8): weak accesses race, strong ones in scope of each other never do.

A test is a few threads, each a few accesses: `Wx1` writes 1 to x, `Rx` reads x, `Ux` adds 1 to x atomically, `F` is a
fence. A thread is a block of its own, or with `together` all are in one block.
"""

import pytest

from ptxlab.report import Diagnostic
from tests.emulate.ordering import run

TESTS = {
    "message passing": ["Wx1 Wy1", "Ry Rx"],
    "store buffering": ["Wx1 Ry", "Wy1 Rx"],
    "load buffering": ["Rx Wy1", "Ry Wx1"],
    "independent reads of independent writes": ["Wx1", "Wy1", "Rx Ry", "Ry Rx"],
    "coherence of two reads": ["Wx1", "Rx Rx"],
    "coherence of two writes": ["Wx1 Wx2", "Rx Rx"],
    "coherence of writes by two": ["Wx1", "Wx2", "Rx Rx", "Rx Rx"],
    "coherence of a read and a write": ["Rx Wx1", "Wx2"],
    "coherence of a write and a read": ["Wx1 Rx", "Wx2"],
    "two writes each": ["Wx1 Wy2", "Wy1 Wx2"],
    "write to read causality": ["Wx1", "Rx Wy1", "Ry Rx"],
    "a chain of three": ["Wx1 Wy1", "Ry Wz1", "Rz Rx"],
    "a write that follows a message": ["Wx2 Wy1", "Ry Wx1"],
    "a read that follows a write": ["Wx1 Wy1", "Wy2 Rx"],
}
PLACES = {"x": 0, "y": 128, "z": 256}
FENCES = ("", "membar.gl;", "fence.acq_rel.gpu;", "fence.sc.sys;")


def statement(access: str, order: str, fence: str) -> str:
    if access == "F":
        return fence
    place = f"[%out+{PLACES[access[1]]}]"
    if access[0] == "R":
        return f"ld{order}.global.u32 %r1, {place};"
    if access[0] == "U":
        return f"atom.relaxed.{order.rpartition('.')[2] or 'gpu'}.global.add.u32 %r1, {place}, 1;"
    return f"st{order}.global.u32 {place}, {access[2]};"


def outcome(
    threads: list[str], orders: str | dict[str, str], fence: str = "", together: bool = False, seed: int = 0
) -> list[Diagnostic]:
    """What is found; `orders` says how accesses are made, all alike or by their place."""
    lines = []
    for number, accesses in enumerate(threads):
        lines.append(f"setp.ne.u32 %p1, {'%t' if together else '%b'}, {number};\n@%p1 bra after{number};")
        for access in accesses.split():
            order = orders if isinstance(orders, str) else orders.get(access[1:2], "")
            lines.append(statement(access, order, fence))
            if fence:
                lines.append(fence)
        lines.append(f"bra end;\nafter{number}:")
    lines.append("end:")
    count = len(threads)
    return run("\n".join(lines), grid=1 if together else count, block=count if together else 1, seed=seed)


def codes(found: list[Diagnostic]) -> set[tuple[str, str]]:
    return {(diagnostic.level, diagnostic.code) for diagnostic in found}


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("name", TESTS)
def test_weak_accesses_race(name: str) -> None:
    for fence in FENCES:
        for seed in range(2):
            assert codes(outcome(TESTS[name], "", fence, seed=seed)) == {("error", "data-race")}
    assert codes(outcome(TESTS[name], "", together=True)) == {("error", "data-race")}


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("order", [".relaxed.gpu", ".relaxed.sys", ".volatile"])
@pytest.mark.parametrize("name", TESTS)
def test_strong_accesses_do_not_race(name: str, order: str) -> None:
    for fence in FENCES[:2]:
        for seed in range(2):
            assert outcome(TESTS[name], order, fence, seed=seed) == []


@pytest.mark.parametrize("name", TESTS)
def test_the_scope_of_a_block_has_its_threads_only(name: str) -> None:
    assert outcome(TESTS[name], ".relaxed.cta", together=True) == []
    assert codes(outcome(TESTS[name], ".relaxed.cta")) == {("error", "data-race")}


@pytest.mark.parametrize("name", [name for name, threads in TESTS.items() if any("y" in t for t in threads)])
def test_one_weak_place_is_enough(name: str) -> None:
    strong = {"x": ".relaxed.gpu", "y": ".relaxed.gpu", "z": ".relaxed.gpu"}
    assert codes(outcome(TESTS[name], strong | {"x": ""})) == {("error", "data-race")}


@pytest.mark.parametrize(
    "threads",
    [["Ux", "Ux", "Rx"], ["Ux Wy1", "Ux Ry"], ["Wx1", "Ux", "Rx Rx"], ["Ux Ux", "Ux Ux", "Ux Ux"]],
)
def test_atomic_operations_are_strong(threads: list[str]) -> None:
    assert outcome(threads, ".relaxed.gpu") == []
    if any(access[0] != "U" for thread in threads for access in thread.split()):
        assert codes(outcome(threads, "")) == {("error", "data-race")}


def test_one_thread_alone_never_races() -> None:
    for threads in TESTS.values():
        assert outcome([" ".join(threads)], "") == []


def test_reads_do_not_race() -> None:
    assert outcome(["Rx Ry", "Ry Rx", "Rx"], "") == []


def test_accesses_to_different_places_do_not_race() -> None:
    assert outcome(["Wx1 Rx", "Wy1 Ry", "Wz1 Rz"], "") == []
