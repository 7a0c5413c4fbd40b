"""Whether values are what a proof takes them for: a kernel that goes wrong where a value is seen must not be proved.

    python -m tests.prove.expressions --kernels 500 --first 0

Random integer expressions of the thread, a parameter and registers that a loop changes are run, and all their values
noted. Then a store outside of an array is put where the value is one of those, or is not below the largest: each proof
of such a kernel is a mistake.
"""

from __future__ import annotations

import argparse
from random import Random
from typing import Any

import numpy as np

import ptxlab
from tests.prove.pool import results

THREADS, MOST_TURNS, TIMEOUT = 8, 12, 5
SIZES = (0, 1, 2, 3, 7, 8, 12, 100, 255, 4096, 65535, 65536, 1 << 20, (1 << 31) - 1)
HEADER = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 y, .param .u32 n)
.reqntid 8
{
    .reg .pred %p<200>, %q;
    .reg .b16 %h<200>;
    .reg .b32 %r<200>, %t, %n, %k, %a, %s, %e;
    .reg .b64 %d<200>, %y, %z;
    .shared .align 4 .b32 tile[4];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
"""
TWO = "add sub mul.lo and or xor min max div rem mul.hi shl shr".split()


class _Maker:
    """Makes one expression in three widths, step by step."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.count = random, list[str](), 0

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def fresh(self, width: int) -> str:
        self.count += 1
        return f"%{ {16: 'h', 32: 'r', 64: 'd'}[width] }{self.count}"

    def constant(self, width: int) -> int:
        r = self.random
        ends = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 255, -1, -2, -8, 1 << (width - 1), (1 << (width - 1)) - 1]
        return r.choice(ends) if r.random() < 0.8 else r.randrange(1 << (width - 1))

    def value(self, leaves: list[str], width: int, depth: int) -> str:
        """A register of a width with a random expression."""
        r = self.random
        if width != 32 and (depth == 0 or r.random() < 0.5):
            found, given = self.fresh(width), self.value(leaves, 32, max(0, depth - 1))
            signs = r.choice(["u{}.u32", "s{}.s32", "u{}.u16" if width == 64 else "u{}.u32"]).format(width)
            if signs.endswith("u16"):
                given = self.narrow(given)
            self.emit(f"cvt.{signs} {found}, {given};")
            return found
        if depth == 0:
            return r.choice(leaves)
        kind = r.choice(
            ["two"] * 6
            + ["one", "chosen", "field", "narrow", "sum", "three", "placed", "compared", "funnel"]
            + ["seldom"] * 2
        )
        found, a = self.fresh(width), self.value(leaves, width, depth - 1)
        b = self.value(leaves, width, depth - 1) if r.random() < 0.4 else str(self.constant(width))
        sign = r.choice("us")
        if kind == "seldom" and width == 32:
            self.seldom(found, a, b, sign)
        elif kind == "two" or (width == 16 and kind in ("field", "three", "placed", "funnel", "narrow")):
            name = r.choice(TWO)
            if name in ("shl", "shr"):
                b = (
                    str(r.choice([0, 1, 2, 3, 12, width - 1, width, 70]))
                    if r.random() < 0.7
                    else self.value(leaves, 32, 0)
                )
            if name in ("div", "rem"):
                b = str(r.choice([1, 2, 3, 5, 8, 16, 7, -1, -3, -8]))  # of 0, what comes is not said
            type = f"b{width}" if name in ("and", "or", "xor", "shl") else f"{sign}{width}"
            self.emit(f"{name}.{type} {found}, {a}, {b};")
        elif kind == "one":
            name = r.choice([f"neg.s{width}", f"abs.s{width}", f"not.b{width}"])
            self.emit(f"{name} {found}, {a};")
        elif kind in ("chosen", "compared"):
            compare = r.choice(["eq", "ne", "lt", "le", "gt", "ge"])
            self.emit(f"setp.{compare}.{sign}{width} %p{self.count}, {a}, {b};")
            p, other = f"%p{self.count}", self.value(leaves, width, 0) if width == 32 else a
            self.emit(f"selp.b{width} {found}, {other}, {b if kind == 'chosen' else 1}, {p};")
        elif kind == "field":
            self.emit(
                f"bfe.{sign}{width} {found}, {a}, {r.choice([0, 1, 5, width - 2])}, {r.choice([0, 1, 3, 8, width])};"
            )
        elif kind == "narrow":
            inner = r.choice([8, 16])
            self.emit(f"cvt.{sign}{inner}.{sign}{width} %h{self.count}, {a};")
            self.emit(f"cvt.{sign}{width}.{sign}{inner} {found}, %h{self.count};")
        elif kind == "sum":
            self.emit(f"mad.lo.{sign}{width} {found}, {a}, {self.constant(width)}, {b};")
        elif kind == "three" and width == 32:
            self.emit(f"lop3.b32 {found}, {a}, {b}, {r.choice(leaves)}, {r.randrange(256)};")
        elif kind == "placed":
            self.emit(f"bfi.b{width} {found}, {a}, {b}, {r.choice([0, 1, 4, width - 3])}, {r.choice([1, 3, 8])};")
        elif kind == "funnel" and width == 32:
            how = r.choice(["l.wrap", "r.wrap", "l.clamp", "r.clamp"])
            self.emit(f"shf.{how}.b32 {found}, {a}, {b}, {r.choice([0, 3, 31, 32, 40])};")
        else:
            self.emit(f"{r.choice(['popc', 'clz'])}.b{width} %r{self.count}, {a};")
            found = self.fresh(width) if width == 64 else found
            self.emit(
                f"cvt.u64.u32 {found}, %r{self.count - 1};" if width == 64 else f"mov.b32 {found}, %r{self.count};"
            )
        return found

    def seldom(self, found: str, a: str, b: str, sign: str) -> None:
        """An instruction on 32 bits that few kernels have."""
        r, n = self.random, self.count
        one, more, place = (str(self.constant(32)) for _ in range(3))
        mode = r.choice(["", "", ".f4e", ".b4e", ".rc8", ".rc16", ".ecl"])
        count, way = r.choice(["%t", "3", "30", "40"]), r.choice(["wrap", "clamp"])
        lines = [
            f"prmt.b32{mode} {found}, {a}, {b}, {r.randrange(1 << 16)};",
            f"mul24.{r.choice(['lo', 'hi'])}.{sign}32 {found}, {a}, {b};",
            f"mad24.lo.{sign}32 {found}, {a}, {b}, {one};",
            f"sad.{sign}32 {found}, {a}, {b}, {one};",
            f"slct.b32.s32 {found}, {a}, {one}, {b};",
            f"{r.choice(['brev', 'cnot'])}.b32 {found}, {a};",
            f"bfind{r.choice(['', '.shiftamt'])}.{sign}32 {found}, {a};",
            f"cvt.{sign}16.{sign}32 %h{n}, {a};\n    mul.wide.{sign}16 {found}, %h{n}, {r.choice([3, -3, 300])};",
            f"mul.wide.{sign}32 %d{n}, {a}, {b};\n    shr.{sign}64 %d{n}, %d{n}, {r.choice([0, 1, 31, 32, 40])};"
            f"\n    cvt.u32.u64 {found}, %d{n};",
            f"{r.choice(['add', 'sub'])}.sat.s32 {found}, {a}, {b};",
            f"cvt.sat.{r.choice(['u8', 's8', 'u16', 's16'])}.{sign}32 {found}, {a};",
            f"mov.b64 %d{n}, {{{a}, {r.choice(['%t', '%n'])}}};\n    shr.u64 %d{n}, %d{n}, {r.choice([1, 16, 31, 33])};"
            f"\n    mov.b64 {{{found}, _}}, %d{n};",
            f"mov.b32 {{%h{n}, _}}, {a};\n    mov.b32 {found}, {{%h{n}, %h{n}}};",
            f"dp4a.{sign}32.{r.choice('us')}32 {found}, {a}, {b}, {one};",
            f"dp2a.{r.choice(['lo', 'hi'])}.{sign}32.{r.choice('us')}32 {found}, {a}, {b}, {one};",
            f"szext.{way}.{sign}32 {found}, {a}, {r.choice([0, 1, 5, 31, 32, 40])};",
            f"bmsk.{way}.b32 {found}, {count}, {r.choice(['%t', '5', '32'])};",
            f"set.{r.choice(['lt', 'eq', 'ge'])}.u32.{sign}32 {found}, {a}, {b};",
            f"add.cc.u32 {found}, {a}, {more};\n    addc.u32 {found}, {b}, {place};",
            f"sub.cc.u32 {found}, {a}, {more};\n    subc.u32 {found}, {b}, {place};",
            f"mad.hi.{sign}32 {found}, {a}, {b}, {one};",
            f"{r.choice(['min', 'max'])}.{sign}32 {found}, {a}, {b};\n    shl.b32 {found}, {found}, {count};",
        ]  # fmt: skip
        self.emit(r.choice(lines))

    def narrow(self, given: str) -> str:
        self.count += 1
        self.emit(f"cvt.u16.u32 %h{self.count}, {given};")
        return f"%h{self.count}"


