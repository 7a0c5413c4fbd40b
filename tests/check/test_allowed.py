"""A warning is allowed by a comment on its line or above it, with a reason."""

import pytest

import ptxlab

KERNEL = """\
.version 8.0
.target sm_80
.entry k(.param .u64 out) {{
    .reg .b64 %rd<2>;
    .reg .u32 %r<3>;
    ld.param.u64 %rd1, [out];
    {above}
    st.global.u32 [%rd1], %r2;{after}
    ret;
}}
"""


def codes(above: str = "", after: str = "") -> list[str]:
    text = KERNEL.format(above=above, after=after)
    return [diagnostic.code for diagnostic in ptxlab.check(ptxlab.parse(text))]


@pytest.mark.parametrize(
    "place",
    [
        {"after": " // ptxlab: allow unwritten-register, the value does not matter"},
        {"above": "// ptxlab: allow unwritten-register: the value does not matter"},
        {"above": "// ptxlab: allow unwritten-register, a reason\n    // and more of it"},
        {"after": " /* ptxlab: allow unwritten-register because it is overwritten */"},
    ],
)
def test_a_reason_allows_it(place: dict[str, str]) -> None:
    assert codes(**place) == []


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"after": " // ptxlab: allow unreachable-code, another rule"},
        {"above": "// ptxlab: allow unwritten-register, too far away\n    mov.u32 %r1, 0;"},
    ],
)
def test_anything_else_does_not(place: dict[str, str]) -> None:
    assert codes(**place) == ["unwritten-register"]


def test_an_error_cannot_be_allowed() -> None:
    text = KERNEL.format(above="mov.u32 %r2, 0;", after="").replace(
        "st.global.u32 [%rd1], %r2;", "st.global.u32 [%rd1]; // ptxlab: allow operand-count, because I say so"
    )
    assert [diagnostic.code for diagnostic in ptxlab.check(ptxlab.parse(text))] == ["operand-count"]


@pytest.mark.parametrize(
    ("comment", "message", "help"),
    [
        (
            " // ptxlab: allow unwritten-register",
            "the comment gives no reason, so it has no effect",
            "write the reason after the code: `allow unwritten-register, because ...`",
        ),
        (
            " // ptxlab: allow unwriten-register, the value does not matter",
            "no warning of `ptxlab check` has the code `unwriten-register`",
            "did you mean `unwritten-register`?",
        ),
        (
            " /* ptxlab: allow unwriten-register */",
            "no warning of `ptxlab check` has the code `unwriten-register`",
            "did you mean `unwritten-register`?",
        ),
    ],
)
def test_a_comment_without_effect_is_reported(comment: str, message: str, help: str) -> None:
    text = KERNEL.format(above="", after=comment)
    found = ptxlab.check(ptxlab.parse(text))
    assert sorted(one.code for one in found) == ["ineffective-allow", "unwritten-register"]
    (ineffective,) = [one for one in found if one.code == "ineffective-allow"]
    assert (ineffective.level, ineffective.line, ineffective.message) == ("warning", 8, message)
    assert [one.text for one in ineffective.helps] == [help]
