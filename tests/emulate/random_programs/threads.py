"""Programs of threads that synchronize: barriers, fences, atomics, mbarriers, copies, clusters.

They are made by habits of people (`HABITS`).
"""

from collections.abc import Iterator

from tests.emulate.random_programs.machine import DATA, Launch, Machine
from tests.emulate.random_programs.machine import Maker as AnyMaker

# `%k` is the address of `%s` in block `%c` of the cluster, `%q` and `%h` the generic ones of `%s` and `%k`, `%n` an
# mbarrier there.
_START = f"""
    .reg .b32 %k, %n, %o;
    .reg .b64 %q, %h;
    .reg .b128 %v;
    .shared .align 128 .b8 area[{DATA}];
    .shared .align 128 .b8 second[{DATA}];
    .local .align 8 .b8 own[64];
"""
_GENERIC = "cvt.u64.u32 %q, %s; cvta.shared.u64 %q, %q;"
_REMOTE = "and.b32 %r0, %c, 1; mapa.shared::cluster.u32 %k, %s, %r0;"
_REMOTE_GENERIC = "and.b32 %r0, %c, 1; cvt.u64.u32 %h, %s; cvta.shared.u64 %h, %h; mapa.u64 %h, %h, %r0;"
_REMOTE_BAR = "mov.u32 %n, bars; mad.lo.u32 %n, %c, 8, %n; shr.u32 %r1, %b, 8; mapa.shared::cluster.u32 %n, %n, %r1;"
_TAKE = "mov.u32 %last, %r2; mad.lo.u32 %acc, %acc, 31, %r2;"
_SPACES = {
    "shared": ("", "[%s]", ".shared"),
    "global": ("", "[%g]", ".global"),
    "generic": (_GENERIC, "[%q]", ""),
    "far": (_REMOTE_GENERIC, "[%h]", ""),
    "cluster": (_REMOTE, "[%k]", ".shared::cluster"),
}
_READS = "weak volatile relaxed.cta relaxed.cluster relaxed.gpu acquire.cta acquire.cluster acquire.gpu acquire.sys"
_WRITES = "weak volatile relaxed.cta relaxed.cluster relaxed.gpu release.cta release.cluster release.gpu release.sys"
_ATOMS = "relaxed.cta relaxed.gpu acquire.gpu release.gpu acq_rel.cta acq_rel.cluster acq_rel.gpu"


