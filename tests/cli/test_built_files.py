"""`ptxlab ptx` and `ptxlab sass` of built files: fat binaries made here, and what nvcc makes where it is there."""

import struct
import subprocess
from pathlib import Path

import pytest
from tests.cli.test_assemble import needs_tools, run

from ptxlab.cli.samples import SAXPY
from ptxlab.report import PtxError
from ptxlab.toolchain import assemble, find, parts_of

LZ4, ZSTD = 0x2000, 0x8000
OTHER = SAXPY.replace("sm_80", "sm_90").replace("saxpy", "_Z5scaleILi3EEvPff")
PYTHON = """
from helpers import NAME
from ptxlab.author import f32, kernel, pointer, ptx

@kernel(target="sm_80")
def first(x: pointer[f32]):
    x[ptx.tid.x] = 1.0

@kernel(target="sm_80")
def second(x: pointer[f32]):
    x[ptx.tid.x] = 2.0
"""


def entry(kind: int, data: bytes, flags: int = 0, size: int = 0) -> bytes:
    padded = data + bytes(-len(data) % 8)
    return struct.pack("<HHIQIIIIIIIIIIQ", kind, 0x101, 64, len(padded), len(data) if flags else 0, 0, 0, 80, 0, 0,
                       flags, 0, 0, 0, size) + padded  # fmt: skip


def fat_binary(*entries: bytes) -> bytes:
    content = b"".join(entries)
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, len(content)) + content


