"""How many numbers a directive has: one less and one more are refused."""

import pytest

import ptxlab

TEXT = """.version 9.0
.target sm_90
.address_size 64
.func f() {} {{ ret; }}
.visible .entry k() {{ call f; ret; }}
"""


@pytest.mark.parametrize("name", ["abi_preserve", "abi_preserve_control"])
@pytest.mark.parametrize(("numbers", "is_right"), [("", False), ("8", True), ("8, 9", False), ("250", False)])
def test_what_a_function_preserves_is_one_number(name: str, numbers: str, is_right: bool) -> None:
    try:
        found = ptxlab.check(ptxlab.parse(TEXT.format(f".{name} {numbers}")))
    except ptxlab.PtxError as problem:
        found = problem.diagnostics
    assert (found == []) is is_right
