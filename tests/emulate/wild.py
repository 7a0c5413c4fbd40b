"""Random programs that do everything a kernel must not: wild addresses, endless loops, garbage for sizes and masks."""

from __future__ import annotations

import random

HEAD = """.version 8.6
.target sm_90
.address_size 64
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 list);
.extern .func (.param .b64 address) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 name, .param .b64 size);
.extern .shared .align 16 .b8 dynamic[];
.global .align 16 .b8 variable[64];
.const .align 8 .b8 constant[32] = {37, 115, 37, 100, 37, 42, 46, 42, 102, 37, 108, 108, 120};
"""
FUNCTIONS = """.func leaf()
{
    ret;
}
.func (.param .b64 result) deep(.param .b64 n)
{
    .reg .b64 %rd<4>;
    .reg .pred %p1;
    .local .align 8 .b8 room[40];
    ld.param.b64 %rd1, [n];
    st.local.b64 [room+8], %rd1;
    setp.eq.u64 %p1, %rd1, 0;
    @%p1 bra end;
    sub.u64 %rd1, %rd1, 1;
    {
        .param .b64 passed;
        .param .b64 returned;
        st.param.b64 [passed], %rd1;
        call (returned), deep, (passed);
        ld.param.b64 %rd2, [returned];
    }
    ld.local.b64 %rd3, [room+8];
    add.u64 %rd1, %rd2, %rd3;
end:
    st.param.b64 [result], %rd1;
    ret;
}
.func (.param .align 16 .b8 result[48]) wide(.param .align 16 .b8 given[96])
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [given+92];
    st.param.b32 [result+44], %r1;
    bar.warp.sync -1;
    ret;
}
.global .u64 table[3] = {leaf, deep, wide};
"""
SPACES = ["global", "shared", "local", "const", "param", ""]
WIDTHS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
ATOMS = ["add.u32", "exch.b32", "min.s32", "or.b32", "inc.u32", "add.u64", "exch.b64", "add.f32", "add.noftz.f16x2"]
LABELS = 6
DECLARED = [
    ".reg .b32 %r<12>;", ".reg .b64 %rd<12>;", ".reg .f32 %f<8>;", ".reg .pred %p<4>;", ".reg .b16 %h<4>;",
    ".reg .b128 %q<3>;", ".shared .align 16 .b8 s[256];", ".local .align 16 .b8 l[64];", ".param .b64 pa;",
    ".param .b64 pb;", ".param .b32 pc;", ".param .align 16 .b8 pd[96];", ".param .align 16 .b8 pe[48];",
]  # fmt: skip
FOUR, EIGHT = "{%r1, %r2, %r3, %r4}", "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
SUMS, MORE_SUMS = "{%f1, %f2, %f3, %f4}", "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"
ONE = "(.param .b64 _) _ (.param .b64 _)"
LARGE = "(.param .align 16 .b8 _[48]) _ (.param .align 16 .b8 _[96])"


