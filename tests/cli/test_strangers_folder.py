"""In a stranger's folder, nothing of it runs: no module, no tool, no library, no option that its files name.

Everything that Python, a shell or a tool might take from the current folder is planted beside a kernel, and leaves its
name in a file when it runs. The commands run as the installed program does: Python's path does not have the folder.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
import uuid
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.tools import header, is_there

from ptxlab.cli.group import SUBCOMMANDS
from ptxlab.native.apart import Compilation
from ptxlab.project import Project, ProjectError
from ptxlab.toolchain import find

ROOT = Path(__file__).parents[2]
PTX = (
    header("8.0", "sm_90")
    + """\
.visible .entry KERNEL(.param .u64 data)
{
    .reg .b64 %a, %i;
    .reg .u32 %t;
    ld.param.u64 %a, [data];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %i, %t, 4;
    add.u64 %a, %a, %i;
    st.global.u32 [%a], %t;
    ret;
}
"""
)
LITMUS = """\
PTX MP
{ x = 0; }
 P0@cta 0,gpu 0 ;
 st.weak x, 1 ;
exists (x == 1)
"""
LAUNCH = ["k.ptx", "--block", "4", "--arg", "u32[4]=zeros"]
COMMANDS = [
    ["check", "k.ptx", "."],
    ["run", *LAUNCH],
    ["run", *LAUNCH, "--seeds", "2"],
    ["run", *LAUNCH, "--record", "k.ptxtrace"],
    ["run", *LAUNCH, "--estimate"],
    ["debug", "k.ptxtrace", "--command", "registers"],
    ["equal", "k.ptx", "k.ptx", *LAUNCH[1:]],
    ["prove", *LAUNCH],
    ["grade", "--list"],
    ["grade", "softmax", "k.ptx"],
    ["verify", "../program/task.py", "--kernel", "k.ptx"],
    ["lab", *LAUNCH, "--html", "page.html"],
    ["format", "k.ptx"],
    ["assemble", "k.ptx"],
    ["sass", "k.ptx"],
    ["python", "k.ptx"],
    ["draw", "tile", "8x64", "--type", "f16"],
    ["litmus", "t.litmus", "--seeds", "1"],
    ["bench"],
    ["devices"],
    ["explain", "data-race"],
    ["explain", "mma.sync"],
    ["docs"],
    ["docs", "--search", "proxy fence"],
    ["learn"],
    ["learn", "check"],
    ["learn", "check", "k.ptx"],
    ["learn", "hint"],
    ["learn", "solution"],
    ["learn", "lab", "--html", "page.html"],
    ["mcp"],
]
# The folder says that its kernel is of an exercise that is a program in Python; it does not compute a softmax.
REFUSED = {"learn", "grade"}
TASK = """\
import numpy as np
from ptxlab.verify import Array, Size, Task
of = Size(4, 4)
task = Task("numbers", lambda n: np.arange(n), {"n": of}, [Array("data", "u32", "n", role="out")])
"""
SERVERS = {"lsp", "mcp"}  # end with their input, or need a package
PROGRAM = """\
#include <cstdio>
__global__ void k(int *x) { *x = 70707; }
int main() {
    int *x, y = 0;
    cudaMalloc(&x, 4);
    k<<<1, 1>>>(x);
    cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);
    printf("%d\\n", y);
}
"""
PROGRAM_COMMANDS = [
    ["run", "program.cu"],
    ["exec", "./program"],
    ["ptx", "program"],
    ["debug", "program.cu", "--command", "where"],
]
TOOLS = (
    "ptxas nvcc nvdisasm cuobjdump c++filt cc gcc g++ c++ clang clang++ cc1plus cicc cudafe++ sh as ld git nvidia-smi "
    "python3 xdg-open firefox www-browser w3m lynx"
)
PACKAGES = (
    "ptxlab numpy llvmlite click rich ml_dtypes pygments pygls lsprotocol cattrs attrs torch triton cuda cupy jax "
    "numba distributed dask matplotlib sitecustomize usercustomize conftest evil pytest mcp anywidget IPython"
)
# What the installed program does, several times; a small kernel is compiled as a large one is, and seeds are spread.
DRIVER = """\
import json, sys
from ptxlab.cli import main
from ptxlab.emulate.search import seeds
from ptxlab.emulate.translate import effort
effort.SMALL = effort.FEW = -1
seeds.SOON, seeds.os.cpu_count = -1, lambda: 2
for command in json.loads(sys.argv[1]):
    sys.argv[:] = ["ptxlab", *command]
    try:
        main()
    except SystemExit as end:
        print(f"{command[0]} exits {end.code}", file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kernel, and beside it all that could be taken for something else."""
    place = tmp_path / "stranger"
    place.mkdir()
    name = f"k{uuid.uuid4().hex}"  # no cache has it
    (place / "k.ptx").write_text(f"// launch: {name} block=4\n" + PTX.replace("KERNEL", name))
    (place / "k.cu").write_text('extern "C" __global__ void k(int *x) { *x = 1; }\n')
    (place / "t.litmus").write_text(LITMUS)
    ran = repr(str(place / "ran"))
    for name in {*sys.stdlib_module_names, *PACKAGES.split()}:
        (place / f"{name}.py").write_text(f"print(__name__, file=open({ran}, 'a'))\n")
    (place / "x.pth").write_text(f"import os; print('pth', file=open({ran}, 'a'))\n")
    wheel = place / "nvidia" / "cu99" / "bin"
    wheel.mkdir(parents=True)
    for tool in [*(place / name for name in TOOLS.split()), wheel / "ptxas", wheel / "nvcc"]:
        tool.write_text(f"#!/bin/sh\necho {tool.name} >> {place / 'ran'}\nexit 1\n")
        tool.chmod(0o755)
    for name in ("libc.so.6", "libm.so.6", "libcuda.so.1", "libnvrtc.so", "libtinfo.so.6"):
        (place / name).write_text("not a library: what loads it fails\n")
    (place / "nvcc.profile").write_text("CICC_PATH = .\nPATH += .:\n")
    (place / "matplotlibrc").write_text("backend: module://evil\n")
    for name in ("ptxlab.toml", ".ptxlab", ".ptxlabrc", "setup.cfg", "pytest.ini", "tox.ini"):
        (place / name).write_text('[ptxlab]\nptxas = "./ptxas"\n[pytest]\naddopts = -p evil\n')
    learning = {"files": {"k.ptx": "evil.py"}, "done": [], "hints": {}}
    (place / ".ptxlab-learn.json").write_text(json.dumps(learning))
    return place


def start(folder: Path, commands: list[list[str]], **more: str) -> subprocess.CompletedProcess[str]:
    """Run commands in the folder; PATH has it, too, as an empty and as a relative entry."""
    driver = folder.parent / "program" / "driver.py"
    driver.parent.mkdir(exist_ok=True)
    driver.write_text(DRIVER)
    driver.with_name("task.py").write_text(TASK)  # which is run, and so is not the stranger's
    environment = os.environ | {"PATH": f":.:{os.environ['PATH']}:"} | more
    return subprocess.run([sys.executable, driver, json.dumps(commands)], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)  # fmt: skip


def what_ran(folder: Path) -> str:
    file = folder / "ran"
    return file.read_text() if file.exists() else ""


@pytest.mark.slow
def test_no_command_runs_what_is_in_the_folder(folder: Path) -> None:
    shown = start(folder, COMMANDS)
    assert what_ran(folder) == "", shown.stderr
    needs_tools = {"assemble", "sass", "run"}
    ended = [line.split(" exits ") for line in shown.stderr.splitlines() if " exits " in line]
    assert [name for name, _ in ended] == [command[0] for command in COMMANDS], shown.stderr
    failed = {name for name, status in ended if status != "0"} - SERVERS
    may_fail = set() if is_there("ptxas") and is_there("nvdisasm") else needs_tools
    if find_spec("z3") is None:
        may_fail |= {"prove"}
    assert failed - may_fail == REFUSED, shown.stderr
    assert shown.stderr.count("a program in Python that was not started from here") == 5


def test_every_command_is_tried() -> None:
    """A new one must be among those above; `lsp` has a test of its own, `tour` is in `bulk`."""
    tried = {command[0] for command in [*COMMANDS, *PROGRAM_COMMANDS]}
    assert {*SUBCOMMANDS} - tried == {"lsp", "tour"}


def test_nor_the_server_of_a_page(folder: Path) -> None:
    environment = os.environ | {"PATH": f":.:{os.environ['PATH']}", "TERM": "xterm", "DISPLAY": ":99"}
    command = [sys.executable, "-P", "-c", "from ptxlab.cli import main; main()", "lab", *LAUNCH, "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = next((line for line in server.stdout if line.startswith("http")), "").strip()
            assert b"<title>ptxlab lab</title>" in urllib.request.urlopen(url, timeout=30).read()
        finally:
            server.kill()
    assert what_ran(folder) == ""


@pytest.mark.bulk
def test_nor_with_a_cold_cache(folder: Path, tmp_path: Path) -> None:
    """The runtime itself is compiled then, by processes of its own; a relative cache folder is not used."""
    for cache in (str(tmp_path / "cold"), "nvidia"):
        shown = start(folder, [["run", *LAUNCH], ["tour"]], PTXLAB_CACHE=cache)
        assert (shown.returncode, what_ran(folder)) == (0, ""), shown.stderr
    assert "the cache folder nvidia is not an absolute path and is not used" in shown.stderr


def test_nor_an_adapter_or_a_language_server(folder: Path) -> None:
    def message(**fields: object) -> str:
        text = json.dumps({"jsonrpc": "2.0", **fields})
        return f"Content-Length: {len(text)}\r\n\r\n{text}"

    launch = {"program": str(folder / "k.ptx"), "block": 4, "args": ["u32[4]=zeros"]}
    debugging = message(seq=1, type="request", command="launch", arguments=launch)
    editing = message(id=1, method="initialize", params={"capabilities": {}, "rootUri": folder.as_uri()})
    for arguments, sent in ((["debug", "--dap"], debugging), (["lsp"], editing)):
        driver = "import sys; from ptxlab.cli import main; main()"
        environment = os.environ | {"PATH": f":.:{os.environ['PATH']}:"}
        shown = subprocess.run([sys.executable, "-P", "-c", driver, *arguments], cwd=folder, env=environment,
                               capture_output=True, text=True, timeout=60, input=sent)  # fmt: skip
        assert what_ran(folder) == "", shown.stderr
        assert '"success": true' in shown.stdout or '"capabilities"' in shown.stdout or "pygls" in shown.stderr


needs_nvcc = pytest.mark.skipif(not (is_there("nvcc") and shutil.which("g++")), reason="no nvcc, or no g++")


@needs_nvcc
def test_nvcc_loads_no_library_and_starts_no_tool_of_the_folder(folder: Path) -> None:
    """Without a cure its own LD_LIBRARY_PATH ends in an empty entry, and the shell that it starts finds `libc.so.6`."""
    shown = start(folder, [["check", "k.cu"]], LD_LIBRARY_PATH="")
    assert (shown.stdout, what_ran(folder)) == ("no errors or warnings in k.cu\n", ""), shown.stderr


@pytest.mark.bulk
@needs_nvcc
def test_of_a_program_nothing_runs_but_the_program(folder: Path, tmp_path: Path) -> None:
    """The runtime that it is given is of ptxlab, and no tool or library of the folder has a part in it."""
    for place in (folder, tmp_path):
        (place / "program.cu").write_text(PROGRAM)
    built = subprocess.run([find("nvcc").path, "-arch=sm_90", "program.cu", "-cudart", "shared", "-o", "program"],
                           cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    assert built.returncode == 0, built.stderr
    (tmp_path / "program").rename(folder / "program")
    shown = start(folder, PROGRAM_COMMANDS, LD_LIBRARY_PATH="")
    assert what_ran(folder) == "", shown.stderr
    assert shown.stdout.count("70707\n") == 3, shown.stderr
    assert shown.stderr.count(" exits 0") == len(PROGRAM_COMMANDS), shown.stderr


@pytest.mark.parametrize("name", ["$(echo name >> ran).cu", "`echo name >> ran`.cu", 'a"; echo name >> ran;".cu'])
@needs_nvcc
def test_the_name_of_a_file_is_not_a_command(folder: Path, name: str) -> None:
    (folder / "k.cu").rename(folder / name)
    shown = start(folder, [["check", name]])
    assert what_ran(folder) == ""
    assert "nvcc is not given the name" in shown.stdout
    assert "check exits 1" in shown.stderr


@pytest.mark.core
@pytest.mark.parametrize(
    "options",
    [
        ["-ccbin", "./g++"], ["--compiler-bindir=./g++"], ["-Xcompiler", "-fplugin=./evil.so"], ["--run"],
        ["-DX=$(echo option >> ran)"], ["-DX=`echo option >> ran`"], ["-D", "-ccbin=./g++"], ["-D", "@options"],
        ["-I", "include", "x.cu"],
        ["-optf", "options.txt"], ["-o", "written"], ["--keep-dir=written"],
        ["-Iinclude", "-fdevice-time-trace=written"], ["-std=c++17 -ccbin=./g++"], ["-D"],
    ],
)  # fmt: skip
def test_a_project_may_not_set_options_that_run_something(folder: Path, options: list[str]) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.ptxlab]\ncuda-options = {json.dumps(options)}\n")
    with pytest.raises(ProjectError, match="may not have"):
        Project.of(folder / "k.cu")


def test_options_that_a_project_may_set(folder: Path) -> None:
    options = [
        "-I",
        "include",
        "-Ithird",
        "-DN=5",
        "-D",
        "M",
        "-std=c++20",
        "--use_fast_math",
        "-O2",
        "-diag-suppress=177",
    ]
    (folder / "pyproject.toml").write_text(f"[tool.ptxlab]\ncuda-options = {json.dumps(options)}\n")
    found = Project.of(folder / "k.cu").options
    assert found == ("-I", str(folder / "include"), f"-I{folder / 'third'}", *options[3:])


def test_a_workspace_of_vs_code_does_not_name_the_program() -> None:
    manifest = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    assert manifest["contributes"]["configuration"]["properties"]["ptxlab.command"]["scope"] == "machine"


def test_a_compiling_process_ends_with_the_one_that_started_it() -> None:
    """It watches its output, which no process can read any more."""
    with Compilation("define void @f() {\n  ret void\n}\n", speed=1) as compilation:
        process = compilation._process
        assert process.stdout is not None
        os.kill(process.pid, signal.SIGSTOP)  # it must not be faster
        process.stdout.close()
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(timeout=30) == 1
