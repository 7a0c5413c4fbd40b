"""What assembling says: errors on their span, resources, crashes and time-outs."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlab.toolchain import Tool, assemble


@pytest.mark.usefixtures("ptxas")
def test_a_good_kernel_becomes_an_object(kernel: str) -> None:
    assembly = assemble(kernel, name="k.ptx")
    assert assembly.cubin is not None
    assert assembly.cubin.startswith(b"\x7fELF")
    assert assembly.diagnostics == ()
    assert assembly.target == "sm_80"


@pytest.mark.usefixtures("ptxas")
def test_resources_of_a_kernel() -> None:
    values = range(40)
    loads = "".join(f"ld.global.u32 %r{i}, [%rd1+{4 * i}];\n" for i in values)
    stores = "".join(f"st.global.u32 [%rd1+{400 + 4 * i}], %r{i};\n" for i in values)
    text = f"""
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry heavy(.param .u64 p) .maxnreg 24
        {{
            .reg .b32 %r<50>;
            .reg .b64 %rd<2>;
            .shared .align 4 .b8 tile[256];
            ld.param.u64 %rd1, [p];
            {loads}
            st.shared.u32 [tile], %r1;
            bar.sync 0;
            {stores}
            ret;
        }}"""
    (heavy,) = assemble(text).resources
    assert (heavy.function, heavy.entry, heavy.shared, heavy.barriers) == ("heavy", True, 256, 1)
    assert heavy.registers == 24
    assert heavy.spill_stores > 0
    assert heavy.spill_loads > 0
    assert heavy.stack > 0


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize(
    ("good", "bad", "code", "line", "marked"),
    [
        ("add.u32 %r2, %r1, 7", "add.u32 %r2, %rd1, 7", "ptxas-error", 10, "add.u32"),
        ("add.u32 %r2, %r1, 7", "add.u32 %r2, %nowhere, 7", "ptxas-unknown-symbol", 10, "%nowhere"),
        ("mov.u32", "movx.u32", "ptxas-syntax-error", 9, "movx"),
        ("add.u32 %r2, %r1, 7", "add.u32 %r2 %r1, 7", "ptxas-syntax-error", 10, "%r1"),
        ("add.u32 %r2, %r1, 7", "bar.sync 17", "ptxas-error", 10, "17"),
        ("add.u32 %r2, %r1, 7", "wgmma.fence.sync.aligned", "ptxas-unsupported-target", 10, "wgmma.fence.sync.aligned"),
        (".version 8.0", ".version 99.0", "ptxas-unsupported-version", 1, ".version 99.0"),
        (".target sm_80", ".target sm_999", "ptxas-unsupported-target", 2, "sm_999"),
    ],
)
def test_an_error_marks_what_it_names(kernel: str, good: str, bad: str, code: str, line: int, marked: str) -> None:
    assembly = assemble(kernel.replace(good, bad), name="k.ptx")
    assert assembly.cubin is None
    diagnostic = next(found for found in assembly.diagnostics if found.code == code)
    assert (diagnostic.level, diagnostic.file, diagnostic.line) == ("error", "k.ptx", line)
    assert diagnostic.labels[0].span.text == marked


@pytest.mark.usefixtures("ptxas")
def test_an_operand_is_marked_by_its_position(kernel: str) -> None:
    text = kernel.replace("add.u32 %r2, %r1, 7", "shfl.sync.idx.b32 %r2, %r1, 0, 99, -1")
    assembly = assemble(text)
    assert [found.labels[0].span.text for found in assembly.diagnostics if found.line == 10] in (["99"], [])


@pytest.mark.usefixtures("ptxas")
def test_a_module_for_a_later_target_marks_its_target(kernel: str) -> None:
    (diagnostic,) = assemble(kernel, "sm_75").diagnostics
    assert (diagnostic.code, diagnostic.line) == ("ptxas-unsupported-target", 2)
    assert diagnostic.labels[0].span.text == ".target sm_80"


@pytest.mark.usefixtures("ptxas")
def test_too_much_shared_memory_marks_the_entry(kernel: str) -> None:
    text = kernel.replace("    ret;", "    .shared .b8 tile[60000];\n    st.shared.u32 [tile], %r2;\n    ret;")
    (diagnostic,) = assemble(text).diagnostics
    assert diagnostic.code == "ptxas-too-many-resources"
    assert (diagnostic.line, diagnostic.labels[0].span.text) == (4, "k")
    assert ".extern .shared" in diagnostic.helps[0].text


def test_a_crash_is_a_result(fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    assembly = assemble(kernel, tool=fake_ptxas("kill -SEGV $$"))
    (diagnostic,) = assembly.diagnostics
    assert assembly.cubin is None
    assert (diagnostic.code, diagnostic.message) == ("ptxas-crash", "ptxas was killed by SIGSEGV")
    assert "ptxas 1.2.3" in diagnostic.notes[0]


def test_a_known_cause_of_a_crash_is_marked(fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    text = kernel.replace("    ret;", "    .shared .b64 bar;\n    mbarrier.init.shared.b64 [bar], 0;\n    ret;")
    (diagnostic,) = assemble(text, tool=fake_ptxas("kill -SEGV $$")).diagnostics
    assert diagnostic.labels[0].span.text == "mbarrier.init.shared.b64 [bar], 0;"
    assert "1 to 1048575" in diagnostic.notes[0]


def test_a_comment_is_not_a_cause_of_a_crash(fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    text = kernel.replace("    ret;", "    // mbarrier.init.shared.b64 [bar], 0;\n    ret;")
    (diagnostic,) = assemble(text, tool=fake_ptxas("kill -SEGV $$")).diagnostics
    assert (diagnostic.labels, "this is a bug of ptxas" in diagnostic.notes[0]) == ((), True)


def test_a_descriptor_of_0_is_a_cause(fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc, 0, 1, 1, 1, 0, 0;"
    text = kernel.replace("    ret;", f"    .reg .f32 %d<4>; .reg .b64 %desc;\n    {mma}\n    ret;")
    for changed, count in ((text, 1), (text.replace("%desc, 0,", "%desc, %desc,"), 0)):
        (diagnostic,) = assemble(changed, tool=fake_ptxas("kill -SEGV $$")).diagnostics
        assert [label.span.text for label in diagnostic.labels] == [mma] * count


def test_the_real_crash_of_13_0(ptxas: Tool, kernel: str) -> None:
    if not ptxas.version.startswith("13.0.") or platform.machine() != "aarch64":
        pytest.skip(f"ptxas {ptxas.version} does not crash on an mbarrier count of 0, that of 13.0 for aarch64 does")
    text = kernel.replace("    ret;", "    .shared .b64 bar;\n    mbarrier.init.shared.b64 [bar], 0;\n    ret;")
    (diagnostic,) = assemble(text, "sm_90", tool=ptxas).diagnostics
    assert (diagnostic.code, diagnostic.line) == ("ptxas-crash", 13)


def test_a_time_limit_is_a_result(fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    (diagnostic,) = assemble(kernel, tool=fake_ptxas("sleep 30"), timeout=0.2).diagnostics
    assert (diagnostic.code, diagnostic.message) == ("ptxas-timeout", "ptxas did not end within 0.2 seconds")


def test_a_failure_without_a_word_is_an_error(fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    (diagnostic,) = assemble(kernel, tool=fake_ptxas("exit 9")).diagnostics
    assert diagnostic.message == "ptxas ended with status 9 and no message"


@pytest.mark.usefixtures("ptxas")
def test_a_comment_that_never_ends_is_refused_at_once(kernel: str) -> None:
    (diagnostic,) = assemble(kernel + "/* more").diagnostics
    assert (diagnostic.code, diagnostic.line) == ("unterminated-comment", 14)


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize("text", ["", "\0\1\2", "\udcff\udcfe", "é", "{" * 10_000])
def test_any_text_has_an_answer(text: str) -> None:
    assembly = assemble(text, timeout=20)
    assert assembly.cubin is None
    assert any(found.level == "error" for found in assembly.diagnostics)


@pytest.mark.usefixtures("ptxas")
def test_no_temporary_file_stays(kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assemble(kernel)
    assemble(kernel.replace("mov", "movx"))
    assert list(tmp_path.iterdir()) == []
