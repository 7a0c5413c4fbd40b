"""Tensor memory in a recorded launch, and in the debugger."""

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.debug import Debugger
from ptxlab.debug.terminal import Terminal
from ptxlab.debug.variables import Variables
from ptxlab.measure import Host
from ptxlab.trace import Trace
from tests.emulate.blackwell import kernel, launch
from tests.emulate.tensor_kernels import BODY, CLEAR, SHARED
from tests.emulate.tensor_tiles import tile

from .recorded import ring


def steps_of(trace: Trace, name: str) -> list[int]:
    """The steps of instructions that do this with tensor memory."""
    program = trace.program
    numbers = [number for number in range(len(program.instructions)) if program.match(number) is not None]
    found = [number for number in numbers if program.match(number).effects.does("tensor_memory", name)]
    return sorted({int(step) for number in found for step in trace.steps_at(program.line(number))})


def step_of(trace: Trace, name: str) -> int:
    """The last of them."""
    return steps_of(trace, name)[-1]


def test_accumulators_are_known_after_each_mma() -> None:
    trace = ring()
    a, b = (np.asarray(trace.memory("global")[name]).astype(np.float64) for name in ("a", "b"))
    words = trace.tensor_memory()
    assert words.shape == (128, 512)
    assert (~words.mask).sum() == 128 * 64  # a tile, as warps have loaded it
    assert np.allclose(words[:, :64], (a[:128] @ b[:64].T), atol=1e-3)
    steps = steps_of(trace, "multiply")
    assert len(steps) == 16  # K is padded to 256
    assert trace.tensor_memory(step=steps[0] - 1).mask.all()
    for number in (7, 3, 12):  # no load reads partial sums: they are computed again
        found, k = trace.tensor_memory(step=steps[number - 1]), 16 * number
        assert (~found.mask).sum() == 128 * 64
        assert np.allclose(found[:, :64], a[:128, :k] @ b[:64, :k].T, atol=1e-3)
    assert (trace.tensor_memory(step=steps[-1])[:, :64] == words[:, :64]).all()


@pytest.mark.parametrize("mode", ["none", "128B"])
def test_copied_words_are_known_before_they_are_loaded(mode: str) -> None:
    data = np.random.default_rng(2).integers(0, 256, (128, 2, 16), np.uint8)
    made = tile(data, 0, mode=mode)
    filled = np.frombuffer(made.data.ljust(-(-len(made.data) // 2048) * 2048, b"\0"), np.uint8).copy()
    given = np.array([made.descriptor, 0, 0, len(filled) // 16, 8, 1, 0, 0, 0, 0], np.uint64)
    copy = "tcgen05.cp.cta_group::1.128x256b [%r14], %rd10;"
    body = BODY.replace("PREPARE", CLEAR).replace("MULTIPLY", copy)
    out = np.zeros((128, 8), np.uint32)
    trace = launch(body, [out, filled, given], shared=SHARED, record=ptxlab.Record()).trace
    assert trace is not None
    words = trace.tensor_memory(step=step_of(trace, "copy"), type="b32")
    assert np.array_equal(words[:, :8], data.reshape(128, 32).view(np.uint32))


def test_the_debugger_shows_it() -> None:
    debugger = Debugger(ring())
    debugger.go_to(step_of(ring(), "multiply") + 1)
    (shown,) = Terminal(debugger, lambda _: None).answer("tmem 3 2")
    value = float(debugger.tensor_memory()[3, 2])
    assert shown == f"lane   3, columns 2 to 2: [{value:.4f}]"
    tree = Variables(debugger)
    scopes = {one["name"]: one["variablesReference"] for one in tree.scopes()}
    lanes = tree.children(scopes["Tensor memory"])
    assert [one["name"] for one in lanes] == [f"lane {number}" for number in range(128)]
    columns = tree.children(lanes[3]["variablesReference"])
    assert (columns[2]["name"], len(columns)) == ("column 2", 64)
    assert float(columns[2]["value"]) == np.float32(value)
    debugger.go_to(0)
    (shown,) = Terminal(debugger, lambda _: None).answer("tmem")
    assert "no word of tensor memory is known here" in shown


@pytest.mark.slow
def test_scale_factors_are_among_the_inputs_of_a_product() -> None:
    entry = kernels.entry("nvfp4_gemm")
    (launch,) = entry.launches("tcgen05", entry.arrays(Host(7), **entry.small[0]))
    trace = launch.run(device="cpu", detectors=False, record=ptxlab.Record(blocks=[0])).trace
    assert trace is not None
    maps = [f"maps+{128 * number}" for number in range(5)]
    row, column = 37, 70
    found = trace.origin(trace.address(maps[4], row, column), size=trace.memory("global")[maps[4]].itemsize).inputs()
    elements = [f"[{16 * number}:{16 * number + 16}]".replace("[", "[{}, ") for number in range(8)]
    # Of four K tiles, four factors each: at lane 37 % 32, second group of four bytes; at lane 70 % 32, third.
    factors = {maps[1]: (row % 32, 4), maps[3]: (column % 32, 8)}
    assert {name: sorted(found[name]) for name in maps[:4]} == {
        name: sorted(
            [f"{name}[0, {tile}, {factors[name][0]}, {factors[name][1]}:{factors[name][1] + 4}]" for tile in range(4)]
            if name in factors
            else [name + one.format(row if name == maps[0] else column) for one in elements]
        )
        for name in maps[:4]
    }


def test_each_block_has_tensor_memory_of_its_own() -> None:
    body = """
      mov.u32 %r10, %ctaid.x;
      add.u32 %r10, %r10, 7;
      tcgen05.st.sync.aligned.32x32b.x1.b32 [%band], {%r10};
      tcgen05.wait::st.sync.aligned;
    """
    trace = kernel(body).launch(3, 128, [np.zeros(1, np.uint32)] * 3, record=ptxlab.Record()).trace
    assert trace is not None
    for block in range(3):
        words = trace.tensor_memory(block, type="b32")
        assert (words[:, 0] == block + 7).all()
        assert words.count() == 128
