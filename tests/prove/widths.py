"""Random kernels whose accesses differ in width, order, scope and state space, with loops that have several exits."""

from __future__ import annotations

from random import Random

WORDS = 32  # of the shared memory of a block
WIDTHS = {"u8": 1, "b16": 2, "u32": 4, "u64": 8, "v2.u32": 8, "v4.u32": 16, "v2.u64": 16, "v4.u8": 4}
ORDERS = ("", "", "", "", ".volatile", ".relaxed.gpu", ".relaxed.cta", ".relaxed.cluster", ".relaxed.sys")
HEADER = """\
.version 8.0
.target sm_90
.address_size 64
.const .align 4 .b32 numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
.global .align 16 .b32 words[32];
.visible .entry kernel(.param .u64 x, .param .u64 y, .param .u32 n)
.reqntid BLOCK
{
    .reg .pred %p<99>;
    .reg .b16 %h<4>;
    .reg .b32 %r<400>, %t, %b, %g, %n, %v, %z, %k<3>, %u<4>;
    .reg .b64 %d<400>, %x, %y, %w<2>, %generic;
    .shared .align 16 .b32 tile[32];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u64 %generic, tile;
    cvta.shared.u64 %generic, %generic;
    mov.u32 %z, %tid.y;
    mad.lo.u32 %t, %z, WIDTH, %t;
    mad.lo.u32 %g, %b, 8, %t;
    mov.u32 %v, %g;
    mov.u64 %w0, 1;
    mov.u64 %w1, 2;
    mov.u16 %h1, 5;
    setp.lt.u32 %p98, %g, %n;
    mul.wide.u32 %d399, %g, 4;
    add.u64 %d398, %d399, %x;
    add.u64 %d399, %d399, %y;
    @%p98 ld.global.u32 %v, [%d398];
    @%p98 ld.global.u32 %v, [%d399];
"""


