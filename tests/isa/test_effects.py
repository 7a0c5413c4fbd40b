"""What instructions do besides computing, as recorded from their semantics."""

from pathlib import Path

import pytest

from ptxlab.isa import Jump, opcode
from ptxlab.isa.effects import Access, Effects, UnitStep, effects_of
from ptxlab.isa.extent import Extent
from ptxlab.isa.table import CHAPTERS, forms, forms_of
from tests.golden import compare_one
from tests.isa.sample import sample_choices


def effects(text: str) -> Effects:
    return opcode(text).candidates[0].effects


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_form_can_be_recorded(chapter: str) -> None:
    """The effects of a few spellings of each form are what they were, whole."""
    said = []
    for form in forms():
        if form.chapter == chapter:
            for chosen in sample_choices(form, most=3):
                found = effects_of(form, form.modifiers(chosen))
                named = {name for operand in form.operands for name in (operand.name, *operand.inner)}
                assert {access.operand for access in found.accesses} <= named, form.syntax
                said.append(f"{form.spell(chosen)}: {found}")
    compare_one(Path(__file__).with_name("effects.txt"), chapter, said)


@pytest.mark.parametrize(
    ("text", "jump"),
    [("bra.uni", Jump.BRANCH), ("brx.idx", Jump.INDEXED_BRANCH), ("call.uni", Jump.CALL), ("ret", Jump.RETURN),
     ("exit", Jump.EXIT), ("trap", Jump.TRAP), ("brkpt", None), ("add.u32", None)],
)  # fmt: skip
def test_jumps(text: str, jump: Jump | None) -> None:
    assert opcode(text).jump is jump
    assert effects(text).jump is jump


@pytest.mark.parametrize(
    ("text", "accesses"),
    [("ld.global.v4.f32", (Access("a", "load", 16, "global"),)),
     ("st.release.gpu.shared.u16", (Access("a", "store", 2, "shared", "release.gpu"),)),
     ("atom.global.add.u64", (Access("a", "update", 8, "global", "relaxed.gpu"),)),
     ("mbarrier.arrive.shared.b64", (Access("a", "update", 8, "shared"),)),
     ("cp.async.ca.shared.global",
      (Access("d", "store", None, "shared", is_async=True), Access("a", "load", None, "global", is_async=True))),
     ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
      (Access("dst", "store", 4, "shared::cta", "same-address"),)),
     ("add.f32", ())],
)  # fmt: skip
def test_accesses(text: str, accesses: tuple[Access, ...]) -> None:
    assert effects(text).accesses == accesses


@pytest.mark.parametrize(
    ("text", "steps"),
    [("cp.async.commit_group", [("async_copy", "commit")]), ("cp.async.wait_group", [("async_copy", "wait")]),
     ("cp.async.bulk.commit_group", [("bulk", "commit")]),
     ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", [("wgmma", "start")]),
     ("wgmma.commit_group.sync.aligned", [("wgmma", "commit")]), ("wgmma.wait_group.sync.aligned", [("wgmma", "wait")]),
     ("tcgen05.dealloc.cta_group::1.sync.aligned.b32", [("tensor_memory", "free")]),
     ("mbarrier.arrive.expect_tx.shared.b64", [("mbarrier", "expect"), ("mbarrier", "arrive")]), ("add.u32", [])],
)  # fmt: skip
def test_steps(text: str, steps: list[tuple[str, str]]) -> None:
    assert effects(text).steps == tuple(UnitStep(*step) for step in steps)


def test_threads_that_wait_for_each_other() -> None:
    assert (effects("bar.sync").barrier, effects("bar.sync").waits) == ("block", True)
    assert (effects("barrier.cluster.arrive").barrier, effects("barrier.cluster.arrive").waits) == ("cluster", False)
    assert effects("shfl.sync.idx.b32").converges
    assert not effects("shfl.sync.idx.b32").aligned
    for text in (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "setmaxnreg.inc.sync.aligned.u32",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned",
        "wgmma.fence.sync",
    ):
        assert effects(text).aligned, text


def test_carry_and_fences() -> None:
    assert effects("addc.u32").carry
    assert effects("sub.cc.u32").carry
    assert not effects("add.u32").carry
    assert effects("fence.acq_rel.gpu").fences == ("acq_rel.gpu",)
    assert effects("fence.proxy.async.shared::cta").fences == ("proxy.shared",)


def test_results_of_the_warp() -> None:
    for text in (
        "vote.sync.ballot.b32",
        "match.all.sync.b32",
        "redux.sync.add.u32",
        "activemask.b32",
        "bar.red.popc.u32",
    ):
        assert effects(text).uniform, text
    for text in ("match.any.sync.b32", "shfl.sync.idx.b32", "elect.sync"):
        assert not effects(text).uniform, text
    assert effects("elect.sync").elects


@pytest.mark.parametrize(("head", "unit"), [("tcgen05", "tensor_memory"), ("mbarrier", "mbarrier"), ("wgmma", "wgmma")])
def test_every_form_shows_its_unit_with_semantics_or_without(head: str, unit: str) -> None:
    silent = [
        form.syntax
        for form in forms_of(head)
        if all(step.unit != unit for step in effects_of(form, form.modifiers(next(form.spellings()))).steps)
    ]
    assert silent == (["mbarrier.pending_count{.layout}.b64 d, state"] if head == "mbarrier" else [])


def test_registers_of_the_warp() -> None:
    more, fewer = effects("setmaxnreg.inc.sync.aligned.u32"), effects("setmaxnreg.dec.sync.aligned.u32")
    assert (more.more_registers, more.fewer_registers) == (True, False)
    assert (fewer.more_registers, fewer.fewer_registers) == (False, True)


@pytest.mark.parametrize(
    ("text", "extents"),
    [("st.global.v4.b32", {"a": Extent(16, 16)}), ("atom.global.add.noftz.v2.bf16", {"a": Extent(4, 4)}),
     ("cp.async.ca.shared.global", {"d": Extent("size", "size"), "a": Extent("read", "size")}),
     ("cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes",
      {"d": Extent(1, 128), "map": Extent(128, 64), "mbar": Extent(8, 8)}),
     ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", {"p": Extent(2, 16)}),
     ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", {"p": Extent(2, 4)}),
     ("multimem.ld_reduce.global.add.v4.f32", {"a": Extent(16, 16)}), ("prefetch.tensormap", {"a": Extent(128, 64)}),
     ("prefetch.global.L1", {}), ("add.u32", {})],
)  # fmt: skip
def test_extents(text: str, extents: dict[str, Extent]) -> None:
    assert effects(text).extents == extents


@pytest.mark.parametrize(("unit", "name"), [("wgmma", "strat"), ("wgmna", "start"), ("bulk", "multiply")])
def test_a_misspelt_step_is_not_one_that_nothing_does(unit: str, name: str) -> None:
    assert effects("wgmma.commit_group.sync.aligned").does("wgmma", "commit")
    with pytest.raises(KeyError):
        effects("wgmma.commit_group.sync.aligned").does(unit, name)
