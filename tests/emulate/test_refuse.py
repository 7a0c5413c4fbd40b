"""What is not emulated is refused by name before anything runs; all else becomes code."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.translate.refusals import READ, TARGETS, refusals_of
from ptxlab.emulate.translate.refuse import is_emulated, reason_of, refuse
from ptxlab.emulate.translate.unit import Unit
from ptxlab.isa import opcode
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms
from ptxlab.native.engine import verify_text
from tests.corpus import Case, files
from tests.isa.conformance import ask, first_homes
from tests.isa.sample import instructions, sample_choices
from tests.isa.sample import module as make_module
from tests.tools import compare_with_file, header, needs_ptxas

HERE = Path(__file__).parent
CORPUS = files()[::23]
EMULATED = [form for form in forms() if is_emulated(form)]
HEADER = header("8.6", "sm_90a")


def refusals(body: str, before: str = "") -> list[tuple[str, int | None]]:
    """What is said of a kernel with that body, which is from line 7 on where nothing precedes it."""
    registers = ".reg .b32 %r<9>; .reg .b64 %rd<9>;"
    text = f"{HEADER}{before}.entry kernel(.param .u64 out)\n{{\n{registers}\n{body}\nret;\n}}\n"
    module = ptxlab.parse(text, name="kernel.ptx")
    out = np.zeros(64, np.uint32)
    found: list[ptxlab.Diagnostic] = []
    try:
        module["kernel"].launch(grid=1, block=1, args=[out])
    except ptxlab.KernelError as refused:
        found = refused.diagnostics
    assert all(diagnostic.code == "not-emulated" for diagnostic in found)
    assert not (found and out.any())
    return [(diagnostic.message, diagnostic.line) for diagnostic in found]


def test_a_parameter_of_open_size() -> None:
    function = ".func f(.param .b32 a, .param .b8 rest[]) { ret; }\n"
    call = ".param .b32 a; .param .b8 more[3]; call f, (a, more);"
    assert refusals("", function) == []
    assert refusals(call, function) == [("`rest`, a parameter of open size, is not emulated", 4)]


def test_an_instruction_without_semantics() -> None:
    store = "ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], 1;\n"
    assert refusals(store) == []
    reduce = "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%rd1], %r1;\n"
    load = "st.async.mbarrier::complete_tx::bytes.b32 [%rd1], %r1;\n"
    assert refusals(store + reduce + load + reduce) == [
        ("`red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32` is not emulated", 9),
        ("`st.async.mbarrier::complete_tx::bytes.b32` is not emulated", 10),
    ]


def test_whatever_is_refused_has_a_reason() -> None:
    assert [form.syntax for form in forms() if not is_emulated(form) and not form.unknown] == []
    body = ".reg .b32 %r; .reg .b64 %rd; st.async.mbarrier::complete_tx::bytes.b32 [%rd], %r;"
    module = ptxlab.parse(HEADER + f".entry kernel() {{ {body} }}", name="kernel.ptx")
    with pytest.raises(ptxlab.KernelError) as refused:
        module["kernel"].launch(grid=1, block=128)
    (found,) = refused.value.diagnostics
    assert found.labels[0].text == (
        "it is not in the manual, and without an mbarrier nothing shows when it is complete"
    )


def test_functions_without_a_body() -> None:
    printing = ".global .b8 text[3] = {72, 105}; .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    parameters = "{{ .param .b32 r; .param .b64 f; .param .b64 a;\nmov.b64 %rd1, text;\n"
    call = parameters + "st.param.b64 [f], %rd1; st.param.b64 [a], 0; call (r), {}, (f, a); }}"
    assert refusals(call.format("vprintf"), printing) == []
    assert refusals(call.format("elsewhere"), printing.replace("vprintf", "elsewhere")) == [
        ("`elsewhere` has no body, so it can't be called", 10)
    ]
    assert refusals("mov.u64 %rd1, vprintf;", printing) == [
        ("the address of `vprintf`, which has no body, is not emulated", 8)
    ]


def test_a_variable_of_another_file() -> None:
    assert refusals("ld.global.u32 %r1, [there];", ".global .u32 there;\n") == []
    assert refusals("ld.global.u32 %r1, [there];", ".extern .global .u32 there;\n") == [
        ("`there` is declared `.extern`, and no variable of the file is it", 8)
    ]


def test_a_function_without_a_call_is_not_translated() -> None:
    unused = ".func unused() { .reg .b64 %rd<2>; st.async.mbarrier::complete_tx::bytes.b32 [%rd1], 1; ret; }\n"
    assert refusals("", unused) == []


def test_a_branch_after_the_last_instruction_ends_the_thread() -> None:
    text = HEADER + ".entry kernel() { .reg .pred %p; setp.eq.u32 %p, 1, 1; @%p bra end; trap; end: }"
    for changed, codes in ((text, []), (text.replace("@%p", "@!%p"), ["trap"])):
        found = ptxlab.parse(changed, name="kernel.ptx")["kernel"].launch(grid=1, block=32, on_error="collect")
        assert [diagnostic.code for diagnostic in found.diagnostics] == codes


# What is refused is written down: `BLESS=1 pytest tests/emulate/test_refuse.py` writes the files anew.


REFUSED = [(form, refusal) for form in forms() for refusal in refusals_of(form)]


def test_which_forms_are_refused() -> None:
    """Those that ptxas of CUDA 13.0 accepts come first, then those of later versions of PTX."""
    lines = []
    for is_later in (False, True):
        version = f"{'later than' if is_later else 'up to'} {READ[0]}.{READ[1]}"
        refused = [(form, refusal) for form, refusal in REFUSED if refusal.is_later is is_later]
        lines += [f"# PTX {version}: {sum(refusal.modifier is None for _, refusal in refused)} forms"]
        lines += [f"{form.syntax} # {refusal}" for form, refusal in refused]
    compare_with_file(HERE / "refused_forms.txt", lines)


@pytest.mark.bulk
@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_refuses_what_belongs_to_a_later_ptx(target: str) -> None:
    """What the list has as later, no module of the version that it ends with may use."""
    later = [form for form, refusal in REFUSED if refusal.is_later and refusal.modifier is None]
    lines = [next(instructions(form, sample_choices(form, most=1)[0])) for form in later]
    accepted = [line for line, messages in zip(lines, ask(lines, READ, target), strict=True) if not messages]
    assert len(lines) > 50
    assert accepted == []


@pytest.mark.bulk
@needs_ptxas
def test_ptxas_accepts_what_is_refused_of_earlier_ptx() -> None:
    """What the list has as up to that version is there: ptxas takes a spelling of each form."""
    refused = []
    for form in (form for form, refusal in REFUSED if not refusal.is_later and refusal.modifier is None):
        choice = sample_choices(form, most=1)[0]
        homes = [home for home in first_homes(form, choice) if home[0] <= READ]
        line = next(instructions(form, choice))
        refused += [line for version, target in homes[-1:] if ask([line], version, target)[0]]
    assert refused == []


@pytest.mark.slow
def test_which_spellings_of_other_forms_are_refused() -> None:
    compare_with_file(
        HERE / "refused_spellings.txt",
        dict.fromkeys(
            line.split()[0]
            for form in EMULATED
            for choice in sample_choices(form, most=1)
            for line in instructions(form, choice)
            if is_refused_spelling(form, line)
        ),
    )


def is_refused_spelling(form: Form, line: str) -> bool:
    candidates = [candidate for candidate in opcode(line.split()[0]).candidates if candidate.form is form]
    return any(reason_of(candidate) for candidate in candidates)


def test_which_kernels_of_the_corpus_are_refused() -> None:
    compare_with_file(
        HERE / "refused_kernels.txt",
        [f"{case.name} {name}" for case in CORPUS for name, kernel in kernels_of(case).items() if is_refused(kernel)],
    )


@cache
def kernels_of(case: Case) -> dict[str, ptxlab.ir.Function]:
    """The kernels of a file that have a body."""
    module = ptxlab.parse(case.text(), name=case.name)
    return {name: module[name] for name in module.entries if module[name].body is not None}


def is_refused(kernel: ptxlab.ir.Function) -> bool:
    try:
        refuse(kernel.module, kernel)
    except ptxlab.KernelError:
        return True
    return False


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_every_other_kernel_of_the_corpus_becomes_code(case: Case) -> None:
    for kernel in kernels_of(case).values():
        if not is_refused(kernel):
            texts = Unit(kernel.module, kernel, checks=True).translate()
            assert "define internal void @f0(" in texts[0]
            for text in texts:
                verify_text(text)


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("form", EMULATED[::8], ids=lambda form: form.syntax)
def test_every_other_spelling_becomes_code(form: Form) -> None:
    for choice in sample_choices(form, most=1):
        version, target = first_homes(form, choice)[0]
        for line in instructions(form, choice):
            source, _ = make_module([line], version, target, together=True)
            module = ptxlab.parse(source)
            kernel = module[module.entries[0]]
            if is_refused_spelling(form, line):
                assert is_refused(kernel)
            else:
                refuse(module, kernel)
                for text in Unit(module, kernel, checks=True, profile=True).translate():
                    verify_text(text)
