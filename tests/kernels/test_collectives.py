"""Collectives over GPUs: right on several ranks under many schedules; each order that is removed is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.device.result import Result
from ptxlab.kernels.collectives import (
    Group,
    all_gather,
    all_gather_matmul,
    all_reduce,
    all_to_all,
    matmul_reduce_scatter,
    reduce_scatter,
)
from ptxlab.launch import module_of
from ptxlab.node import Node
from ptxlab.node.operations import StreamOperation

# What each does, how many parts its inputs and results have for so many ranks, and what comes of inputs for a rank.
COLLECTIVES: dict[str, tuple[Callable[..., None], Callable[[int], tuple[int, int]], Callable[[Any, int], Any]]] = {
    "all_reduce_one_shot": (all_reduce, lambda n: (1, 1), lambda x, rank: x.sum(0)),
    "all_reduce_two_shot": (
        lambda group, x, result: all_reduce(group, x, result, "two_shot"),
        lambda n: (1, 1),
        lambda x, rank: x.sum(0),
    ),
    **{
        f"all_reduce_{variant}": (
            lambda group, x, result, variant=variant: all_reduce(group, x, result, variant),
            lambda n: (1, 1),
            lambda x, rank: x.sum(0),
        )
        for variant in ("ring", "tree", "multimem")
    },
    "all_gather": (all_gather, lambda n: (1, n), lambda x, rank: x.ravel()),
    "reduce_scatter": (reduce_scatter, lambda n: (n, 1), lambda x, rank: np.split(x.sum(0), len(x))[rank]),
    "all_to_all": (all_to_all, lambda n: (n, n), lambda x, rank: np.array(np.split(x, len(x), axis=1))[rank].ravel()),
}  # fmt: skip


class ChangedNode(Node):
    """A node that launches another kernel in place of each that is launched."""

    change: Callable[[Any], Any] | None = None

    def add(self, operation: StreamOperation) -> None:
        if self.change is not None and operation.is_kernel:
            operation.kernel = self.change(operation.kernel)
        super().add(operation)


def overwrite_buffers(group: Group) -> None:
    """Overwrite the memory that collectives of a group use by turns: none of them may access it after its end."""
    for buffers in group._buffers.values():
        for device in group.node:
            device.fill(buffers[device.rank], 255)


def run(name: str, ranks: int, count: int, change: Callable[[Any], Any] | None = None, **how: Any) -> Result:
    """Run a collective twice, on inputs that are copied there before; compare its results.

    Inputs and results are overwritten after each, on the stream of their rank: a peer that still reads or writes them
    then is found.
    """
    collective, parts, expected = COLLECTIVES[name]
    inputs, results = parts(ranks)
    node = ChangedNode(ranks, None, peers=True)
    node.change = change
    group = Group(node, 2)
    given = [np.random.default_rng(7).integers(-9, 9, (ranks, inputs * count)).astype(np.float32) for _ in range(2)]
    x = [device.zeros(inputs * count, name="x") for device in node]
    result = [device.zeros(results * count, name="result") for device in node]
    kept = [[device.zeros(results * count, name="kept") for device in node] for _ in range(2)]
    for turn in range(2):
        for device in node:
            device.copy(x[device.rank], device.array(given[turn][device.rank]))
        collective(group, x, result)
        for device in node:
            device.copy(kept[turn][device.rank], result[device.rank])
            device.fill(result[device.rank], 255)
            device.fill(x[device.rank], 255)
    overwrite_buffers(group)
    found = node.synchronize(on_error="collect", **how)
    if not found.diagnostics:
        for turn in range(2):
            for rank in range(ranks):
                assert (kept[turn][rank].numpy() == expected(given[turn], rank)).all()
    return found


@pytest.mark.parametrize("name", ["all_reduce_two_shot", "all_to_all", "all_reduce_ring", "all_reduce_tree",
                                  "all_reduce_multimem"])  # fmt: skip
def test_collectives_are_right(name: str) -> None:
    assert run(name, 3, 90, seeds=range(1, 3)).diagnostics == []


@pytest.mark.bulk
@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_collectives_are_right_under_many_schedules(name: str, ranks: int) -> None:
    assert run(name, ranks, 1024, seeds=20).diagnostics == []


FUSED = {"all_gather_matmul": all_gather_matmul, "matmul_reduce_scatter": matmul_reduce_scatter}


def run_fused(name: str, ranks: int, change: Callable[[Any], Any] | None = None, **how: Any) -> Result:
    """Run a product twice, on matrices that are copied there before; compare its results; overwrite all of it after."""
    rng = np.random.default_rng(11)
    gathers = name == "all_gather_matmul"
    rows, n, k = 3, 5, 7
    shape = (rows if gathers else rows * ranks, k)
    node = ChangedNode(ranks, None, peers=True)
    node.change = change
    group = Group(node, 2)
    a, b = ([device.zeros(each, name=name) for device in node] for name, each in (("a", shape), ("b", (k, n))))
    result = [device.zeros((rows * ranks if gathers else rows, n), name="result") for device in node]
    kept = [[device.zeros(result[0].shape, name="kept") for device in node] for _ in range(2)]
    given = [[rng.integers(-4, 4, (ranks, *each)).astype(np.float32) for each in (shape, (k, n))] for _ in range(2)]
    for turn in range(2):
        for device in node:
            device.copy(a[device.rank], device.array(given[turn][0][device.rank]))
            device.copy(b[device.rank], device.array(given[turn][1][device.rank]))
        FUSED[name](group, a, b, result)
        for device in node:
            device.copy(kept[turn][device.rank], result[device.rank])
            for array in (result, a, b):
                device.fill(array[device.rank], 255)
    overwrite_buffers(group)
    found = node.synchronize(on_error="collect", **how)
    for turn, (x, y) in enumerate(given if not found.diagnostics else []):
        total = np.einsum("rik,rkj->ij", x, y)
        for rank in range(ranks):
            own = x.reshape(-1, k) @ y[rank] if gathers else total[rank * rows : (rank + 1) * rows]
            assert (kept[turn][rank].numpy() == own).all()
    return found


@pytest.mark.parametrize("name", FUSED)
def test_fused_products_are_right(name: str) -> None:
    assert run_fused(name, 3, seeds=range(1, 3)).diagnostics == []


@pytest.mark.bulk
@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_fused_products_are_right_under_many_schedules(name: str, ranks: int) -> None:
    assert run_fused(name, ranks, seeds=20).diagnostics == []


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """The kernel with one order removed, each."""
    changes = {
        "relaxed store": (r"st\.release\.sys", "st.relaxed.sys"),
        "relaxed load": (r"ld\.acquire\.sys", "ld.relaxed.sys"),
        "narrow scope": (r"(?:(?<=release)|(?<=acquire))\.sys", ".gpu"),
        "no barrier": (r"\n\s*bar\.sync 0;", ""),
        "no wait": (r"(?<=\n)\s*@%p\d+ bra \$loop_\w+;(?=\n\$end_\w+:)", ""),
    }
    barriers = [found.start() for found in re.finditer(r"bar\.sync 0;", text)]
    for name, (pattern, replaced) in changes.items():
        for found in re.finditer(pattern, text):
            if name == "no wait" and "ld.acquire" not in "".join(text[: found.start()].splitlines()[-3:]):
                continue  # a loop over elements
            # The first and the last `bar.sync` have nothing before or after them in the kernel that they order.
            if name == "no barrier" and text.index("bar.sync", found.start()) in (barriers[0], barriers[-1]):
                continue
            yield (
                f"{name} {text[: found.start()].count(chr(10))}",
                text[: found.start()] + replaced + text[found.end() :],
            )


def mutated(name: str) -> list[tuple[str, Any]]:
    """The kernel of a collective on three ranks with each order removed, by what was removed."""
    made: list[Any] = []
    change = lambda one: made.append(one) or one  # noqa: E731
    run_fused(name, 3, change) if name in FUSED else run(name, 3, 96, change)
    source = module_of(made[0]).source
    assert source is not None
    text = re.sub(r"\n\s*\.(loc|file) [^\n]*", "", source.text)  # so that findings show the PTX
    return [(what, ptxlab.parse(changed, "mutant.ptx")[made[0].name]) for what, changed in mutants(text)]


def test_an_order_that_is_removed_is_found() -> None:
    kinds = {}
    for what, kernel in mutated("all_reduce_one_shot"):
        kinds.setdefault(what.rpartition(" ")[0], kernel)
    assert len(kinds) == 5
    for what, kernel in kinds.items():
        found = run("all_reduce_one_shot", 3, 960, lambda _, kernel=kernel: kernel, seed=1).diagnostics
        assert {one.code for one in found} & {"data-race", "one-sided-synchronization"}, what


def test_what_does_not_fit_is_refused() -> None:
    node = ptxlab.node(2)
    group = Group(node)
    x = [device.zeros(9) for device in node]
    with pytest.raises(ValueError, match="9 elements: a multiple of the 2 ranks"):
        all_reduce(group, x, [device.zeros(9) for device in node], "two_shot")
    with pytest.raises(ValueError, match="expected one of one_shot, two_shot, ring"):
        all_reduce(group, x, x, "rings")
    with pytest.raises(ValueError, match="rank 0: 9 elements and 9 for the result; expected 9 and 18"):
        all_gather(group, x, x)
    with pytest.raises(ValueError, match="each of the 2 ranks has one"):
        all_reduce(group, x[:1], x)
