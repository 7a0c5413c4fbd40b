"""`tune` and `PTXLAB_TUNE` on a GPU: answers stay right, are kept, and are used by later calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptxlab.kernels import attention, export_table, gated_matmul, grouped_matmul, import_table, matmul, tune
from ptxlab.kernels.parts import choices

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(choices, "_answers", None)
    monkeypatch.setattr("ptxlab.kernels.wgmma_gemm.choice.TRIED", 4)
    return tmp_path


def normal(torch: Any, *shape: int) -> Any:
    return torch.randn(*shape, device="cuda").bfloat16()


def error(given: Any, wanted: Any) -> float:
    return float((given.double() - wanted).norm() / wanted.norm())


def test_a_product_is_tuned_and_stays_right(torch: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, out = normal(torch, 300, 512), normal(torch, 512, 1000), normal(torch, 300, 1000)
    wanted = a.double() @ b.double()
    first = matmul(a, b)
    (found,) = tune(matmul, a, b, out=out)
    assert found.choice == "product"
    assert 0 < found.microseconds <= found.before < 1000
    assert max(error(one, wanted) for one in (first, out, matmul(a, b))) <= 4e-3
    assert export_table(folder / "table") == 1
    monkeypatch.setattr(choices, "_answers", None)
    assert [*choices.answers().values()] == [found]
    assert import_table(folder / "table") == 1
    residual = normal(torch, 300, 1000)
    (other,) = tune(matmul, a, b, residual=residual)
    assert other.asked != found.asked
    assert error(matmul(a, b, residual=residual), wanted + residual.double()) <= 4e-3


def test_other_functions(torch: Any) -> None:
    a, b = normal(torch, 300, 512), normal(torch, 4, 512, 256)
    ends = torch.tensor([10, 10, 200, 300], dtype=torch.int32, device="cuda")
    q, k, v = (normal(torch, 1, 4, 300, 64) for _ in range(3))
    for name, function, arrays in (
        ("gated_product", gated_matmul, (a, b[0], b[1])),
        ("grouped_product", grouped_matmul, (a, b, ends)),
        ("attention", attention, (q, k, v)),
    ):
        before = function(*arrays).double()
        assert [one.choice for one in tune(function, *arrays)] == [name]
        assert error(function(*arrays), before) <= 4e-3


def test_the_variable_tunes_the_first_call_alone(
    torch: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PTXLAB_TUNE", "1")
    a, b = normal(torch, 200, 328), normal(torch, 328, 520)
    wanted = a.double() @ b.double()
    assert max(error(matmul(a, b), wanted) for _ in range(3)) <= 4e-3
    assert capsys.readouterr().err.count("ptxlab tune: product: the fastest of") == 1
