"""Which warps get to an instruction, by random programs: `divergent-barrier` warns exactly where a run finds it.

All conditions depend on the position of the thread alone, so that what one launch does, every launch does.
"""

import random

import numpy as np
import pytest

import ptxlab

HEAD = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .maxntid 256, 1, 1
{
    .reg .pred %p<100>, %e<100>;
    .reg .b32 %thread, %warp, %lane, %value, %x<100>;
    .reg .b64 %y<100>, %zero;
    mov.u32 %thread, %tid.x;
    shr.u32 %warp, %thread, 5;
    and.b32 %lane, %thread, 31;
    mov.u32 %value, 0;
    mov.u64 %zero, 0;
"""
COLLECTIVE = "movmatrix.sync.aligned.m8n8.trans.b16 %value, %value;"


class Writer:
    """Nested branches on random conditions, with collectives here and there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def condition(self, number: int) -> str:
        p, e, x, y = f"%p{number}", f"%e{number}", f"%x{number}", f"%y{number}"
        pick, warp = self.random.choice, self.random.randrange(8)
        return pick(
            [
                f"setp.{pick(['eq', 'ne', 'lt', 'ge'])}.u32 {p}, %warp, {warp};",
                f"setp.{pick(['lt', 'ge', 'gt'])}.u32 {p}, %thread, {pick([32, 64, 96, 100, 127, 128, 159, 160])};",
                f"setp.{pick(['eq', 'lt'])}.u32 {p}, %lane, {pick([0, 16, 32])};",
                f"and.b32 {x}, %warp, {pick([1, 2, 3, 4])}; setp.eq.u32 {p}, {x}, {pick([0, 1, 2])};",
                f"setp.eq.u32 {e}, %warp, {warp}; setp.eq.u32 {p}, %lane, 0; and.pred {p}, {p}, {e};",
                f"setp.eq.u32 {e}, %warp, {warp}; setp.gt.u32 {p}, %thread, {pick([63, 127])}; or.pred {p}, {p}, {e};",
                f"mad.wide.u32 {y}, %thread, 0x80000000, %zero; setp.ge.u64 {p}, {y}, {pick([1, 2, 3])}00000000000;",
                f"cvt.s8.s32 {x}, %thread; setp.lt.s32 {p}, {x}, {pick([-64, 0, 100])};",
            ]
        )

    def block(self, depth: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if kind < 0.2 or not depth:
                self.lines.append("add.u32 %value, %value, 1;")
            elif kind < 0.5:
                self.lines.append(COLLECTIVE)
            else:
                self.branch(depth)

    def branch(self, depth: int) -> None:
        self.count += 1
        number = self.count
        self.lines += [self.condition(number), f"@%p{number} bra ELSE{number};"]
        self.block(depth - 1)
        if self.random.random() < 0.6:
            self.lines += [f"bra END{number};", f"ELSE{number}:"]
            self.block(depth - 1)
            self.lines.append(f"END{number}:")
        else:
            self.lines.append(f"ELSE{number}:")


def kernel(seed: int) -> str:
    writer = Writer(seed)
    writer.block(3)
    return HEAD + "\n".join(writer.lines) + f"\n{COLLECTIVE}\nret;\n}}\n"


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_the_check_warns_where_a_run_finds_it(start: int) -> None:
    for seed in range(start, start + 10):
        module = ptxlab.parse(kernel(seed))
        warned = [found.code for found in ptxlab.check(module)]
        result = module["k"].launch(1, 256, [np.zeros(1, np.uint32)], device="cpu", detectors=False, on_error="collect")
        assert bool(warned) == bool(result.diagnostics), seed
        assert set(warned) <= {"divergent-barrier"}, seed


def test_both_kinds_are_among_them() -> None:
    verdicts = [bool(ptxlab.check(ptxlab.parse(kernel(seed)))) for seed in range(60)]
    assert 15 <= sum(verdicts) <= 45
