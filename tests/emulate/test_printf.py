"""`printf` with formats and arguments as no kernel should have them: found, and nothing else happens."""

from collections.abc import Sequence
from typing import Any

import pytest

import ptxlab
from ptxlab.isa.undefined import UNDEFINED
from tests.emulate.launching import launch

BEFORE = """.extern .func (.param .b32 result) vprintf(.param .b64 text, .param .b64 arguments);
.global .align 1 .b8 text[{size}] = {{{data}}};
.global .align 1 .b8 word[4] = {{104, 105, 33, 0}};
.global .align 1 .b8 endless[2] = {{104, 105}};
"""
BODY = """
.local .align 8 .b8 numbers[256];
.param .b64 first;
.param .b64 second;
.param .b32 count;
{stores}
mov.u64 %rd1, {format};
mov.u64 %rd2, {arguments};
st.param.b64 [first], %rd1;
st.param.b64 [second], %rd2;
call (count), vprintf, (first, second);
ret;
"""
WORD = "mov.u64 %rd3, {};\ncvta.global.u64 %rd3, %rd3;\nst.local.u64 [numbers], %rd3;"


def printed(
    pattern: str,
    stores: str = "",
    format: str = "text;\ncvta.global.u64 %rd1, %rd1",
    arguments: str = "",
    block: int = 1,
    **how: Any,
) -> ptxlab.device.result.Result:
    data = [*pattern.encode(), 0]
    before = BEFORE.format(size=len(data), data=", ".join(map(str, data)))
    body = BODY.format(stores=stores, format=format, arguments=arguments or "numbers;\ncvta.local.u64 %rd2, %rd2")
    return launch(body, before=before, block=block, on_error="collect", **how)


def integers(values: Sequence[int], width: int = 32) -> str:
    return "\n".join(f"st.local.u{width} [numbers+{at * width // 8}], {value};" for at, value in enumerate(values))


@pytest.mark.parametrize(
    ("pattern", "stores", "output"),
    [
        ("%d and %u\n", integers([5, 6]), "5 and 6\n"),
        ("%s\n", WORD.format("word"), "hi!\n"),
        ("100%, 100%% and 100%", "", "100%, 100% and 100%"),
        ("%#o|%+u|%-3d|%.d|%hhd", integers([8, 7, 6, 0, 260]), "010|7|6  |0|4"),
        ("%*d|%-*d", integers([3, 1, 4, 2]), "  1|2   "),
    ],
)
def test_right_formats(pattern: str, stores: str, output: str) -> None:
    result = printed(pattern, stores)
    assert result.diagnostics == []
    assert result.output == output


@pytest.mark.parametrize(
    ("how", "level", "message", "output"),
    [
        ({"pattern": "%y|%d", "stores": integers([5])}, "warning", "`printf` has no conversion `%y`", "%y|5"),
        ({"pattern": "a%n"}, "warning", "`printf` has no conversion `%n`", "a%n"),
        ({"pattern": "%d|%d", "stores": integers([5])}, "error",
         "`%d` of `printf`: argument 2 is missing: the kernel has stored nothing there", "5|"),
        ({"pattern": "%f"}, "error",
         "`%f` of `printf`: argument 1 is missing: the kernel has stored nothing there", ""),
        ({"pattern": "%s", "stores": integers([65], 64)}, "error",
         "`%s` of `printf`: the string at 0x41 is not in memory the kernel has", ""),
        ({"pattern": "%s", "stores": integers([0], 64)}, "error",
         "`%s` of `printf`: the string at 0x0 is not in memory the kernel has", ""),
        ({"pattern": "a", "format": "12"}, "error",
         "the format of `printf`: the string at 0xc is not in memory the kernel has", ""),
        ({"pattern": "%d", "arguments": "12"}, "error",
         "`%d` of `printf`: argument 1 would be at 0xc, where the kernel has no memory", ""),
        ({"pattern": "%d" * 40, "stores": integers([1] * 40)}, "error",
         "`%d` of `printf`: it is argument 33, and at most 32 are possible", "1" * 32),
    ],
)  # fmt: skip
def test_wrong_formats(how: dict[str, Any], level: str, message: str, output: str) -> None:
    for block in (1, 40):  # one cause, one finding
        result = printed(**how, block=block)
        (found,) = result.diagnostics
        assert (found.code, found.level, found.message) == ("bad-printf", level, message)
        assert result.output == output * block
        assert found.labels[0].text == "thread (0,0,0) of block (0,0,0)"


def test_a_string_without_an_end() -> None:
    (found,) = printed("%s", WORD.format("endless")).diagnostics
    assert found.message.endswith(" does not end")
    assert found.notes == ('the format is "%s"',)


def test_what_is_stored_is_known_only_to_the_detectors() -> None:
    result = printed("%d", detectors=False)
    assert (result.diagnostics, result.output) == ([], str(UNDEFINED))


def test_an_undefined_value_is_used_where_it_is_printed() -> None:
    read = ".shared .b32 unwritten;\nld.shared.u32 %r1, [unwritten];\nst.local.u32 [numbers], %r1;"
    result = printed("%d", read)
    assert ([found.code for found in result.diagnostics], result.output) == (["uninitialized-read"], str(UNDEFINED))
