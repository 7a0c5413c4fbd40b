"""What a later PTX took away is said to be gone, with what replaces it."""

import pytest

from ptxlab import check, parse

KERNEL = """\
.version {version}
.target {target}
.address_size 64
.entry k() {{
    .reg .pred %p;
    .reg .b32 %r<3>;
    setp.eq.u32 %p, 1, 1;
    mov.b32 %r1, 0;
    {instruction}
    ret;
}}
"""

REMOVED = [
    ("vote.ballot.b32 %r2, %p;", "vote.sync.ballot.b32 d, {!}a, membermask"),
    ("shfl.bfly.b32 %r2, %r1, 1, 31;", "shfl.sync.bfly.b32 d{|p}, a, b, c, membermask"),
]


@pytest.mark.parametrize(("instruction", "instead"), REMOVED)
def test_gone(instruction: str, instead: str) -> None:
    (found,) = check(parse(KERNEL.format(version="7.0", target="sm_75", instruction=instruction)))
    name = instruction.split()[0]
    assert found.message == (
        f"`{name}` was removed in PTX 6.4 with sm_70, and this module has `.version 7.0` and `.target sm_75`"
    )
    assert [help.text for help in found.helps] == [f"use `{instead}`"]


@pytest.mark.parametrize(("instruction", "instead"), REMOVED)
def test_still_there(instruction: str, instead: str) -> None:
    assert check(parse(KERNEL.format(version="6.3", target="sm_75", instruction=instruction))) == []


@pytest.mark.parametrize(("version", "is_gone"), [("6.3", False), ("6.4", True)])
def test_it_is_gone_from_the_version_on_that_took_it_away(version: str, is_gone: bool) -> None:
    found = check(parse(KERNEL.format(version=version, target="sm_70", instruction=REMOVED[1][0])))
    assert [one.message.split(",")[0] for one in found] == [
        "`shfl.bfly.b32` was removed in PTX 6.4 with sm_70"
    ] * is_gone
