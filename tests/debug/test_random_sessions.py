"""Random sessions of the debugger: what the terminal answers to hundreds of commands is what it was, whole."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.debug import Debugger
from ptxlab.debug.terminal import Terminal
from ptxlab.trace import Trace
from tests.golden import compare_one

from .kernels import CALL, EXCHANGE, HANG, INLINED, LOOP, PRODUCT, RACE, debugger_of

# Warps that part and meet again, a copy that an mbarrier counts, matrices through shared memory, atomics, a call.
MIXED = """.version 8.0
.target sm_90
.address_size 64
.func (.reg .b32 %out) scaled(.reg .b32 %in, .reg .b32 %by)
{
  .reg .b32 %twice;
  .local .align 4 .b32 kept[2];
  mul.lo.u32 %twice, %in, %by;
  st.local.u32 [kept+4], %twice;
  ld.local.u32 %out, [kept+4];
  ret;
}
.visible .entry k(.param .u64 c)
{
  .reg .b32 %r<24>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .b16 %h<4>; .reg .pred %p<4>;
  .shared .align 16 .b8 tile[512];
  .shared .align 8 .b64 full;
  .global .align 4 .u32 count;
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r3, %r1, 4, %r2;
  setp.eq.u32 %p1, %r1, 0;
  @!%p1 bra ready;
  mbarrier.init.shared.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [full], 64;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [full];
ready:
  cp.async.ca.shared.global [%r3+128], [%rd1+64], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra wait;
  and.b32 %r4, %r1, 15;
  mad.lo.u32 %r5, %r4, 4, %r2;
  ld.shared.u32 %r6, [%r5];
  mov.u32 %r7, 0;
  setp.gt.u32 %p3, %r1, 40;
  @%p3 bra odd;
even:
  add.u32 %r6, %r6, %r7;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p0, %r7, %r4;
  @%p0 bra even;
  bra.uni together;
odd:
  call (%r6), scaled, (%r6, 3);
together:
  shfl.sync.down.b32 %r8|%p0, %r6, 3, 31, -1;
  @%p0 add.u32 %r6, %r6, %r8;
  st.shared.u32 [%r3+64], %r6;
  atom.global.add.u32 %r9, [count], %r6;
  redux.sync.max.u32 %r10, %r6, -1;
  vote.sync.ballot.b32 %r11, %p0, -1;
  bar.sync 0;
  mad.lo.u32 %r16, %r4, 16, %r2;
  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r12, %r13}, [%r16];
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r12, %r13}, {%r12}, {%f4, %f5, %f6, %f7};
  ld.shared.v2.u16 {%h0, %h1}, [%r3+64];
  cvt.u32.u16 %r14, %h1;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  cvt.rni.s32.f32 %r15, %f0;
  add.u32 %r15, %r15, %r14;
  st.global.u32 [%rd3], %r15;
  ret;
}
"""
TENSOR = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 c)
{
  .reg .b32 %r<8>, %t, %tensor; .reg .b64 %rd<4>; .reg .pred %p;
  .shared .align 4 .b32 slot;
  ld.param.u64 %rd1, [c];
  mov.u32 %t, %tid.x;
  setp.ge.u32 %p, %t, 32;
  @%p bra allocated;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
allocated:
  bar.sync 0;
  ld.shared.b32 %tensor, [slot];
  shr.u32 %r0, %t, 5;
  shl.b32 %r0, %r0, 21;
  add.u32 %r0, %r0, %tensor;
  mul.lo.u32 %r1, %t, 3;
  tcgen05.st.sync.aligned.32x32b.x2.b32 [%r0], {%t, %r1};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r2}, [%r0];
  tcgen05.wait::ld.sync.aligned;
  mul.wide.u32 %rd2, %t, 4;
  add.u64 %rd2, %rd2, %rd1;
  st.global.u32 [%rd2], %r2;
  bar.sync 0;
  @%p bra end;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tensor, 32;
end:
  ret;
}
"""
# Blocks of clusters in two dimensions that read from and write to each other's shared memory.
CLUSTER = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 c) .reqnctapercluster 2, 2
{
  .reg .b32 %r<20>; .reg .b64 %rd<4>;
  .shared .align 4 .b32 tile[32];
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, tile;
  mad.lo.u32 %r4, %r1, 4, %r3;
  mad.lo.u32 %r5, %r2, 100, %r1;
  st.shared.u32 [%r4], %r5;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  add.u32 %r6, %r2, 1;
  and.b32 %r6, %r6, 3;
  mapa.shared::cluster.u32 %r7, %r4, %r6;
  ld.shared::cluster.u32 %r8, [%r7];
  xor.b32 %r9, %r2, 3;
  mapa.shared::cluster.u32 %r10, %r4, %r9;
  st.shared::cluster.u32 [%r10+64], %r8;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.shared.u32 %r11, [%r4+64];
  mov.u32 %r12, %ctaid.x;
  mov.u32 %r13, %ctaid.y;
  mov.u32 %r14, %nctaid.x;
  mad.lo.u32 %r12, %r13, %r14, %r12;
  mad.lo.u32 %r12, %r12, 8, %r1;
  mul.wide.u32 %rd2, %r12, 4;
  add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r11;
  ret;
}
"""
TEXTS = {
    "exchange": EXCHANGE, "race": RACE, "call": CALL, "inlined": INLINED, "loop": LOOP, "product": PRODUCT,
    "hang": HANG, "mixed": MIXED, "tensor": TENSOR, "part": MIXED,
    "cluster": CLUSTER,
}  # fmt: skip
THREADS = {"part": 40, "cluster": 8}
GRIDS = {"cluster": (4, 2)}
# What is changed in a kernel for a launch that differs from the first.
CHANGES = {
    "exchange": [("xor.b32 %r2, %r1, 32", "xor.b32 %r2, %r1, 33"), ("%p, %r4, 3;", "%p, %r4, 4;")],
    "call": [("add.u32 %out, %in, %in;", "add.u32 %out, %in, 4;")],
    "mixed": [
        ("%p0, %r7, %r4;", "%p0, %r7, 9;"), ("%p3, %r1, 40", "%p3, %r1, 44"), ("%r2;\n  ldmatrix", "%r3;\n  ldmatrix"),
        ("  bar.sync 0;\n  mad.lo", "  add.u32 %r6, %r6, 1;\n  bar.sync 0;\n  mad.lo"),
        ("[%r3+64], %r6", "[%r3+68], %r6"),
    ],
}  # fmt: skip
_CASTS = ("char", "unsigned char", "short", "unsigned", "long long", "float", "double", "bool", "unsigned short")
COMMANDS = 150
SESSIONS = 2


class Session:
    """Commands at random, of what a kernel has."""

    def __init__(self, text: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = len(text.splitlines())
        self.registers = sorted(set(re.findall(r"%[a-z]+\d*\b(?!\.)", text)))
        self.names = sorted({"c", *re.findall(r"\.(?:b\d+|u32) (\w+)[\[;]", text)})

    def value(self) -> str:
        choose = self.random.choice
        one, number = choose(self.registers), self.random.randrange(40)
        name = choose(self.names)
        return choose(
            [
                one, one, one, f"{one} + {number}", f"{one} == {number}", f"-{one} * 3 / 2", f"({one} & 7) << 2",
                f"shared.u32[{number}]", f"shared.f32[{number}]", f"shared.u8[{number}]", f"global.u32[{one}]", name,
                f"({choose(_CASTS)}){number * 7}", f"({choose(_CASTS)}){one}", f"sizeof({name})", f"!{one} || {one}",
                f"{name}[{number % 5}]", f"&{name}", f"*{name}", "threadIdx.x", f"blockDim.x > {number}", "",
            ]
        )  # fmt: skip

    def command(self) -> str:
        choose = self.random.choice
        number = self.random.randrange(64)
        line = self.random.randrange(1, self.lines)
        makers: list[Callable[[], str]] = [
            lambda: choose(["s", "s 3", "si", "si 5", "n", "f", "rs", "rsi", "rsi 4", "rn", "rf"]),
            lambda: choose(["s 7", "si 2", "n 3", "rsi 2", "rs 2"]),
            lambda: f"goto {self.random.choice((0, 3, 17, 60, 200, -1, -9, 1000, 2500))}",
            lambda: f"break {line}" + choose(["", "", f" if {self.value()}"]),
            lambda: f"tbreak {line}",
            lambda: f"watch {choose(self.registers)}",
            lambda: choose(["delete", "delete 1", "continue", "reverse-continue", "continue"]),
            lambda: f"thread {number}",
            lambda: choose(
                [f"lane {number % 40}", f"cuda warp {number % 3} lane {number % 32}", f"cuda thread {number}"]
            ),
            lambda: f"info {choose(['locals', 'args', 'shared', 'registers', 'stack', 'breakpoints', 'barriers'])}",
            lambda: f"info cuda {choose(['kernels', 'blocks', 'warps', 'lanes', 'threads'])}",
            lambda: choose(
                ["warps", "where", "list", f"list {line}", "up", "down", "ptx", "barriers", "tmem", "matrix"]
            ),
            lambda: choose(["tmem 3", "tmem 17 1", "matrix a", "matrix d", "matrix b", "frame 1", "frame"]),
            lambda: f"print{choose(['', '', '/x', '/d', '/u', '/t', '/f', '/c', '/o'])} {self.value()}",
            lambda: f"print {self.value()}",
            lambda: f"ptype {self.value()}",
            lambda: f"lanes {self.value()}",
            lambda: f"origin {choose(self.registers)}",
            lambda: f"origin {self.value()}",
            lambda: choose(["registers", f"display {choose(self.registers)}", "display"]),
        ]
        return choose(makers)()


def transcript(debugger: Debugger, text: str, seed: int) -> list[str]:
    """What a session says."""
    terminal = Terminal(debugger, lambda file: text.splitlines() if not file else None)
    session = Session(text, seed)
    said: list[str] = []
    for _ in range(COMMANDS):
        command = session.command()
        said += [f"> {command}", *terminal.answer(command)]
    return said


def queried(trace: Trace, seed: int) -> list[str]:
    """What a trace says of random steps: all state, and where values come from."""
    choose = random.Random(seed)
    said = [str(trace.timeline().__dict__), str([str(one) for one in trace.barriers()])]
    for _ in range(12):
        step, thread = choose.randrange(trace.steps), choose.randrange(64)
        said += [str(trace.step(step)), f"{trace.active(step):x} {trace.depth(step)} {trace.instruction_at(step)}"]
        registers = trace.registers(thread, step=step)
        said += [str({name: str(value) for name, value in registers.items()})]
        said += [str(one) for one in trace.barriers(step=step)]
        for name in choose.sample(sorted(registers), min(2, len(registers))):
            said += [str(trace.history(name, thread)), str(trace.origin(name, thread, step=step))]
        said += [str(trace.memory(space, thread=thread, step=step)) for space in ("global", "shared", "local")]
        for space, address in (("global", trace.address("c")), ("shared", 0), ("local", 0)):
            address, size = address + choose.randrange(96), choose.choice((1, 2, 4, 4))
            said += [str(trace.last_write(address, size, space=space, thread=thread, step=step))]
            said += [str(trace.origin(address, thread, space=space, size=size, step=step))]
    return said


def compared(wrong: Trace, right: Trace, seed: int) -> list[str]:
    """Where two launches differ, and what values differ by."""
    choose = random.Random(seed)
    said = [str(wrong.diff(right)), str(right.diff(wrong))]
    for at in range(4):
        origin = wrong.origin(wrong.address("c") + 4 * at * 5)
        said += [str(origin), str(origin.blame(right))]
        thread, step = choose.randrange(40), choose.randrange(wrong.steps)
        for name in sorted(wrong.registers(thread, step=step))[:1]:
            said.append(str(wrong.origin(name, thread, step=step).blame(right)))
    return said


@pytest.fixture(scope="module", params=TEXTS)
def opened(request: pytest.FixtureRequest) -> tuple[str, Debugger]:
    name = request.param
    if name != "tensor":
        return name, debugger_of(TEXTS[name], THREADS.get(name, 64), GRIDS.get(name, (1, 1)))
    result = ptxlab.parse(TENSOR, name="k.ptx")["k"].launch(
        1, 64, [np.zeros(64, np.uint32)], device="cpu", record=ptxlab.Record(), on_error="collect"
    )
    found = Debugger(result.trace, result.diagnostics)
    found.owner = result  # type: ignore[attr-defined] # keeps the recording
    return name, found


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_what_is_answered(opened: tuple[str, Debugger], seed: int) -> None:
    name, debugger = opened
    debugger = Debugger(debugger.trace, debugger.findings)
    compare_one(Path(__file__).with_suffix(".txt"), f"{name} {seed}", transcript(debugger, TEXTS[name], seed))


def test_help() -> None:
    terminal = Terminal(debugger_of(EXCHANGE), lambda file: None)
    compare_one(Path(__file__).with_suffix(".txt"), "help", [*terminal.answer("help"), *terminal.answer("help print")])


def test_what_a_trace_says(opened: tuple[str, Debugger]) -> None:
    name, debugger = opened
    compare_one(Path(__file__).with_suffix(".txt"), f"{name} trace", queried(debugger.trace, 5))


@pytest.mark.parametrize("name", CHANGES)
def test_where_launches_differ(name: str) -> None:
    right, said = debugger_of(TEXTS[name]), list[str]()
    for before, after in CHANGES[name]:
        assert before in TEXTS[name]
        wrong = debugger_of(TEXTS[name].replace(before, after))
        said += compared(wrong.trace, right.trace, 7)
    compare_one(Path(__file__).with_suffix(".txt"), f"{name} changed", said)