class Wild:
    """One program, made from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.calls = 0
        self.sanity = self.random.choice([0.5, 0.9, 0.97])  # a program that fails at once tests little

    @property
    def is_sane(self) -> bool:
        return self.random.random() < self.sanity

    def text(self) -> str:
        lines = ["ld.param.u64 %rd10, [x];", *(self.start(register) for register in range(1, 8))]
        count = self.random.randrange(5, 40)
        places = sorted(self.random.randrange(count) for _ in range(LABELS))
        for at in range(count):
            lines += [f"L{label}:" for label, place in enumerate(places) if place == at]
            lines.append(self.guard() + self.statement())
        lines.append("ret;")
        body = "\n".join(f"    {line}" for line in lines)
        declared = "\n".join(f"    {line}" for line in DECLARED)
        entry = ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)\n"
        return f"{HEAD}{FUNCTIONS}{entry}{{\n{declared}\n{body}\n}}\n"

    def guard(self) -> str:
        return self.random.choice(["", "", "@%p1 ", "@!%p2 "])

    def start(self, register: int) -> str:
        """A register that begins with an address, good or bad."""
        rd = f"%rd{register}"
        edge = self.random.choice([-16, -4, -1, 0, 1, 4, 8, 60, 64, 252, 256, 1020, 1024, 4096, 1 << 31])
        return self.random.choice(
            [
                f"ld.param.u64 {rd}, [x];",
                f"ld.param.u64 {rd}, [y];",
                f"ld.param.u64 {rd}, [x]; add.u64 {rd}, {rd}, {edge};",
                f"mov.u64 {rd}, {self.random.choice([0, 1 << 56, 2 << 56, 3 << 56, 4 << 56, 5 << 56]) + edge};",
                f"mov.u64 {rd}, {self.random.getrandbits(64)};",
                f"mov.u64 {rd}, s; add.u64 {rd}, {rd}, {edge};",
                f"mov.u64 {rd}, s; cvta.shared.u64 {rd}, {rd}; add.u64 {rd}, {rd}, {edge};",
                f"mov.u64 {rd}, l; cvta.local.u64 {rd}, {rd}; add.u64 {rd}, {rd}, {edge};",
                f"mov.u64 {rd}, variable; add.u64 {rd}, {rd}, {edge};",
                f"mov.u64 {rd}, constant; cvta.const.u64 {rd}, {rd};",
                f"mov.u64 {rd}, {self.random.choice(['leaf', 'deep', 'wide', 'k'])};",
                f"cvt.u64.u32 {rd}, %tid.x; mul.lo.u64 {rd}, {rd}, {self.random.choice([1, 4, 16, 1 << 20])};",
            ]
        )

    def r(self) -> str:
        return f"%r{self.random.randrange(1, 10)}"

    def rd(self) -> str:
        return f"%rd{self.random.randrange(1, 10)}"

    def address(self, space: str) -> str:
        """An address in brackets."""
        if space in ("global", "", "shared", "local") and self.is_sane:
            base, size = {"global": ("%rd10", 1024), "": ("%rd10", 1024), "shared": ("s", 256), "local": ("l", 64)}[
                space
            ]
            return f"[{base}+{16 * self.random.randrange(size // 16)}]"
        offset = self.random.choice([0, 0, 0, 4, 8, 16, -4, 63, 1 << 20])
        if space == "shared" and self.random.random() < 0.6:
            return f"[{self.random.choice(['s', 'dynamic'])}+{abs(offset)}]"
        if space == "local" and self.random.random() < 0.6:
            return f"[l+{abs(offset) % 128}]"
        if space == "const" and self.random.random() < 0.6:
            return f"[constant+{abs(offset) % 64}]"
        if space == "param":
            return f"[{self.random.choice(['x', 'y', 'n'])}]"
        return f"[{self.rd()}+{offset}]"

    def statement(self) -> str:
        text: str = getattr(self, self.random.choice(STATEMENTS))()
        return text

    # Statements.

    def load(self) -> str:
        space, width = self.random.choice(SPACES), self.random.choice(list(WIDTHS))
        dot = f".{space}" if space else ""
        if space != "param" and self.random.random() < 0.3:
            count = self.random.choice([2, 4]) if width != "b64" else 2
            names = [f"%rd{n}" if width == "b64" else f"%r{n}" for n in range(1, count + 1)]
            return f"ld{dot}.v{count}.{width} {{{', '.join(names)}}}, {self.address(space)};"
        if space not in ("param", "const") and self.random.random() < 0.1:
            return f"ld{dot}.b128 %q1, {self.address(space)};"
        return f"ld{dot}.{width} {self.rd() if width == 'b64' else self.r()}, {self.address(space)};"

    def store(self) -> str:
        space, width = self.random.choice(["global", "shared", "local", ""]), self.random.choice(list(WIDTHS))
        dot = f".{space}" if space else ""
        if self.random.random() < 0.3:
            count = self.random.choice([2, 4]) if width != "b64" else 2
            names = [f"%rd{n}" if width == "b64" else f"%r{n}" for n in range(1, count + 1)]
            return f"st{dot}.v{count}.{width} {self.address(space)}, {{{', '.join(names)}}};"
        return f"st{dot}.{width} {self.address(space)}, {self.rd() if width == 'b64' else self.r()};"

    def atomic(self) -> str:
        space = self.random.choice([".global", ".shared", ""])
        operation = self.random.choice(ATOMS)
        register = self.rd if "64" in operation else self.r
        if operation == "add.f32":
            return f"atom{space}.{operation} %f1, {self.address(space[1:])}, %f2;"
        if self.random.random() < 0.2:
            return f"atom{space}.cas.b32 {self.r()}, {self.address(space[1:])}, {self.r()}, {self.r()};"
        if self.random.random() < 0.2 and "exch" not in operation:
            return f"red{space}.{operation} {self.address(space[1:])}, {register()};"
        return f"atom{space}.{operation} {register()}, {self.address(space[1:])}, {register()};"

    def compute(self) -> str:
        return self.random.choice(
            [
                f"add.u64 {self.rd()}, {self.rd()}, {self.random.choice([4, -4, 256, 1 << 40])};",
                f"mul.lo.u64 {self.rd()}, {self.rd()}, {self.rd()};",
                f"xor.b64 {self.rd()}, {self.rd()}, {self.rd()};",
                f"shl.b64 {self.rd()}, {self.rd()}, {self.r()};",
                f"div.s64 {self.rd()}, {self.rd()}, {self.rd()};",
                f"rem.s32 {self.r()}, {self.r()}, {self.r()};",
                f"cvt.u64.u32 {self.rd()}, {self.r()};",
                f"mov.u32 {self.r()}, {self.random.choice(['%tid.x', '%laneid', '%ctaid.x', '%clock', '-1', '7'])};",
                f"setp.lt.u32 %p1, {self.r()}, {self.r()};",
                f"setp.ne.u64 %p2, {self.rd()}, {self.rd()};",
                f"isspacep.{self.random.choice(['shared', 'local', 'global', 'const'])} %p3, {self.rd()};",
                f"cvta.{self.random.choice(['shared', 'local', 'global'])}.u64 {self.rd()}, {self.rd()};",
                f"cvta.to.{self.random.choice(['shared', 'local', 'global'])}.u64 {self.rd()}, {self.rd()};",
                f"bfi.b32 {self.r()}, {self.r()}, {self.r()}, {self.r()}, {self.r()};",
                f"prmt.b32 {self.r()}, {self.r()}, {self.r()}, {self.r()};",
                "sub.cc.u32 %r1, %r2, %r3;",
            ]
        )

    def copy(self) -> str:
        size = self.random.choice([4, 8, 16])
        cache = "cg" if size == 16 else "ca"
        tail = f", {self.r()}" if self.random.random() < 0.4 else ""
        return self.random.choice(
            [
                f"cp.async.{cache}.shared.global {self.address('shared')}, {self.address('global')}, {size}{tail};",
                "cp.async.commit_group;",
                f"cp.async.wait_group {self.random.randrange(4)};",
                "cp.async.wait_all;",
                f"cp.async.mbarrier.arrive{self.random.choice(['', '.noinc'])}.shared.b64 {self.address('shared')};",
            ]
        )

    def phase(self) -> str:
        space = ".shared" if self.is_sane else ""
        at = self.address("shared" if space else "")
        return self.random.choice(
            [
                f"mbarrier.init{space}.b64 {at}, {self.random.choice([1, 2, 32, 1048575])};",
                f"mbarrier.init{space}.b64 {at}, {self.r()};",
                f"mbarrier.inval{space}.b64 {at};",
                f"mbarrier.arrive{space}.b64 {self.rd()}, {at};",
                f"mbarrier.arrive.noComplete{space}.b64 {self.rd()}, {at}, {self.r()};",
                f"mbarrier.arrive_drop{space}.b64 {self.rd()}, {at};",
                f"mbarrier.expect_tx.relaxed.cta{space}.b64 {at}, {self.r()};",
                f"mbarrier.test_wait{space}.b64 %p1, {at}, {self.rd()};",
                f"mbarrier.try_wait.parity{space}.b64 %p1, {at}, {self.r()};",
            ]
        )

    def barrier(self) -> str:
        if self.is_sane:
            return self.random.choice(["bar.sync 0;", "membar.gl;", "bar.warp.sync -1;"])
        return self.random.choice(
            [
                "bar.sync 0;",
                f"barrier.sync {self.r()};",
                f"barrier.sync {self.r()}, {self.r()};",
                "bar.sync 1, 32;",
                f"bar.arrive {self.random.randrange(4)}, {self.random.choice([32, 64, 96])};",
                "barrier.red.popc.u32 %r1, 0, %p1;",
                f"bar.warp.sync {self.random.choice(['-1', '0xffff', self.r()])};",
                "membar.gl;",
                f"nanosleep.u32 {self.r()};",
            ]
        )

    def together(self) -> str:
        mask = "-1" if self.is_sane else self.random.choice(["0xffff", self.r()])
        mode = self.random.choice(["up", "down", "bfly", "idx"])
        return self.random.choice(
            [
                f"shfl.sync.{mode}.b32 {self.r()}|%p1, {self.r()}, {self.r()}, {self.r()}, {mask};",
                f"vote.sync.ballot.b32 {self.r()}, %p1, {mask};",
                f"match.any.sync.b64 {self.r()}, {self.rd()}, {mask};",
                f"redux.sync.add.u32 {self.r()}, {self.r()}, {mask};",
                f"activemask.b32 {self.r()};",
                f"elect.sync {self.r()}|%p2, {mask};",
                f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r1, %r2, %r3, %r4}}, {self.address('shared')};",
                f"ldmatrix.sync.aligned.m8n8.x2.trans.b16 {{%r1, %r2}}, {self.address('')};",
                f"stmatrix.sync.aligned.m8n8.x2.shared.b16 {self.address('shared')}, {{%r1, %r2}};",
                f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {SUMS}, {FOUR}, {{%r5, %r6}}, {SUMS};",
                f"wmma.load.a.sync.aligned.row.m16n16k16.f16 {EIGHT}, [{self.rd()}], {self.r()};",
                f"wmma.store.d.sync.aligned.row.m16n16k16.f32 [{self.rd()}], {MORE_SUMS}, {self.r()};",
            ]
        )

    def stack(self) -> str:
        return self.random.choice(
            [
                f"alloca.u64 {self.rd()}, {self.rd()}, {self.random.choice([1, 8, 16, 64])};",
                f"stacksave.u64 {self.rd()};",
                f"stackrestore.u64 {self.rd()};",
            ]
        )

    def call(self) -> str:
        self.calls += 1
        number = self.calls
        guard = "" if self.random.random() < 0.5 else f"@%p1 bra S{number}; "
        target = self.rd()
        kind = self.random.randrange(8)
        fetch = (
            f"ld.global.b64 {target}, [table+{8 * self.random.randrange(4)}]; " if self.random.random() < 0.5 else ""
        )
        if kind < 2:
            inner = f"st.param.b64 [pa], {self.rd()}; call (pb), deep, (pa); ld.param.b64 {self.rd()}, [pb];"
        elif kind == 2:
            inner = f"P{number}: .callprototype _ (); {fetch}call {target}, P{number};"
        elif kind == 3:
            inner = (
                f"P{number}: .callprototype {ONE}; {fetch}st.param.b64 [pa], {self.rd()}; "
                f"call (pb), {target}, (pa), P{number}; ld.param.b64 {self.rd()}, [pb];"
            )
        elif kind == 4:
            inner = (
                f"P{number}: .callprototype {LARGE}; {fetch}st.param.b32 [pd+92], {self.r()}; "
                f"call (pe), {target}, (pd), P{number}; ld.param.b32 {self.r()}, [pe+44];"
            )
        elif kind == 5:
            inner = f"st.param.b64 [pa], {self.rd()}; call (pb), malloc, (pa); ld.param.b64 {self.rd()}, [pb];"
        elif kind == 6:
            inner = f"st.param.b64 [pa], {self.rd()}; call free, (pa);"
        else:
            text = f"mov.u64 {self.rd()}, constant; " if self.random.random() < 0.5 else ""
            inner = (
                f"{text}st.param.b64 [pa], {self.rd()}; st.param.b64 [pb], {self.rd()}; "
                f"call (pc), vprintf, (pa, pb); ld.param.b32 {self.r()}, [pc];"
            )
        return f"nanosleep.u32 1; {guard}{inner} S{number}: mov.u32 %r11, %r11;"

    def branch(self) -> str:
        return f"setp.lt.u32 %p1, {self.r()}, {self.r()}; @%p1 bra L{self.random.randrange(LABELS)};"

    def end(self) -> str:
        return (
            self.random.choice(["exit;", "ret;", "trap;", "brkpt;"])
            if self.random.random() < 0.2
            else "bar.warp.sync -1;"
        )


STATEMENTS = [
    "load", "load", "store", "store", "atomic", "compute", "compute", "compute", "copy", "phase", "barrier", "together",
    "stack", "call", "branch", "branch", "end",
]  # fmt: skip
