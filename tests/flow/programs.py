"""Random kernels that compute with integers, predicates and addresses, and store what registers hold on the way.

A probe stores one register in a slot of its own for each thread and each turn of the loop around it. Slots are in the
order of the probes; the register and the position of a probe are found in the kernel again by its store.
"""

import random

PROBES = 40
TURNS = 4
THREADS = 64
HEAD = f"""\
.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 tile[1024];
.visible .entry k(.param .u64 out, .param .u64 data) .reqntid {THREADS}, 1, 1
{{
    .reg .pred %p<4>, %more;
    .reg .b16 %h<4>;
    .reg .b32 %r<8>, %turn, %t;
    .reg .b64 %d<6>, %a<4>, %out, %data, %slot, %x;
    ld.param.u64 %out, [out];
    ld.param.u64 %data, [data];
    mov.u32 %turn, 0;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %slot, %t, {PROBES * TURNS * 8};
    add.u64 %out, %out, %slot;
"""
WORDS = {16: "%h", 32: "%r", 64: "%d"}


class Writer:
    """Writes statements; `self.random` decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.probes = 0
        self.labels = 0
        self.in_loop = False

    def register(self, width: int) -> str:
        return f"{WORDS[width]}{self.random.randrange({16: 4, 32: 8, 64: 6}[width])}"

    def predicate(self) -> str:
        return f"%p{self.random.randrange(4)}"

    def source(self, width: int) -> str:
        return self.register(width) if self.random.random() < 0.65 else self.constant(width)

    def constant(self, width: int) -> str:
        bits = self.random.choice([1, 2, 3, 4, 5, 6, 8, 12, width - 1])
        value = self.random.choice([0, 1, 2, 3, 4, 31, 32, self.random.getrandbits(bits), 1 << bits >> 1])
        return str(value if self.random.random() < 0.8 else -value)

    def start(self) -> None:
        """Write every register once: constants, what depends on the thread, and what nothing is known of."""
        pick = self.random.choice
        for n in range(8):
            known = [f"mov.u32 %r{n}, {self.constant(32)};", f"mov.u32 %r{n}, %tid.x;", f"mov.u32 %r{n}, %laneid;",
                     f"mov.u32 %r{n}, %ntid.x;", f"mov.u32 %r{n}, %ctaid.x;", f"mov.u32 %r{n}, tile+{4 * n};",
                     f"ld.global.u32 %r{n}, [%data+{8 * n}];", f"ld.global.u8 %r{n}, [%data+{8 * n}];"]  # fmt: skip
            self.lines.append(pick(known))
        self.lines += [f"cvt.u16.u32 %h{n}, %r{n};" for n in range(4)]
        self.lines += [f"cvt.{pick(['u64.u32', 's64.s32'])} %d{n}, %r{n};" for n in range(6)]
        self.lines += [f"setp.{pick(['lt', 'eq', 'ge'])}.u32 %p{n}, %r{n}, {self.constant(32)};" for n in range(4)]
        self.lines += [pick([f"mov.u64 %a{n}, tile;", f"mov.u64 %a{n}, tile+8;", f"cvt.u64.u32 %a{n}, %t;"])
                       for n in range(4)]  # fmt: skip

    def compute(self) -> str:
        """One instruction."""
        pick, width = self.random.choice, self.random.choice([16, 32, 32, 32, 64])
        d, a, b, c = self.register(width), self.register(width), self.source(width), self.source(width)
        kind, word, wide = pick("us"), self.register(32), self.register(64)
        p, q, o = self.predicate(), self.predicate(), self.predicate()
        t, compare = f"{kind}{width}", pick(["eq", "ne", "lt", "le", "gt", "ge"])
        bits, count = f"b{width}", pick([str(self.random.randrange(40)), self.register(32)])
        address, base = f"%a{self.random.randrange(4)}", f"%a{self.random.randrange(4)}"
        any_width = [
            f"{pick(['add', 'sub', 'mul.lo', 'div', 'rem', 'min', 'max'])}.{t} {d}, {a}, {b};",
            f"{pick(['add', 'sub'])}.{t} {d}, {a}, {b};",
            f"mad.lo.{t} {d}, {a}, {b}, {c};",
            f"{pick(['and', 'or', 'xor'])}.{bits} {d}, {a}, {b};",
            f"not.{bits} {d}, {a};",
            f"neg.s{width} {d}, {a};",
            f"abs.s{width} {d}, {a};",
            f"shl.{bits} {d}, {a}, {count};",
            f"shr.{t} {d}, {a}, {count};",
            f"setp.{compare}.{t} {p}, {a}, {b};",
            f"setp.{compare}.{pick(['and', 'or', 'xor'])}.{t} {p}, {a}, {b}, {q};",
            f"selp.{bits} {d}, {a}, {b}, {p};",
            f"mov.{bits} {d}, {b};",
            f"sad.{t} {d}, {a}, {b}, {c};",
        ]
        fixed = [
            f"mul.wide.{kind}32 {wide}, {word}, {self.source(32)};",
            f"mad.wide.{kind}32 {wide}, {word}, {self.source(32)}, {self.source(64)};",
            f"mul.hi.{kind}32 {word}, {self.register(32)}, {self.source(32)};",
            f"mul24.lo.{kind}32 {word}, {self.register(32)}, {self.source(32)};",
            f"cvt.{kind}64.{kind}32 {wide}, {word};",
            f"cvt.{pick('us')}32.{kind}64 {word}, {wide};",
            f"cvt.{kind}{pick([8, 16])}.{pick('us')}32 {word}, {self.register(32)};",
            f"cvt.{kind}32.{kind}16 {word}, {self.register(16)};",
            f"cvt.u16.u32 {self.register(16)}, {word};",
            f"cvt.sat.{pick(['u8.s32', 's8.s32', 's16.u32'])} {word}, {self.register(32)};",
            f"bfe.{kind}32 {word}, {self.register(32)}, {self.random.randrange(34)}, {self.random.randrange(34)};",
            f"bfi.b32 {word}, {self.register(32)}, {self.register(32)}, {self.random.randrange(32)}, 7;",
            f"popc.b32 {word}, {self.register(32)};",
            f"clz.b32 {word}, {self.register(32)};",
            f"lop3.b32 {word}, {self.register(32)}, {self.source(32)}, {self.source(32)}, {pick([0x96, 0xE8, 0x1B])};",
            f"shf.r.wrap.b32 {word}, {self.register(32)}, {self.register(32)}, {count};",
            f"prmt.b32 {word}, {self.register(32)}, {self.register(32)}, {self.random.getrandbits(16)};",
            f"mov.b64 {wide}, {{{word}, {self.register(32)}}};",
            f"mov.b64 {{{word}, {self.register(32)}}}, {wide};",
            f"{pick(['and', 'or', 'xor'])}.pred {p}, {q}, {o};",
            f"and.pred {p}, !{q}, {o};",
            f"not.pred {p}, {q};",
            f"setp.{compare}.u32 {p}|{q}, {word}, {self.source(32)};" if p != q else f"mov.pred {p}, {q};",
            f"add.u64 {address}, {base}, {self.constant(64)};",
            f"sub.u64 {address}, {base}, {self.constant(64)};",
            f"add.u64 {address}, {base}, {wide};",
            f"mov.u64 {address}, {base};",
        ]
        return pick(any_width if self.random.random() < 0.6 else fixed)

    def probe(self) -> None:
        """Store a register."""
        if self.probes == PROBES:
            return
        place = f"[%slot+{self.probes * TURNS * 8}]"
        kind = self.random.random()
        self.lines.append("mul.wide.u32 %slot, %turn, 8; add.u64 %slot, %out, %slot;")
        if kind < 0.2:
            self.lines.append(f"selp.u64 %x, 1, 0, {self.predicate()};")
            self.lines.append(f"st.global.u64 {place}, %x;")
        else:
            width = self.random.choice([16, 32, 32, 64])
            register = self.register(width) if kind < 0.8 else f"%a{self.random.randrange(4)}"
            self.lines.append(f"st.global.b{width if kind < 0.8 else 64} {place}, {register};")
        self.probes += 1

    def block(self, depth: int) -> None:
        for _ in range(self.random.randrange(4, 9)):
            kind = self.random.random()
            if kind < 0.72 or not depth:
                guard = f"@{self.random.choice(['', '!'])}{self.predicate()} " if self.random.random() < 0.15 else ""
                self.lines.append(guard + self.compute())
                self.probe()
            elif kind < 0.87 or self.in_loop:
                self.branch(depth)
            else:
                self.loop(depth)

    def branch(self, depth: int) -> None:
        self.labels += 1
        number = self.labels
        self.lines.append(f"@{self.random.choice(['', '!'])}{self.predicate()} bra ELSE{number};")
        self.block(depth - 1)
        self.lines += [f"bra END{number};", f"ELSE{number}:"]
        if self.random.random() < 0.5:
            self.block(depth - 1)
        self.lines.append(f"END{number}:")
        self.probe()

    def loop(self, depth: int) -> None:
        self.labels += 1
        number, self.in_loop = self.labels, True
        self.lines += ["mov.u32 %turn, 0;", f"LOOP{number}:"]
        self.block(depth - 1)
        self.lines += ["add.u32 %turn, %turn, 1;", f"setp.lt.u32 %more, %turn, {TURNS};", f"@%more bra LOOP{number};"]
        self.lines.append("mov.u32 %turn, 0;")
        self.in_loop = False
        self.probe()


def kernel(seed: int) -> str:
    """A kernel that stores what registers hold, by `PROBES` probes at most."""
    writer = Writer(seed)
    writer.start()
    while writer.probes < PROBES:
        writer.block(2)
    return HEAD + "\n".join(writer.lines) + "\nret;\n}\n"


def jumps(seed: int) -> str:
    """A kernel that jumps about: loops in loops, and with two ways in; it may never end."""
    writer = Writer(seed)
    writer.start()
    count = writer.random.randrange(3, 9)
    for number in range(count):
        writer.lines.append(f"B{number}:")
        for _ in range(writer.random.randrange(1, 5)):
            register, width = writer.register(32), writer.random.choice(["%r0", "%r1", "4", "-1", "%t"])
            counting = f"add.u32 {register}, {register}, {width};"
            guard = f"@{writer.predicate()} " if writer.random.random() < 0.1 else ""
            writer.lines.append(guard + writer.random.choice([counting, counting, writer.compute()]))
        guard = f"@{writer.random.choice(['', '!'])}{writer.predicate()} " if writer.random.random() < 0.9 else ""
        writer.lines.append(f"{guard}bra B{writer.random.randrange(count)};")
    return HEAD + "\n".join(writer.lines) + "\nret;\n}\n"
