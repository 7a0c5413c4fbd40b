"""Random kernels that take numbers from a counter: the block that comes last, unique places; some of them wrong."""

from __future__ import annotations

from random import Random

DECLARED = ".visible .global .align 4 .u32 count;\n.visible .entry"
FENCES = ["fence.acq_rel.gpu;", "membar.gl;", "fence.sc.gpu;"]


def _mostly(random: Random, right: str, *others: str) -> str:
    return right if random.random() < 0.88 else random.choice(others)


def _store(r: Random, place: str) -> list[str]:
    """What each block, or each thread, leaves for others, if `y` is so long."""
    found = [f"mov.u32 %r1, {place};\n    setp.lt.u32 %p1, %r1, %n;\n    mul.wide.u32 %d1, %r1, 4;"]
    found.append("add.u64 %d1, %d1, %y;\n    @%p1 st.global.u32 [%d1], %v;")
    return found


def _draw(r: Random, limit: str, share: int) -> tuple[list[str], bool]:
    """A draw, most often with fences around it; whether it counts by one."""
    is_ordered = r.random() < 0.3
    order = _mostly(r, "acq_rel", "release", "acquire", "relaxed") if is_ordered else "relaxed"
    scope = _mostly(r, r.choice(["gpu", "sys"]), "cta")
    fence = [] if is_ordered else [_mostly(r, r.choice(FENCES), "", "fence.acq_rel.cta;")]
    after = [] if is_ordered else [_mostly(r, r.choice(FENCES), "", "fence.acq_rel.cta;")]
    kind = r.choice(["add", "add", "inc", "two"]) if share == 1 else "add"
    operand = {"add": "add.u32 %q, [%c], 1", "inc": f"inc.u32 %q, [%c], {_mostly(r, limit, '1', '%n')}",
               "two": "add.u32 %q, [%c], 2"}[kind]  # fmt: skip
    return [*fence, f"atom.{order}.{scope}.global.{operand};", *after], kind != "two"


def _last(r: Random) -> list[str]:
    """Each block leaves something; the last one reads all of it, and may start the counter anew."""
    found = ["mov.u32 %m, %nctaid.x;\n    sub.u32 %k1, %m, 1;\n    setp.ne.u32 %p0, %t, 0;"]
    is_of_all = r.random() < 0.4
    stored = _store(r, "%g" if is_of_all else "%b")
    early = not is_of_all and r.random() < 0.5
    drawn, is_by_one = _draw(r, "%k1", 1)
    is_fenced = is_of_all and r.random() < 0.5  # by each thread, and perhaps not by the one that draws
    if is_fenced and r.random() < 0.8:
        drawn = [one for one in drawn if one.startswith("atom")]
    if is_of_all or not early:
        found += stored
        if is_fenced:
            found.append(_mostly(r, r.choice(FENCES[1:]), "", "fence.acq_rel.gpu;", "membar.cta;"))
        if is_of_all:
            found.append(_mostly(r, "bar.sync 0;", "", "fence.acq_rel.gpu;"))
    found.append("@%p0 bra drawn;")
    drawn = [*stored, *drawn] if early and r.random() < 0.9 else [*drawn, *stored] if early else drawn
    found += drawn
    wanted = "%k1" if is_by_one else "%k2"
    found.append(f"add.u32 %k2, %k1, %k1;\n    mov.u32 %r2, {_mostly(r, wanted, '%k1', '%m', '0')};")
    found.append(f"setp.{_mostly(r, r.choice(['eq', 'eq', 'ge']), 'le', 'ne')}.u32 %p2, %q, %r2;")
    if r.random() < 0.5:
        found.append("selp.b32 %r3, 1, 0, %p2;")
    else:
        found.append("mov.u32 %r3, %q;")
    test = "setp.eq.u32 %p3, %r4, 0;" if "selp" in found[-1] else "setp.ne.u32 %p3, %r4, %r5;"
    found.append(f"st.shared.u32 [tile], %r3;\ndrawn:\n    {_mostly(r, 'bar.sync 0;', '')}")
    wanted = {"%k1": "%k1", "%k2": "%k2"}[wanted]
    found.append(
        f"add.u32 %k2, %k1, %k1;\n    mov.u32 %r5, {wanted};\n    ld.shared.u32 %r4, [tile];\n    {test}\n    @%p3 ret;"
    )
    if is_fenced:
        found.append(_mostly(r, r.choice(FENCES[1:]), "", "fence.acq_rel.gpu;", "membar.cta;"))
    count = "%m" if not is_of_all else "%r6"
    found.append("mul.lo.u32 %r6, %m, 8;\n    mov.u32 %k0, %t;\nagain:")
    found.append(f"setp.ge.u32 %p4, %k0, {_mostly(r, count, '%n')};\n    @%p4 bra over;")
    found.append("setp.lt.u32 %p5, %k0, %n;\n    mul.wide.u32 %d2, %k0, 4;\n    add.u64 %d2, %d2, %y;")
    found.append("@%p5 ld.global.u32 %v, [%d2];\n    add.u32 %k0, %k0, 8;\n    bra again;\nover:")
    found.append("setp.lt.u32 %p6, %t, %n;\n    mul.wide.u32 %d3, %t, 4;\n    add.u64 %d3, %d3, %x;")
    found.append("@%p6 st.global.u32 [%d3], %v;")
    if r.random() < 0.4:
        found.append("mov.u32 %r7, 0;\n    @!%p0 st.global.u32 [%c], %r7;")
    return found


