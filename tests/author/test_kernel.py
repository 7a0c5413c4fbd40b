"""What is wrong with a kernel as a whole is reported at the parameter, the `return` or the call that is wrong."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlab.author import Kernel, Module, f32, function, kernel, pointer, pred, ptx, u32
from ptxlab.report import PtxError


def untyped() -> Any:
    @kernel
    def k(
        n: u32,
        x,
    ):
        pass

    return k


def of_python() -> Any:
    @kernel
    def k(n: u32, x: float):
        pass

    return k


def of_predicates() -> Any:
    @kernel
    def k(n: u32, p: pred):
        pass

    return k


def of_nothing() -> Any:
    @kernel
    def k(n: u32, x: "pointr[f32]"):  # noqa: F821
        pass

    return k


def of_several() -> Any:
    @kernel
    def k(n: u32, *more: f32):
        pass

    return k


def with_default() -> Any:
    @kernel
    def k(n: u32 = 3):
        pass

    return k


def without_constant() -> Any:
    @kernel
    def k(n: u32, *, TILE: int):  # noqa: N803
        ptx.shared(f32, TILE)

    return k


def without_constant_of_a_function() -> Any:
    @function
    def scaled(x: f32, *, FACTOR: float) -> f32:  # noqa: N803
        return x * FACTOR

    @kernel
    def k(x: pointer[f32]):
        x[0] = scaled(x[0])

    return k


def without_annotation() -> Any:
    @function
    def same(x: f32):
        return x

    @kernel
    def k(x: pointer[f32]):
        x[0] = same(x[0])

    return k


def of_another_type() -> Any:
    @function
    def same(x: f32) -> u32:
        return x  # type: ignore[return-value]

    @kernel
    def k(x: pointer[f32]):
        same(x[0])

    return k


def with_result() -> Any:
    @kernel
    def k(n: u32) -> None:
        if n is None:
            return None
        return n + 1  # type: ignore[return-value]

    return k


@pytest.mark.parametrize(
    ("make", "code", "message", "shown"),
    [
        (untyped, "missing-type", "parameter `x` of `k` has no type", "x"),
        (of_python, "missing-type", "parameter `x` of `k` is not of a PTX type: float", "x: float"),
        (of_predicates, "missing-type", "parameter `p` of `k` is not of a PTX type: pred", "p: pred"),
        (
            of_nothing,
            "missing-type",
            "an annotation of `k` means nothing: name 'pointr' is not defined",
            'x: "pointr[f32]"',
        ),
        (
            of_several,
            "missing-type",
            "parameter `more` of `k` is several arguments, and PTX has a fixed number of parameters",
            "more: f32",
        ),
        (with_default, "unused-default", "parameter `n` of `k` has a default, and PTX has none", "n: u32"),
        (without_constant, "missing-argument", "`k` needs the compile-time argument `TILE`", "TILE: int"),
        (
            without_constant_of_a_function,
            "missing-argument",
            "`scaled` needs the compile-time argument `FACTOR`",
            "FACTOR: float",
        ),
        (
            without_annotation,
            "illegal-return",
            "`same` returns 1 value, and its annotation says 0",
            "def same(x: f32):",
        ),
        (of_another_type, "operand-type", "what `same` returns is a `f32`, expected a `u32`", "same(x[0])"),
        (
            with_result,
            "illegal-return",
            "a kernel returns nothing, and `k` returns a `u32`",
            "return n + 1  # type: ignore[return-value]",
        ),
    ],
)
def test_refused(make: Callable[[], Kernel], code: str, message: str, shown: str) -> None:
    with pytest.raises(PtxError) as raised:
        str(make())
    (found,) = raised.value.diagnostics
    assert (found.code, found.message, found.file) == (code, message, __file__)
    assert found.labels[0].span.text == shown


def test_a_kernel_is_launched_not_called() -> None:
    @kernel
    def inner(x: pointer[f32]):
        pass

    @kernel
    def outer(x: pointer[f32]):
        inner(x)

    message = "`inner` is a kernel, which the host launches"
    with pytest.raises(PtxError, match=message):
        inner(np.zeros(1))
    with pytest.raises(PtxError, match=message) as raised:
        str(outer)
    assert raised.value.diagnostics[0].labels[0].span.text == "inner(x)"


def test_options_have_names() -> None:
    with pytest.raises(PtxError, match="`kernel` is given the Python str 'sm_90', expected a function"):
        kernel("sm_90")  # type: ignore[call-overload]
    with pytest.raises(PtxError, match="there is no target `sm90`") as raised:
        kernel(target="sm90")
    assert "did you mean `sm_90" in raised.value.diagnostics[0].helps[0].text
    with pytest.raises(PtxError, match="`kernel` is given the Python int 3, expected a function"):
        kernel(target="sm_90")(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        ({"maxntid": 0}, "`maxntid=` is 0, expected 1 to 3 numbers from 1 on"),
        ({"reqntid": (8, 8, 8, 8)}, "`reqntid=` is (8, 8, 8, 8), expected 1 to 3 numbers from 1 on"),
        ({"minnctapersm": (1, 2)}, "`minnctapersm=` is (1, 2), expected 1 number from 1 on"),
        ({"maxnreg": "64"}, "`maxnreg=` is '64', expected 1 number from 1 on"),
        ({"maxnthreads": 64}, "there is no directive `.maxnthreads` of a kernel"),
    ],
)
def test_directives_that_do_not_exist(directives: dict[str, Any], message: str) -> None:
    for make in (kernel, Module("sm_80").kernel):
        with pytest.raises(PtxError) as raised:
            make(**directives)
        (found,) = raised.value.diagnostics
        assert (found.message, found.file) == (message, __file__)


def test_python_that_a_call_does_not_run() -> None:
    with pytest.raises(PtxError, match="calling `k` runs none of its Python"):

        @kernel
        def k(x: pointer[f32]) -> Any:
            yield x[0]


def test_a_compile_time_argument_that_is_not_there() -> None:
    with pytest.raises(PtxError, match="`k` has no compile-time argument `TILES`") as raised:
        without_constant().specialize(TILES=3)
    (found,) = raised.value.diagnostics
    assert (found.file, found.labels[0].span.text) == (__file__, "without_constant().specialize(TILES=3)")


def test_the_name_of_a_kernel_has_its_compile_time_arguments() -> None:
    @kernel
    def k(x: pointer[f32], *, TYPE: Any, COUNTS: Any):  # noqa: N803
        x[0] = TYPE(0)

    assert k.specialize(TYPE=f32, COUNTS=[1, 2]).name == "k_TYPE_f32_COUNTS__1__2_"
    assert len(k.specialize(TYPE=f32, COUNTS=list(range(1000))).name) < 100


def test_tables_as_compile_time_arguments_are_distinguished_by_all_elements() -> None:
    @kernel
    def k(x: pointer[f32], *, TABLE: Any):  # noqa: N803
        x[0] = float(TABLE[1000])

    tables = np.zeros((2, 2000), np.float32)
    tables[1, 1000] = 5
    x = np.ones(1, np.float32)
    for table in tables:
        k.specialize(TABLE=table).launch(grid=1, block=1, args=[x])
        assert x[0] == table[1000]


def test_a_device_function_calls_itself() -> None:
    @function
    def factorial(n: u32) -> u32:
        result = u32(1)
        with ptx.when(n > 1):
            result.set(n * factorial(n - 1))
        return result

    @kernel
    def factorials(x: pointer[u32]):
        x[ptx.tid.x] = factorial(x[ptx.tid.x])

    x = np.arange(10, dtype=np.uint32)
    factorials.launch(grid=1, block=10, args=[x])
    assert x.tolist() == [math.factorial(n) for n in range(10)]


def test_what_is_wrong_with_a_kernel_is_reported_once_when_it_is_launched() -> None:
    @kernel
    def wrong(a: f32, n: u32):
        ptx.fma.rn.f32(a, n, a)

    with pytest.raises(PtxError, match=r"expected a `\.f32` register") as raised:
        wrong.launch(1, 1, [1.0, 2])
    assert raised.value.__context__ is None


def test_functions_of_python_that_never_end() -> None:
    def halves(x: Any) -> Any:
        return halves(x * 0.5)

    @kernel
    def k(x: pointer[f32]):
        x[0] = halves(x[0])

    with pytest.raises(PtxError) as raised:
        str(k)
    (found,) = raised.value.diagnostics
    assert (found.code, found.file) == ("endless-kernel", __file__)
    assert found.message == "Python functions call themselves without end while `k` is written"
    assert found.labels[0].span.text in ("halves(x * 0.5)", "x * 0.5")


def test_notes_name_lines_of_python() -> None:
    @kernel(target="sm_80")
    def unordered(out: pointer[u32]) -> None:
        tile = ptx.shared(u32, 64)
        tile[ptx.tid.x] = 1
        out[ptx.tid.x] = tile[ptx.tid.x ^ 32]

    found = unordered.launch(1, 64, [np.zeros(64, "u4")], device="cpu", on_error="collect").diagnostics[0]
    assert found.line is not None
    assert found.notes == (
        f"nothing orders line {found.line - 1} before line {found.line}: no barrier, and no release/acquire pair",
    )


FIRST = """\
from ptxlab.author import f32, kernel, pointer, u32
@kernel
def k(x: pointer[f32], n: u32):
    if n < 3: x[0] = 1
