"""A finding names the line that its instruction was compiled from."""

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Source

KERNEL = """\
.version 8.0
.target sm_80
.address_size 64
.entry kernel()
{
    .reg .u32 %r<3>;
    .reg .u64 %rd<3>;
    .loc 1 17 3
    mov.u64 %rd1, 12;
    ld.global.u32 %r1, [%rd1];
    .loc 1 18 3
    ret;
}
.file 1 "kernel.cu"
.file 2 "helper.h"
"""


def notes_of(text: str) -> list[str]:
    with pytest.raises(ptxlab.KernelError) as raised:
        ptxlab.parse(text, name="kernel.ptx")["kernel"].launch(grid=1, block=1)
    (found,) = raised.value.diagnostics
    return [note for note in found.notes if note.startswith("compiled from")]


def test_the_last_loc_before_the_instruction() -> None:
    assert notes_of(KERNEL) == ["compiled from kernel.cu:17"]


def test_code_of_an_inlined_function() -> None:
    inlined = KERNEL.replace("    mov", "    .loc 2 5 1, function_name name, inlined_at 1 17 3\n    mov")
    section = inlined + ".section .debug_str { name: .b8 107, 0 }\n"
    assert notes_of(section) == ["compiled from helper.h:5 in `k`, called from kernel.cu:17 in `kernel`"]


@pytest.mark.parametrize("without", [".loc 1 17 3", '.file 1 "kernel.cu"'])
def test_a_line_or_file_that_is_not_there(without: str) -> None:
    text = KERNEL.replace("    .loc 1 18 3\n", "").replace(without, "" if "loc" in without else '.file 3 "other.cu"')
    if "file" in without:
        text = text.replace(".loc 1 17 3", ".loc 3 0 0")
    assert notes_of(text) == []


# Where the text is known that a module was compiled from, notes name its lines only.

COMPILED = """\
.version 8.0
.target sm_80
.address_size 64
.shared .align 8 .b64 full;
.shared .align 4 .b32 word;
.entry kernel()
{
    .reg .u32 %r<3>;
    .reg .u64 %rd<3>;
    .reg .pred %p<3>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    .loc 1 3 3
    @%p1 mbarrier.init.shared.b64 [full], 2;
    bar.sync 0;
    .loc 1 4 3
    .loc 2 5 1, function_name name, inlined_at 1 4 3
    @%p1 mbarrier.arrive.shared.b64 %rd1, [full];
    .loc 1 6 3
    st.shared.u32 [word], %r1;
    .loc 1 7 3
again:
    mbarrier.test_wait.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra again;
    ret;
}
.file 1 "kernel.cu"
.file 2 "helper.h"
.section .debug_str { name: .b8 107, 0 }
"""


def notes_in(texts: dict[str, str]) -> list[tuple[str, ...]]:
    module = ptxlab.parse(COMPILED, name="kernel.ptx")
    module.origins = {name: Source(name, text) for name, text in texts.items()}
    found = module["kernel"].launch(grid=1, block=64, device="cpu", on_error="collect").diagnostics
    return [diagnostic.notes for diagnostic in found]


def test_lines_in_notes() -> None:
    race, hang = notes_in({"kernel.cu": "line\n" * 9})
    assert hang[0].startswith("phase 0: 1 of 2 arrivals (line 4, thread 0), ")
    assert race == ("nothing orders what the two threads do in line 6: no barrier, and no release/acquire pair",)


def test_lines_of_another_file_in_notes() -> None:
    _, hang = notes_in({"kernel.cu": "line\n" * 9, "helper.h": "line\n" * 9})
    assert hang[0].startswith("phase 0: 1 of 2 arrivals (line 5 of helper.h (called from kernel.cu:4), thread 0), ")


def test_lines_of_ptx_in_notes() -> None:
    _, hang = notes_in({})
    assert hang[0].startswith("phase 0: 1 of 2 arrivals (line 18, thread 0), ")


