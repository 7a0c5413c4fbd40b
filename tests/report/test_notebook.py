"""What a notebook shows: HTML of values, and tracebacks that end at the user's line."""

import html.parser
import traceback
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import draw
from ptxlab.author import f32, kernel, pointer, ptx, u32
from ptxlab.measure.record import Record

PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z4fillIfEvPT_(.param .u64 _Z4fillIfEvPT__param_0)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd0, [_Z4fillIfEvPT__param_0];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r0;
    ret;
}
"""


class Reader(html.parser.HTMLParser):
    """The text of HTML; a tag that is not closed is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(value: object) -> str:
    reader = Reader()
    reader.feed(value._repr_html_())  # type: ignore[attr-defined]
    assert reader.open == []
    return reader.text


def test_a_module_and_a_kernel() -> None:
    module = ptxlab.parse(PTX.replace("ret;", "ret; // <b>&"), name="fill.ptx")
    assert shown(module).startswith("fill.ptx: PTX 8.0 for sm_80kernelparametersfill<float>.u64 param_0PTX.version 8.0")
    text = shown(module["fill"])
    assert text.startswith("fill<float>, a kernelparametertypeparam_0.u64")
    assert "ret; // <b>&" in text


def test_a_result_shows_its_findings_in_color() -> None:
    out = np.zeros(4, np.uint32)
    result = ptxlab.parse(PTX)["fill"].launch(1, 8, [out], on_error="collect")
    text = shown(result)
    assert "1 error in the run" in text
    assert "error[out-of-bounds]: write of 4 bytes outside of argument 0 (`param_0`)" in text
    assert "color:#e5534b" in result._repr_html_()
    (found,) = result.diagnostics
    assert shown(found) in text


def test_a_recorded_launch() -> None:
    kernel = ptxlab.parse(PTX)["fill"]
    result = kernel.launch(1, 4, [np.zeros(4, np.uint32)], record=ptxlab.Record())
    assert "20 of 4 threads" in shown(result.trace)


def test_a_measurement() -> None:
    record = Record.read(Path(__file__).parents[2] / "evidence" / "bench" / "copy.json")
    assert shown(record).startswith(f"{record.title}, on NVIDIA H200")
    assert record.sizes[0].spelled in shown(record)


def test_a_traceback_ends_at_the_line_of_the_user() -> None:
    kernel = ptxlab.parse(PTX)["fill"]
    with pytest.raises(ptxlab.KernelError) as raised:
        kernel.launch(1, 8, [np.zeros(4, np.uint32)])
    error = raised.value
    own, last = traceback.extract_tb(error.__traceback__)
    assert (own.line, last.name) == ("kernel.launch(1, 8, [np.zeros(4, np.uint32)])", "launch")
    lines = error._render_traceback_()
    assert lines[1].strip() == own.line
    assert any("out-of-bounds" in line for line in lines[2:])


def test_ipython_shows_the_short_traceback(tmp_path: Path) -> None:
    ipython = pytest.importorskip("IPython.core.interactiveshell")
    shell = ipython.InteractiveShell()
    shell.history_manager.enabled = False
    shown: list[str] = []
    shell._showtraceback = lambda kind, value, lines: shown.extend(lines)
    shell.run_cell(f"import numpy, ptxlab\nfill = ptxlab.parse({PTX!r})['fill']")
    shell.run_cell("fill.launch(1, 8, [numpy.zeros(4, numpy.uint32)])")
    assert len(shown) < 25
    assert "fill.launch(1, 8" in "\n".join(shown)
    assert "ptxlab/" not in "\n".join(shown)


def test_a_kernel_in_python_shows_its_parameters_and_a_wrong_one_its_findings() -> None:
    @kernel
    def fill(x: pointer[f32]):
        x[ptx.tid.x] = 1.0

    @kernel
    def wrong(n: u32):
        ptx.add.f32(n, n)

    assert shown(fill).startswith("fill, a kernelparametertype")
    assert "ld.param.u64" in shown(fill)
    assert "error[operand-type]" in shown(wrong)


def test_a_picture_is_short() -> None:
    picture = draw.fragments("ldmatrix.sync.aligned.m8n8.x1.shared.b16")
    assert repr(picture).startswith("<picture: ldmatrix.sync.aligned.m8n8.x1.shared.b16")
    assert len(repr(picture)) < 100
