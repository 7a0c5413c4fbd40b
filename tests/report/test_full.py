"""The full rendering, to the byte."""

import re

from hypothesis import given
from hypothesis import strategies as st

from ptxlab.report import Diagnostic, Label, Source, Span, error, render, warning

KERNEL = Source(
    "gemm.ptx",
    """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry gemm()
{
    .reg .b32 %r<4>;


    cp.async.bulk.commit_group;
\tadd.u32 %r1, %r2, %f3;
}
""",
)


def at(text: str, source: Source = KERNEL) -> Span:
    """The span of the only occurrence of `text`."""
    assert source.text.count(text) == 1
    start = source.text.index(text)
    return Span(source, start, start + len(text))


def shown(*diagnostics: Diagnostic) -> str:
    return "\n" + render(diagnostics)


def test_a_secondary_label_on_a_distant_line_and_a_help() -> None:
    found = error(
        "unavailable-instruction",
        "`cp.async.bulk.commit_group` needs `.target sm_90`",
        at("cp.async.bulk.commit_group"),
        "available since PTX 8.0, sm_90",
        others=[Label(at(".target sm_80"), "this module targets `sm_80`")],
        helps=["raise the target to `sm_90`, or use `cp.async.commit_group`"],
    )
    assert (
        shown(found)
        == """
error[unavailable-instruction]: `cp.async.bulk.commit_group` needs `.target sm_90`
  --> gemm.ptx:10:5
   |
 2 | .target sm_80
   | ------------- this module targets `sm_80`
  ...
10 |     cp.async.bulk.commit_group;
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ available since PTX 8.0, sm_90
   |
   = help: raise the target to `sm_90`, or use `cp.async.commit_group`
"""
    )


def test_neighbouring_lines_need_no_dots_and_one_line_between_is_shown() -> None:
    found = error(
        "code",
        "message",
        at(".version 8.0"),
        others=[Label(at(".target sm_80"), "next"), Label(at(".visible .entry gemm()"), "one between"), Label(at("{"))],
    )
    source = Source("a.ptx", "one\ntwo\nthree\nfour\n")
    skipping = error("code", "message", at("three", source), others=[Label(at("one", source))])
    assert (
        shown(found, skipping)
        == """
error[code]: message
 --> gemm.ptx:1:1
  |
1 | .version 8.0
  | ^^^^^^^^^^^^
2 | .target sm_80
  | ------------- next
 ...
5 | .visible .entry gemm()
  | ---------------------- one between
6 | {
  | -

error[code]: message
 --> a.ptx:3:1
  |
1 | one
  | ---
2 | two
3 | three
  | ^^^^^
"""
    )


def test_several_labels_on_one_line_and_a_tab() -> None:
    found = error(
        "mismatched-type",
        "`add.u32` can't read a register of type `.f32`",
        at("%f3"),
        "is `.f32`",
        others=[Label(at("add.u32"), "needs `.u32`"), Label(at("%r1"), "as here"), Label(at("%r2"))],
    )
    assert (
        shown(found)
        == """
error[mismatched-type]: `add.u32` can't read a register of type `.f32`
  --> gemm.ptx:11:20
   |
11 |     add.u32 %r1, %r2, %f3;
   |     ------- ---  ---  ^^^ is `.f32`
   |     |       |
   |     |       as here
   |     needs `.u32`
"""
    )


def test_a_label_inside_another() -> None:
    found = error(
        "code", "message", at("bulk"), "this part", others=[Label(at("cp.async.bulk.commit_group"), "of this")]
    )
    assert (
        shown(found)
        == """
error[code]: message
  --> gemm.ptx:10:14
   |
10 |     cp.async.bulk.commit_group;
   |     ---------^^^^-------------
   |     |        |
   |     |        this part
   |     of this
"""
    )


def test_two_labels_on_the_same_span() -> None:
    found = error("code", "message", at("bulk"), "one", others=[Label(at("bulk"), "two")])
    assert (
        shown(found)
        == """
error[code]: message
  --> gemm.ptx:10:14
   |
10 |     cp.async.bulk.commit_group;
   |              ^^^^ one
   |              |
   |              two
"""
    )


