"""Tensor memory in a recorded launch, and in the debugger."""

import numpy as np

from ptxlab.debug import Debugger
from ptxlab.debug.terminal import Terminal
from ptxlab.debug.variables import Variables
from ptxlab.trace import Trace

from .recorded import ring


def step_of(trace: Trace, name: str) -> int:
    """The last step of the last instruction that does this with tensor memory."""
    program = trace.program
    numbers = [number for number in range(len(program.instructions)) if program.match(number) is not None]
    found = [number for number in numbers if program.match(number).effects.does("tensor_memory", name)]
    return int(trace.steps_at(program.line(found[-1]))[-1])


def test_accumulators_are_known_once_the_last_mma_is_issued() -> None:
    trace = ring()
    a, b = (np.asarray(trace.memory("global")[name]).astype(np.float64) for name in ("a", "b"))
    words = trace.tensor_memory()
    assert words.shape == (128, 512)
    assert (~words.mask).sum() == 128 * 64  # a tile, as warps have loaded it
    assert np.allclose(words[:, :64], (a[:128] @ b[:64].T), atol=1e-3)
    last = step_of(trace, "multiply")
    assert trace.tensor_memory(step=last - 1).mask.all()
    assert (trace.tensor_memory(step=last)[:, :64] == words[:, :64]).all()


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