def lz4_literals(text: bytes) -> bytes:
    """A block of LZ4 that is one run of literals, after 20 bytes that are copied from one."""
    start = bytes([0x1F]) + b"/" + b"\x01\x00" + bytes([20 - 1 - 4 - 15])
    more = len(text) - 15
    return start + b"\xf0" + b"\xff" * (more // 255) + bytes([more % 255]) + text


def built(*entries: bytes, name: str = "program") -> Path:
    """An executable of the host, as far as we read it."""
    Path(name).write_bytes(
        b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\0" + bytes(45) + fat_binary(*entries) + bytes(99)
    )
    return Path(name)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_ptx_in_a_built_file() -> None:
    result = run("ptx", built(entry(1, b"\n\n" + SAXPY.encode())))
    assert (result.exit_code, result.stdout.strip()) == (0, SAXPY.strip())
    assert run("ptx", "program", "-o", "out.ptx").stderr == "wrote out.ptx\n"
    assert Path("out.ptx").read_text().strip() == SAXPY.strip()


def test_one_of_several_is_chosen() -> None:
    program = built(entry(1, SAXPY.encode()), entry(1, OTHER.encode()), entry(1, SAXPY.encode()))
    asked = run("ptx", program)
    assert asked.exit_code == 2
    said = "`program` holds PTX for sm_80: `saxpy`; sm_90: `scale<3>`; choose by `--target` and `--entry`\n"
    assert asked.stderr.endswith(said)
    assert ".target sm_80" in run("ptx", program, "--target", "sm_80").stdout
    assert ".target sm_90" in run("ptx", program, "--entry", "scale<3>").stdout
    assert run("ptx", program, "--target", "sm_75").stderr.endswith("none of these is meant\n")


def test_lz4() -> None:
    text = b"/" * 19 + SAXPY.encode()
    packed = lz4_literals(SAXPY.encode())
    (part,) = parts_of(fat_binary(entry(1, packed, LZ4, len(text) + 1)))
    assert part.data == b"/" * 20 + SAXPY.encode()
    for damaged in (packed[:9], b"\x0f" + packed, packed[:-3]):
        (part,) = parts_of(fat_binary(entry(1, damaged, LZ4, len(text) + 1)))
        with pytest.raises(PtxError, match="a part of the file can't be decompressed"):
            _ = part.data


def test_damaged_files_have_no_parts_or_say_so() -> None:
    whole = fat_binary(entry(1, SAXPY.encode()))
    assert parts_of(whole[:40]) == parts_of(whole[:-8]) == parts_of(whole[:10]) == []
    for flags, size in ((ZSTD, 100), (ZSTD, 1 << 40), (LZ4, 1 << 40)):
        result = run("ptx", built(entry(1, b"nonsense", flags, size)))
        assert result.exit_code != 0
        assert "a part of the file can't be decompressed" in result.stderr or "zstd" in result.stderr


def test_files_that_hold_nothing() -> None:
    Path("plain.ptx").write_text(SAXPY)
    assert run("ptx", "plain.ptx").stderr.endswith(
        "`plain.ptx` is not compiled to PTX: expected a `.cu` or `.py` file, or one that nvcc built\n"
    )
    Path("host").write_bytes(b"\x7fELF" + bytes(100))
    for command in ("ptx", "sass"):
        result = run(command, "host")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith("`host` holds neither PTX nor machine code of a GPU\n")
    Path("only").write_bytes(fat_binary(entry(1, SAXPY.encode())))
    assert run("sass", "only").stderr.endswith("`only` holds only PTX, which `ptxlab ptx` shows\n")


@pytest.mark.bulk
@needs_tools
def test_sass_of_cubins() -> None:
    cubins = [assemble(text).cubin for text in (SAXPY, OTHER)]
    program = built(*(entry(2, cubin) for cubin in cubins if cubin))
    shown = run("sass", program).stdout
    assert shown.startswith("sm_80: saxpy\nsaxpy:\n    0000  ")
    assert "\n\nsm_90: scale<3>\nvoid scale<3>(float*, float):\n    0000  " in shown
    assert run("sass", program, "--target", "sm_90").stdout.startswith("sm_90: scale<3>\n")
    assert run("sass", program, "--entry", "scale<3>").stdout.startswith("sm_90: scale<3>\n")
    assert run("sass", program, "--target", "sm_75").stderr.endswith("no code for sm_75, only for sm_80, sm_90\n")
    assert "there is no kernel `nothing`; expected one of `saxpy`, `scale<3>`" in run(
        "sass", program, "--entry", "nothing"
    ).stderr  # fmt: skip
    assert "is built already" in run("sass", program, "--instructions").stderr
    assert run("ptx", program).stderr.endswith("no PTX, only machine code, which `ptxlab sass` shows\n")
    assert [path.name for path in Path().iterdir()] == ["program"]


@needs_tools
def test_a_cubin_with_its_ptx() -> None:
    cubin = assemble(SAXPY, options=["-lineinfo"]).cubin
    assert cubin is not None
    Path("saxpy.cubin").write_bytes(cubin)
    kept = run("ptx", "saxpy.cubin").stdout  # ptxas leaves out comments and spaces
    assert kept.startswith(".version 8.0\n.target sm_80\n")
    assert "\nfma.rn.f32 " in kept
    rows = [line for line in run("sass", "saxpy.cubin").stdout.splitlines() if "fma.rn.f32" in line]
    assert len(rows) == 1
    assert " | FFMA " in rows[0]


@needs_tools
def test_assemble_names_kernels_as_cpp_does() -> None:
    Path("k.ptx").write_text(OTHER)
    assert run("assemble", "k.ptx").stdout.splitlines()[3].startswith("scale<3>  ")


def test_kernels_in_python() -> None:
    Path("helpers.py").write_text("NAME = 1\n")
    Path("kernels.py").write_text(PYTHON)
    assert ".entry second" in run("ptx", "kernels.py", "--entry", "second").stdout
    assert run("ptx", "kernels.py").stderr.endswith("`--entry` is required: the kernels are `first`, `second`\n")
    Path("none.py").write_text("x = 1\n")
    assert "`none.py` has no kernel" in run("ptx", "none.py").stderr
    Path("wrong.py").write_text("x = 1\ny = x / 0\n")
    assert run("ptx", "wrong.py").stderr.endswith("`wrong.py`, line 2: ZeroDivisionError: division by zero\n")


def has_nvcc() -> bool:
    try:
        return bool(find("nvcc"))
    except PtxError:
        return False


@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("mode", ["size", "speed"])
def test_fat_binaries_of_nvcc(mode: str) -> None:
    Path("k.cu").write_text("template <int N> __global__ void add(float* x) { x[threadIdx.x] += N; }\n"
                            "template __global__ void add<3>(float*);\n")  # fmt: skip
    command = [find("nvcc").path, "-arch=sm_80", f"--compress-mode={mode}", "-fatbin", "k.cu", "-o", "k.fatbin"]
    subprocess.run(command, check=True, timeout=120)
    assert "add.f32" in run("ptx", "k.fatbin").stdout
    assert "add.f32" in run("ptx", "k.cu", "--target", "sm_80").stdout
    assert run("sass", "k.fatbin").stdout.startswith("sm_80: add<3>\nvoid add<3>(float*):\n")
