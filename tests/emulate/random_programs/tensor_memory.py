"""Programs of warps that copy tiles, multiply them into tensor memory, and load and store that."""

from collections.abc import Iterator

from ptxlab.isa.units.descriptor import TENSOR_MODES, VERSION
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor
from tests.emulate.random_programs.machine import Launch, Machine
from tests.emulate.random_programs.machine import Maker as AnyMaker
from tests.emulate.random_programs.tiles import BOXES, MAPS, TILE, maps, steps_of_copies

# `%u` is `%a` columns and lanes from what is allocated, `%z` the same in the lanes of the thread's warp.
_START = f"""
    .reg .b32 %tensor, %band, %u, %z, %v<8>;
    .reg .b64 %da, %db;
    .reg .pred %one;
    .shared .align 1024 .b8 area[{4 * TILE}];
    .shared .align 4 .b32 slot;
    and.b32 %r0, %t, 31;
    setp.eq.u32 %one, %r0, 0;
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
    bar.sync 0;
    ld.shared.b32 %tensor, [slot];
    shr.u32 %band, %t, 5;
    and.b32 %band, %band, 3;
    shl.b32 %band, %band, 21;
"""
_AT = "add.u32 %u, %tensor, %a; add.u32 %z, %u, %band;"
_SHARED = "mov.u32 %r0, area; shr.u32 %r0, %r0, 4; cvt.u64.u32 %l0, %r0; add.u64 %da, %x, %l0; add.u64 %db, %y, %l0;"
_SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}


def _steps() -> Iterator[tuple[str, str]]:
    yield from steps_of_copies()
    yield "st v4", "st.shared.v4.u32 [%s], {%b, %b, %b, %b};"
    yield "ld shared", "ld.shared.u32 %r2, [%s]; add.u32 %acc, %acc, %r2;"
    for shape, registers in _SHAPES.items():
        for times in (1, 2):
            own = ", ".join(f"%v{number}" for number in range(registers * times))
            what = f"sync.aligned.{shape}.x{times}"
            yield f"tld {shape} x{times}", f"{_AT} tcgen05.ld.{what}.b32 {{{own}}}, [%z];"
            yield f"tst {shape} x{times}", f"{_AT} tcgen05.st.{what}.b32 [%z], {{{own}}};"
    yield "tld pack", f"{_AT} tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {{%v0, %v1}}, [%z];"
    yield "tst unpack", f"{_AT} tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%z], {{%v0, %v1}};"
    yield "tld split", f"{_AT} tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {{%v0}}, [%z], 8;"
    yield "tst split", f"{_AT} tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%z], 8, {{%v0}};"
    yield "tst wide", f"{_AT} tcgen05.st.sync.aligned.32x32b.x8.b32 [%z], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};"
    yield (
        "set",
        "mov.u32 %v0, %b; add.u32 %v1, %b, %t; mov.u32 %v2, %t; mov.u32 %v3, %b; mov.u32 %v4, %t; "
        + ("mov.u32 %v5, %b; mov.u32 %v6, %b; mov.u32 %v7, %b;"),
    )
    yield "sum", "mad.lo.u32 %acc, %acc, 31, %v0; mad.lo.u32 %acc, %acc, 31, %v1;"
    yield "wait ld", "tcgen05.wait::ld.sync.aligned;"
    yield "wait st", "tcgen05.wait::st.sync.aligned;"
    yield "fence before", "tcgen05.fence::before_thread_sync;"
    yield "fence after", "tcgen05.fence::after_thread_sync;"
    yield "commit", "@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%m];"
    begin = f"{_AT} {_SHARED} setp.ne.u32 %p1, %e, 0;"
    for kind in ("f16", "tf32", "f8f6f4", "i8"):
        mma = f"tcgen05.mma.cta_group::1.kind::{kind}"
        yield f"mma {kind}", f"{begin} @%one {mma} [%u], %da, %db, %b, %p1;"
        yield f"mma {kind} tensor", f"{begin} add.u32 %z, %u, %c; @%one {mma} [%u], [%z], %db, %b, %p1;"
        sparse = mma.replace("mma.", "mma.sp.")
        yield f"mma {kind} sparse", f"{begin} add.u32 %z, %u, 64; @%one {sparse} [%u], %da, %db, [%z], %b, %p1;"
    mma = "tcgen05.mma.cta_group::1.kind::f16"
    for keep in ("fill", "use", "lastuse", "discard"):
        yield f"mma f16 a {keep}", f"{begin} @%one {mma}.collector::a::{keep} [%u], %da, %db, %b, %p1;"
    alone = "tcgen05.mma.ws.cta_group::1.kind::f16"
    for keep in ("fill", "use"):
        yield f"mma f16 ws {keep}", f"{begin} @%one {alone}.collector::b0::{keep} [%u], %da, %db, %b, %p1;"
    scaled = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"
    factors = "add.u32 %r1, %tensor, %c; add.u32 %r2, %r1, 4;"
    yield "mma scaled", f"{begin} {factors} @%one {scaled} [%u], %da, %db, %b, [%r1], [%r2], %p1;"
    for shape in ("128x256b", "128x128b", "32x128b.warpx4", "64x128b.warpx2::02_13", "4x256b"):
        yield f"cp {shape}", f"{_AT} {_SHARED} @%one tcgen05.cp.cta_group::1.{shape} [%u], %da;"
    yield "shift", f"{_AT} @%one tcgen05.shift.cta_group::1.down [%u];"
    for how in ("", ".relaxed"):
        yield f"cluster arrive{how}", f"barrier.cluster.arrive{how};"
    yield "cluster wait", "barrier.cluster.wait;"
    yield "free", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tensor, 128;"
    yield "alloc", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;"
    yield "relinquish", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"


