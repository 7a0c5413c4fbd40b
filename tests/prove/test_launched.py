"""Proofs of what a program launches: launches are examples, and those that are not as a proof assumes are named."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ptxlab.cli.group import ptxlab as command_line
from ptxlab.device.host_memory import HostMemory
from ptxlab.device.options import LaunchOptions
from ptxlab.programs.examples import LaunchExample, example_of, keep_example
from ptxlab.programs.queue import QueuedLaunch
from ptxlab.prove import prove_launched
from tests.programs.tools import needs_compilers
from tests.prove.kernels import kernel, needs_solver

ELEMENT = """mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 64, %t; setp.ge.u32 %p1, %r1, %n; @%p1 ret;
    mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %x; st.global.u32 [%d1], %r1;"""
STRIDE = """mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 64, %t; mov.u32 %r3, %nctaid.x; mul.lo.u32 %r3, %r3, 64;
    next: setp.ge.s32 %p1, %r1, %n; @%p1 ret; mul.wide.s32 %d1, %r1, 4; add.u64 %d1, %d1, %x; st.global.u32 [%d1], %r1;
    add.s32 %r1, %r1, %r3; bra next;"""
HALVES = ELEMENT.replace("mul.wide.u32 %d1, %r1, 4", "shr.u32 %r2, %r1, 1; mul.wide.u32 %d1, %r2, 4")


class Launches:
    """What a program launches of a kernel, with arrays in its memory."""

    def __init__(self, made: Any) -> None:
        self.kernel, self.memory = made, HostMemory()
        self.found: list[LaunchExample] = []

    def launch(self, address: int, n: int, grid: int = 2) -> None:
        data = struct.pack("<QI", address, n & 0xFFFF_FFFF)
        one: Any = QueuedLaunch(None, (), None, self.kernel, LaunchOptions(grid, 64), data)  # type: ignore[arg-type]
        keep_example(self.found, one, self.memory, at_once=False)

    def array(self, elements: int) -> int:
        self.held = np.zeros(elements, np.uint32)
        return self.memory.add(self.held, "x").base

    def proved(self) -> list[str]:
        return [str(one) for one in prove_launched([(one, f"at {at}") for at, one in enumerate(self.found)])]


def test_an_example_has_numbers_and_bytes() -> None:
    launches = Launches(kernel(ELEMENT))
    base = launches.array(100)
    launches.launch(base + 40, -1)
    (found,) = launches.found
    assert (found.numbers, found.sizes) == ({"n": -1}, {"x": 360})
    assert found.unusual == ["`x` is not aligned to 16 bytes"]
    launches.launch(base + 40, -1)
    assert len(launches.found) == 1  # it is the same launch


def test_pointers_in_structs_and_to_the_same_memory() -> None:
    made = kernel("ret;", ".param .align 8 .b8 s[24], .param .u64 x, .param .u64 y, .param .u32 n")
    memory = HostMemory()
    a, b = (memory.add(held, name).base for name, held in zip("ab", (np.zeros(64), np.zeros(8)), strict=True))
    data = struct.pack("<5QI", 7, a + 256, b, a, a + 256, 3)
    one: Any = QueuedLaunch(None, (), None, made, LaunchOptions(1, 64), data)  # type: ignore[arg-type]
    found = example_of(one, memory, at_once=False)
    assert found.sizes == {"s+8": 256, "s+16": 64, "x": 256, "y": 256}
    assert found.unusual == ["`s+8` and `y` are the same memory"]


@needs_solver
def test_launches_that_a_proof_does_not_hold_for_are_named() -> None:
    launches = Launches(kernel(ELEMENT))
    base = launches.array(1000)
    launches.launch(base, 100)
    launches.launch(base, 90)  # of as long an array: its length does not follow from `n`
    (proved,) = launches.proved()
    assert "is proved" in proved
    assert "  - n <= len(x) (from the example launch)" in proved
    assert proved.endswith("\nall of its launches are like that")
    launches.launch(base + 4, 80)
    launches.launch(base, -1)
    launches.launch(0, 0)
    (proved,) = launches.proved()
    assert proved.endswith("""
but these launches are not like that
  - at 2: `x` is not aligned to 16 bytes
  - at 3: `n` is -1
  - at 4: `x` is 0x0, which is in no allocation""")


@needs_solver
def test_a_race_of_other_sizes_is_found() -> None:
    launches = Launches(kernel(HALVES))
    launches.launch(launches.array(1000), 1)  # one thread writes
    (refuted,) = launches.proved()
    assert "is refuted by a run" in refuted
    assert "data-race" in refuted


@needs_solver
def test_a_length_may_be_a_number() -> None:
    launches = Launches(kernel(ELEMENT.replace("setp.ge.u32 %p1, %r1, %n", "setp.ge.u32 %p1, %r1, 1000")))
    launches.launch(launches.array(1000), 400, grid=16)
    (proved,) = launches.proved()
    assert "is proved" in proved
    assert "len(x) == 1000 (from the example launch)" in proved


@needs_solver
def test_a_loop_over_the_share_of_a_thread_needs_room_below_two_to_the_31() -> None:
    launches = Launches(kernel(STRIDE))
    launches.launch(launches.array(1000), 1000)
    (proved,) = launches.proved()
    assert "is proved" in proved
    assert "  - n + grid.x * 64 <= 2147483647 (from the example launch)" in proved


@needs_solver
def test_it_is_said_how_many_launches_were_compared() -> None:
    launches = Launches(kernel(ELEMENT))
    base = launches.array(1000)
    for n in range(1, 70):
        launches.launch(base, n)
    (proved,) = launches.proved()
    assert proved.endswith("\nits first 64 different launches are like that")


PROGRAM = """#include <cstdio>
__global__ void fill(int* x, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) x[i] = i; }
__global__ void halve(int* x, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) x[i / 2] = i; }
int main() {
  int* x;
  cudaMalloc(&x, 4096);
  fill<<<2, 64>>>(x, 100);
  halve<<<1, 64>>>(x, 1);
  printf("%d\\n", int(cudaDeviceSynchronize()));
  cudaFree(x);
}
"""


@needs_solver
@needs_compilers
@pytest.mark.bulk
def test_a_program_on_the_command_line(tmp_path: Path) -> None:
    source = tmp_path / "p.cu"
    source.write_text(PROGRAM)
    run = CliRunner().invoke(command_line, ["run", str(source), "--prove"])
    assert run.exit_code == 1, run.output  # a kernel is refuted, and the run itself has no finding
    assert "no errors or warnings" in run.output
    assert "`fill` is proved" in run.output
    assert "`halve` is refuted by a run" in run.output
    run = CliRunner().invoke(command_line, ["run", str(source), "--prove", "--format", "json"])
    assert [one["level"] for one in json.loads(run.stdout)["proofs"]] == ["proved", "counterexample"]


@needs_solver
def test_what_is_refused(tmp_path: Path) -> None:
    source, made = tmp_path / "p.cu", tmp_path / "made"
    source.write_text(PROGRAM)
    for command, words in (
        (["run", source, "--entry", "fill"], "`--prove` is for whole programs: `ptxlab prove` is for one kernel"),
        (["run", source, "--format", "sarif"], "`--prove` is for `--format full` and `--format json`, not `sarif`"),
        (["exec", "--format", "concise", "--build", f"touch {made}", made], "`--format json`, not `concise`"),
    ):
        run = CliRunner().invoke(command_line, [command[0], "--prove", *map(str, command[1:])])
        assert run.exit_code == 2
        assert words in " ".join(run.output.split())
    assert not made.exists()  # what is refused is not built
