"""Names of special registers are taken from the version of PTX on that has them."""

import pytest

import ptxlab


@pytest.mark.parametrize(("version", "found"), [("9.3", []), ("9.4", ["duplicate-name"])])
def test_a_special_register_that_came_late(version: str, found: list[str]) -> None:
    text = f".version {version}\n.target sm_90\n.address_size 64\n.global .b32 %perctamemorysize;\n"
    assert [one.code for one in ptxlab.check(ptxlab.parse(text, name="k.ptx"))] == found
