"""Programs of warpgroups that copy tiles by tensor maps and multiply them by `wgmma`."""

from collections.abc import Iterator

import numpy as np

import ptxlab
from ptxlab.isa.units.descriptor import Descriptor
from tests.emulate.random_programs.machine import Launch, Machine
from tests.emulate.random_programs.machine import Maker as AnyMaker

# Maps of 128 x 64 elements of 16 bits: the swizzle, and how many rows and columns a box has.
BOXES = (("128B", 64, 64), ("64B", 64, 32), (None, 64, 8), ("32B", 32, 16), ("128B", 8, 64), ("128B", 32, 32))
TILE = 8192  # bytes for each tile
_KINDS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32}
_START = f"""
    .reg .b32 %tile, %v<8>;
    .reg .b64 %da, %db;
    .reg .f32 %f<4>;
    .reg .pred %one;
    .shared .align 1024 .b8 area[{4 * TILE}];
    and.b32 %r0, %t, 127;
    setp.eq.u32 %one, %r0, 0;
"""
_START += "".join(f"    mov.f32 %f{number}, 0f00000000;\n" for number in range(4))
_DESCRIPTORS = """
    mov.u32 %r0, area; shr.u32 %r0, %r0, 4; and.b32 %r0, %r0, 0x3fff; cvt.u64.u32 %l0, %r0;
    add.u64 %da, %x, %l0; add.u64 %db, %y, %l0;
"""


def steps_of_copies() -> Iterator[tuple[str, str]]:
    """Barriers, and copies by tensor maps."""
    yield "end", "bra.uni end;"
    yield "pass", ""
    yield "bar", "bar.sync 0;"
    yield "bar some", "bar.sync 1, %b;"
    for proxy in ("async", "async.global", "async.shared::cta", "alias"):
        yield f"fence proxy {proxy}", f"fence.proxy.{proxy};"
    yield "fence init", "fence.mbarrier_init.release.cluster;"
    yield "init", "@%one mbarrier.init.shared.b64 [%m], %b;"
    yield "expect", "@%one mbarrier.arrive.expect_tx.shared.b64 _, [%m], %b;"
    yield "arrive", "@%one mbarrier.arrive.shared.b64 _, [%m];"
    yield "wait", "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%m], %b; @!%p1 bra W;"
    yield "test", "mbarrier.test_wait.parity.shared.b64 %p1, [%m], %b;"
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
    add = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
    for number in range(len(BOXES)):
        take = f"mov.b64 %l0, map{number}; cvta.param.u64 %l0, %l0;"
        yield f"load {number}", f"{take} @%one {load} [%s], [%l0, {{%b, %e}}], [%m];"
        yield f"store {number}", f"{take} @%one {store} [%l0, {{%b, %e}}], [%s];"
        yield f"add {number}", f"{take} @%one {add} [%l0, {{%b, %e}}], [%s];"
    yield "prefetch", f"{take} @%one cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%l0, {{%b, %e}}];"
    yield "bulk commit", "@%one cp.async.bulk.commit_group;"
    yield "bulk wait", "@%one cp.async.bulk.wait_group 0;"
    yield "bulk wait read", "@%one cp.async.bulk.wait_group.read 0;"
    yield "ld global", "ld.global.u32 %r2, [%g]; add.u32 %acc, %acc, %r2;"
    yield "st global", "st.global.u32 [%g], %b;"


def _steps() -> Iterator[tuple[str, str]]:
    yield from steps_of_copies()
    for size, take in (("u32", "%r2"), ("v4.u32", "{%r2, %v1, %v2, %v3}")):
        yield f"ld {size}", f"ld.shared.{size} {take}, [%s]; add.u32 %acc, %acc, %r2;"
        yield f"st {size}", f"st.shared.{size} [%s], {take.replace('%r2', '%b')};"
    yield "mma fence", "wgmma.fence.sync.aligned;"
    yield "mma commit", "wgmma.commit_group.sync.aligned;"
    for count in range(2):
        yield f"mma wait {count}", f"wgmma.wait_group.sync.aligned {count};"
    for kind, depth in _KINDS.items():
        names = f"{kind}.{kind}"
        mma = f"wgmma.mma_async.sync.aligned.m64n8k{depth}.f32.{names} {{%f0, %f1, %f2, %f3}}"
        for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)) if depth == 16 else ((0, 0),):
            major = f", {ta}, {tb}" if depth == 16 else ""
            yield f"mma {kind} {ta}{tb}", f"{_DESCRIPTORS} setp.ne.u32 %p1, %c, 0; {mma}, %da, %db, %p1, 1, 1{major};"
        major = ", 0" if depth == 16 else ""
        a = "{%v4, %v5, %v6, %v7}"
        yield f"mma {kind} registers", f"{_DESCRIPTORS} setp.ne.u32 %p1, %c, 0; {mma}, {a}, %db, %p1, 1, 1{major};"
    yield "stmatrix", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s], {%v0, %v1, %v2, %v3};"
    yield "operand", "mov.u32 %v4, %b; mov.u32 %v5, %b; mov.u32 %v6, %a; mov.u32 %v7, %t;"
    yield "sum", "cvt.rni.s32.f32 %r2, %f0; add.u32 %acc, %acc, %r2; cvt.rni.s32.f32 %r2, %f3; xor.b32 %acc, %acc, %r2;"
    yield "clear", "mov.f32 %f1, 0f3F800000;"
    yield "registers", "setmaxnreg.inc.sync.aligned.u32 80;"