# A function that is inlined twice, and what it calls: a compiler writes the calls once, and then the last one only.

TWICE = """\
.version 8.0
.target sm_80
.address_size 64
.entry kernel(.param .u64 a)
{
    .reg .u32 %r<9>;
    .reg .u64 %rd<3>;
    ld.param.u64 %rd1, [a];
    .loc 1 15 5
    .loc 1 5 3, function_name outer, inlined_at 1 15 5
    .loc 2 2 3, function_name inner, inlined_at 1 5 3
    ld.global.u32 %r1, [%rd1];
    .loc 1 6 3, function_name outer, inlined_at 1 15 5
    add.u32 %r1, %r1, 1;
    .loc 1 16 5
    .loc 1 5 3, function_name outer, inlined_at 1 16 5
    .loc 2 2 3, function_name inner, inlined_at 1 5 3
    ld.global.u32 %r2, [%rd1+4];
    .loc 1 6 3, function_name outer, inlined_at 1 16 5
    add.u32 %r2, %r2, %r1;
    .loc 1 16 5
    add.u32 %r2, %r2, %r1;
    .loc 2 2 3, function_name inner, inlined_at 1 5 3
    ld.global.u32 %r3, [%rd1+8];
    .loc 1 6 3, function_name outer, inlined_at 1 15 5
    add.u32 %r3, %r3, 1;
    .loc 2 2 3, function_name inner, inlined_at 1 5 3
    ld.global.u32 %r4, [%rd1+12];
    .loc 1 6 3, function_name outer, inlined_at 1 16 5
    add.u32 %r4, %r4, 1;
    .loc 1 17 5
    st.global.u32 [%rd1], %r4;
    ret;
}
.file 1 "kernel.cu"
.file 2 "/usr/local/cuda/include/helper.h"
.section .debug_str {
outer: .b8 95, 90, 78, 49, 97, 53, 111, 117, 116, 101, 114, 69, 118, 0
inner: .b8 105, 110, 110, 101, 114, 0
}
"""


@pytest.mark.parametrize(("words", "caller"), [(0, 15), (1, 16), (2, 15), (3, 16)])
@pytest.mark.parametrize("is_known", [False, True])
def test_each_call_of_an_inlined_function(words: int, caller: int, is_known: bool) -> None:
    module = ptxlab.parse(TWICE, name="kernel.ptx")
    module.origins = {"kernel.cu": Source("kernel.cu", "line\n" * 20)} if is_known else {}
    (found,) = (
        module["kernel"]
        .launch(grid=1, block=1, args=[np.zeros(words, np.uint32)], device="cpu", on_error="collect")
        .diagnostics
    )
    if is_known:
        assert (found.file, found.line) == ("kernel.cu", 5)
        assert found.notes[-1] == (
            f"line 5 is in `outer`, called from line {caller} in `kernel`, and calls `inner` (helper.h:2)"
        )
    else:
        chain = f"helper.h:2 in `inner`, called from kernel.cu:5 in `outer`, called from kernel.cu:{caller} in `kernel`"
        assert found.notes[-1] == f"compiled from {chain}"


def test_both_accesses_of_a_race_say_where_they_come_from() -> None:
    text = COMPILED.replace("2 5 1, function_name", "1 5 1, function_name")
    text = (
        text.replace("@%p1 mbarrier.arrive.shared.b64 %rd1, [full];", "ld.shared.u32 %r2, [word];")
        .replace("bra again", "bra done")
        .replace("ret;", "done: ret;")
    )
    module = ptxlab.parse(text, name="kernel.ptx")
    found = module["kernel"].launch(grid=1, block=64, device="cpu", on_error="collect").diagnostics
    race = next(one for one in found if one.code == "data-race" and len(one.labels) == 2)
    assert race.notes[-2:] == (
        "line 20 is compiled from kernel.cu:6",
        "line 18 is compiled from kernel.cu:5 in `k`, called from kernel.cu:4 in `kernel`",
    )