"""
SECOND = """\
from ptxlab.author import f32, kernel, pointer, ptx, u32
# a line more, and a longer one
@kernel
def k(x: pointer[f32], n: u32):
    with ptx.when(n < 1000): x[0] = x[1] + n * 12345678901234567890 if n < 3 else x[2]
"""


def test_a_module_that_was_edited_and_loaded_again_is_shown_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    file = tmp_path / "edited_kernel.py"
    file.write_text(FIRST)
    module = importlib.import_module("edited_kernel")
    with pytest.raises(PtxError) as wrong:
        str(module.k)
    assert "4 |     if n < 3: x[0] = 1\n" in str(wrong.value)
    file.write_text(SECOND)
    module = importlib.reload(module)
    with pytest.raises(PtxError) as wrong:
        str(module.k)
    assert "edited_kernel.py:5:" in str(wrong.value)
    assert "5 |     with ptx.when(n < 1000): x[0] = " in str(wrong.value)


def test_a_file_that_was_edited_after_it_was_loaded_does_not_break_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for text in ("", "import os\n", SECOND[:70], "\n" * 9):
        name = f"changed_kernel_{len(text)}"
        file = tmp_path / f"{name}.py"
        file.write_text(SECOND)
        module = importlib.import_module(name)
        file.write_text(text)
        with pytest.raises(PtxError) as wrong:
            str(module.k)
        assert "error[value-needed]" in str(wrong.value)
