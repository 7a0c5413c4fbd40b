"""Short modules whose verdict is easy to get wrong: what `check` says of each, and that ptxas takes the same side.

Each comes from a way of writing PTX that some project uses and the rules once misjudged.
"""

from pathlib import Path

import pytest

import ptxlab
from ptxlab.report import render
from ptxlab.toolchain import accepted, judge
from tests.golden import compare_one

from ..tools import each_release, is_accepted, ptxas_of

BODY = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %d<8>;"


def kernel(line: str) -> str:
    """A kernel around one or more instructions."""
    return f".entry k(.param .u64 a) {{ {BODY} {line} ret; }}"


FP8 = (
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
    " {%f1, _, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, 0., %f2, %f3};"
)

TILE_IR = """.entry k() { ret; }
.nv_intermediate_source_section {
  .code_block { .ir_name: "tile ir" .sourceFileName: 1 .source_begin
module { // " is not closed, nor is /* {
    .source_end
  }
}"""

# (version, target, text, the code of the error or None)
CASES: list[tuple[str, str, str, str | None]] = [
    # Directives of kernels and of device functions.
    ("9.0", "sm_90", ".func f() .maxnreg 32 { ret; }", "illegal-directive"),
    ("9.0", "sm_90", ".func f() .noreturn { trap; }", None),
    ("9.0", "sm_90", ".func f() .noreturn .noreturn { trap; }", "illegal-directive"),
    ("9.0", "sm_90", ".entry k() .noreturn { trap; }", "illegal-directive"),
    ("9.0", "sm_90", ".func f() .abi_preserve 239 .abi_preserve_control 11 { ret; }", None),
    ("9.0", "sm_90", ".func f() .abi_preserve 240 { ret; }", "illegal-directive"),
    ("9.0", "sm_90", ".func f() .abi_preserve_control 12 { ret; }", "illegal-directive"),
    ("9.0", "sm_90", kernel("p: .callprototype _ (.param .b32 x) .abi_preserve 4;"), None),
    ("8.8", "sm_90", kernel("p: .callprototype _ (.param .b32 x) .abi_preserve 4;"), "unavailable-feature"),
    ("9.0", "sm_90", kernel("p: .callprototype _ (.param .b32 x) .maxnreg 4;"), "illegal-directive"),
    ("9.0", "sm_90", ".entry k() .maxntid 32 .maxntid 64 { ret; }", None),
    ("9.0", "sm_90", ".entry k() .maxclusterrank 8 .reqnctapercluster 2 { ret; }", "illegal-directive"),
    ("9.0", "sm_90", ".entry k() .maxclusterrank 0 { ret; }", None),
    ("9.0", "sm_90", ".entry k() .blocksareclusters .reqntid 32 .reqnctapercluster 2 { ret; }", None),
    ("9.0", "sm_90", ".entry k() .blocksareclusters .reqntid 32 { ret; }", "illegal-directive"),
    ("9.0", "sm_90", '.entry k() .pragma "nounroll"; { ret; }', None),
    ("9.0", "sm_90", '.func f() .pragma "nounroll"; { ret; }', "illegal-directive"),
    ("9.0", "sm_90", ".entry k() .reqntid 32;\n.entry k() { ret; }", "unexpected-token"),
    ("9.0", "sm_90", ".func f() .noreturn;\n.func f() { trap; }", "inconsistent-declaration"),
    # Where a kernel came from.
    ("9.3", "sm_90", '.entry k() .reqntid 32 .language 7, "CUDA C++" { ret; }', None),
    ("9.3", "sm_90", ".func f() .language 3 { ret; }", None),
    ("9.3", "sm_90", ".func f() .language 3;", "illegal-directive"),
    ("9.3", "sm_90", ".entry k() .language 11 { ret; }", "illegal-directive"),
    ("9.3", "sm_90", '.entry k() .language "c" { ret; }', "illegal-directive"),
    ("9.3", "sm_90", ".entry k() .language { ret; }", "unexpected-token"),
    ("9.4", "sm_90", kernel("p: .callprototype _ () .language 3;"), "illegal-directive"),
    ("9.3", "sm_90", kernel('.pragma "mma_throughput 1";'), None),
    ("9.2", "sm_90", kernel('.pragma "mma_throughput 1";'), "unavailable-feature"),
    ("9.4", "sm_90", ".entry k() .minperctamemory 64 { ret; }", None),
    ("9.3", "sm_90", ".entry k() .minperctamemory 64 { ret; }", "unavailable-feature"),
    ("9.4", "sm_90", ".func f() .minperctamemory 64 { ret; }", "illegal-directive"),
    ("9.4", "sm_90", ".entry k(.param .u64 a, .hidden .param .align 64 .b8 m[128]) { ret; }", None),
    ("9.4", "sm_90", ".func f(.hidden .param .u64 a) { ret; }", "unexpected-token"),
    ("9.4", "sm_90", ".entry k(.param .hidden .u64 a) { ret; }", "unexpected-token"),
    ("9.4", "sm_90", '.file 1 "a"\n.entry k() { .loc 1 2 3\n.loc_intermediate 1 4 5\n ret; }', None),
    ("9.3", "sm_90", '.file 1 "a"\n.entry k() { .loc 1 2 3\n.loc_intermediate 1 4 5\n ret; }', "unavailable-feature"),
    ("9.4", "sm_90", '.file 1 "a"\n' + TILE_IR, None),
    ("9.3", "sm_90", '.file 1 "a"\n' + TILE_IR, "unavailable-feature"),
    ("9.4", "sm_90", TILE_IR, "illegal-directive"),
    ("9.4", "sm_90", TILE_IR.replace(".source_begin", ".source"), "unexpected-token"),
    # Attributes.
    ("8.0", "sm_80", ".func .attribute(.unified(1, 2)) f() { ret; }", "unavailable-feature"),
    ("8.0", "sm_90", ".func .attribute(.managed) f() { ret; }", "unexpected-token"),
    ("8.0", "sm_90", ".entry .attribute(.unified(1, 2)) k() { ret; }", "unexpected-token"),
    ("8.0", "sm_90", ".const .attribute(.managed) .u32 x;\n.entry k() { ret; }", "illegal-declaration"),
    # Arrays of open size.
    ("8.0", "sm_90", ".entry k(.param .b32 a[]) { ret; }", "illegal-declaration"),
    ("8.0", "sm_90", ".func f(.param .b32 a[]) { ret; }", None),
    ("8.0", "sm_90", ".func f(.param .b32 a[][2]) { ret; }", "unexpected-token"),
    ("8.0", "sm_90", ".func (.param .b32 a[]) f() { ret; }", "illegal-declaration"),
    # Before PTX 3.0 registers and local variables could belong to the module.
    ("2.3", "sm_21", ".local .u32 x;\n.reg .u32 g;\n.entry k() { mov.u32 g, 1; st.local.u32 [x], g; ret; }", None),
    ("3.0", "sm_21", ".local .u32 x;\n.entry k() { ret; }", "illegal-declaration"),
    ("2.3", "sm_20", ".local .u32 x = 1;\n.entry k() { ret; }", "illegal-declaration"),
    # Addresses of 32 bits.
    ("8.0", "sm_80", ".address_size 32\n.entry k() { ret; }", "illegal-header"),
    ("8.0", "sm_80", ".address_size 32\n" + kernel("mov.b32 %r1, 0; ld.global.u32 %r2, [%r1];"), "illegal-header"),
    # The one special register that is a predicate.
    ("7.8", "sm_90", kernel("mov.pred %p1, %is_explicit_cluster; mov.pred %p2, !%is_explicit_cluster;"), None),
    ("7.8", "sm_90", kernel("mov.pred %p1, %laneid;"), "operand-type"),
    # Where the hardware multiplies fp8, parts of the result can be left out.
    ("8.4", "sm_89", kernel(FP8), None),
    ("9.0", "sm_120", kernel(FP8), None),
    ("9.0", "sm_110a", kernel(FP8.replace("_", "%f7")), None),
    # Special registers of later targets and versions.
    ("7.8", "sm_80", kernel("mov.u32 %r1, %cluster_ctarank;"), "unavailable-feature"),
    ("7.8", "sm_80", kernel("mov.pred %p1, !%is_explicit_cluster;"), "unavailable-feature"),
    ("8.0", "sm_90", kernel("mov.u32 %r1, %aggr_smem_size;"), "unavailable-feature"),
    ("4.3", "sm_50", kernel("mov.b64 %d1, {%clock, %clock_hi};"), "unavailable-feature"),
    ("5.0", "sm_50", kernel("mov.b64 %d1, {%clock, %clock_hi};"), None),
]


