"""Indexed branches go to a bounded number of labels in all: every analysis follows each of them."""

import time

import pytest

import ptxlab


def program(branches: int, labels: int) -> str:
    lines = "".join(f"L{n}: brx.idx %r1, T;\n" for n in range(labels))
    more = "brx.idx %r1, T;\n" * (branches - labels)
    listed = ", ".join(f"L{n}" for n in range(labels))
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %r<2>;\nmov.u32 %r1, 0;\n"
        f"T: .branchtargets {listed};\n{lines}{more}ret;\n}}\n"
    )


def test_many_indexed_branches_are_refused_at_once() -> None:
    text = program(30_000, 20_000)
    assert len(text) < 1 << 20
    start = time.process_time()
    with pytest.raises(ptxlab.PtxError) as raised:
        ptxlab.parse(text)
    assert time.process_time() - start < 5
    (found,) = raised.value.diagnostics
    assert found.code == "too-many-branches"
    assert found.message == "the indexed branches up to here go to more than 1,000,000 labels in all"
    start_of_branch = found.labels[0].span.start
    assert text[:start_of_branch].count("brx.idx") == 50  # the 51st branch to 20,000 labels


def test_as_many_as_that_are_not() -> None:
    module = ptxlab.parse(program(1_000, 1_000))
    assert sum(1 for _ in module["k"].instructions()) == 1_002
