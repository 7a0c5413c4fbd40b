"""What is meant by a name that is not declared."""

import pytest

import ptxlab
from tests.tools import header


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("r5", "did you mean `%r5`?"),
        ("tid", "did you mean `%tid`?"),
        ("x", "did you mean `%x`?"),
        ("x5", None),  # there is an `%x`, but none with a number
        ("y7", None),
    ],
)
def test_a_name_without_its_percent_sign(name: str, help: str | None) -> None:
    body = f".entry k() {{ .reg .b32 %r<8>, %x; mov.u32 %r1, {name}; ret; }}"
    (found,) = ptxlab.check(ptxlab.parse(header("8.0", "sm_80") + body))
    assert found.code == "unknown-name"
    assert [one.text for one in found.helps] == ([] if help is None else [help])