def _append(r: Random) -> list[str]:
    """Threads, or blocks for all of their threads, take places in `y`."""
    guard = r.choice(["%t", "%g", "%b", "%n"])
    found = [f"setp.ge.u32 %p1, {guard}, {r.choice([3, 8, 20])};\n    @%p1 ret;"] if r.random() < 0.6 else []
    share = r.choice([1, 1, 2, 3])
    scope, amount = _mostly(r, "gpu", "cta"), _mostly(r, str(share), "1", "0", "-1")
    found.append(f"atom.relaxed.{scope}.global.add.u32 %q, [%c], {amount};")
    for number in range(share):
        found.append(f"add.u32 %r{number + 1}, %q, {_mostly(r, str(number), '1', '0')};")
        found.append(
            f"setp.lt.u32 %p{number + 2}, %r{number + 1}, %n;\n    mul.wide.u32 %d{number + 1}, %r{number + 1}, 4;"
        )
        found.append(f"add.u64 %d{number + 1}, %d{number + 1}, %y;")
        found.append(f"@%p{number + 2} st.global.u32 [%d{number + 1}], %v;")
    return found


def _queue(r: Random) -> list[str]:
    """Blocks take tiles of `y`, of eight elements, until there are no more."""
    tile, size = _mostly(r, "8", "7"), _mostly(r, "%p1", "%p9")
    found = ["setp.ne.u32 %p1, %t, 0;\n    setp.gt.u32 %p9, %t, 1;\n    mov.u32 %turns, 0;\nagain:"]
    found.append(f"@{size} bra drawn;\n    atom.relaxed.{_mostly(r, 'gpu', 'cta')}.global.add.u32 %q, [%c], 1;")
    found.append(f"st.shared.u32 [tile], %q;\ndrawn:\n    {_mostly(r, 'bar.sync 0;', '')}")
    found.append(f"ld.shared.u32 %r1, [tile];\n    {_mostly(r, 'bar.sync 0;', '')}")
    found.append("setp.gt.u32 %p2, %r1, 3;\n    @%p2 ret;")
    found.append(f"mad.lo.u32 %r2, %r1, {tile}, %t;\n    setp.lt.u32 %p3, %r2, %n;\n    mul.wide.u32 %d1, %r2, 4;")
    found.append("add.u64 %d1, %d1, %y;\n    @%p3 st.global.u32 [%d1], %v;\n    bra again;")
    return found


def _compact(r: Random) -> list[str]:
    """Threads take places in shared memory, from a counter that one of them has set."""
    found = [
        f"setp.ne.u32 %p1, %t, 0;\n    mov.u32 %r1, {_mostly(r, '0', '1', '9')};\n    @!%p1 st.shared.u32 [tile], %r1;"
    ]
    found.append(_mostly(r, "bar.sync 0;", ""))
    found.append("setp.ge.u32 %p2, %g, %n;\n    @%p2 bra over;\n    mov.u32 %r2, tile;")
    found.append(f"atom.shared.add.u32 %q, [%r2], {_mostly(r, '1', '2', '0')};")
    found.append(f"mad.lo.u32 %r3, %q, 4, %base;\n    st.shared.u32 [%r3+{_mostly(r, '4', '0', '8')}], %v;\nover:")
    if r.random() < 0.3:
        found.append("bar.sync 0;\n    @!%p1 st.shared.u32 [tile], %r1;")
    found.append("bar.sync 0;\n    mad.lo.u32 %r4, %t, 4, %base;\n    ld.shared.u32 %v, [%r4];")
    return found


def make(random: Random, header: str) -> str:
    """A kernel that takes numbers from a counter."""
    lines = random.choice([_last, _last, _append, _queue, _compact])(random)
    declared = header.replace(".visible .entry", DECLARED).replace(
        "%base;\n", "%base, %q, %turns;\n    .reg .b64 %c;\n", 1
    )
    return f"{declared}    mov.u64 %c, count;\n    " + "\n    ".join(one for one in lines if one) + "\n    ret;\n}\n"
