"""What the tests of writing share: the lines of a body, and the one error of a wrong kernel."""

from collections.abc import Callable
from typing import Any

import pytest

from ptxlab.author import Kernel, f32, kernel, pointer, s32, u32
from ptxlab.report import Diagnostic, PtxError


def made(write: Callable[..., Any], **options: Any) -> Kernel:
    """A kernel of a pointer, an unsigned and a signed integer and a float."""

    @kernel(**options)
    def k(x: pointer[f32], n: u32, s: s32, a: f32) -> None:
        write(x, n, s, a)

    return k


def lines(write: Callable[..., Any], **options: Any) -> list[str]:
    """What the body writes, without the loads of parameters and the final `ret`."""
    text = str(made(write, **options))
    body = text[text.index("{\n") + 2 : text.rindex("}")].split("\n")
    start = next(number for number, line in enumerate(body) if "[a]" in line)
    return [line.strip() for line in body[start + 1 :] if line.strip()][:-1]


def refusal(write: Callable[..., Any], **options: Any) -> Diagnostic:
    """The error that writing the kernel raises."""
    with pytest.raises(PtxError) as raised:
        str(made(write, **options))
    (found,) = raised.value.diagnostics
    return found
