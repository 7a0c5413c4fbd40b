"""What is said of GPUs, drivers and modules that do not fit, tried without a GPU: a Python driver answers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab import gpu
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.gpu import driver, hardware, loading
from ptxlab.gpu.driver import DriverError, explain_initialization
from ptxlab.gpu.failures import FATAL, OTHERS, Subject, explain
from ptxlab.gpu.loading import read_log
from ptxlab.report import Source
from tests.gpu import programs
from tests.gpu.driver_of_python import CUresult, Driver
from tests.gpu.fakes import launch, ramp
from tests.tools import needs_ptxas

H200 = gpu.Gpu(0, "NVIDIA H200", "sm_90", 140 << 30, 132, 232448, (13, 0))


def test_a_module_for_another_gpu(fake: Driver) -> None:
    text = programs.SAXPY.replace("8.0", "8.7").replace("sm_80", "sm_120a")
    with pytest.raises(ptxlab.PtxError) as raised:
        ptxlab.parse(text, name="saxpy.ptx")["saxpy"].launch(1, 32, [0, 0, 1.0, 0], device="cuda")
    (found,) = raised.value.diagnostics
    assert (found.code, found.line) == ("wrong-target", 2)
    assert found.message == "a module for `sm_120a` can't run on NVIDIA H200, which is `sm_90`"
    assert "write `.target sm_90`" in found.helps[0].text


def test_auto_emulates_what_the_gpu_can_not_run(fake: Driver) -> None:
    text = programs.SAXPY.replace("8.0", "8.7").replace("sm_80", "sm_120a")
    y = np.ones(8, np.float32)
    result = ptxlab.parse(text)["saxpy"].launch(1, 32, [ramp(), y, 2.0, 8], detectors=False)
    assert result.counters
    assert fake.configs == []


def test_auto_takes_the_gpu_where_no_checks_are_wanted(fake: Driver) -> None:
    launch(ramp(), ramp(), device="auto")
    launch(ramp(), ramp(), device="auto", detectors=False, profile=True)
    assert fake.configs == []
    launch(ramp(), ramp(), device="auto", detectors=False)
    assert len(fake.configs) == 1


def test_a_version_that_the_driver_does_not_read(fake: Driver) -> None:
    with pytest.raises(ptxlab.PtxError, match=r"PTX 9\.4 is too new for this driver, which reads up to PTX 9\.0"):
        ptxlab.parse(programs.SAXPY.replace("8.0", "9.4"))["saxpy"].launch(
            1, 32, [0, 0, 1.0, 0], device="cuda", compile="driver"
        )


def test_messages_of_the_drivers_compiler_are_on_their_line(fake: Driver) -> None:
    fake.fail["cuModuleLoadDataEx"] = CUresult.CUDA_ERROR_INVALID_PTX
    fake.log = b"ptxas application ptx input, line 19; error   : Unknown symbol '%p'\n"
    fake.log += b"ptxas fatal   : Ptx assembly aborted due to errors\n"
    with pytest.raises(ptxlab.PtxError) as raised:
        launch(ramp(), ramp(), compile="driver")
    (found,) = raised.value.diagnostics
    assert (found.code, found.file, found.line) == ("ptxas-unknown-symbol", "saxpy.ptx", 19)
    assert found.labels[0].span.text == "%p"


def test_a_refusal_without_a_log(fake: Driver) -> None:
    fake.fail["cuModuleLoadDataEx"] = CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(ptxlab.PtxError, match="the code is for another GPU"):
        launch(ramp(), ramp())
    assert read_log(b"\0", Source("a.ptx", ""), H200) == []


@needs_ptxas
def test_cubins_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path))
    first = loading.compile_text(programs.SAXPY, "sm_90", None)
    assert first[:4] == b"\x7fELF"
    monkeypatch.setattr(loading, "assemble", None)
    assert loading.compile_text(programs.SAXPY, "sm_90", None) == first


@needs_ptxas
def test_what_ptxas_refuses_is_on_the_line_that_the_author_wrote() -> None:
    text = programs.SAXPY.replace("ret;", "\n\n    bra nowhere;")
    with pytest.raises(ptxlab.PtxError) as raised:
        loading.compile_text(text.replace("\n\n", "\n"), "sm_90", Source("saxpy.ptx", text))
    (found,) = raised.value.diagnostics
    assert found.file == "saxpy.ptx"
    assert text.splitlines()[found.line - 1].strip() == "bra nowhere;"


@pytest.mark.parametrize("name", sorted({**FATAL, **OTHERS}))
def test_every_failure_is_a_sentence_of_ours(name: str) -> None:
    module = ptxlab.parse(programs.SAXPY, name="saxpy.ptx")
    found = explain(DriverError(name, "cuSomething"), Subject.of(module, module["saxpy"]), H200)
    assert found.message.startswith("`saxpy` on NVIDIA H200: ")
    assert "CUDA_ERROR" not in ptxlab.render([found])
    assert len(found.notes) <= 2
    assert len(found.helps) <= 2


def test_the_names_of_failures_are_the_drivers() -> None:
    bindings = pytest.importorskip("cuda.bindings.driver")
    known = set(bindings.CUresult.__members__)
    assert {name for name in {**FATAL, **OTHERS} if name not in known} <= {"CUDA_ERROR_TENSOR_MEMORY_LEAK"}


@pytest.mark.parametrize("name", ["CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "CUDA_ERROR_UNKNOWN"])
def test_no_gpu_has_a_reason_and_a_help(name: str) -> None:
    found = explain_initialization(name)
    assert found.code == "no-gpu"
    assert len(found.notes) == 1
    elsewhere = '`device="cpu"`, or `ptxlab run --device cpu`, runs a kernel on this machine, without a GPU'
    assert found.helps[-1].text == elsewhere


@pytest.mark.slow
def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; sys.modules['cuda'] = None\n"
        "import ptxlab\nfrom ptxlab.cli.samples import SAXPY\n"
        "try: ptxlab.parse(SAXPY)['saxpy'].launch(1, 1, [0, 0, 1.0, 0], device='cuda')\n"
        "except ptxlab.KernelError as problem: print(problem)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "error[no-gpu]: there is no GPU to run on" in shown.stdout
    assert "run `pip install 'ptxlab[cuda]'`" in shown.stdout


def test_devices_lists_gpus(fake: Driver) -> None:
    shown = CliRunner().invoke(command_line, ["devices"])
    assert "cuda:0  NVIDIA H200, sm_90, 140.0 GiB, 132 SMs\n" in shown.output
    assert "CUDA 13.0; runs modules for sm_90 and earlier, sm_90a\n" in shown.output
    assert "compiles PTX up to 9.0" in shown.output
    assert '"target": "sm_90"' in CliRunner().invoke(command_line, ["devices", "--format", "json"]).output


def test_devices_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_open", lambda: driver.no_gpu("none was found", "buy one"))
    shown = CliRunner().invoke(command_line, ["devices"])
    assert shown.output == (
        "no GPU: none was found\n        buy one\n"
        "cpu     the emulator runs kernels here, for every target it knows, and finds what is wrong in them\n"
    )


@pytest.mark.parametrize(
    ("gpu_target", "module_target", "architecture"),
    [
        ("sm_90", "sm_80", "sm_90"),
        ("sm_90", "sm_90a", "sm_90a"),
        ("sm_90", "sm_100", None),
        ("sm_103", "sm_100f", "sm_103f"),
        ("sm_103", "sm_100a", None),
        ("sm_120", "sm_100f", None),
    ],
)
def test_which_code_a_module_becomes(gpu_target, module_target, architecture) -> None:
    one = gpu.Gpu(0, "a GPU", gpu_target, 0, 1, 0, (13, 0))
    assert one.architecture_for(module_target) == architecture


def test_the_newest_ptx_of_a_driver() -> None:
    assert hardware.newest_ptx((12, 6)) == (8, 5)
    assert hardware.newest_ptx((13, 0)) == (9, 0)
    assert hardware.newest_ptx((99, 0)) == max(hardware._PTX_OF_CUDA.values())