def _steps() -> Iterator[tuple[str, str]]:
    """What a thread can do: a name, and its instructions."""
    yield "end", "bra.uni end;"
    yield "pass", ""
    yield "leave", "setp.ne.u32 %p1, %last, %b; @%p1 bra end;"
    yield "leave zero", "setp.eq.u32 %p1, %last, 0; @%p1 bra end;"
    for space, (before, at, suffix) in _SPACES.items():
        if space == "cluster":
            yield "ld cluster", f"{before} ld.shared::cluster.u32 %r2, {at}; {_TAKE}"
            yield "st cluster", f"{before} st.shared::cluster.u32 {at}, %b;"
            yield "add cluster", f"{before} atom.shared::cluster.add.u32 %r2, {at}, %b; {_TAKE}"
            yield "red cluster", f"{before} red.relaxed.cluster.shared::cluster.add.u32 {at}, %b;"
            continue
        for order in _READS.split():
            if space in ("generic", "far") and order not in ("weak", "acquire.cluster", "relaxed.cta"):
                continue
            name = "" if order == "weak" else f".{order}"
            yield f"ld {space} {order}", f"{before} ld{name}{suffix}.u32 %r2, {at}; {_TAKE}"
        for order in _WRITES.split():
            if space in ("generic", "far") and order not in ("weak", "release.cluster", "relaxed.cta"):
                continue
            name = "" if order == "weak" else f".{order}"
            yield f"st {space} {order}", f"{before} st{name}{suffix}.u32 {at}, %b;"
        for order in _ATOMS.split():
            if space == "far" and order != "acq_rel.cluster":
                continue
            yield f"add {space} {order}", f"{before} atom.{order}{suffix}.add.u32 %r2, {at}, %b; {_TAKE}"
        yield f"cas {space}", f"{before} atom.acq_rel.gpu{suffix}.cas.b32 %r2, {at}, %last, %b; {_TAKE}"
        yield f"exch {space}", f"{before} atom{suffix}.exch.b32 %r2, {at}, %b; {_TAKE}"
        yield f"red {space}", f"{before} red.release.gpu{suffix}.add.u32 {at}, %b;"
    for space in ("shared", "global"):
        _, at, suffix = _SPACES[space]
        for order in ("", ".relaxed.gpu", ".acquire.gpu"):
            yield f"ld{order} {space} u8", f"ld{order}{suffix}.u8 %r2, {at}; {_TAKE}"
            yield f"ld{order} {space} u16", f"ld{order}{suffix}.u16 %r2, {at}; {_TAKE}"
            yield f"ld{order} {space} u64", f"ld{order}{suffix}.u64 %l0, {at}; cvt.u32.u64 %r2, %l0; {_TAKE}"
            four = f"ld{order}{suffix}.v4.u32 {{%r2, %r3, %r4, %r5}}, {at}; add.u32 %r2, %r2, %r5; {_TAKE}"
            yield f"ld{order} {space} v4", four
        for order in ("", ".relaxed.gpu", ".release.gpu"):
            yield f"st{order} {space} u8", f"st{order}{suffix}.u8 {at}, %b;"
            yield f"st{order} {space} u16", f"st{order}{suffix}.u16 {at}, %b;"
            yield f"st{order} {space} u64", f"cvt.u64.u32 %l0, %b; st{order}{suffix}.u64 {at}, %l0;"
            yield f"st{order} {space} v4", f"st{order}{suffix}.v4.u32 {at}, {{%b, %a, %c, %t}};"
        yield f"add {space} u64", f"cvt.u64.u32 %l0, %b; atom{suffix}.add.u64 %l1, {at}, %l0; cvt.u32.u64 %last, %l1;"
        yield f"max {space}", f"atom{suffix}.max.s32 %r2, {at}, %b; {_TAKE}"
        half = f"cvt.u16.u32 %w0, %b; atom{suffix}.cas.b16 %w1, {at}, %w0, %w0; cvt.u32.u16 %r2, %w1; {_TAKE}"
        yield f"cas {space} b16", half
        wide = f"cvt.u64.u32 %l0, %b; mov.b128 %v, {{%l0, %l0}}; atom{suffix}.exch.b128 %v, {at}, %v;"
        yield f"exch {space} b128", wide
        poll = f"mov.u32 %r1, 4; poll_{space}: ld.acquire.gpu{suffix}.u32 %r2, {at}; {_TAKE} setp.eq.u32 %p1, %r2, %b;"
        poll += f"@%p1 bra next; sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra poll_{space}; bra end;"
        yield f"poll {space}", poll
        dead = f"ld{suffix}.u32 %r2, {at};"
        yield f"ld {space} unused", dead
    yield "ld global nc", f"ld.global.nc.u32 %r2, [%g]; {_TAKE}"
    yield "ld other", f"ld.global.u32 %r2, [%f]; {_TAKE}"
    yield "st other", "st.global.u32 [%f], %b;"
    yield "st own", "and.b32 %r2, %a, 28; mov.u32 %r3, own; add.u32 %r3, %r3, %r2; st.local.u32 [%r3], %b;"
    yield "ld own", f"and.b32 %r2, %a, 28; mov.u32 %r3, own; add.u32 %r3, %r3, %r2; ld.local.u32 %r2, [%r3]; {_TAKE}"
    for kind in ("acq_rel", "sc", "acquire", "release"):
        for scope in ("cta", "cluster", "gpu", "sys"):
            yield f"fence {kind} {scope}", f"fence.{kind}.{scope};"
    yield "membar", "membar.gl;"
    for proxy in ("async", "async.global", "async.shared::cta", "alias"):
        yield f"fence proxy {proxy}", f"fence.proxy.{proxy};"
    yield "fence init", "fence.mbarrier_init.release.cluster;"
    yield "bar", "bar.sync 0;"
    yield "bar some", "bar.sync %c, %b;"
    yield "bar arrive", "bar.arrive %c, %b;"
    yield "bar red", f"setp.ne.u32 %p1, %last, 0; bar.red.popc.u32 %r2, 0, %p1; {_TAKE}"
    yield "warp", "bar.warp.sync %b;"
    yield "warp all", "bar.warp.sync -1;"
    yield "shfl", f"shfl.sync.idx.b32 %r2, %last, %c, 31, -1; {_TAKE}"
    yield "vote", f"setp.ne.u32 %p1, %last, 0; vote.sync.ballot.b32 %r2, %p1, %b; {_TAKE}"
    yield "match", f"match.any.sync.b32 %r2, %last, -1; {_TAKE}"
    for how in ("", ".release", ".relaxed"):
        yield f"cluster arrive{how}", f"barrier.cluster.arrive{how};"
    yield "cluster wait", "barrier.cluster.wait;"
    yield "cluster wait acquire", "barrier.cluster.wait.acquire;"
    yield "cluster sync", "barrier.cluster.arrive; barrier.cluster.wait;"
    yield "init", "mbarrier.init.shared.b64 [%m], %b;"
    yield "inval", "mbarrier.inval.shared.b64 [%m];"
    yield "arrive", "mbarrier.arrive.shared.b64 _, [%m];"
    yield "arrive count", "mbarrier.arrive.shared.b64 _, [%m], %b;"
    yield "arrive relaxed", "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%m];"
    yield "arrive drop", "mbarrier.arrive_drop.shared.b64 _, [%m];"
    yield "arrive expect", "mbarrier.arrive.expect_tx.shared.b64 _, [%m], %b;"
    yield "arrive incomplete", "mbarrier.arrive.noComplete.shared.b64 %l0, [%m], %b;"
    yield "expect", "mbarrier.expect_tx.relaxed.cta.shared.b64 [%m], %b;"
    yield "complete", "mbarrier.complete_tx.relaxed.cta.shared.b64 [%m], %b;"
    yield "arrive far", f"{_REMOTE_BAR} mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%n];"
    yield "arrive far relaxed", f"{_REMOTE_BAR} mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%n];"
    yield "arrive far expect", f"{_REMOTE_BAR} mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%n], 16;"
    for name, order in (("", ""), (" cluster", ".acquire.cluster"), (" relaxed", ".relaxed.cta")):
        label = f"wait{len(order)}"
        wait = f"{label}: mbarrier.try_wait.parity{order}.shared::cta.b64 %p1, [%m], %b; @!%p1 bra {label};"
        yield f"wait{name}", wait
    yield "test", f"mbarrier.test_wait.parity.shared.b64 %p1, [%m], %b; selp.u32 %r2, 1, 0, %p1; {_TAKE}"
    for size in (4, 8, 16):
        yield f"cp.async {size}", f"cp.async.ca.shared.global [%s], [%f], {size};"
    yield "cp.async some", "cp.async.ca.shared.global [%s], [%f], 16, %b;"
    yield "commit", "cp.async.commit_group;"
    for count in range(3):
        yield f"wait group {count}", f"cp.async.wait_group {count};"
    yield "wait all", "cp.async.wait_all;"
    yield "cp.async arrive", "cp.async.mbarrier.arrive.shared.b64 [%m];"
    yield "cp.async arrive noinc", "cp.async.mbarrier.arrive.noinc.shared.b64 [%m];"
    to_shared = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    yield "bulk load", f"{to_shared} [%s], [%f], %b, [%m];"
    across = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    there = f"{_REMOTE_BAR} mapa.shared::cluster.u32 %k, %s, %r1;"
    yield (
        "bulk across",
        f"{there} and.b32 %r2, %b, 255; mov.u32 %o, second; add.u32 %o, %o, %a;" + (f"{across} [%k], [%o], %r2, [%n];"),
    )
    yield "bulk store", "cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], %b;"
    yield "bulk add", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%g], [%s], %b;"
    yield "bulk commit", "cp.async.bulk.commit_group;"
    for count in range(2):
        yield f"bulk wait {count}", f"cp.async.bulk.wait_group {count};"
        yield f"bulk wait read {count}", f"cp.async.bulk.wait_group.read {count};"
    remote = "shared::cluster.mbarrier::complete_tx::bytes"
    yield "st.async", f"{there} st.async.weak.{remote}.u32 [%k], %b, [%n];"
    yield "red.async", f"{there} red.async.relaxed.cluster.{remote}.add.u32 [%k], %b, [%n];"
    yield "ldmatrix", f"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r2}}, [%s]; {_TAKE}"
    yield "stmatrix", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%last};"
    yield "grid wait", "griddepcontrol.wait;"


