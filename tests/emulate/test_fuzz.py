"""Random programs: wild ones leave the process and other memory alone, defined ones agree with the reference machine.

The samples here are small; `PTXLAB_FUZZ=10000` runs more of both, from another seed for each number.
"""

import os
import random
import time

import numpy as np
import pytest

import ptxlab
from tests.emulate.defined import STRIDE, Program, interpret
from tests.emulate.wild import Wild

MORE = int(os.environ.get("PTXLAB_FUZZ", "0"))
WILD = range(MORE, MORE + max(MORE, 12))
DEFINED = range(MORE, MORE + max(MORE // 10, 4))
CANARY = 0xA5
THREADS = 40


@pytest.mark.parametrize("seed", WILD)
def test_wild_programs_touch_nothing_but_their_arrays(seed: int) -> None:
    memory = np.full(3 * 4096, CANARY, np.uint8)
    x, y = memory[4096:5120], memory[8192:8256]
    choose = random.Random(seed)
    module = ptxlab.parse(Wild(seed).text(), name=f"wild{seed}.ptx")
    how = {"shared": choose.choice([0, 256]), "seed": choose.choice([0, 1, 9]), "detectors": choose.random() < 0.5}
    started = time.perf_counter()
    found = module["k"].launch(
        choose.choice([1, 2, 5]), choose.choice([1, 31, 32, 64, 96]), [x, y, 7], device="cpu", timeout=0.3,
        on_error="collect", **how,
    )  # fmt: skip
    assert time.perf_counter() - started < 60
    assert str(ptxlab.KernelError(found.diagnostics)) or not found.diagnostics
    x[:] = y[:] = CANARY
    assert (memory == CANARY).all()


@pytest.mark.parametrize("seed", DEFINED)
def test_defined_programs_agree_with_the_reference_machine(seed: int) -> None:
    module = ptxlab.parse(Program(seed).text(), name=f"defined{seed}.ptx")
    out = np.zeros((THREADS, STRIDE), np.uint8)
    module["k"].launch(1, THREADS, [out], device="cpu", detectors=seed % 2 == 0, seed=seed % 3, timeout=60)
    for number, written in enumerate(interpret(module, THREADS)):
        for offset, bits in written.items():
            found = int.from_bytes(out[number, offset : offset + (8 if offset >= 80 else 4)].tobytes(), "little")
            assert found == bits, f"thread {number}, offset {offset}"