def module(version: str, target: str, text: str) -> str:
    return f".version {version}\n.target {target}\n{text}\n"


@pytest.mark.parametrize(("version", "target", "text", "code"), CASES)
def test_each_is_judged_as_written(version: str, target: str, text: str, code: str | None) -> None:
    try:
        found = ptxlab.check(ptxlab.parse(module(version, target, text)))
    except ptxlab.PtxError as problem:
        found = list(problem.diagnostics)
    assert [finding.code for finding in found if finding.level == "error"] == ([code] if code else [])
    compare_one(Path(__file__).with_name("verdicts.txt"), f"{version} {target} {text}", render(found))


@pytest.mark.bulk(one_in=2)
@each_release
@pytest.mark.parametrize(("version", "target", "text", "code"), CASES)
def test_ptxas_takes_the_same_side(version: str, target: str, text: str, code: str | None, release: str) -> None:
    whole = module(version, target, text)
    assert accepted(judge(whole, tool=ptxas_of(release))) == is_accepted(whole, release)


def test_a_later_version_of_the_same_cuda_is_read_as_the_newest_that_is_known() -> None:
    text = ".version {}\n.target sm_80\n.address_size 64\n.entry k() {{ ret; }}"
    assert ptxlab.check(ptxlab.parse(text.format("9.5"))) == []
    assert [one.code for one in ptxlab.check(ptxlab.parse(text.format("9.5")), ptxas="13.4")] == ["refused-spelling"]
    assert [one.code for one in ptxlab.check(ptxlab.parse(text.format("10.0")))] == ["illegal-header"]
