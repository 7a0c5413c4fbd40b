"""What launches of tests report, count and leave in memory, compared whole with what they did before.

A test asserts what it is about; `launches.txt` has a digest of everything else that its launches show. These are the
files whose launches are the same on any machine, whatever its speed and its cores, and whose kernels are in PTX: those
of the gallery may change, and reports of what is written in Python name files.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import ir
from ptxlab.report import render
from tests.golden import compare_one

ROOT = Path(__file__).resolve().parents[2]
WHOLE = frozenset(
    f"test_{name}"
    for name in """
        aligned arguments async_stores barrier_objects bulk_copies bulk_stores calling cancellations chosen_blocks
        cluster_order clusters counters detectors hangs heap locations lockstep multicast multimem
        old_ptx operations order_taken_away pair_copies printf proxies races refuse sparsity stores_by_a_warp
        structures surfaces tcgen05_copies tensor_copies tensor_maps tensor_memory tensor_modes tensor_order
        tensor_pairs tensor_products tensor_scaled tensor_sparse textures together_detectors undefined
        variables
    """.split()
)


@pytest.fixture(autouse=True)
def _compared_whole(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compare all that the launches of a test show; the emulator's alone, where a GPU is not asked too."""
    if request.path.stem not in WHOLE or hasattr(request.function, "hypothesis") or _asks_a_gpu(request):
        yield
        return
    seen: list[object] = []
    launch = ir.Function.launch

    def watched(kernel: ir.Function, *given: Any, **how: Any) -> ptxlab.Result:
        try:
            result = launch(kernel, *given, **how)
        except ptxlab.KernelError as problem:
            if all(one.code != "timeout" for one in problem.diagnostics):  # where it is then is a matter of speed
                seen.append(_rendered(problem.diagnostics))
            raise
        if any(one.code == "timeout" for one in result.diagnostics):
            return result
        seen.append((_rendered(result.diagnostics), result.output, result.counters))
        arguments = given[2] if len(given) > 2 else how.get("args", ())
        seen.extend(one.tobytes() for one in arguments if isinstance(one, np.ndarray))
        return result

    monkeypatch.setattr(ir.Function, "launch", watched)
    yield
    if seen:
        compare_one(Path(__file__).with_name("launches.txt"), _name(request), seen)


def _name(request: pytest.FixtureRequest) -> str:
    """A test with the numbers of its parameters: how pytest spells these depends on its release."""
    spec = getattr(request.node, "callspec", None)
    numbers = [f"{name}={number}" for name, number in sorted(spec.indices.items())] if spec else []
    return " ".join([request.path.stem, request.node.originalname, *numbers])


def _rendered(found: Sequence[ptxlab.Diagnostic]) -> str:
    """A report without the folder of the repository."""
    return render(found).replace(f"{ROOT}/", "")


def _asks_a_gpu(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("gpu") is not None