MACHINE = Machine("sm_100a", dict(_steps()), _START, f",\n    {MAPS}", tuple(maps()))
_TYPES = {"f16": "f16", "tf32": "tf32", "f8f6f4": "e4m3", "i8": "s8"}


class Maker(AnyMaker):
    machine = MACHINE

    def shape(self) -> tuple[int, int, int | None, list[int]]:
        roles = self.random.choice(
            ([0] * 32 + [1] * 96, [0] * 32 + [1] * 128, [0] * 32 + [1] * 32 + [2] * 64, [0] * 32)
        )
        return 1, len(roles), None, roles

    def write(self) -> None:
        choose = self.random.choice
        self.add(0, "init", 0, 1, 0)
        self.add(0, "init", 0, 1, 1)
        self.all("bar")
        for turn in range(choose((1, 1, 2))):
            choose((self._stored, self._product, self._product, self._product, self._copied))(turn)
        if self.random.random() < 0.4:
            self.all(choose(("cluster arrive", "cluster arrive.relaxed")))
            self.all("cluster wait")
        else:
            self.all("bar")
        self.add(0, choose(("free",) * 8 + ("pass", "alloc")))

    def _stored(self, turn: int) -> None:
        """Warps store to tensor memory, and load what they or others have stored."""
        choose = self.random.choice
        shape, other = choose(list(_SHAPES)), choose(list(_SHAPES))
        self.all("set", 0, 5)
        self.all(
            choose((f"tst {shape} x1", f"tst {shape} x2", "tst unpack", "tst split", "tst wide")), choose((0, 8, 16))
        )
        self.all(choose(("wait st", "wait st", "pass")))
        if self.random.random() < 0.4:
            self.all("fence before")
            self.all("bar")
            self.all("fence after")
        self.all(choose((f"tld {shape} x1", f"tld {other} x2", "tld pack", "tld split")), choose((0, 8)))
        self.all(choose(("wait ld", "wait ld", "pass")))
        self.all("sum")

    def _loaded(self, turn: int) -> tuple[int, int]:
        """Tiles of A and B in shared memory."""
        choose = self.random.choice
        one = choose(range(len(BOXES)))
        other = choose((one, one, choose(range(len(BOXES)))))
        if self.random.random() < 0.3:
            for at in (0, 2048, TILE):
                self.all("st v4", at, 0x3C003C00, 0, 16)
            self.all(choose(("fence proxy async", "fence proxy async.shared::cta", "pass")))
            self.all("bar")
            return one, other
        bytes = sum(2 * BOXES[number][1] * BOXES[number][2] for number in (one, other))
        self.add(0, "expect", 0, bytes, 0)
        for at, number in enumerate((one, other)):
            self.add(0, f"load {number}", TILE * at, 0, 0, 0, choose((0, 0, 64)))
        self.add(0, "wait", 0, turn, 0)
        return one, other

    def _product(self, turn: int) -> None:
        """MMAs of slices, a commit, and loads of the accumulator after a wait for it."""
        choose = self.random.choice
        one, other = self._loaded(turn)
        kind = choose(("f16",) * 6 + ("tf32", "f8f6f4", "i8", "scaled"))
        transposed = kind == "f16" and self.random.random() < 0.2
        rows, columns = choose((64, 128, 128, 128)), choose((8, 16, 16, 32))
        if kind == "scaled":
            descriptor = InstructionDescriptor("mxf8f6f4", 128, columns, "e4m3", "e4m3")
        else:
            result = choose(("f32", "f32", "f16")) if kind in ("f16", "f8f6f4") else "s32" if kind == "i8" else "f32"
            names = _TYPES[kind], _TYPES[kind], result
            columns = max(columns, 16)
            descriptor = InstructionDescriptor(
                kind, rows, columns, *names, transpose_a=transposed, transpose_b=transposed
            )
        step = f"mma {kind}" + choose(("", "", "", "", "", " tensor", " sparse") if kind in _TYPES else ("",))
        if step == "mma f16":
            step = choose((step, step, "mma f16 a fill", "mma f16 a use", "mma f16 ws fill"))
        flip = 1 << choose((0, 1, 16, 32, 36, 49, 52, 61, 62)) if self.random.random() < 0.2 else 0
        wrong = 1 << self.random.randrange(32) if self.random.random() < 0.15 else 0
        count = max(1, BOXES[one][2] // 16) if not transposed else 2
        for at in range(count):
            x, y = _descriptor(0, one, at), _descriptor(TILE, other, at)
            bits = (descriptor.encode() | (4 if "sparse" in step else 0)) ^ wrong
            self.add(0, step, 0, bits, choose((32, 64)), 0, min(at, 1), x ^ flip, y ^ choose((0, flip)))
        self.add(0, choose(("commit",) * 6 + ("pass",)), 0, 0, 1)
        if self.random.random() < 0.3:
            self.add(0, "bar" if self.count == 1 else "fence before")
        self.all(choose(("wait",) * 6 + ("test", "pass")), 0, turn, 1)
        self.all(choose(("fence after",) * 6 + ("pass",)))
        self.all(choose(("tld 32x32b x1", "tld 32x32b x2", "tld 16x64b x1", "tld 16x256b x1")), choose((0, 0, 8)))
        self.all(choose(("wait ld", "wait ld", "wait ld", "pass")))
        self.all("sum")
        if self.random.random() < 0.5:
            self.all(choose(("fence before", "pass")))
            self.all("bar")
            self.all(choose(("fence after", "fence after", "pass")))

    def _copied(self, turn: int) -> None:
        """A copy from shared memory to tensor memory, and perhaps a shift."""
        choose = self.random.choice
        one, _ = self._loaded(turn)
        shape = choose([name for name in self.machine.steps if name.startswith("cp ")])
        self.add(0, shape, choose((0, 0, 8)), x=_descriptor(0, choose((one, 2)), 0), y=0)
        if self.random.random() < 0.3:
            self.add(0, "shift", choose((0, 8)))
        self.add(0, choose(("commit", "commit", "commit", "pass")), 0, 0, 1)
        self.all("wait", 0, turn, 1)
        self.all(choose(("fence after", "fence after", "pass")))
        self.all(choose(("tld 32x32b x2", "tld 16x128b x1")))
        self.all(choose(("wait ld", "wait ld", "pass")))
        self.all("sum")


def _descriptor(start: int, number: int, slice: int) -> int:
    """A slice of a box that was copied, K-major."""
    swizzle, _, columns = BOXES[number]
    leading, stride, at = (16, 16 * columns, start + 32 * slice) if swizzle else (1024, 128, start + 2048 * slice)
    mode = TENSOR_MODES[swizzle or "none"]
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | VERSION | mode << 61


def make(seed: int) -> Launch:
    """The random launch of this number."""
    return Maker(seed).make()