def maps() -> Iterator[object]:
    matrix = (np.arange(128 * 64) % 7).astype(np.float16).reshape(128, 64)
    for swizzle, rows, columns in BOXES:
        yield ptxlab.tensor_map(matrix, box=(rows, columns), swizzle=swizzle)


MAPS = ", ".join(f".param .align 64 .b8 map{number}[128]" for number in range(len(BOXES)))
MACHINE = Machine("sm_90a", dict(_steps()), _START, f",\n    {MAPS}", tuple(maps()))


class Maker(AnyMaker):
    machine = MACHINE

    def shape(self) -> tuple[int, int, int | None, list[int]]:
        block, roles = self.random.choice(
            (
                (128, [0]),
                (160, [0] * 128 + [1] * 32),
                (256, [0] * 128 + [1] * 128),
                (192, [1] * 128 + [0] * 64),
            )
        )
        return 1, block, None, roles

    def write(self) -> None:
        """Load tiles of A and B, multiply them slice by slice, perhaps twice, and store the sums."""
        choose = self.random.choice
        loader = choose(range(self.count))
        bar = self.random.randrange(3)
        self.add(loader, "init", 0, 1, bar)
        if self.random.random() < 0.6:
            self.add(loader, choose(("fence init", "fence proxy async")))
        self.all("bar")
        for turn in range(choose((1, 1, 2))):
            if self.random.random() < 0.2:
                self._written(turn)
            else:
                self._loaded(loader, bar, turn)
            self._multiplied()
            if self.random.random() < 0.4:
                self.all("bar")
        for role in range(self.count):
            if self._is_group(role):
                self.add(role, choose(("mma wait 0", "mma wait 0", "mma wait 1", "pass")))
                self.add(role, "sum")
                if self.random.random() < 0.5:
                    self.add(role, choose(("st u32", "st v4.u32")), 0, 3, 0, 16)
        if self.random.random() < 0.5:
            self.all(choose(("fence proxy async", "fence proxy async.shared::cta", "pass")))
            self.all("bar")
            self.add(loader, choose(("store 2", "store 3", "store 0", "add 2")))
            self.add(loader, choose(("bulk commit", "bulk commit", "pass")))
            self.add(loader, choose(("bulk wait", "bulk wait read", "pass")))

    def _is_group(self, role: int) -> bool:
        return self.roles[: self.block].count(role) % 128 == 0

    def _loaded(self, loader: int, bar: int, turn: int) -> None:
        """The tiles come by tensor maps."""
        choose = self.random.choice
        self.number = choose(range(len(BOXES)))
        self.other = choose((self.number, self.number, self.number, choose(range(len(BOXES)))))
        bytes = sum(2 * BOXES[one][1] * BOXES[one][2] for one in (self.number, self.other))
        self.add(loader, "expect", 0, bytes, bar)
        for at, number in enumerate((self.number, self.other)):
            self.add(loader, f"load {number}", TILE * at, choose((0, 0, 8)), bar, 0, choose((0, 0, 64)))
        self.all("wait", 0, turn, bar)

    def _written(self, turn: int) -> None:
        """Threads write the tiles."""
        self.number = self.other = self.random.choice(range(len(BOXES)))
        step = self.random.choice(("st v4.u32", "st v4.u32", "stmatrix"))
        for at in (0, 2048, TILE):
            self.all(step, at, 0x3C003C00, 0, self.random.choice((16, 16, 16, 128)))
        self.all(self.random.choice(("fence proxy async", "fence proxy async.shared::cta", "fence proxy alias")))
        self.all("bar")

    def _descriptor(self, start: int, number: int, slice: int, is_mn: bool) -> int:
        swizzle, _, columns = BOXES[number]
        width = 2 * columns
        if is_mn:
            found = Descriptor(start + 16 * width * slice, 8 * width, 8 * width, swizzle or "none")
        elif swizzle is None:
            found = Descriptor(start + 1024 * slice, 1024, 128, "none")
        else:
            found = Descriptor(start + 32 * slice, 16, 8 * width, swizzle)
        return found.encode()

    def _multiplied(self) -> None:
        """Slices of A and B, in order but for some."""
        choose = self.random.choice
        kind = choose(("f16", "f16", "f16", "f16", "bf16", "tf32", "e4m3"))
        major = choose(("00", "00", "00", "01", "10", "11", "registers")) if kind in ("f16", "bf16") else "00"
        step = f"mma {kind} {major}"
        count = max(1, BOXES[self.number][2] // 16) if major == "00" else choose((1, 2, 4))
        order = [*range(count)]
        if self.random.random() < 0.3:
            order = [choose(order) for _ in order]
        if self.random.random() < 0.2:
            order.pop()
        flip = 1 << choose((0, 1, 16, 20, 32, 36, 38, 49, 62, 63)) if self.random.random() < 0.25 else 0
        which = choose((1, 2, 3))
        for role in range(self.count):
            if not self._is_group(role):
                continue
            if major == "registers":
                self.add(role, "operand", 0, 0x3C003C00)
            self.add(role, choose(("mma fence",) * 6 + ("pass",)))
            for at, slice in enumerate(order):
                x = self._descriptor(0, self.number, slice, major[0] == "1")
                y = self._descriptor(TILE, self.other, slice, major[1] == "1")
                x, y = x ^ (flip if which & 1 else 0), y ^ (flip if which & 2 else 0)
                self.add(role, step, 0, 0, min(at, 1), x=x, y=y)
            self.add(role, choose(("mma commit",) * 6 + ("pass",)))
            self.add(role, choose(("mma wait 0",) * 4 + ("mma wait 1", "pass")))


def make(seed: int) -> Launch:
    """The random launch of this number."""
    return Maker(seed).make()