def make(seed: int) -> str:
    """A kernel that computes `%e`, once or in each turn of a loop; `// seen` is where it is known."""
    r = Random(seed)
    maker = _Maker(r)
    if seed % 2:
        found = maker.value(["%t", "%t", "%n"], 32, r.randint(2, 4))
        return HEADER + "\n".join([*maker.lines, f"    mov.u32 %e, {found};", "    // seen", "    ret;", "}"]) + "\n"
    first = r.choice(["0", "1", "-3", "%t", "%n", "65530", "-1"])
    maker.emit(f"mov.u32 %k, {first};\n    mov.u32 %a, {r.choice(['0', '%t', '7'])};\n    mov.u32 %s, 0;")
    maker.emit("mov.u32 %r199, 0;\nloop:")
    found = maker.value(["%t", "%k", "%k", "%a", "%s", "%n"], 32, r.randint(1, 3))
    maker.emit(f"mov.u32 %e, {found};\n    // seen")
    step = r.choice([1, 1, 2, 3, -1, -2, 4])
    if r.random() < 0.2:
        maker.emit(f"cvt.u16.u32 %h199, %k;\n    add.u16 %h199, %h199, {step};")
        maker.emit(f"cvt.{r.choice(['u32.u16', 's32.s16'])} %k, %h199;")
    else:
        maker.emit(f"add.s32 %k, %k, {step};")
    maker.emit(r.choice([f"add.u32 %a, %a, {r.choice([3, -1])};", "mad.lo.u32 %a, %a, 3, 1;", "add.u32 %a, %a, %k;",
                         "xor.b32 %a, %k, 5;", "shr.u32 %a, %a, 1;", "mov.u32 %a, %s;"]))  # fmt: skip
    maker.emit(f"add.u32 %s, %s, 1;\n    setp.eq.u32 %q, %s, {r.choice([2, 3, 5])};\n    @%q mov.u32 %s, 0;")
    compare = r.choice(["lt.u32", "lt.s32", "ne.u32", "le.s32", "gt.s32", "ge.u32", "ge.s32"])
    maker.emit(f"setp.{compare} %q, %k, {r.choice(['%n', '9', '0', '-5', '%t'])};")
    maker.emit(f"add.u32 %r199, %r199, 1;\n    setp.lt.and.u32 %q, %r199, {MOST_TURNS}, %q;\n    @%q bra loop;")
    return HEADER + "\n".join([*maker.lines, "    ret;", "}"]) + "\n"


