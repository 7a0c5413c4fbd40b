"""Every asynchronous operation has a name, and threads have a way to know that it is complete."""

from itertools import islice

import pytest

from ptxlab.emulate.abi import faults
from ptxlab.emulate.explain.faults import EXPLAINERS
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.isa import opcode
from ptxlab.isa.effects import effects_of
from ptxlab.isa.table import forms


def test_whatever_accesses_memory_later_is_an_operation() -> None:
    named = set()
    for form in forms():
        for chosen in islice(form.spellings(), 2):
            effects = effects_of(form, form.modifiers(chosen))
            if any(access.is_async for access in effects.accesses):
                assert operation_of(effects).completion, form.syntax
                named.add(operation_of(effects).name)
    assert named == {"copy", "store", "MMA", "request"}


@pytest.mark.parametrize(
    ("text", "name", "word"),
    [("cp.async.ca.shared.global", "copy", "cp.async.wait_group"),
     ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "MMA", "wgmma.wait_group"),
     ("tcgen05.mma.cta_group::1.kind::f16", "MMA", "tcgen05.commit"),
     ("tcgen05.cp.cta_group::1.128x256b", "copy", "tcgen05.commit"),
     ("tcgen05.ld.sync.aligned.32x32b.x1.b32", "load", "tcgen05.wait::ld"),
     ("tcgen05.st.sync.aligned.32x32b.x1.b32", "store", "tcgen05.wait::st")],
)  # fmt: skip
def test_how_threads_know_that_it_is_complete(text: str, name: str, word: str) -> None:
    operation = operation_of(opcode(text).candidates[0].effects)
    assert operation.name == name
    assert f"`{word}`" in operation.completion


def test_every_kind_of_fault_has_an_explainer() -> None:
    kinds = {name: value for name, value in vars(faults).items() if name.isupper() and isinstance(value, int)}
    apart = {"EXITED_BLOCK", "BAD_PRINTF", "APART"}  # which do not stop a launch, or have threads repeat it
    assert {kinds[name] for name in set(kinds) - apart} == set(EXPLAINERS)
