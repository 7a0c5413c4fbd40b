"""What the help says when an address is not in the state space of the instruction."""

import pytest

import ptxlab

COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128]) {{
    .shared .align 128 .b8 tile[4096];
    .shared .align 8 .b64 full;
    .reg .b32 %r;
    .reg .b64 %rd;
    mov.b64 %rd, map;
    cvta.param.u64 %rd, %rd;
    {line}
    ret;
}}
"""


@pytest.mark.parametrize(
    ("line", "help"),
    [
        ("ld.global.u32 %r, [tile];", "use `.shared` in the instruction"),
        (
            f"{COPY} [tile], [map, {{0, 0}}], [full];",
            "take its generic address: `mov.b64 %rd, map; cvta.param.u64 %rd, %rd;` (in Python, `map.generic`)",
        ),
    ],
)
def test_what_to_write_instead(line: str, help: str) -> None:
    (found,) = ptxlab.check(ptxlab.parse(KERNEL.format(line=line)))
    assert (found.code, [one.text for one in found.helps]) == ("state-space", [help])


def test_coordinates_of_another_dimension() -> None:
    (found,) = ptxlab.check(ptxlab.parse(KERNEL.format(line=f"{COPY} [tile], [%rd, {{0}}], [full];")))
    assert found.message == (
        f"`coordinates` in operand 2 of `{COPY}` has 1 element, expected a vector of 2 `.s32` registers"
    )
    assert not ptxlab.check(ptxlab.parse(KERNEL.format(line=f"{COPY} [tile], [%rd, {{0, 0}}], [full];")))
