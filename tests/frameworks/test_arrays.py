"""Arrays of the host at the emulator's addresses: views, addresses in memory, memory that is gone."""

from types import SimpleNamespace

import numpy as np
import pytest

import ptxlab
from ptxlab.device.host_memory import START, HostPointer
from ptxlab.frameworks.arrays import Arrays, NumpyArray
from ptxlab.frameworks.packages import MissingPackageError, package
from ptxlab.frameworks.triton.values import number, parameters_of
from ptxlab.gpu import driver
from tests.gpu.driver_of_python import Driver

INDIRECT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry indirect(.param .u64 table, .param .u64 out)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [table];
    ld.param.u64 %rd2, [out];
    ld.global.u64 %rd3, [%rd1];
    ld.global.u32 %r1, [%rd3];
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""


def launch(arrays: Arrays, table: np.ndarray, out: np.ndarray, **how: object) -> ptxlab.Result:
    args = [arrays.pointer(table, "argument 0 (`table`)"), arrays.pointer(out, "argument 1 (`out`)")]
    return ptxlab.parse(INDIRECT)["indirect"].launch(1, 1, args, device="cpu", **how)  # type: ignore[arg-type]


def test_an_address_in_memory_is_that_of_the_array() -> None:
    arrays, hidden, out = Arrays(), np.array([41], np.uint32), np.zeros(1, np.uint32)
    table = np.array([arrays.address(hidden)], np.uint64)
    launch(arrays, table, out)
    assert out[0] == 42
    out[0] = 0
    launch(arrays, table, out, seeds=3)  # each seed on the same data
    assert out[0] == 42


def test_memory_that_is_gone_cannot_be_reached() -> None:
    arrays, out = Arrays(), np.zeros(1, np.uint32)
    table = np.array([arrays.address(np.array([41], np.uint32))], np.uint64)
    with pytest.raises(ptxlab.KernelError, match=r"address"):
        launch(arrays, table, out)


def test_a_view_is_in_the_memory_of_its_owner() -> None:
    arrays, owner = Arrays(), np.arange(64, dtype=np.float32).reshape(8, 8)
    assert arrays.address(owner) == START
    assert arrays.address(owner[2:, 1::2]) == START + 4 * (2 * 8 + 1)
    assert len(arrays.memory.regions) == 1
    assert arrays.pointer(None, "x") == HostPointer(arrays.memory, 0)
    with pytest.raises(TypeError, match="argument 0 \\(`x`\\) is a list: pass a tensor of torch or a NumPy array"):
        arrays.pointer([1, 2], "argument 0 (`x`)")


class Storage:
    """As much of the memory of a tensor of torch as is asked for: it is on the GPU of `Driver`."""

    def __init__(self, there: np.ndarray, device: str = "cuda") -> None:
        self.there, self.device = there, SimpleNamespace(type=device, index=0)

    def data_ptr(self) -> int:
        return self.there.ctypes.data

    def nbytes(self) -> int:
        return self.there.nbytes


class Tensor:
    def __init__(self, storage: Storage, offset: int = 0) -> None:
        self.storage, self.offset = storage, offset

    def untyped_storage(self) -> Storage:
        return self.storage

    def storage_offset(self) -> int:
        return self.offset

    def element_size(self) -> int:
        return self.storage.there.itemsize

    def data_ptr(self) -> int:
        raise AssertionError("under `emulated` this is the emulator's address")


def test_memory_of_a_gpu_is_copied_for_a_launch_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Driver()
    monkeypatch.setattr(driver, "_open", lambda: gpu)
    monkeypatch.setattr(driver, "_contexts", {})
    hidden, out = np.array([0, 0, 41], np.uint32), np.zeros(2, np.uint32)
    arrays, tensor, written = Arrays(), Tensor(Storage(hidden), 2), Tensor(Storage(out), 1)
    table = np.array([arrays.address(tensor)], np.uint64)
    pointers = [arrays.pointer(table, "table"), arrays.pointer(written, "out")]
    for expected in (42, 51):
        with arrays.on_host() as copied:
            ptxlab.parse(INDIRECT)["indirect"].launch(1, 1, pointers, device="cpu")
            assert out[1] != expected
        assert (out.tolist(), copied) == ([0, expected], 20)
        hidden[2] = 50
    assert gpu.calls.count("cuCtxSynchronize") == gpu.calls.count("cuMemcpyDtoH") * 2 == 8
    del tensor
    with arrays.on_host() as copied:
        assert copied == 8
    with pytest.raises(TypeError, match=r"x is on .*meta.*: the emulator takes tensors of the CPU and of CUDA"):
        arrays.pointer(Tensor(Storage(out, "meta")), "x")


def test_an_array_of_numpy_has_what_compilers_ask_for() -> None:
    array = NumpyArray(np.ones((2, 3), np.float16), Arrays())
    assert (array.stride(), array.stride(0), array.numel(), array.element_size()) == ((3, 1), 3, 6, 2)
    copy = array.clone()
    array.zero_()
    assert array.copy_(copy).array.sum() == 6


def test_numbers_by_their_types() -> None:
    assert number("fp16", 1.5, "x") == np.float16(1.5).tobytes()
    with pytest.raises(ValueError, match="argument 3 \\(`n`\\): 4294967296 does not fit `i32`"):
        number("i32", 1 << 32, "argument 3 (`n`)")
    signature = [("pair", ("i32", "constexpr")), ("flag", "u1")]
    assert list(parameters_of(signature, [(7, 8), True], None, Arrays())) == [b"\7\0\0\0", b"\1"]


def test_a_package_that_is_missing_or_too_old_says_what_to_install() -> None:
    with pytest.raises(MissingPackageError, match="`x` needs the package `no_such_package`: pip install that"):
        package("no_such_package", "that", "`x`")
    with pytest.raises(
        MissingPackageError, match=r"needs `numpy` 99.0 or later, and .* is installed: pip install -U numpy"
    ):
        package("numpy", "numpy", "`x`", (99, 0))