MACHINE = Machine("sm_90", dict(_steps()), start=_START)


class Maker(AnyMaker):
    machine = MACHINE

    def shape(self) -> tuple[int, int, int | None, list[int]]:
        choose = self.random.choice
        block = choose((1, 2, 4, 32, 33, 64, 64, 64))
        grid = choose((1, 1, 2, 2, 4)) if block < 64 else choose((1, 1, 2, 4))
        cluster = 2 if grid > 1 and self.random.random() < 0.5 else None
        threads = range(block)
        roles = choose(
            [
                [min(at, 1) for at in threads],
                [at // 32 for at in threads],
                [number for number in range(grid) for _ in threads],
                [at % 2 for at in threads],
                [min(at, 3) for at in threads],
            ]
        )
        return grid, block, cluster, roles

    def write(self) -> None:
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self.random.choice(HABITS)(self)

    # What a habit chooses.

    def space(self) -> str:
        return self.random.choice(("shared", "shared", "global", "generic", "far" if self.cluster else "global"))

    def sync(self) -> str:
        if self.cluster and self.random.random() < 0.5:
            return "cluster sync"
        return self.random.choice(("bar", "bar", "bar", "warp all"))

    def word(self) -> int:
        return 4 * self.random.randrange(4)


def _exchange(m: Maker) -> None:
    """Each thread writes its own element, and reads that of another after a barrier."""
    space, stride = m.space(), m.random.choice((4, 4, 4, 16))
    size = {16: "v4", 4: ""}[stride]
    write = f"st {space} v4" if size and space in ("shared", "global") else m.access("st", space)
    m.all(write, 0, 7, 0, stride)
    m.all(m.sync())
    for role in range(m.count):
        read = m.access("ld", space)
        m.add(role, read, m.random.choice((4, -4, 64, 128, 0)), 0, m.random.randrange(2), stride)
    if m.random.random() < 0.5:
        m.all(m.sync())
        m.all(write, m.random.choice((0, 4)), 8, 0, stride)


def _message(m: Maker) -> None:
    """One role writes data, then a flag; the others read the flag, and the data if it is set."""
    space, flag = m.space(), m.random.choice(("global", "shared"))
    sender, at, data = m.random.randrange(m.count), 256 + m.word(), 512 + m.word()
    for role in range(m.count):
        if role == sender:
            m.add(role, m.access("st", space, "weak"), data, 5)
            if m.random.random() < 0.5:
                m.add(role, m.access("fence", m.random.choice(("acq_rel", "sc", "release"))))
            kind = m.random.choice(("st", "st", "add", "exch", "red", "cas"))
            m.add(role, m.access(kind, flag), at, 1)
        else:
            if m.random.random() < 0.5:
                m.add(role, f"poll {flag}", at, 1)
            else:
                m.add(role, m.access(m.random.choice(("ld", "ld", "add")), flag), at, 0)
                m.add(role, "leave zero")
            if m.random.random() < 0.5:
                m.add(role, m.access("fence", m.random.choice(("acq_rel", "sc", "acquire"))))
            m.add(role, m.access(m.random.choice(("ld", "ld", "st")), space, "weak"), data, 6)


def _atomics(m: Maker) -> None:
    """All threads change the same words, by atomic operations and otherwise."""
    space, at = m.space(), 768 + m.word()
    for _ in range(m.random.choice((1, 2, 3))):
        kind = m.random.choice(("add", "add", "red", "cas", "exch", "ld", "st"))
        for role in range(m.count):
            m.add(role, m.access(kind, space), at, role + 1)


def _widths(m: Maker) -> None:
    """Elements of several sizes over each other."""
    space = m.random.choice(("shared", "global"))
    for role in range(m.count):
        for _ in range(m.random.choice((1, 2, 3))):
            kind = m.random.choice(("ld", "st", "ld.relaxed.gpu", "st.release.gpu"))
            width = m.random.choice(("u8", "u16", "u64", "v4"))
            m.add(role, f"{kind} {space} {width}", 16 * m.random.randrange(2), 3, 0, m.random.choice((0, 1, 8, 16)))
        if m.random.random() < 0.4:
            m.add(role, "bar")


def _mbarrier(m: Maker) -> None:
    """A ring: some fill stages, and wait until these are free; the others read them."""
    bar, free = 0, 1
    producers = m.roles[: m.block].count(0) or 1
    others = max(1, m.block - producers)
    m.add(0, "init", 0, producers, bar)
    m.add(0, "init", 0, others, free)
    m.all(m.random.choice(("bar", "cluster sync" if m.cluster else "bar")))
    space = m.random.choice(("shared", "shared", "global"))
    write, read = m.access("st", space), m.access("ld", space)
    arrive = m.random.choice(("arrive", "arrive", "arrive relaxed", "arrive drop", "arrive far"))
    wait = m.random.choice(("wait", "wait", "wait cluster", "wait relaxed", "test"))
    for turn in range(m.random.choice((1, 2))):
        for role in range(m.count):
            if role == 0:
                if turn:
                    m.add(role, wait, 0, turn - 1 & 1, free)
                m.add(role, write, 128, turn, 0, 4)
                m.add(role, arrive, 0, 1, bar)
            else:
                m.add(role, wait, 0, turn & 1, bar)
                m.add(role, read, 128, 0, 0, m.random.choice((0, 4)))
                m.add(role, "arrive", 0, 1, free)


def _async_copies(m: Maker) -> None:
    """Copies of each thread, in groups."""
    count = m.random.choice((1, 2, 3))
    size = m.random.choice((4, 8, 16))
    for stage in range(count):
        m.all(f"cp.async {size}", 256 * stage, 0, 0, 16)
        if m.random.random() < 0.8:
            m.all("commit")
    how = m.random.random()
    if how < 0.2:
        arrive = m.random.choice(("cp.async arrive noinc", "cp.async arrive"))
        m.add(0, "init", 0, m.block * (2 if "noinc" in arrive else 1), 2)
        m.all("bar")
        m.all(arrive, 0, 0, 2)
        m.all("arrive", 0, 0, 2)
        m.all("wait", 0, 0, 2)
    else:
        m.all(m.random.choice(("wait all", *(f"wait group {m.random.choice((0, 1, count - 1))}" for _ in range(3)))))
    if m.random.random() < 0.7:
        m.all("bar")
    m.all(m.access("ld", "shared"), m.random.choice((0, 16, 256)), 0, 0, 16)
    if m.random.random() < 0.3:
        m.all(m.access("st", "shared"), m.random.choice((0, 16)), 1, 0, 16)
    if m.random.random() < 0.3:
        m.all("st other", 0, 1, 0, 16)


def _bulk_loads(m: Maker) -> None:
    """A bulk copy that an mbarrier counts, and perhaps one back."""
    bytes = m.random.choice((16, 64, 128, 512))
    bar = m.random.randrange(3)
    m.add(0, "init", 0, 1, bar)
    if m.random.random() < 0.5:
        m.add(0, m.random.choice(("fence init", "fence proxy async")))
    m.all("cluster sync" if m.cluster else "bar")
    for turn in range(m.random.choice((1, 1, 2))):
        m.add(0, "arrive expect", 0, bytes, bar)
        m.add(0, "bulk load", 0, bytes, bar)
        m.all(m.random.choice(("wait", "wait", "wait cluster")), 0, turn, bar)
        m.all(m.access("ld", "shared", "weak"), 0, 0, 0, m.random.choice((4, 8, 16)))
        if m.random.random() < 0.7:
            m.all("bar")


def _bulk_stores(m: Maker) -> None:
    """Results through shared memory to global memory, or to another block."""
    m.all(m.random.choice(("st shared weak", "st shared weak", "st shared v4")), 0, 9, 0, m.random.choice((4, 16)))
    if m.random.random() < 0.8:
        m.all(m.random.choice(("fence proxy async", "fence proxy async.shared::cta", "fence proxy alias")))
    m.all("bar")
    m.add(0, m.random.choice(("bulk store", "bulk store", "bulk add")), 0, m.random.choice((16, 64, 256)))
    if m.random.random() < 0.8:
        m.add(0, "bulk commit")
    m.add(0, m.random.choice(("bulk wait 0", "bulk wait read 0", "bulk wait 1", "pass")))
    if m.random.random() < 0.6:
        m.all("bar")
    m.all(m.access(m.random.choice(("st", "st", "ld")), m.random.choice(("shared", "global"))), 0, 2, 0, 4)


def _across(m: Maker) -> None:
    """Data and arrivals from another block of the cluster."""
    bar, bytes = m.random.randrange(3), 4 * m.block
    how = m.random.choice(("st.async", "st.async", "red.async", "bulk across", "st far"))
    m.add(0, "init", 0, 1, bar)
    m.add(0, m.random.choice(("fence init", "pass")))
    m.all("cluster sync" if m.cluster else "bar")
    target = (m.random.randrange(2) if m.cluster else 0) << 8
    if how == "bulk across":
        m.add(0, "arrive expect", 0, 64, bar)
        m.add(0, how, 0, target | 64, bar)
    elif how == "st far":
        m.all("st far weak", 0, 3, m.random.randrange(2), 4)
        m.add(0, m.random.choice(("arrive far", "arrive far relaxed", "arrive far expect")), 0, target, bar)
    else:
        m.add(0, "arrive expect", 0, bytes * m.random.choice((1, 1, 2)), bar)
        m.all(how, 0, target | 3, bar, 4)
    m.all(m.random.choice(("wait", "wait cluster", "wait cluster", "test")), 0, 0, bar)
    m.all("ld shared weak", 0, 0, 0, 4)
    if m.random.random() < 0.8:
        m.all("cluster sync" if m.cluster else "bar")


def _lanes(m: Maker) -> None:
    """Lanes of a warp, which rely on each other."""
    how = m.random.choice(("volatile", "weak", "relaxed.cta"))
    space = m.random.choice(("shared", "global"))
    for _ in range(m.random.choice((1, 2))):
        m.all(f"st {space} {how}", 0, 4, 0, 4)
        step = m.random.choice(("pass", "warp all", "shfl", "vote", "match", "warp"))
        m.all(step, 0, m.random.choice((-1, 0xFFFF, 3)), 1)
        m.all(f"ld {space} {how}", m.random.choice((4, 8, -4)), 0, 0, 4)


def _matrices(m: Maker) -> None:
    """Rows that lanes read for each other."""
    m.all("st shared weak", 0, 4, 0, 4)
    m.all(m.random.choice(("bar", "warp all", "pass")))
    m.all(m.random.choice(("ldmatrix", "stmatrix")), 0, 0, 0, 16)
    m.all(m.random.choice(("bar", "warp all", "pass")))
    m.all(m.access("ld", "shared", "weak"), m.random.choice((0, 16)), 0, 0, 4)


def _halves(m: Maker) -> None:
    """Barriers that some arrive at and others wait for, and barriers of a part of the block."""
    whole = -(-m.block // 32) * 32
    m.add(0, "st shared weak", 64, 1)
    for role in range(m.count):
        step = (
            m.random.choice(("bar some", "bar some", "bar arrive"))
            if role
            else m.random.choice(("bar some", "bar arrive"))
        )
        m.add(role, step, 0, m.random.choice((whole, whole, 32)), m.random.choice((1, 1, 2)))
    for role in range(1, m.count):
        m.add(role, m.access("ld", "shared"), 64)
    if m.random.random() < 0.3:
        m.all("bar red")


def _soup(m: Maker) -> None:
    """Anything."""
    names = list(m.machine.steps)
    for role in range(m.count):
        for _ in range(m.random.randrange(1, 6)):
            b = m.random.choice((0, 1, 4, 16, 32, 64))
            m.add(
                role,
                m.random.choice(names),
                4 * m.random.randrange(8),
                b,
                m.random.randrange(3),
                m.random.choice((0, 4)),
            )


def _local(m: Maker) -> None:
    """Memory of a thread, and values that nothing needs."""
    m.all(m.random.choice(("st own", "pass")), m.word(), 1)
    m.all("ld own", m.word())
    m.all(m.random.choice(("ld shared unused", "ld global unused", "ld global nc", "ld other")), 0, 0, 0, 4)
    m.all(m.access("st", "global"), 0, 3, 0, 4)


HABITS = (
    _exchange, _exchange, _message, _message, _message, _atomics, _widths, _mbarrier, _mbarrier, _async_copies,
    _bulk_loads, _bulk_loads, _bulk_stores, _across, _across, _lanes, _lanes, _matrices, _halves, _soup, _local,
)  # fmt: skip


def make(seed: int) -> Launch:
    """The random launch of this number."""
    return Maker(seed).make()
