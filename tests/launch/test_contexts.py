"""What devices hold of a module: until it is edited, and as long as the module is."""

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import ptxlab
from ptxlab import ir
from ptxlab.device import digest
from ptxlab.launch import contexts
from tests.gpu import programs
from tests.gpu.conftest import fake  # noqa: F401
from tests.gpu.driver_of_python import Driver
from tests.gpu.fakes import ramp

COUNT = """.version 8.0
.target sm_80
.address_size 64
.global .u32 step = 1;
.global .u32 total;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [step];
    ld.global.u32 %r2, [total];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [total], %r3;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""


def run(module: ir.Module, **how: object) -> int:
    out = np.zeros(1, np.uint32)
    module["k"].launch(1, 1, [out], **{"device": "cpu"} | how)  # type: ignore[arg-type]
    return int(out[0])


def instruction(module: ir.Module, mnemonic: str) -> ir.Instruction:
    return next(one for one in module["k"].instructions() if one.opcode.mnemonic == mnemonic)


def subtract(module: ir.Module) -> None:
    """In place, by an assignment to a field."""
    instruction(module, "add").opcode = instruction(ptxlab.parse(COUNT.replace("add.", "sub.")), "sub").opcode


def add_twice(module: ir.Module) -> None:
    """In a list, by another instruction."""
    body = module["k"].body
    assert body is not None
    body.insert(body.index(instruction(module, "st")), ir.Instruction(None, *_parts(module, "add")))


def _parts(module: ir.Module, mnemonic: str) -> tuple[object, ...]:
    found = instruction(module, mnemonic)
    result, first, _ = found.operands
    return found.opcode, (result, result, first)


def replace_items(module: ir.Module) -> None:
    """Altogether."""
    module.items = ptxlab.parse(COUNT.replace("add.u32 %r3, %r1, %r2", "mad.lo.u32 %r3, %r1, 5, %r2")).items


@pytest.mark.parametrize(("edit", "expected"), [(subtract, 1), (add_twice, 2), (replace_items, 5)])
def test_an_edited_module_runs_as_it_is(edit: Callable[[ir.Module], None], expected: int) -> None:
    module = ptxlab.parse(COUNT)
    assert [run(module), run(module)] == [1, 2]
    edit(module)
    assert run(module) == expected  # variables begin anew
    assert ptxlab.parse(ptxlab.format(module)) == module


def test_an_edited_module_is_checked_again() -> None:
    module = ptxlab.parse(COUNT)
    run(module)
    found = instruction(module, "add")
    before = found.operands
    found.operands = before[:2]
    with pytest.raises(ptxlab.PtxError):
        run(module)
    with pytest.raises(ptxlab.PtxError):
        module.get("total")
    found.operands = before
    assert run(module) == 1


def test_a_new_target_is_checked_too() -> None:
    module = ptxlab.parse(COUNT)
    run(module)
    module.targets[0] = "sm_999"
    with pytest.raises(ptxlab.PtxError):
        run(module)


def test_what_was_set_outlives_an_edit() -> None:
    module = ptxlab.parse(COUNT)
    module.set("step", 10)
    module.set("total", 100)
    assert [run(module), run(module)] == [110, 120]
    subtract(module)
    assert run(module) == (10 - 100) % 2**32
    assert module.get("total") == (10 - 100) % 2**32


def test_what_was_set_does_not_fit_a_variable_that_was_changed() -> None:
    module = ptxlab.parse(COUNT)
    module.set("step", 10)
    run(module)
    variable = next(variable for variable in module.variables if variable.name == "step")
    variable.dimensions, variable.initializer = (2,), None
    with pytest.raises(ptxlab.KernelError, match="`step` was set to 4 bytes, and has 8 since the module was edited"):
        run(module)
    module.set("step", [3, 4])
    assert run(module) == 3


def test_an_edit_of_another_module_changes_nothing() -> None:
    module, other = ptxlab.parse(COUNT), ptxlab.parse(COUNT)
    assert [run(module), run(other), run(module)] == [1, 1, 2]
    subtract(other)
    assert [run(module), run(other)] == [3, 1]


def test_equal_modules_have_variables_of_their_own() -> None:
    modules = [ptxlab.parse(COUNT) for _ in range(3)]
    assert [run(module) for module in modules for _ in range(2)] == [1, 2] * 3


def test_a_module_that_is_put_together_anew_keeps_its_variables() -> None:
    module = ptxlab.parse(COUNT)
    assert run(module) == 1
    module.items = ptxlab.parse(COUNT).items  # other objects, the same program
    assert run(module) == 2


def test_a_module_is_printed_and_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    plain_format, plain_check = digest.format, contexts.check
    monkeypatch.setattr(digest, "format", lambda module: (calls.append("format"), plain_format(module))[1])
    monkeypatch.setattr(contexts, "check", lambda module: (calls.append("check"), plain_check(module))[1])
    monkeypatch.setattr(contexts, "_clean", {})
    module = ptxlab.parse(COUNT)
    for seed in range(3):
        run(module, seed=seed, on_error="strict")
    module.set("step", 2)
    module.get("step")
    assert sorted(calls) == ["check", "format"]
    ptxlab.parse(COUNT)  # which is not an edit
    run(module)
    assert sorted(calls) == ["check", "format"]
    subtract(module)
    for _ in range(3):
        run(module)
    assert sorted(calls) == ["check", "check", "format", "format"]


def test_a_text_without_findings_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    plain_check = contexts.check
    monkeypatch.setattr(contexts, "check", lambda module: (one := plain_check(module), found.append(len(one)))[0])
    monkeypatch.setattr(contexts, "_clean", {})
    for _ in range(3):
        run(ptxlab.parse(COUNT))
    assert found == [0]
    doubtful = COUNT.replace("ret;", "ret; mov.u32 %r1, 1;")
    for text in (
        doubtful,
        doubtful,
        doubtful.replace("ret; ", "ret;\n// ptxlab: allow unreachable-code, a test\n"),
    ):
        run(ptxlab.parse(text))
    assert found == [0, 1, 1, 0]
    run(ptxlab.parse(doubtful))  # the comment is not in the program, and counts nevertheless
    assert found == [0, 1, 1, 0, 1]


def test_what_devices_hold_goes_with_the_module() -> None:
    module = ptxlab.parse(COUNT)
    module.set("step", 2)
    run(module, seeds=2)
    ptxlab.explore(module["k"], 1, 1, [np.zeros(1, np.uint32)])
    held = weakref.ref(contexts.context_of(module))
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert (gone(), held()) == (None, None)


def test_a_gpu_lets_go_of_a_module_that_is_gone(fake: Driver) -> None:  # noqa: F811
    module = ptxlab.parse(programs.SAXPY)
    for wait in (True, False):
        args = [ramp(), ramp(), 2.0, 8] if wait else [0, 0, 2.0, 0]
        module["saxpy"].launch(1, 32, args, device="cuda", wait=wait)
    gone = weakref.ref(module)
    assert "cuModuleUnload" not in fake.calls
    del module
    gc.collect()
    assert gone() is None
    assert fake.calls.count("cuModuleUnload") == 1


def test_a_gpu_loads_an_edited_module_again(fake: Driver) -> None:  # noqa: F811
    module = ptxlab.parse(programs.SAXPY)

    def launch() -> int:
        module["saxpy"].launch(1, 32, [0, 0, 2.0, 0], device="cuda", wait=False)
        return fake.calls.count("cuModuleLoadDataEx")

    assert [launch(), launch()] == [1, 1]
    body = module["saxpy"].body
    assert body is not None
    body.append(ir.Instruction(None, body[-1].opcode, ()))  # type: ignore[union-attr]
    assert [launch(), launch()] == [2, 2]
    gc.collect()
    assert fake.calls.count("cuModuleUnload") == 1
