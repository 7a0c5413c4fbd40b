"""Lints that follow the flow of a program say nothing about programs that are right: what compilers wrote."""

import pytest

import ptxlab
from ptxlab.check.program import Program
from ptxlab.check.rules import rules_by_code
from ptxlab.flow.effort import Effort
from ptxlab.syntax import parse
from tests.corpus import Case, produced

CODES = (
    "divergent-barrier unreachable-code touched-accumulator missing-wgmma-fence missing-wgmma-commit unwaited-copy"
).split()

# `types` in wgmma.cu loads its A fragment after the fence, and four times has MMAs of another shape add to the same
# accumulators without a fence, as the rule says.
KNOWN = {"wgmma": ["missing-wgmma-fence"] * 5}
SOURCES = (
    "async_copy attention control cub_device cutlass_gemm gemm groups hopper matmul mma tcgen05 warp wgmma wmma".split()
)


def chosen() -> list[Case]:
    """Cases with barriers, copies and tensor cores, one build each."""
    found: dict[str, Case] = {}
    for case in produced():
        source = case.name.partition(".sm_")[0]
        if source.partition(".")[0] in SOURCES:
            found[f"{source} {case.target}"] = case
    return list(found.values())


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_a_compiled_program_is_fine(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(Effort, "spend", lambda self, steps: left.append(steps))
    program = Program(parse(case.text(), name=case.name))
    found = [diagnostic.code for code in CODES for diagnostic in rules_by_code()[code].check(program)]
    assert found == KNOWN.get(case.name.partition(".")[0], [])
    assert sum(left) < 100_000 * len(program.functions)


def test_a_tangled_function_is_left_alone() -> None:
    loops = "".join(f"L{n}: bar.sync 0;\n" for n in range(2000))
    ends = "".join(f"setp.lt.u32 %p1, %r1, {n}; @%p1 bra L{n};\n" for n in reversed(range(2000)))
    start = ".version 8.0\n.target sm_80\n.entry k() { .reg .pred %p<2>; .reg .u32 %r<2>; mov.u32 %r1, %ctaid.x;\n"
    text = f"{start}{loops}{ends}ret; }}"
    assert list(rules_by_code()["divergent-barrier"].check(Program(parse(text)))) == []


def test_a_misspelt_barrier_hides_no_path() -> None:
    """It was not meant for a branch; a misspelt branch says that paths are not followed."""
    text = """\
.version 8.0
.target sm_80
.entry k(.param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .pred %p;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 16;
    barr.sync 0;
    @%p bar.sync 0;
    ret;
    mov.u32 %r2, 1;
}
"""
    assert [one.code for one in ptxlab.check(ptxlab.parse(text))] == [
        "unknown-instruction",
        "divergent-barrier",
        "unreachable-code",
    ]
    branch = text.replace("barr.sync 0;", "brra L;\nL:")
    (found,) = ptxlab.check(ptxlab.parse(branch))
    assert found.notes == (
        "it may be meant for a branch: what depends on the paths through `k` is checked once it is right",
    )