def test_a_span_over_several_lines() -> None:
    body = KERNEL.text.index("{")
    found = warning("code", "message", Span(KERNEL, body, len(KERNEL.text)), "this body", notes=["a fact"])
    assert (
        shown(found)
        == """
warning[code]: message
  --> gemm.ptx:6:1
   |
 6 | {
   | ^
  ...
12 | }
   | ^ this body
   |
   = note: a fact
"""
    )


def test_the_end_of_the_file() -> None:
    source = Source("a.ptx", "ret;\n")
    found = error("unclosed-brace", "the file ends inside a body", Span(source, 5, 5), "expected `}`")
    assert (
        shown(found)
        == """
error[unclosed-brace]: the file ends inside a body
 --> a.ptx:2:1
  |
2 |
  | ^ expected `}`
"""
    )


def test_no_label() -> None:
    found = error("unreadable-file", "can't read `a.ptx`: no such file", None, helps=["check the path"])
    assert (
        shown(found)
        == """
error[unreadable-file]: can't read `a.ptx`: no such file
  = help: check the path
"""
    )


def test_two_files() -> None:
    other = Source("other.ptx", "\n.func f();\n")
    found = error("code", "message", at("{"), "here", others=[Label(at(".func f()", other), "there")])
    assert (
        shown(found)
        == """
error[code]: message
 --> gemm.ptx:6:1
  |
6 | {
  | ^ here
 ::: other.ptx:2:1
  |
2 | .func f();
  | --------- there
"""
    )


def test_characters_that_take_two_columns_or_none() -> None:
    source = Source("a.ptx", "// 日本 e\u0301 x\n")
    found = error("code", "message", at("x", source), "here")
    assert (
        shown(found)
        == """
error[code]: message
 --> a.ptx:1:10
  |
1 | // 日本 e\u0301 x
  |           ^ here
"""
    )


def test_a_long_line_is_cut_around_its_label() -> None:
    source = Source("a.ptx", "x" * 5000 + " here " + "y" * 5000)
    found = error("code", "message", at("here", source), "look", others=[Label(Span(source, 0, 3), "far away")])
    assert (
        shown(found)
        == f"""
error[code]: message
 --> a.ptx:1:5002
  |
1 | ...{"x" * 29} here {"y" * 85}...
  |    {" " * 30}^^^^ look
1 | {"x" * 120}...
  | --- far away
"""
    )


def test_notes_of_several_lines_hang() -> None:
    found = error("code", "message", at("{"), notes=["one\ntwo"], helps=["three\nfour"])
    assert (
        shown(found)
        == """
error[code]: message
 --> gemm.ptx:6:1
  |
6 | {
  | ^
  |
  = note: one
          two
  = help: three
          four
"""
    )


def test_control_characters_never_reach_the_terminal() -> None:
    source = Source("a\x1b.ptx", "mov \x1b[2J\u202e\x7f;\r\n")
    found = error("code", "found `\x1b`", at("\x1b[2J", source), "\x07", notes=["\x9b\ud800"])
    assert (
        shown(found)
        == """
error[code]: found `␛`
 --> a␛.ptx:1:5
  |
1 | mov ␛[2J�␡;
  |     ^^^^ ␇
  |
  = note: ��
"""
    )


def test_color_changes_nothing_but_the_color() -> None:
    found = error(
        "code", "message", at("bulk"), "one", others=[Label(at("cp.async.bulk.commit_group"), "two")], notes=["n"]
    )
    colored = render([found], color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render([found])
    assert colored.startswith("\x1b[1;31merror[code]\x1b[0m\x1b[1m: message\x1b[0m\n")


@given(st.text(alphabet="ab\t\r\n 日\u0301", max_size=60), st.data())
def test_any_labels_on_any_text_can_be_drawn(text: str, data: st.DataObject) -> None:
    source = Source("a.ptx", text)
    offsets = st.integers(0, len(text))
    pairs = data.draw(st.lists(st.tuples(offsets, offsets, st.sampled_from(["", "text"])), min_size=1, max_size=4))
    labels = tuple(Label(Span(source, min(a, b), max(a, b)), text) for a, b, text in pairs)
    rendered = render([Diagnostic("error", "code", "message", labels)])
    assert "^" in rendered
    assert all(line == line.rstrip(" ") for line in rendered.split("\n"))