class _Maker:
    """Makes the statements of one kernel."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.count = random, list[str](), 0

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def number(self) -> int:
        self.count += 1
        return self.count

    def distance(self, counters: list[str], bytes: int) -> str:
        """A register with a number of bytes, most often a multiple of what is accessed there, below a limit."""
        r, found = self.random, f"%r{self.number()}"
        given = r.choice(["%t", "%t", "%t", "%z", *counters, str(r.randrange(8))])
        self.emit(f"mad.lo.u32 {found}, {given}, {r.choice([bytes, bytes, 4, 8, 16])}, {r.choice([0, 0, bytes, 4])};")
        if r.random() < 0.3:
            self.emit(f"and.b32 {found}, {found}, {r.choice([127, 64, 124, 63])};")
        elif r.random() < 0.1:
            self.emit(f"xor.b32 {found}, {found}, {r.choice([16, 4, 64])};")
        return found

    def access(self, counters: list[str]) -> None:
        """A load, a store or an atomic operation, in shared or global memory."""
        r, width = self.random, self.random.choice(list(WIDTHS))
        kind = r.choice(["ld", "ld", "st", "st", "red"])
        width = r.choice(["u32", "u64"]) if kind == "red" else width
        order = r.choice(["", "", ".relaxed.gpu", ".relaxed.cta"]) if kind == "red" else r.choice(ORDERS)
        order = "" if "u8" in width and "v" in width else order
        place = self.distance(counters, WIDTHS[width])
        match r.choice(["tile", "tile", "tile", "generic", "words", "own", "const"]):
            case "tile":
                self.emit(f"mov.u32 %u0, tile;\n    add.u32 {place}, {place}, %u0;")
                space, address = ".shared", place
            case "generic":
                wide = f"%d{self.number()}"
                self.emit(f"cvt.u64.u32 {wide}, {place};\n    add.u64 {wide}, {wide}, %generic;")
                space, address = "", wide
            case "words":
                wide = f"%d{self.number()}"
                self.emit(f"cvt.u64.u32 {wide}, {place};\n    mov.u64 %d0, words;\n    add.u64 {wide}, {wide}, %d0;")
                space, address = ".global", wide
            case "own":
                self.own()
                return
            case _:
                self.emit(f"and.b32 %u1, {place}, 28;\n    mov.u32 %u2, numbers;\n    add.u32 %u2, %u2, %u1;")
                self.emit("ld.const.u32 %v, [%u2];")
                return
        guard = ""
        if r.random() < 0.4:
            p = self.number() % 97
            self.emit(f"setp.{r.choice(['eq', 'lt', 'ne'])}.u32 %p{p}, {r.choice(['%t', '%z', '%n', *counters])}, 1;")
            guard = f"@{r.choice(['', '', '!'])}%p{p} "
        offset = r.choice(["", "", "", "+8", "+16", "+1"])
        sink = {"u8": "%h0", "b16": "%h0", "u32": "%v", "u64": "%w0", "v2.u32": "{%v, %u1}",
                "v4.u32": "{%v, %u1, %u2, %u3}",
                "v2.u64": "{%w0, %w1}", "v4.u8": "{%h0, %h1, %h2, %h3}"}[width]  # fmt: skip
        if kind == "ld":
            self.emit(f"{guard}ld{order}{space}.{width} {sink}, [{address}{offset}];")
        elif kind == "st":
            self.emit("mov.u16 %h0, 3;\n    mov.u16 %h2, 4;\n    mov.u16 %h3, 4;\n    mov.u32 %u1, 1;")
            self.emit("mov.u32 %u2, 1;\n    mov.u32 %u3, 1;\n    add.u32 %v, %v, %g;\n    cvt.u64.u32 %w0, %v;")
            self.emit(f"{guard}st{order}{space}.{width} [{address}{offset}], {sink};")
        else:
            self.emit(f"{guard}red{order}{space}.add.{width} [{address}], {'%v' if width == 'u32' else '%w1'};")

    def own(self) -> None:
        """An access to an element of an array: of the thread, or beside it."""
        r, wide, p = self.random, self.number(), self.number() % 97
        self.emit(f"setp.lt.u32 %p{p}, %g, %n;\n    mul.wide.u32 %d{wide}, %g, 4;")
        array, kind = (
            r.choice("xy"),
            r.choice(["ld.global", "ld.global.nc", "st.global", "st.relaxed.gpu.global", "st"]),
        )
        self.emit(f"add.u64 %d{wide}, %d{wide}, %{array};")
        offset = r.choice(["", "", "", "", "", "+4"])
        value = f"[%d{wide}{offset}], %v" if kind.startswith("st") else f"%v, [%d{wide}{offset}]"
        self.emit(f"@%p{p} {kind}.u32 {value};")

    def statements(self, depth: int, counters: list[str], count: int, ends: tuple[str, ...] = ()) -> None:
        r = self.random
        for _ in range(count):
            weights = {"access": 6, "barrier": 4, "if": 1, "loop": 1 if depth < 2 else 0, "leave": 2 if ends else 0.1}
            kind = r.choices(list(weights), list(weights.values()))[0]
            p = self.number() % 97
            if kind == "access":
                self.access(counters)
            elif kind == "barrier":
                self.emit("bar.sync 0;")
            elif kind == "loop":
                self.loop(depth, counters)
            else:
                left = r.choice(["%n", "%n", "%b", "%t", "%z", "%v", *counters, *counters])
                self.emit(f"setp.{r.choice(['lt', 'ge', 'eq', 'ne', 'gt'])}.u32 %p{p}, {left}, {r.randrange(9)};")
                if kind == "leave":
                    self.emit(f"@%p{p} bra {r.choice(ends)};" if ends else f"@%p{p} exit;")
                else:
                    label = f"after{self.number()}"
                    self.emit(f"@%p{p} bra {label};")
                    self.statements(depth + 1, counters, r.randint(1, 2), ends)
                    self.lines.append(f"{label}:")

    def loop(self, depth: int, counters: list[str]) -> None:
        """A loop that some turns leave in the middle, or go to the next turn from there."""
        r, number, p, own = self.random, self.number(), self.number() % 97, f"%k{len(counters)}"
        self.emit(f"mov.u32 {own}, {r.choice(['0', '0', '1', '%z'])};\nturn{number}:")
        ends = (f"left{number}", f"left{number}", f"next{number}")
        self.statements(depth + 1, [*counters, own], r.randint(1, 4), ends)
        limit = r.choice(["2", "3", "%n", "%n", "%z"])
        self.lines.append(f"next{number}:")
        self.emit(f"add.u32 {own}, {own}, {r.choice([1, 1, 2])};\n    setp.lt.u32 %p{p}, {own}, {limit};")
        self.emit(f"@%p{p} bra turn{number};\nleft{number}:")


def make(random: Random) -> str:
    """A kernel of eight threads in one or two dimensions."""
    block = random.choice(["8", "4, 2", "2, 4", "2, 2, 2"])
    header = HEADER.replace("BLOCK", block).replace("WIDTH", block.split(",")[0])
    if block == "2, 2, 2":
        header = header.replace("mov.u32 %z, %tid.y;", "mov.u32 %z, %tid.z;\n    mov.u32 %u0, %tid.y;\n"
                                "    mad.lo.u32 %z, %z, 2, %u0;")  # fmt: skip
    maker = _Maker(random)
    maker.statements(0, [], random.randint(2, 7))
    return header + "\n".join(maker.lines) + "\n    ret;\n}\n"
