"""A finding names the line that its instruction was compiled from."""

import pytest

import ptxlab

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
    assert notes_of(section) == ["compiled from helper.h:5, inlined at kernel.cu:17"]


@pytest.mark.parametrize("without", [".loc 1 17 3", '.file 1 "kernel.cu"'])
def test_a_line_or_file_that_is_not_there(without: str) -> None:
    text = KERNEL.replace("    .loc 1 18 3\n", "").replace(without, "" if "loc" in without else '.file 3 "other.cu"')
    if "file" in without:
        text = text.replace(".loc 1 17 3", ".loc 3 0 0")
    assert notes_of(text) == []
