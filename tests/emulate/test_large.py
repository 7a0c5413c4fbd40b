"""Programs that are too large for LLVM to optimize: they run all the same, or a finding says why not."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.translate import effort
from ptxlab.native import children
from tests.emulate.launching import kernel, launch
from tests.processes import ROOT

pytestmark = [pytest.mark.optimized, pytest.mark.slow]  # how much LLVM can do is what they are about


def run(body: str, **how: object) -> tuple[int, list[ptxlab.Diagnostic]]:
    """What a kernel of one thread leaves in memory: its `%r1`."""
    out = np.zeros(1, np.uint32)
    text = f"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n{body}\nst.global.u32 [%rd1], %r1;\nret;"
    found = launch(text, ".u64 out", [out], on_error="collect", **how)
    return int(out[0]), found.diagnostics


def skips(count: int) -> str:
    return "\n".join(f"setp.eq.u32 %p1, %r1, {i};\n@%p1 bra L{i};\nadd.u32 %r1, %r1, 1;\nL{i}:" for i in range(count))


def loops(count: int) -> str:
    """Loops of one iteration each."""
    return "\n".join(f"L{i}:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {i};\n@%p1 bra L{i};" for i in range(count))


def nested(count: int) -> str:
    heads = "\n".join(f"L{i}:\nadd.u32 %r1, %r1, 1;" for i in range(count))
    return heads + "".join(f"\nsetp.eq.u32 %p1, %r1, 7;\n@%p1 bra L{i};" for i in reversed(range(count)))


def tangle(count: int) -> str:
    """Irreducible control flow, with jumps from everywhere to anywhere; none is taken."""
    rng = random.Random(1)
    return "setp.eq.u32 %p1, %r1, 9;\n" + "\n".join(f"L{i}:\n@%p1 bra L{rng.randrange(count)};" for i in range(count))


def table(count: int) -> str:
    labels = ", ".join(f"L{i}" for i in range(count))
    cases = "\n".join(f"L{i}:\nadd.u32 %r1, %r1, 1;" for i in range(count))
    return f"T: .branchtargets {labels};\nmov.u32 %r2, {count - 3};\nbrx.idx %r2, T;\n{cases}"


def live(count: int) -> str:
    """That many registers, needed at every one of many barriers."""
    names = "\n".join(f".reg .b32 %x{i};\nadd.u32 %x{i}, %r1, {i};" for i in range(count))
    waits = "\n".join(
        f"bar.sync 0;\nadd.u32 %x{i}, %x{i}, 1;\nsetp.gt.u32 %p1, %x{i}, 99999;\n@%p1 bra A;" for i in range(60)
    )
    return f"{names}\nA:\n{waits}\n" + "\n".join(f"xor.b32 %r1, %r1, %x{i};" for i in range(count))


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (skips(1010), 1010 - 1),
        (skips(300), 300 - 1),
        pytest.param(loops(1010), 1010, marks=pytest.mark.bulk),
        (nested(400), 400),
        pytest.param(tangle(1010), 0, marks=pytest.mark.bulk),
        (table(3000), 3),
        ("\n".join(f"L{i}:" for i in range(30_000)), 0),
        pytest.param("add.u32 %r1, %r1, 1;\n" * 9000, 9000, marks=pytest.mark.bulk),
    ],
    ids=["1010 branches", "300 branches", "loops", "nested", "irreducible", "brx", "labels", "straight"],
)  # fmt: skip
def test_large_programs_run(body: str, expected: int) -> None:
    assert run(body, timeout=120) == (expected, [])


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("count", [400, 1000, 3000])
def test_thousands_of_registers_over_many_waits(count: int) -> None:
    expected = 0
    for i in range(count):
        expected ^= i + (i < 60)
    assert run(live(count), timeout=120) == (expected, [])


@pytest.mark.bulk
def test_thousands_of_functions() -> None:
    count = 1500
    before = "".join(f".func f{i}() {{ .reg .b32 %a; mov.u32 %a, {i}; ret; }}\n" for i in range(count))
    assert run("\n".join(f"call f{i};" for i in range(count)), before=before, timeout=120) == (0, [])


@pytest.mark.bulk
@pytest.mark.parametrize(
    "body", [pytest.param(tangle(20_000), marks=pytest.mark.bulk), skips(8_000)], ids=["irreducible", "branches"]
)
def test_the_time_limit_holds_while_compiling(body: str) -> None:
    """The first second is free; reading and checking the text are not part of it, nor is a busy machine."""
    started = time.process_time()
    _, found = run(body, timeout=1)
    assert time.process_time() - started < 10
    assert [one.code for one in found] in ([], ["timeout"])
    if found:
        assert found[0].message == "the kernel was stopped after 1 seconds, while it was compiled"


@pytest.mark.bulk
def test_a_kernel_that_was_stopped_while_compiling_raises() -> None:
    with pytest.raises(ptxlab.KernelError, match="while it was compiled"):
        launch(tangle(60_000) + "\nret;", timeout=0.1, on_error="raise")


@pytest.mark.parametrize(
    "body",
    [skips(400), pytest.param(tangle(500), marks=pytest.mark.bulk), "bar.sync 0;\n" * 300],
    ids=["branches", "irreducible", "barriers"],
)
def test_what_is_not_optimized_computes_the_same(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(body)
    monkeypatch.setenv("PTXLAB_CACHE", "")
    monkeypatch.setattr(effort, "MANY", 0)
    monkeypatch.setattr("ptxlab.emulate.translate.compile._loaded", {})
    assert run(body) == expected


def test_too_many_ways_of_brx() -> None:
    labels = ", ".join(f"L{i}" for i in range(500))
    jumps = "\n".join(f"L{i}:\nbrx.idx %r2, T;" for i in range(500))
    with pytest.raises(ptxlab.KernelError) as raised:
        launch(f"T: .branchtargets {labels};\nmov.u32 %r2, 0;\n{jumps}\nret;", timeout=10, on_error="raise")
    (found,) = raised.value.diagnostics
    assert (found.code, found.line) == ("too-large", 4)
    assert found.message == "`k`: its `brx.idx` instructions can go 250000 ways, at most 200000 are possible here"


def test_an_abort_of_llvm_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", "")
    monkeypatch.setattr(children, "SERVE", "import os; os.abort()")
    with pytest.raises(ptxlab.KernelError) as raised:
        launch(skips(1100) + "\nret;", on_error="raise")
    (found,) = raised.value.diagnostics
    assert (found.code, found.line) == ("too-large", 4)
    assert found.message == "`k`: its 3301 instructions are more than LLVM can compile on this machine"


def test_an_abort_while_optimizing_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", "")
    before = "import os, sys; int(sys.argv[1]) and os.abort(); "
    monkeypatch.setattr(children, "SERVE", before + children.SERVE)
    assert run(skips(1100)) == (1100 - 1, [])


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_while_compiling() -> None:
    program = """
import ptxlab
from tests.emulate.test_large import tangle
from tests.emulate.launching import kernel
from ptxlab.emulate.translate.compile import runtime_code
runtime_code()
found = kernel(tangle(30_000) + "\\nret;")
print("now", flush=True)
try:
    found.launch(1, 1, device="cpu")
except KeyboardInterrupt:
    print("interrupted")
"""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"


@pytest.mark.bulk
def test_the_time_limit_holds_while_compiling_for_all_schedules() -> None:
    large = kernel(tangle(20_000) + "\nret;")
    started = time.process_time()
    found = ptxlab.explore(large, 1, 1, timeout=0.5)
    assert time.process_time() - started < 10
    assert not found.is_complete
    assert [one.message for one in found.diagnostics] == [
        "the kernel was stopped after 0.5 seconds, while it was compiled"
    ]
