"""Random small kernels of a few threads, some with races and bad accesses, most of them right."""

from __future__ import annotations

from random import Random

from tests.prove import draws, widths

THREADS, WORDS = 8, 16  # of a block, and of its shared memory
HEADER = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 x, .param .u64 y, .param .u32 n)
.reqntid 8
{
    .reg .pred %p<64>;
    .reg .b32 %r<400>, %t, %b, %g, %n, %v, %k0, %k1, %k2, %m, %base;
    .reg .b64 %d<400>, %x, %y;
    .shared .align 4 .b32 tile[16];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mad.lo.u32 %g, %b, 8, %t;
    mov.u32 %base, tile;
    mov.u32 %v, %g;
"""


class _Maker:
    """Makes the statements of one kernel."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines = random, list[str]()
        rare: list[dict[str, float]] = [{}, {"warp": 2, "shuffle": 0.5}, {"guarded": 1}, {"copy": 2, "wait": 2}]
        rare += [{"decided": 1.5}, {"mixed": 2, "guarded": 1}]
        self.extras = random.choice(rare)
        self.count = 0
        self.emit(f"mov.u32 %m, {random.choice(['%t', '%n', '3'])};\n    and.b32 %m, %m, 7;")

    def number(self) -> int:
        self.count += 1
        return self.count

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def index(self, counters: list[str], limit: int) -> str:
        """A register with an index of an array, most often below a limit."""
        r = self.random
        weights = {"t": 10, "constant": 1, "shifted": 2, "flipped": 1, "reversed": 1, "half": 1, "data": 0.3}
        if counters:
            weights |= {"counter": 1, "row": 2, "turning": 2}
        found = f"%r{self.number()}"
        match r.choices(list(weights), list(weights.values()))[0]:
            case "t":
                self.emit(f"mov.u32 {found}, %t;")
            case "constant":
                self.emit(f"mov.u32 {found}, {r.randrange(limit)};")
            case "shifted":
                self.emit(f"add.u32 {found}, %t, {r.choice([1, 3, 4, 8])};")
                self.emit(f"and.b32 {found}, {found}, {r.choice([7, 15])};")
            case "flipped":
                self.emit(f"xor.b32 {found}, %t, {r.choice([1, 2, 4, 7])};")
            case "reversed":
                self.emit(f"sub.u32 {found}, {r.choice([7, 15])}, %t;")
            case "half":
                self.emit(f"shr.u32 {found}, %t, 1;")
            case "data":
                self.emit(f"and.b32 {found}, %v, 7;")
            case "counter":
                self.emit(f"and.b32 {found}, {r.choice(counters)}, 15;")
            case "row":
                self.emit(f"mad.lo.u32 {found}, {r.choice(counters)}, 8, %t;")
                if r.random() < 0.7:
                    self.emit(f"and.b32 {found}, {found}, 15;")
            case "turning":
                self.emit(f"add.u32 {found}, {r.choice(counters)}, %t;")
                self.emit(f"and.b32 {found}, {found}, 7;")
        return found

    def shared(self, counters: list[str]) -> None:
        index, address = self.index(counters, WORDS), f"%r{self.number()}"
        self.emit(f"mad.lo.u32 {address}, {index}, 4, %base;")
        kind = self.random.choice(["ld", "st", "st", "atom"] if self.random.random() < 0.1 else ["ld", "st"])
        if kind == "atom":
            self.emit(f"atom.shared.add.u32 %r{self.number()}, [{address}], %v;")
        elif kind == "ld":
            self.emit(f"ld.shared.u32 %v, [{address}];")
        else:
            self.emit(f"add.u32 %v, %v, %g;\n    st.shared.u32 [{address}], %v;")

    def world(self, counters: list[str]) -> None:
        """An access to global memory, usually after a check."""
        r, place = self.random, f"%r{self.number()}"
        kinds = ["g", "g", "reversed", "pairs"] + ["strided"] * bool(counters)
        match r.choice(kinds):
            case "g":
                self.emit(f"mov.u32 {place}, %g;")
            case "reversed":
                self.emit(f"sub.u32 {place}, %n, 1;\n    sub.u32 {place}, {place}, %g;")
            case "pairs":
                self.emit(f"shl.b32 {place}, %g, 1;")
                self.emit(f"add.u32 {place}, {place}, {r.choice([0, 1])};")
            case "strided":
                self.emit(f"mov.u32 {place}, %nctaid.x;")
                self.emit(f"shl.b32 {place}, {place}, 3;\n    mad.lo.u32 {place}, {place}, {r.choice(counters)}, %g;")
        predicate, wide = self.number(), self.number()
        array = r.choice(["%x", "%y"])
        check = r.choices(["lt", "le", "none"], [12, 1, 1])[0]
        if check != "none":
            self.emit(f"setp.{check}.u32 %p{predicate % 64}, {place}, %n;")
        self.emit(f"mul.wide.u32 %d{wide}, {place}, 4;\n    add.u64 %d{wide}, %d{wide}, {array};")
        guard = "" if check == "none" else f"@%p{predicate % 64} "
        if r.random() < 0.5:
            self.emit(f"{guard}ld.global.u32 %v, [%d{wide}];")
        else:
            self.emit(f"{guard}st.global.u32 [%d{wide}], %v;")

    def copy(self, counters: list[str]) -> None:
        """An asynchronous copy of one word, most often with a commit."""
        index, address, wide = self.index(counters, WORDS), f"%r{self.number()}", self.number()
        self.emit(f"mad.lo.u32 {address}, {index}, 4, %base;")
        self.emit(f"mul.wide.u32 %d{wide}, %t, 4;\n    add.u64 %d{wide}, %d{wide}, %x;")
        self.emit(f"setp.lt.u32 %p{wide % 64}, %t, %n;")
        self.emit(f"@%p{wide % 64} cp.async.ca.shared.global [{address}], [%d{wide}], 4;")
        if self.random.random() < 0.9:
            self.emit("cp.async.commit_group;")

    def decided(self, counters: list[str]) -> None:
        """A barrier, or an access, by what is in memory: most often at one place for all threads."""
        r, address, p = self.random, f"%r{self.number()}", self.number() % 64
        index = r.choice(["0", "3", "%k0" if counters else "1", "%b", "%t"])
        self.emit(f"and.b32 {address}, {index}, 15;" if index[0] == "%" else f"mov.u32 {address}, {index};")
        self.emit(f"mad.lo.u32 {address}, {address}, 4, %base;\n    ld.shared.u32 {address}, [{address}];")
        self.emit(f"setp.gt.u32 %p{p}, {address}, {r.choice([3, 100])};")
        self.emit(f"@%p{p} bar.sync 0;" if r.random() < 0.7 else f"@%p{p} st.shared.u32 [%base], 7;")

    def statement(self, kind: str, counters: list[str]) -> None:
        """A statement of a kind that only some kernels have."""

    def statements(self, depth: int, counters: list[str], count: int) -> None:
        r = self.random
        for _ in range(count):
            weights = {"shared": 4, "world": 1.5, "barrier": 3, "if": 1, "loop": 1 if depth < 2 else 0} | self.extras
            kind = r.choices(list(weights), list(weights.values()))[0]
            if kind == "shared":
                self.shared(counters)
            elif kind == "world":
                self.world(counters)
            elif kind == "barrier":
                self.emit("bar.sync 0;")
            elif kind == "guarded":
                p = self.number() % 64
                self.emit(f"setp.lt.u32 %p{p}, {r.choice(['%n', '%m', '%b', '%t', *counters])}, {r.randrange(9)};")
                self.emit(f"@%p{p} bar.sync 0;")
            elif kind == "decided":
                self.decided(counters)
            elif kind == "mixed":
                self.emit(f"mad.lo.u32 %m, %m, %m, {r.choice(['1', '%b', '%t', *counters])};\n    and.b32 %m, %m, 7;")
            elif kind == "warp":
                self.emit(f"bar.warp.sync {r.choice(['-1', '255', '15'] if r.random() < 0.1 else ['-1'])};")
            elif kind == "shuffle":
                self.emit(f"shfl.sync.bfly.b32 %v, %v, {r.choice([1, 2, 4])}, 31, -1;")
            elif kind == "copy":
                self.copy(counters)
            elif kind == "wait":
                self.emit(f"cp.async.{r.choice(['wait_group 0', 'wait_group 0', 'wait_group 1', 'wait_all'])};")
            elif kind in ("reduced", "vote", "left"):
                self.statement(kind, counters)
            elif kind == "if":
                label, p = f"after{self.number()}", self.number() % 64
                left = r.choice(["%t", "%t", "%n", "%b", *counters])
                self.emit(f"setp.{r.choice(['lt', 'ge', 'eq', 'ne'])}.u32 %p{p}, {left}, {r.randrange(9)};")
                self.emit(f"@%p{p} bra {label};")
                self.statements(depth + 1, counters, r.randint(1, 2))
                self.lines.append(f"{label}:")
            else:
                self.loop(depth, counters)

    def loop(self, depth: int, counters: list[str]) -> None:
        r, label, p = self.random, f"loop{self.number()}", self.number() % 64
        own = f"%k{len(counters)}"
        limit = r.choice(["2", "3", "%n", "%t", "%m"])
        kind = r.choice(["up", "up", "halving", "down"])
        if kind == "halving":
            self.emit(f"mov.u32 {own}, 8;\n{label}:")
        elif kind == "down":
            self.emit(f"add.u32 {own}, {limit}, 1;\n{label}:")
        else:
            self.emit(f"mov.u32 {own}, 0;\n{label}:")
        self.statements(depth + 1, [*counters, own], r.randint(1, 3))
        if kind == "halving":
            self.emit(f"shr.u32 {own}, {own}, 1;\n    setp.ne.u32 %p{p}, {own}, 0;")
        elif kind == "down":
            self.emit(f"sub.u32 {own}, {own}, 1;\n    setp.ne.u32 %p{p}, {own}, 0;")
        else:
            self.emit(f"add.u32 {own}, {own}, {r.choice([1, 1, 2])};\n    setp.lt.u32 %p{p}, {own}, {limit};")
        self.emit(f"@%p{p} bra {label};")


class _Forms(_Maker):
    """Makes kernels of forms that are rare: indices of 16 and 64 bits that wrap, signs, loops by any step, votes."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        rare: list[dict[str, float]] = [{}, {"reduced": 2}, {"vote": 1.5}, {"decided": 2}, {"copy": 2, "wait": 2}]
        self.extras = random.choice(rare) | {"left": 0.15, "loop": 1.5, "barrier": 8}

    def index(self, counters: list[str], limit: int) -> str:
        """A register with an index that is computed in another type, by signs, or by a choice."""
        r, found, n = self.random, f"%r{self.number()}", self.number()
        given = r.choice(["%t", "%t", "%t", "%g", "%n", *counters, *counters])
        match r.choice(["plain", "short", "signed", "wide", "down", "chosen", "least", "rest", "field", "negative"]):
            case "plain":
                return super().index(counters, limit)
            case "short":  # wraps at 16 bits
                number, more = r.choice([(4096, 15), (8192, 16), (1, 65535), (3, 0), (65535, 15)])
                self.emit(f"cvt.u16.u32 %h1, {given};\n    mul.lo.u16 %h1, %h1, {number};")
                self.emit(f"add.u16 %h1, %h1, {more};\n    cvt.{r.choice(['u32.u16', 's32.s16'])} {found}, %h1;")
                self.emit(f"shr.{r.choice('us')}32 {found}, {found}, {r.choice([0, 12, 13])};")
            case "signed":
                self.emit(f"sub.s32 {found}, {given}, {r.choice([1, 4, 8])};")
                self.emit(f"{r.choice(['abs.s32', 'neg.s32', 'not.b32'])} {found}, {found};")
            case "wide":  # wraps at 64 bits
                self.emit(f"cvt.{r.choice(['u64.u32', 's64.s32'])} %d{n}, {given};")
                self.emit(f"mul.lo.u64 %d{n}, %d{n}, {r.choice([1, 1 << 61, 1 << 62, (1 << 64) - 1, 3])};")
                self.emit(f"add.u64 %d{n}, %d{n}, {r.choice([0, 7, 1 << 63])};")
                self.emit(
                    f"shr.{r.choice('us')}64 %d{n}, %d{n}, {r.choice([0, 61, 60])};\n    cvt.u32.u64 {found}, %d{n};"
                )
            case "down":
                self.emit(f"mad.lo.s32 {found}, {given}, {r.choice([-1, -2, -1])}, {r.choice([7, 15, 14])};")
            case "chosen":
                self.emit(
                    f"setp.{r.choice(['lt.u32', 'lt.s32', 'ge.s32', 'eq.u32', 'hi.u32'])} %p{n % 64}, {given}, 4;"
                )
                other = self.index(counters, limit) if r.random() < 0.5 else str(r.randrange(16))
                self.emit(f"selp.b32 {found}, {r.choice(['%t', other])}, {other}, %p{n % 64};")
            case "least":
                least = r.choice(["min.u32", "min.s32", "max.s32", "max.u32"])
                self.emit(f"{least} {found}, {given}, {r.choice([7, -1, 15])};")
            case "rest":
                self.emit(
                    f"{r.choice(['rem', 'div'])}.{r.choice('us')}32 {found}, {given}, {r.choice([3, 8, 5, 16, -8])};"
                )
            case "field":
                self.emit(f"bfe.{r.choice('us')}32 {found}, {given}, {r.choice([0, 1, 2])}, {r.choice([1, 3, 4])};")
            case "negative":
                self.emit(f"add.s32 {found}, {given}, {r.choice([-8, -1, -16])};\n    and.b32 {found}, {found}, 15;")
        if r.random() < 0.4:
            self.emit(f"and.b32 {found}, {found}, {r.choice([7, 15])};")
        return found

    def statement(self, kind: str, counters: list[str]) -> None:
        r, p = self.random, self.number() % 64
        left = r.choice(["%n", "%t", "%b", "%v", *counters])
        self.emit(f"setp.{r.choice(['lt.u32', 'gt.s32', 'eq.u32'])} %p{p}, {left}, {r.choice([0, 3, 5, -1])};")
        label = f"over{self.number()}"
        if kind == "reduced":
            self.emit(f"{r.choice(['bar.red.and.pred', 'bar.red.or.pred'])} %p{p}, 0, %p{p};")
            self.emit(f"@%p{p} bra {label};")
            self.statements(2, counters, r.randint(1, 2))
            self.lines.append(f"{label}:")
        elif kind == "vote":
            self.emit(f"vote.sync.{r.choice(['any', 'all', 'uni'])}.pred %p{p}, %p{p}, -1;")
            self.emit(f"@%p{p} bra {label};\n    {r.choice(['bar.sync 0;', 'bar.warp.sync -1;'])}\n{label}:")
        elif kind == "left":
            self.emit(f"@%p{p} ret;")

    def loop(self, depth: int, counters: list[str]) -> None:
        """A loop upwards or downwards by a step, with a limit that may be passed without being met."""
        r, label, p, own = self.random, f"loop{self.number()}", self.number() % 64, f"%k{len(counters)}"
        limit = r.choice(["2", "5", "%n", "%n", "%t", "%m", *counters])
        step, sign = r.choice([1, 2, 3, 5, 4]), r.choice("us")
        kind = r.choice(["up", "tested", "down", "around", "short", "not"])
        last = "bra.uni"
        match kind:
            case "up" | "tested":
                self.emit(f"mov.u32 {own}, {r.choice(['0', '1', '-2', '%t'])};\n{label}:")
                if kind == "tested":
                    self.emit(
                        f"setp.{r.choice(['ge', 'gt'])}.{sign}32 %p{p}, {own}, {limit};\n    @%p{p} bra end{label};"
                    )
                    test = ""
                else:
                    test = f"setp.{r.choice(['lt', 'le'])}.{sign}32 %p{p}, {own}, {limit};"
                change = f"add.u32 {own}, {own}, {step};"
            case "down":
                self.emit(f"add.u32 {own}, {limit}, {r.choice([0, 4])};\n{label}:")
                change, test = f"sub.u32 {own}, {own}, {step};", f"setp.{r.choice(['gt', 'ge'])}.s32 %p{p}, {own}, 0;"
            case "around":  # from below 0, read without a sign
                self.emit(f"mov.u32 {own}, {r.choice([-4, -5, -1])};\n{label}:")
                change, test = f"add.u32 {own}, {own}, {step};", f"setp.{r.choice(['ge', 'gt'])}.u32 %p{p}, {own}, 8;"
            case "short":
                self.emit(f"mov.u32 {own}, {r.choice([65534, 65533, 32766])};\n{label}:")
                change = f"cvt.u16.u32 %h2, {own};\n    add.u16 %h2, %h2, {step};\n    cvt.u32.u16 {own}, %h2;"
                test = f"setp.{r.choice(['gt.s16', 'gt.u16'])} %p{p}, %h2, 8;"
            case _:
                self.emit(f"mov.u32 {own}, {r.choice([0, 8, -8])};\n{label}:")
                change, test = f"add.u32 {own}, {own}, {r.choice([1, 2, 4, -4])};", f"setp.ne.u32 %p{p}, {own}, 16;"
        inner = [*counters, own]
        if kind in ("not", "short", "around"):
            test += f"\n    add.u32 %turns, %turns, 1;\n    setp.lt.and.u32 %p{p}, %turns, 40, %p{p};"
        self.statements(depth + 1, inner, r.randint(1, 3))
        self.emit(change)
        self.emit(f"{test}\n    @%p{p} bra {label};" if test else f"{last} {label};\nend{label}:")


class _Values:
    """Makes kernels of two warps in which several threads store one value: one they loaded, or a sum of lanes."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines = random, list[str]()
        self.count = 0

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def place(self) -> str:
        """A register with an address in shared memory, of some bits of the number of the thread."""
        self.count += 1
        found, mask = f"%r{self.count}", self.random.choice([63, 63, 32, 31, 48, 56, 62, 15, 0])
        self.emit(f"and.b32 {found}, %t, {mask};")
        if self.random.random() < 0.3:
            self.emit(f"shr.u32 {found}, {found}, {self.random.choice([1, 2, 5])};")
        self.emit(f"mad.lo.u32 {found}, {found}, 4, %base;")
        return found

    def statement(self) -> None:
        r = self.random
        match r.choices(["load", "store", "barrier", "sum", "own", "same", "loop"], [3, 3, 4, 4, 0.5, 2, 0.5])[0]:
            case "load":
                self.emit(f"ld.shared.u32 %v, [{self.place()}];")
            case "store":
                self.emit(f"st.shared.u32 [{self.place()}], %v;")
            case "barrier":
                self.emit("bar.sync 0;")
            case "sum":
                self.count += 1
                operation = r.choice(["add.u32", "max.u32", "xor.b32", "sub.u32" if r.random() < 0.2 else "min.u32"])
                lanes = [1 << n for n in range(5)]
                for bit in lanes if r.random() < 0.5 else r.sample(lanes, r.randint(1, 4)):
                    self.emit(f"shfl.sync.{'down' if r.random() < 0.03 else 'bfly'}.b32 %k0, %v, {bit}, 31, -1;")
                    self.emit(f"{operation} %v, %v, %k0;")
            case "own":
                self.emit("add.u32 %v, %v, %t;")
            case "same":
                self.emit(f"mov.u32 %v, {r.randrange(9)};" if r.random() < 0.5 else "add.u32 %v, %v, %b;")
            case "loop":
                self.count += 1
                label = f"loop{self.count}"
                own = f"%r{self.count}"
                self.emit(f"mov.u32 {own}, 0;\n{label}:")
                for _ in range(3):
                    self.statement()
                self.emit(f"add.u32 {own}, {own}, 1;\n    setp.lt.u32 %p0, {own}, {r.choice(['2', '%n'])};")
                self.emit(f"@%p0 bra {label};")


class _Clusters:
    """Makes kernels of clusters of two blocks of one warp, which access each other's shared memory."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.count = random, list[str](), 0

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def number(self) -> int:
        self.count += 1
        return self.count

    def synchronize(self) -> None:
        self.emit("barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;")

    def place(self) -> tuple[str, str]:
        """A register with an address in shared memory, and the state space that it is in."""
        r, found = self.random, f"%r{self.number()}"
        match r.choice(["t", "t", "t", "half", "rank", "row", "first"]):
            case "t":
                self.emit(f"mad.lo.u32 {found}, %t, 4, %base;")
            case "half":
                self.emit(f"shr.u32 {found}, %t, 1;\n    mad.lo.u32 {found}, {found}, 4, %base;")
            case "rank":
                self.emit(f"mad.lo.u32 {found}, %rank, 4, %base;")
            case "row":
                self.emit(f"mad.lo.u32 {found}, %rank, 32, %t;\n    mad.lo.u32 {found}, {found}, 4, %base;")
            case "first":
                self.emit(f"mov.u32 {found}, %base;")
        if r.random() < 0.45:
            return found, "shared" if r.random() < 0.9 else "shared::cluster"
        match r.choice(["other", "other", "first", "own", "next", "any"]):
            case "other":
                self.emit("xor.b32 %k2, %rank, 1;")
            case "first":
                self.emit(f"mov.u32 %k2, {r.choice([0, 1])};")
            case "own":
                self.emit("mov.u32 %k2, %rank;")
            case "next":
                self.emit(f"add.u32 %k2, %rank, 1;\n    and.b32 %k2, %k2, {r.choice([1, 1, 1, 3])};")
            case "any":
                self.emit(f"and.b32 %k2, {r.choice(['%n', '%b', '%t', '%k1'])}, 1;")
        self.emit(f"mapa.shared::cluster.u32 {found}, {found}, %k2;")
        return found, "shared::cluster"

    def statements(self, depth: int, count: int) -> None:
        r = self.random
        kinds = {"load": 3, "store": 3, "add": 0.5, "cluster": 5, "block": 1, "if": 1, "loop": 0.7, "arrive": 0.1}
        for _ in range(count):
            kind = r.choices(list(kinds), list(kinds.values()))[0]
            guard, p = "", self.number() % 64
            if kind in ("load", "store", "add", "if") and r.random() < 0.4:
                left, sign = r.choice(["%rank", "%rank", "%t", "%b", "%n", "%c"]), r.choice(["eq", "ne", "lt"])
                self.emit(f"setp.{sign}.u32 %p{p}, {left}, {r.choice([0, 1, 2])};")
                guard = f"@%p{p} "
            if kind == "load":
                place, space = self.place()
                self.emit(f"{guard}ld.{space}.u32 %v, [{place}];")
            elif kind == "store":
                place, space = self.place()
                self.emit(f"add.u32 %v, %v, %g;\n    {guard}st.{space}.u32 [{place}], %v;")
            elif kind == "add":
                place, space = self.place()
                self.emit(f"{guard}red.relaxed.{r.choice(['cluster', 'cluster', 'cta'])}.{space}.add.u32 [{place}], 1;")
            elif kind == "cluster":
                self.synchronize()
            elif kind == "block":
                self.emit("bar.sync 0;")
            elif kind == "arrive":
                self.emit("barrier.cluster.arrive.relaxed.aligned;\n    barrier.cluster.wait.aligned;")
            elif kind == "if" and depth < 2 and guard:
                label = f"after{self.number()}"
                self.emit(f"{guard}bra {label};")
                self.statements(depth + 1, r.randint(1, 2))
                self.lines.append(f"{label}:")
            elif kind == "loop" and not depth:
                label = f"loop{self.number()}"
                self.emit(f"mov.u32 %k1, 0;\n{label}:")
                self.statements(2, r.randint(1, 4))
                limit = r.choice(["2", "%n", "%n", "%rank", "%t"])
                self.emit(f"add.u32 %k1, %k1, 1;\n    setp.lt.u32 %p{p}, %k1, {limit};\n    @%p{p} bra {label};")


def _cover(random: Random) -> str:
    """Stores to `y` that cover it, or almost."""
    r, lines = random, list[str]()

    def store(number: int, index: str, limit: str = "%n") -> None:
        lines.append(f"setp.lt.u32 %p{number}, {index}, {limit};\n    mul.wide.u32 %d{number}, {index}, 4;")
        lines.append(f"add.u64 %d{number}, %d{number}, %y;\n    @%p{number} st.global.u32 [%d{number}], %v;")

    near = r.choice(["%n", "%n", "%n", "%k2"])
    lines.append(f"sub.u32 %k2, %n, {r.choice([1, 2])};\n    mov.u32 %r9, %nctaid.x;")
    match r.choice(["element", "reversed", "pairs", "strided", "either"]):
        case "element":
            store(1, r.choice(["%g", "%g", "%t"]), near)
        case "reversed":
            lines.append(f"sub.u32 %r1, %n, {r.choice([1, 1, 0, 2])};\n    sub.u32 %r1, %r1, %g;")
            store(1, "%r1", near)
        case "pairs":
            lines.append(f"shl.b32 %r1, %g, 1;\n    add.u32 %r2, %r1, {r.choice([1, 1, 1, 0, 2])};")
            store(1, "%r1", near)
            store(2, "%r2")
        case "strided":
            lines.append(f"shl.b32 %r9, %r9, {r.choice([3, 3, 3, 4, 2])};\n    mov.u32 %r1, %g;\nagain:")
            store(1, "%r1", near)
            lines.append("add.u32 %r1, %r1, %r9;\n    setp.lt.u32 %p2, %r1, %n;\n    @%p2 bra again;")
        case "either":
            lines.append(f"setp.{r.choice(['lt', 'eq'])}.u32 %p3, %{r.choice('tgbn')}, 5;\n    @%p3 bra other;")
            store(1, "%g", near)
            lines.append("bra.uni after;\nother:")
            if r.random() < 0.7:
                store(2, "%g")
            lines.append("after:")
    return "\n    ".join(lines)


def make(seed: int) -> str:
    """The kernel of a seed."""
    if seed % 8 == 6:
        return widths.make(Random(seed))
    if seed % 16 == 8:
        return draws.make(Random(seed), HEADER)
    if seed % 8 == 1:
        return f"{HEADER}    {_cover(Random(seed))}\n    ret;\n}}\n"
    if seed % 16 == 13:
        clusters = _Clusters(Random(seed))
        if clusters.random.random() < 0.85:
            clusters.synchronize()
        clusters.statements(0, clusters.random.randint(2, 7))
        if clusters.random.random() < 0.85:
            clusters.synchronize()
        header = HEADER.replace(".version 8.0\n.target sm_80", ".version 8.6\n.target sm_90")
        header = header.replace(".reqntid 8", ".reqntid 32\n.reqnctapercluster 2").replace("tile[16]", "tile[64]")
        header = header.replace("%b, 8", "%b, 32").replace("%base;\n    .reg", "%base, %rank, %c;\n    .reg")
        read = "    mov.u32 %rank, %cluster_ctarank;\n    mov.u32 %c, %clusterid.x;\n"
        return header + read + "\n".join(clusters.lines) + "\n    ret;\n}\n"
    if seed % 4 == 3:
        values = _Values(Random(seed))
        values.emit("mad.lo.u32 %k2, %t, 4, %base;\n    st.shared.u32 [%k2], %v;\n    bar.sync 0;")
        for _ in range(values.random.randint(3, 9)):
            values.statement()
        header = HEADER.replace(".reqntid 8", ".reqntid 64").replace("tile[16]", "tile[64]").replace("%b, 8", "%b, 64")
        return header + "\n".join(values.lines) + "\n    ret;\n}\n"
    maker = _Forms(Random(seed)) if seed % 16 == 5 else _Maker(Random(seed))
    maker.statements(0, [], maker.random.randint(2, 6))
    registers = "    .reg .b16 %h1, %h2;\n    .reg .b32 %turns;\n    mov.u32 %turns, 0;\n" if seed % 16 == 5 else ""
    return HEADER + registers + "\n".join(maker.lines) + "\n    ret;\n}\n"
