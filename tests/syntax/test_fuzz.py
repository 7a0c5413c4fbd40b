"""Whatever the input, it gets a program or diagnostics; a program prints and reads back."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlab.report import PtxError, render
from ptxlab.syntax import decode, format, parse, read

HEADER = ".version 8.0\n.target sm_80\n"
TOKENS = (
    '.entry k ( ) { } [ ] < > , ; : :: @ ! | + - * / % ? = . _ $ " // /* */ \\ 0 1 0x1f 0f3F800000 1.5 -1 7U WARP_SZ '
    ".reg .b32 .pred %r<5> %r1 %r2 %p1 .param .u64 a .global .shared .align 4 mov.b32 add.s32 ld.param.u64 bra L L: "
    "call .func f .callprototype .branchtargets .calltargets .loc .file .section .debug_str .b8 .pragma .alias "
    ".visible .extern .attribute (.managed) generic %tid.x %v.x ret ret; {%r1, [a+4] .target .version .ptr .unified"
).split()
SETTINGS = settings(max_examples=150)


def judge(text: str) -> None:
    """Read a text, and print what was read."""
    module, diagnostics = read(text)
    if diagnostics:
        assert render(diagnostics)
        for found in diagnostics:
            span = found.labels[0].span
            assert 0 <= span.start <= span.end <= len(text)
        return
    printed = format(module)
    assert parse(printed) == module


@SETTINGS
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    try:
        text = decode(data, "fuzz.ptx")
    except PtxError:
        return
    judge(text)


@SETTINGS
@given(st.text(max_size=200), st.booleans())
def test_text(text: str, in_body: bool) -> None:
    judge(HEADER + (".entry k {\n" if in_body else "") + text)


@SETTINGS
@given(st.lists(st.sampled_from(TOKENS), max_size=60), st.sampled_from(["", ".entry k {\n", ".global .u32 x = "]))
def test_token_soup(tokens: list[str], before: str) -> None:
    judge(f"{HEADER}{before}{' '.join(tokens)}\n}}\n")