def seen(text: str) -> set[int]:
    """The values of `%e` in runs."""
    place = "mov.u32 %r198, %r199;" if "loop:" in text else "mov.u32 %r198, 0;"
    note = f"{place} mad.lo.u32 %r198, %r198, 8, %t; mad.wide.u32 %z, %r198, 4, %y; st.global.u32 [%z], %e;"
    note += " mad.wide.u32 %z, %r198, 4, %y; st.global.u32 [%z+4096], 1;"
    kernel = ptxlab.parse(text.replace("// seen", note))["kernel"]
    found: set[int] = set()
    for n in SIZES:
        y = np.zeros((2, 1024), np.uint32)
        kernel.launch(1, THREADS, [y, n], device="cpu", timeout=20, detectors=())
        found |= set(y[0][y[1] == 1].tolist())
    return found


def judge(seed: int) -> list[dict[str, Any]]:
    """The proofs that are mistakes, or what came of all."""
    text = make(seed)
    try:
        values = sorted(seen(text))
    except ptxlab.PtxError as wrong:
        return [{"seed": seed, "level": "not PTX", "wrong": str(wrong)[:200]}]
    r, rows = Random(seed), []
    signed = sorted(value - (value >> 31 << 32) for value in values)
    tests = [f"setp.eq.u32 %q, %e, {one};" for one in {values[0], values[-1], r.choice(values)}]
    tests += [f"setp.ge.u32 %q, %e, {values[-1]};", f"setp.le.u32 %q, %e, {values[0]};"]
    tests += [f"setp.ge.s32 %q, %e, {signed[-1]};", f"setp.le.s32 %q, %e, {signed[0]};"]
    for test in (*tests, f"setp.gt.u32 %q, %e, {values[-1]};"):  # the last is right, as far as is seen
        outside = f"{test}\n    @%q st.shared.u32 [tile+16], %t;"
        kernel = ptxlab.parse(text.replace("// seen", outside))["kernel"]
        found = ptxlab.prove(kernel, replays=False, timeout=TIMEOUT)
        if test not in tests:
            rows.append({"seed": seed, "level": f"right: {found.level}", "wrong": None})
        else:
            rows.append({"seed": seed, "level": found.level, "wrong": test if found.level == "proved" else None})
    return rows


def main() -> None:
    """Judge all, and print what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    given = parser.parse_args()
    counts: dict[str, int] = {}
    for rows in results(judge, range(given.first, given.first + given.kernels), given.processes, given.seconds):
        for row in rows:
            counts[row["level"]] = counts.get(row["level"], 0) + 1
            if row["wrong"]:
                print(f"proved, but wrong: {row}", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
