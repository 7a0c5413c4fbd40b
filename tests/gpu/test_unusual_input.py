"""Unusual arrays for every function, on a GPU: refused, or the result is that of plain copies; also in later calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.unusual_input import ALIKE, Usual, unusual, usual

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own
torch: Any = pytest.importorskip("torch")
CALLS = usual()


def on_gpu(array: Any) -> Any:
    """A tensor with the same numbers, strides and alignment; what is not an array as it is."""
    if not isinstance(array, np.ndarray):
        return array
    type = getattr(torch, str(array.dtype))
    plain = np.ascontiguousarray(array)
    whole = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[array.itemsize]
    numbers = torch.from_numpy(plain.view(whole) if plain.shape else plain.reshape(1).view(whole).reshape(()))
    steps = [step // array.itemsize for step in array.strides]
    first = array.ctypes.data % 64 // array.itemsize
    span = 1 + sum((extent - 1) * step for extent, step in zip(array.shape, steps, strict=True)) if array.size else 1
    memory = torch.zeros(first + span, dtype=numbers.dtype, device="cuda")
    found = memory.as_strided(array.shape, steps, first)
    if all(step for step, extent in zip(steps, array.shape, strict=True) if extent > 1):  # else rows are one row
        found.copy_(numbers.cuda().reshape(array.shape))
    return found.view(type) if found.shape else memory[first:].view(type)[0].reshape(())


def call(one: Usual, given: dict[str, Any]) -> list[Any]:
    """All results, as numbers."""
    found = one.function(**given)
    torch.cuda.synchronize()
    results = found if isinstance(found, tuple) else (found,)
    return [part.float().cpu() for part in results]


@pytest.mark.parametrize("name", list(CALLS))
def test_arrays_elsewhere_in_memory(name: str) -> None:
    one = CALLS[name]
    plain = {key: on_gpu(np.ascontiguousarray(array)) for key, array in one.arrays.items()}
    if "scaled" in name:
        plain["b"] = on_gpu(one.arrays["b"])
    wanted = call(one, {**plain, **one.options})
    for array, what, given in unusual(one):
        moved = {key: on_gpu(each) for key, each in given.items()}
        for _ in range(2):
            try:
                found = call(one, moved)
            except (TypeError, ValueError):
                continue
            if what in ALIKE:
                for mine, exact in zip(found, wanted, strict=True):
                    assert torch.allclose(mine, exact, atol=2e-2, rtol=2e-2), (array, what)


@pytest.mark.parametrize("name", list(CALLS))
def test_arrays_on_different_devices(name: str) -> None:
    one = CALLS[name]
    plain = {**{key: on_gpu(array) for key, array in one.arrays.items()}, **one.options}
    for _ in range(2):
        call(one, plain)
        for key in [*one.arrays][1:]:
            with pytest.raises(ValueError, match=r"is on the host|is on GPU 0"):
                call(one, {**plain, key: plain[key].cpu()})
