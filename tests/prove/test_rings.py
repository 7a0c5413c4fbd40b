"""Rings of mbarriers: proved for any number of turns; none of their wrong twins is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels.wgmma_steps import product
from ptxlab.kernels.wgmma_steps.parts import Shape
from ptxlab.prove.theories import solver
from tests.prove.rings import ASSUMED, judge, ring

pytestmark = pytest.mark.skipif(solver.z3 is None, reason="Z3 is not installed: `pip install 'ptxlab[prove]'`")
PAGES = Path(__file__).parents[2] / "docs" / "hopper"


def on_page(name: str) -> str:
    """The kernel that a page shows."""
    text = re.search(r'KERNEL = """\\\n(.*?)"""', (PAGES / name).read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    return text[1]


def prove(text: str, threads: int, tile: int) -> Any:
    given = [*ASSUMED, f"len(x) == {tile // 4} * count", f"len(y) == {tile // 4}"]
    return ptxlab.prove(ptxlab.parse(text, "ring.ptx")["ring"], block=threads, assume=given, replays=False)


@pytest.mark.parametrize("seed", [1, pytest.param(5, marks=pytest.mark.bulk), pytest.param(2, marks=pytest.mark.bulk)])
def test_a_ring_of_any_number_of_tiles(seed: int) -> None:
    found = prove(*ring(seed, is_right=True))
    assert found.level == "proved", str(found)
    assert found.counts is not None
    assert found.counts["mbarrier"] >= 20


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.bulk), pytest.param(3, marks=pytest.mark.bulk)])
def test_a_producer_that_waits_for_all_stages_after_its_loops(seed: int) -> None:
    found = prove(*ring(seed, is_right=True, is_nested=True, is_drained=True))
    assert found.level == "proved", str(found)


@pytest.mark.parametrize(("barriers", "level"), [("barriers[6]", "proved"), ("barriers[3], empty[3]", "not-proved")])
def test_the_ring_of_the_page(barriers: str, level: str) -> None:
    """PTX does not say where `empty` is, and the kernel reaches it by the address of the other."""
    text = on_page("03-ring.md").replace("barriers[6]", barriers)
    given = ["count >= 1", "grid.x == 1", "len(x) == 128 * count", "len(y) == 128"]
    found = ptxlab.prove(ptxlab.parse(text, "ring.ptx")["sums"], block=160, assume=given, replays=False)
    assert found.level == level, str(found)


RIGHT = 4  # two stages, one warp that reads, all of whose threads arrive
TWINS = [
    ("mov.u32 %parity, 0;", "mov.u32 %parity, 1;", "the wait may miss its phase"),
    ("mov.u32 %parity, 1;", "mov.u32 %parity, 0;", "these wait for each other in one turn"),
    ("[%full_at], 128;", "[%full_at], 64;", "it expects 64 bytes, and 128 come"),
    ("[%r2], 1;", "[%r2], 2;", "it expects 2, and 1 come"),
    ("    mbarrier.arrive.shared.b64 _, [%empty_at];", "", "no thread arrives"),
    ("bar.sync 0;", "", "no barrier is between the two"),
    ("@!%done bra emptied;", "", "a wait that is not repeated at once until it is over is not followed"),
    ("@%last xor.b32 %parity, %parity, 1;", "", "the parity of this wait does not change from phase to phase"),
    ("setp.lt.u32 %p1, %tile, %count;\n    @%p1 bra consume;", "setp.le.u32 %p1, %tile, %count;\n    @%p1 bra consume;",
     "it is not shown that it always does"),
    ("ld.shared.u32 %value, [%r4];", "st.shared.u32 [%r4], %r0;", "two threads may access the same bytes"),
]  # fmt: skip


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(("old", "new", "reason"), TWINS)
def test_a_wrong_ring_is_not_proved(old: str, new: str, reason: str) -> None:
    text, threads, tile = ring(RIGHT, is_right=True)
    assert old in text
    found = prove(text.replace(old, new, 1), threads, tile)
    assert found.level == "not-proved", str(found)
    assert any(reason in gap.reason for gap in found.gaps), str(found)


LATE = 15  # in an outer loop; a stage is given back in the next turn, the last one after the inner loop
NESTED = [
    ("consume_more:\n", "consume_more:\n    mov.u32 %stage, 0;\n"),
    ("produce_more:\n", "produce_more:\n    mov.u32 %parity, 1;\n"),
    ("setp.lt.u32 %p1, %round, %rounds;\n    @%p1 bra produce_more;",
     "setp.le.u32 %p1, %round, %rounds;\n    @%p1 bra produce_more;"),
    ("    @%p1 bra consume_more;", "    add.u32 %count, %count, 1;\n    @%p1 bra consume_more;"),
    ("@%p1 bra kept;", ""),
    ("    @%p1 bra consume;\n", "    @%p1 bra consume;\n    mbarrier.arrive.shared.b64 _, [%r5];\n"),
    ("produce_more:\n    mov.u32 %tile, 0;\n", "produce_more:\n    and.b32 %tile, %round, 1;\n"),
]  # fmt: skip


@pytest.mark.parametrize("seed", [3, pytest.param(LATE, marks=pytest.mark.bulk)])
def test_a_ring_that_continues_in_an_outer_loop(seed: int) -> None:
    found = prove(*ring(seed, is_right=True, is_nested=True))
    assert found.level == "proved", str(found)


@pytest.mark.bulk(one_in=7)
@pytest.mark.parametrize(("old", "new"), NESTED)
def test_a_wrong_ring_in_an_outer_loop_is_not_proved(old: str, new: str) -> None:
    """Stages that start again, other turns of one side, an arrival too many, turns that differ from round to round."""
    text, threads, tile = ring(LATE, is_right=True, is_nested=True)
    assert old in text
    assert prove(text.replace(old, new, 1), threads, tile).level == "not-proved"


@pytest.mark.bulk
@pytest.mark.parametrize("seed", range(20))
def test_random_rings(seed: int) -> None:
    assert judge(seed)[2] is None


def copy(*changes: tuple[str, str], replays: bool = True) -> Any:
    """The copy there and back of the documentation, with parts of its text replaced."""
    changed = on_page("01-tma-copy.md")
    for old, new in changes:
        assert old in changed
        changed = changed.replace(old, new, 1)
    maps = [ptxlab.tensor_map(np.zeros((40, 72), np.float32), box=(32, 32)) for _ in range(2)]
    kernel = ptxlab.parse(changed, "copy.ptx")["double"]
    return ptxlab.prove(kernel, maps, grid=(3, 2), block=256, replays=replays)


def test_a_copy_by_tensor_maps() -> None:
    assert copy(replays=False).level == "proved"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("[full], 4096;", "[full], 1024;"), "hang"),
        (("    fence.proxy.async.shared::cta;\n", ""), "missing-proxy-fence"),
        (("%done, [full], 0;", "%done, [full], 1;"), "data-race"),
    ],
)
@pytest.mark.bulk(one_in=3)
def test_a_wrong_copy_is_refuted_by_its_run(change: tuple[str, str], code: str) -> None:
    found = copy(change)
    assert found.counterexample is not None, str(found)
    assert found.counterexample.finding.code == code


def test_without_tensor_maps_it_is_said_what_is_missing() -> None:
    (gap,) = ptxlab.prove(ptxlab.parse(on_page("01-tma-copy.md"))["double"], block=256).gaps
    assert "example launch" in gap.help


@pytest.mark.bulk
@pytest.mark.parametrize(("step", "shape"), [("one_tile", Shape(64, 16, stages=1)), ("ring", Shape(64, 16, stages=3))])
def test_warpgroup_mmas_of_any_size(step: str, shape: Shape) -> None:
    a, b = (np.zeros((rows, 448), np.float16) for rows in (128, 32))
    launch = product(a, b, np.zeros((128, 32), np.float16), step, shape)
    given = ["len(d) == m * n", "n % 16 == 0"]
    found = ptxlab.prove(launch, assume=given, replays=False, timeout=600)
    assert found.level == "proved", str(found)
    if step == "ring":
        wrong = launch.changed(("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"))
        assert ptxlab.prove(wrong, assume=given, timeout=600).level == "counterexample"


def test_a_copy_under_way_at_the_end() -> None:
    """Nothing reads what the last bulk copy writes, so there is no race; the block's memory is written all the same."""
    found = copy(("    @%first cp.async.bulk.wait_group 0;\n", ""), replays=False)
    assert found.level == "not-proved"
    assert [gap.kind for gap in found.gaps] == ["exit"], str(found)


@pytest.mark.parametrize(
    "change",
    [
        ((".version 8.6", ".version 9.4"), ("bytes [tile], [%rd0, {%r1, %r2}], [full];",
         "bytes.multicast::cluster::16b [tile], [%rd0, {%r1, %r2}], [full], %mask;"),
         ("    mov.b64 %rd1, target;", "    .reg .b16 %mask;\n    mov.b16 %mask, 3;\n    mov.b64 %rd1, target;")),
        ((".target sm_90", ".target sm_100a"), ("global.mbarrier::complete_tx::bytes [tile], [%rd0, {%r1, %r2}]",
         "global.tile::gather4.mbarrier::complete_tx::bytes [tile], [%rd0, {%r1, %r2, %r2, %r2, %r2}]")),
    ],
)  # fmt: skip
def test_modifiers_that_are_not_followed(change: tuple[tuple[str, str], ...]) -> None:
    (gap,) = copy(*change, replays=False).gaps
    is_multicast = "multicast" in str(change)
    reason = "which blocks of the cluster this copy is for" if is_multicast else "cp.async.bulk.tensor"
    assert reason in gap.reason
