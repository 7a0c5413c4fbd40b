"""What `facts.value` claims holds in a run: random kernels store what their registers hold, for each thread and turn.

The reference machine runs some threads of many kernels, the emulator all threads of a few.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import ptxlab
from ptxlab import ir
from ptxlab.flow import Facts
from tests.flow.programs import PROBES, THREADS, TURNS, kernel
from tests.flow.reference import TILE, Thread
from tests.golden import compare

SEEDS = int(os.environ.get("PTXLAB_FLOW_SEEDS", "15"))  # by hand: 2000
HERE = Path(__file__).parent
UNWRITTEN = 0xA5A5A5A5_A5A5A5A5


def parse(seed: int) -> tuple[ir.Module, npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """A kernel, its input, and where its probes store: thread, probe, turn."""
    data = np.random.default_rng(seed).integers(0, 1 << 63, 8, np.uint64)
    return ptxlab.parse(kernel(seed)), data, np.full((THREADS, PROBES, TURNS), UNWRITTEN, np.uint64)


def probes(facts: Facts) -> list[tuple[int, ir.Operand, ir.Register]]:
    """Where each probe is: the instruction, what it asks, and the register that it stores."""
    found = []
    for at, instruction in enumerate(facts.instructions):
        if instruction.opcode.mnemonic == "st":
            stored = instruction.operands[1]
            assert isinstance(stored, ir.Register)
            before = facts.instructions[at - 1]
            found.append((at - 1, before.operands[3], stored) if stored.name == "%x" else (at, stored, stored))
    return found


def signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits


def check(facts: Facts, stored: npt.NDArray[np.uint64], tile: int) -> dict[str, int]:
    """Compare all claims with what was stored; how many there were of each kind."""
    claims = dict.fromkeys(("constant", "range", "by_thread", "choice", "pointer"), 0)
    for number, (at, operand, register) in enumerate(probes(facts)):
        value, width = facts.value(at, operand), register.type.width
        least, greatest = value.range or (0, (1 << width) - 1)
        claims["constant"] += value.constant is not None
        claims["by_thread"] += value.by_thread is not None
        claims["range"] += greatest - least < (1 << width) - 1
        claims["pointer"] += value.pointer is not None
        claims["choice"] += value.choice is not None and value.choice.true != value.choice.false
        for thread, turn in zip(*np.nonzero(stored[:, number] != UNWRITTEN), strict=True):
            where = (number, str(operand), int(thread), int(turn))
            bits = int(stored[thread, number, turn]) & ((1 << width) - 1)
            if value.choice is not None:
                assert (value.choice.true if bits else value.choice.false) >> int(thread) & 1, where
                continue
            assert value.constant in (None, signed(bits, width)), where
            assert least <= bits <= greatest or least <= signed(bits, width) <= greatest, (where, bits)
            assert value.by_thread is None or value.by_thread[thread] == bits, where
            if value.pointer is not None:
                assert bits == (tile + value.pointer.offset) & ((1 << width) - 1), where
    return claims


def test_what_is_claimed_holds_for_the_reference_machine() -> None:
    total = dict.fromkeys(("constant", "range", "by_thread", "choice", "pointer"), 0)
    for seed in range(SEEDS):
        module, data, stored = parse(seed)
        facts = Facts.of(module.functions[0])
        for thread in (0, 1 + seed % 30, 31, 32 + seed % 31):
            for offset, bits in Thread(facts, thread, THREADS, data).run().items():
                stored.view(np.uint64).reshape(-1)[offset // 8] = bits
        total = {kind: total[kind] + count for kind, count in check(facts, stored, TILE).items()}
    assert min(total.values()) > SEEDS, "too few claims were checked"


@pytest.mark.parametrize("seed", range(100, 101))
def test_what_is_claimed_holds_for_the_emulator(seed: int) -> None:
    module, data, stored = parse(seed)
    module["k"].launch(1, THREADS, [stored, data], device="cpu", detectors=False)
    check(Facts.of(module.functions[0]), stored, 0)


CASES = "addresses barriers copies mbarriers registers shuffles tensor wgmma"


def test_what_is_known_is_what_was_known() -> None:
    """Of each operand: what is true may say less than before."""
    files = [file for name in CASES.split() for file in sorted((HERE.parent / "cases" / name).glob("*.ptx"))[::9]]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    texts |= {f"kernel {seed}": kernel(seed) for seed in range(2)}
    compare(HERE / "known.txt", {name: [*_known(ptxlab.parse(text).functions[-1])] for name, text in texts.items()})


def _known(function: ir.Function) -> Iterator[str]:
    facts = Facts.of(function)
    for at, instruction in enumerate(facts.instructions):
        for operand in instruction.operands:
            value = facts.value(at, operand)
            pointer = value.pointer and (value.pointer.variable.name, *value.pointer[1:])
            names = [base and (base.variable.name, *base[1:]) for base in (value.provenance, value.address)]
            known = value.range, value.constant, value.by_thread, value.choice, pointer, names, value.origin
            expression = facts.symbolic(at, operand) if isinstance(operand, ir.Register | ir.Address) else None
            yield f"{at} {operand} {known} {expression}"
