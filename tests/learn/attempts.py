"""Solutions of the exercises of chapters 1 to 6 as learners write them: five wrong ones each, and two right ones.

An attempt is the solution with parts of its text replaced. A wrong one comes with words of the answer that leads on.
"""

from typing import NamedTuple

Changes = tuple[tuple[str, str], ...]


class Wrong(NamedTuple):
    """A mistake, and what the check must say of it."""

    says: str
    changes: Changes


def wrong(says: str, *changes: tuple[str, str]) -> Wrong:
    return Wrong(says, changes)


def right(*changes: tuple[str, str]) -> Changes:
    return changes


INDEX = "mad.lo.u32 %i, %a, %b, %i;"
SUM_STEP = "    shfl.sync.bfly.b32 %other, %sum, {}, 31, 0xffffffff;\n    add.f32 %sum, %sum, %other;\n"
SUM_LOOP = """\
    mov.f32 %total, 0f00000000;
    mov.u32 %place, sums;
    mov.u32 %b, 0;
$next:
    ld.shared.f32 %other, [%place];
    add.f32 %total, %total, %other;
    add.u32 %place, %place, 4;
    add.u32 %b, %b, 1;
    setp.lt.u32 %p, %b, 8;
    @%p bra $next;
"""
EUCLID = """\
$next:
    setp.eq.u32 %p, %b, 0;
    @%p bra $done;
    rem.u32 %t, %a, %b;
    mov.u32 %a, %b;
    mov.u32 %b, %t;
    bra $next;
$done:
"""

WRONG: dict[str, list[Wrong]] = {
    "01-mental-model/1-number": [
        wrong("all blocks write the same elements", ("mad.lo.u32 %i, %block, %size, %thread;", "mov.u32 %i, %thread;")),
        wrong("is thread 67 of the grid", ("%block, %size, %thread", "%block, 16, %thread")),
        wrong("`%block * %size` threads together", ("%block, %size, %thread", "%thread, %size, %block")),
        wrong("with its number in the block", ("[%address], %i", "[%address], %thread")),
        wrong("the number of its block", ("[%address], %i", "[%address], %block")),
    ],
    "01-mental-model/2-rows": [
        wrong("Is the width the one of the whole grid?", ("%index, %row, %width, %column", "%index, %row, %b, %column")),
        wrong("its number is missing", ("%value, %row, 1000", "%value, 0, 1000")),
        wrong("the rows of the blocks above", ("mad.lo.u32 %value, %row, 1000",
              "mov.u32 %c, %tid.y;\n    mad.lo.u32 %value, %c, 1000")),
        wrong("the matrix is transposed", ("%value, %row, 1000, %column", "%value, %column, 1000, %row")),
        wrong("in elements and not in bytes", ("[y];", "[y];\n    shl.b32 %index, %index, 2;")),
    ],
    "01-mental-model/3-lanes": [
        wrong("the lane is still 0", ("and.b32 %lane, %thread, 31;", "mov.u32 %lane, 0;")),
        wrong("the warp is still 0", ("shr.u32 %warp, %thread, 5;", "mov.u32 %warp, 0;")),
        wrong("keep the low five bits", ("and.b32 %lane, %thread, 31;", "mov.u32 %lane, %thread;")),
        wrong("this counts 16", ("%thread, 5;", "%thread, 4;"), ("%thread, 31;", "%thread, 15;")),
        wrong("What do your two lines make of 33?", ("%thread, 31;", "%thread, 32;")),
    ],
    "02-first-kernel/1-double": [
        wrong("copied, and not doubled", ("    add.f32 %value, %value, %value;\n", "")),
        wrong("the offset is i times 4", ("mul.wide.u32 %offset, %i, 4;", "cvt.u64.u32 %offset, %i;")),
        wrong("nothing is stored", ("    st.global.f32 [%y], %value;\n", "")),
        wrong("do the addresses depend on `%i`?", ("    add.u64 %y, %y, %offset;\n", "")),
        wrong("y has the squares", ("add.f32 %value, %value, %value;", "mul.f32 %value, %value, %value;")),
    ],
    "02-first-kernel/2-guard": [
        wrong("Threads with i = n", ("setp.ge.u32", "setp.gt.u32")),
        wrong("The guard is true where there is nothing to do", ("    @%beyond ret;", "    ret;")),
        wrong("Which threads does your guard let through?", ("@%beyond ret;", "@!%beyond bra $on;\n$on:")),
        wrong("the last element was not written",
              ("setp.ge.u32 %beyond, %i, %n;", "add.u32 %a, %i, 1;\n    setp.ge.u32 %beyond, %a, %n;")),
        wrong("not below n", ("    @%beyond ret;\n", ""), ("    st.global", "    @!%beyond st.global")),
    ],
    "02-first-kernel/3-saxpy": [
        wrong("what y held before is not added", ("fma.rn.f32 %yi, %a, %xi, %yi;", "mul.f32 %yi, %a, %xi;")),
        wrong("`a` is missing", ("fma.rn.f32 %yi, %a, %xi, %yi;", "add.f32 %yi, %xi, %yi;")),
        wrong("x and y have changed places", ("%yi, %a, %xi, %yi;", "%yi, %a, %yi, %xi;")),
        wrong("declared before it is used", (".reg .f32 %a, %xi, %yi;", ".reg .f32 %xi, %yi;")),
        wrong("Is there a guard", ("    @%beyond ret;\n", "")),
    ],
    "03-registers/1-signed": [
        wrong("the one with hi is of unsigned numbers still", ("setp.gt.s32", "setp.gt.u32")),
        wrong("the one with lo is of unsigned numbers still", ("setp.lt.s32", "setp.lt.u32")),
        wrong("numbers above hi stay", ("selp.b32 %value, %hi, %value, %p;", "")),
        wrong("numbers below lo stay", ("selp.b32 %value, %lo, %value, %p;", "")),
        wrong("follow it through both comparisons", ("setp.lt.s32 %p, %value, %lo", "setp.gt.s32 %p, %value, %lo")),
    ],
    "03-registers/2-convert": [
        wrong("the bits of the integer are read as a float", ("cvt.rn.f32.u32 %value, %byte;", "mov.b32 %value, %byte;")),
        wrong("says how it rounds", ("cvt.rn.f32.u32", "cvt.f32.u32")),
        wrong("not divided by 255", ("    div.rn.f32 %value, %value, 0f437F0000;   // 255.0\n", "")),
        wrong("bytes from 128 on became negative", ("ld.global.u8", "ld.global.s8"), ("cvt.rn.f32.u32", "cvt.rn.f32.s32")),
        wrong("division was one of integers", ("cvt.rn.f32.u32 %value", "div.u32 %byte, %byte, 255;\n    cvt.rn.f32.u32 %value"),
              ("div.rn.f32 %value, %value, 0f437F0000;", "")),
    ],
    "03-registers/3-loop": [
        wrong("the branch back", ("    bra $next;\n", "")),
        wrong("the loop is missing", ("setp.eq.u32 %p, %b, 0;", "setp.ne.u32 %p, %b, 0;"), ("@%p bra", "bra")),
        wrong("The loop never ends", ("    mov.u32 %b, %t;\n", "")),
        wrong("all are 0", ("[%py], %a;", "[%py], %b;")),
        wrong("A label is declared once", ("$done:\n", "")),
    ],
    "04-memory-spaces/1-relative": [
        wrong("the shift -1", ("mul.wide.s32 %moved", "mul.wide.u32 %moved")),
        wrong("the shift is not added", ("    add.u64 %x, %x, %moved;", "    //")),
        wrong("multiplied by 4", ("mul.wide.s32 %moved, %a, 4;", "cvt.s64.s32 %moved, %a;")),
        wrong("What becomes of the shift -1", ("mul.wide.s32 %moved, %a, 4;", "cvt.u64.u32 %moved, %a;\n    shl.b64 %moved, %moved, 2;")),
        wrong("the shift is from element i", ("mul.wide.s32 %moved, %a, 4;", "abs.s32 %a, %a;\n    mul.wide.s32 %moved, %a, 4;\n"
              "    sub.u64 %x, %x, %offset;")),
    ],
    "04-memory-spaces/2-vectors": [
        wrong("one of four elements was written", ("st.global.v4.f32 [%y], {%f0, %f1, %f2, %f3};", "st.global.f32 [%y], %f0;")),
        wrong("reversed", ("[%y], {%f0, %f1, %f2, %f3}", "[%y], {%f3, %f2, %f1, %f0}")),
        wrong("where 4 suffice", ("    st.global.v4.f32 [%y], {%f0, %f1, %f2, %f3};\n",
              "    st.global.v2.f32 [%y], {%f0, %f1};\n    st.global.v2.f32 [%y+8], {%f2, %f3};\n")),
        wrong("thread i begins at element 4 * i", ("    shl.b32 %i, %i, 2;", "    //")),
        wrong("one register four times", ("[%y], {%f0, %f1, %f2, %f3}", "[%y], {%f0, %f0, %f0, %f0}")),
    ],
    "04-memory-spaces/3-columns": [
        wrong("i is a column", ("%index, %k, %width, %i", "%index, %i, %width, %k"), ("%p, %k, 32;", "%p, %k, %width;")),
        wrong("k counts rows now", ("%p, %k, 32;", "%p, %k, %width;")),
        wrong("one row only", ("    @%p bra $next;\n", "")),
        wrong("the last row is missing", ("%p, %k, 32;", "%p, %k, 31;")),
        wrong("x[0][i] + x[1][i]", ("%index, %k, %width, %i", "%index, %k, 32, %i")),
    ],
    "05-warps/1-broadcast": [
        wrong("the lane before it", ("shfl.sync.idx.b32 %first, %value, 0, 31", "shfl.sync.up.b32 %first, %value, 1, 0")),
        wrong("lanes count from 0", ("%value, 0, 31", "%value, 1, 31")),
        wrong("its own number", ("shfl.sync.idx.b32 %first, %value, 0, 31, 0xffffffff;", "mov.f32 %first, %value;")),
        wrong("no thread executes `shfl`", ("shfl.sync.idx.b32 %first, %value, 0, 31, 0xffffffff;",
              "and.b32 %b, %i, 31;\n    mul.wide.u32 %offset, %b, 4;\n    sub.u64 %x, %x, %offset;\n"
              "    ld.global.f32 %first, [%x];")),
        wrong("number of lane 31", ("%value, 0, 31", "%value, 31, 31")),
    ],
    "05-warps/2-sum": [
        wrong("a step is missing, the one by 1", (SUM_STEP.format(1), "")),
        wrong("the step by 16 is missing", (SUM_STEP.format(16), "")),
        wrong("lane 0 has the sum, and others have not", *[("bfly.b32", "down.b32")] * 5),
        wrong("lanes 0 and 16 are to have the same number", ("%other, %sum, 1, 31", "%other, %sum, 2, 31")),
        wrong("nothing was added", *[("    add.f32 %sum, %sum, %other;\n", "")] * 5),
    ],
    "05-warps/3-vote": [
        wrong("count their ones", ("    popc.b32 %count, %count;\n", "")),
        wrong("zeros are counted, too", ("setp.gt.f32", "setp.ge.f32")),
        wrong("negative numbers are counted", ("setp.gt.f32", "setp.lt.f32")),
        wrong("all 32 lanes", ("0xffffffff", "0xffff")),
        wrong("not above 0", ("setp.gt.f32", "setp.le.f32")),
    ],
    "06-shared-memory/1-reverse": [
        wrong("that are shown", ("    bar.sync 0;\n", "")),
        wrong("that are shown", ("    bar.sync 0;\n", ""),
              ("// buffer[127 - t]\n", "// buffer[127 - t]\n    bar.sync 0;\n")),
        wrong("does not reach the partner", ("    bar.sync 0;\n", "    bar.warp.sync 0xffffffff;\n")),
        wrong("each thread reads what it wrote", ("sub.u32 %a, 127, %t;", "mov.u32 %a, %t;")),
        wrong("Thread t is to store what thread 127 - t has loaded", ("sub.u32 %a, 127, %t;", "xor.b32 %a, %t, 1;")),
    ],
    "06-shared-memory/2-total": [
        wrong("a barrier of all threads belongs between", ("    bar.sync 0;\n", "")),
        wrong("a place of its own", ("mad.lo.u32 %place, %warp, 4, %place;", "")),
        wrong("the last warp is missing", ("%p, %b, 8;", "%p, %b, 7;")),
        wrong("not one lane of each warp", ("    bar.sync 0;\n", "    @%p bar.sync 0;\n")),
        wrong("the sum of the first warp only", ("    add.u32 %place, %place, 4;\n    add.u32 %b, %b, 1;\n"
              "    setp.lt.u32 %p, %b, 8;\n    @%p bra $next;\n", "")),
    ],
    "06-shared-memory/3-banks": [
        wrong("In which bank is tile[k][0]", ("4224", "4096"), ("%row, 132,", "%row, 128,"), ("%column, 132,", "%column, 128,")),
        wrong("The tile is larger now", ("4224", "4096")),
        wrong("In which bank is tile[k][0]", ("4224", "4352"), ("%row, 132,", "%row, 136,"), ("%column, 132,", "%column, 136,")),
        wrong("a multiple of 4", ("%row, 132,", "%row, 130,"), ("%column, 132,", "%column, 130,")),
        wrong("store and load have to use the same layout", ("%column, 132,", "%column, 128,")),
    ],
}  # fmt: skip

RIGHT: dict[str, list[Changes]] = {
    "01-mental-model/1-number": [
        right(("mad.lo.u32 %i, %block, %size, %thread;", "mul.lo.u32 %i, %block, %size;\n    add.u32 %i, %thread, %i;")),
        right((".entry number", ".entry mine"), ("mul.wide.u32 %address, %i, 4;", "cvt.u64.u32 %address, %i;\n    shl.b64 %address, %address, 2;")),
    ],
    "01-mental-model/2-rows": [
        right(("mad.lo.u32 %index, %row, %width, %column;", "mul.lo.u32 %index, %row, %width;\n    add.u32 %index, %index, %column;")),
        right(("    mad.lo.u32 %row, %a, %b, %c;\n", "    mad.lo.s32 %row, %b, %a, %c;\n")),
    ],
    "01-mental-model/3-lanes": [
        right(("shr.u32 %warp, %thread, 5;", "div.u32 %warp, %thread, 32;"), ("and.b32 %lane, %thread, 31;", "rem.u32 %lane, %thread, 32;")),
        right(("and.b32 %lane, %thread, 31;", "mov.u32 %lane, %laneid;")),
    ],
    "02-first-kernel/1-double": [
        right(("add.f32 %value, %value, %value;", "mul.rn.f32 %value, %value, 0f40000000;")),
        right(("    mul.wide.u32 %offset, %i, 4;\n    add.u64 %x, %x, %offset;\n    add.u64 %y, %y, %offset;\n",
               "    mad.wide.u32 %x, %i, 4, %x;\n    mad.wide.u32 %y, %i, 4, %y;\n"),
              ("add.f32 %value, %value, %value;", "fma.rn.f32 %value, %value, 0f3F800000, %value;")),
    ],
    "02-first-kernel/2-guard": [
        right(("setp.ge.u32 %beyond", "setp.lt.u32 %beyond"), ("@%beyond ret;", "@!%beyond bra $end;"), ("    ret;", "$end:\n    ret;")),
        right(("    @%beyond ret;\n", ""), ("    ld.global", "    @!%beyond ld.global"), ("    st.global", "    @!%beyond st.global")),
    ],
    "02-first-kernel/3-saxpy": [
        right(("fma.rn.f32 %yi, %a, %xi, %yi;", "mul.f32 %xi, %a, %xi;\n    add.f32 %yi, %yi, %xi;")),
        right((".reg .f32 %a, %xi, %yi;", ".reg .b32 %a, %xi, %yi;"), ("add.u64 %y, %y, %offset;", "cvta.to.global.u64 %y, %y;\n    add.s64 %y, %offset, %y;")),
    ],
    "03-registers/1-signed": [
        right(("    setp.lt.s32 %p, %value, %lo;\n    selp.b32 %value, %lo, %value, %p;\n    setp.gt.s32 %p, %value, %hi;\n"
               "    selp.b32 %value, %hi, %value, %p;\n", "    max.s32 %value, %value, %lo;\n    min.s32 %value, %value, %hi;\n")),
        right(("    selp.b32 %value, %lo, %value, %p;\n", "    @%p mov.b32 %value, %lo;\n")),
    ],
    "03-registers/2-convert": [
        right(("div.rn.f32 %value, %value, 0f437F0000;", "mul.rn.f32 %value, %value, 0f3B808081;")),
        right(("cvt.rn.f32.u32", "cvt.rn.f32.s32"), ("div.rn.f32", "div.approx.f32")),
    ],
    "03-registers/3-loop": [
        right((EUCLID, "    setp.eq.u32 %p, %b, 0;\n    @%p bra $done;\n$next:\n    rem.u32 %t, %a, %b;\n    mov.u32 %a, %b;\n"
               "    mov.u32 %b, %t;\n    setp.ne.u32 %p, %t, 0;\n    @%p bra $next;\n$done:\n")),
        right((EUCLID, "$next:\n    setp.ne.u32 %p, %b, 0;\n    @!%p bra $done;\n    div.u32 %t, %a, %b;\n    mul.lo.u32 %t, %t, %b;\n"
               "    sub.u32 %t, %a, %t;\n    mov.u32 %a, %b;\n    mov.u32 %b, %t;\n    bra $next;\n$done:\n")),
    ],
    "04-memory-spaces/1-relative": [
        right(("mul.wide.s32 %moved, %a, 4;", "cvt.s64.s32 %moved, %a;\n    shl.b64 %moved, %moved, 2;")),
        right(("    add.u64 %x, %x, %offset;           // &x[i]\n    mul.wide.s32 %moved, %a, 4;\n",
               "    add.s32 %a, %a, %i;\n    mul.wide.u32 %moved, %a, 4;\n")),
    ],
    "04-memory-spaces/2-vectors": [
        right(("ld.global.v4.f32", "ld.global.nc.v4.f32"), ("    ld.param.u64 %y, [y];\n", "    ld.param.u64 %y, [y];\n    ld.param.u32 %n, [n];\n")),
        right((".reg .f32 %f<4>;", ".reg .b32 %f<4>;"), ("ld.global.v4.f32", "ld.global.v4.b32"), ("st.global.v4.f32", "st.global.v4.b32")),
    ],
    "04-memory-spaces/3-columns": [
        right(("add.u32 %k, %k, 1;", "add.u32 %k, %k, 1;\n    // rows"), ("setp.lt.u32 %p, %k, 32;", "setp.ne.u32 %p, %k, 32;")),
        right(("    mov.u32 %k, 0;\n", "    mov.u32 %k, 31;\n"), ("add.u32 %k, %k, 1;", "sub.u32 %k, %k, 1;"),
              ("setp.lt.u32 %p, %k, 32;", "setp.ge.s32 %p, %k, 0;")),
    ],
    "05-warps/1-broadcast": [
        right(("shfl.sync.idx.b32 %first, %value, 0, 31, 0xffffffff;", "mov.u32 %a, 0;\n    shfl.sync.idx.b32 %first, %value, %a, 0x1f, -1;")),
        right(("shfl.sync.idx.b32 %first, %value, 0, 31, 0xffffffff;", "and.b32 %a, %i, 31;\n    shfl.sync.up.b32 %first, %value, %a, 0, -1;")),
    ],
    "05-warps/2-sum": [
        right(*[(f"bfly.b32 %other, %sum, {old},", f"bfly.b32 %other, %sum, {16 // old} + 0,") for old in (16, 8, 4, 2, 1)]),
        right(*[("bfly.b32", "down.b32")] * 5, ("    st.global", "    shfl.sync.idx.b32 %sum, %sum, 0, 31, 0xffffffff;\n    st.global")),
    ],
    "05-warps/3-vote": [
        right(("    vote.sync.ballot.b32 %count, %p, 0xffffffff;\n    popc.b32 %count, %count;\n",
               "    selp.u32 %count, 1, 0, %p;\n    redux.sync.add.u32 %count, %count, 0xffffffff;\n")),
        right(("setp.gt.f32 %p, %value, 0f00000000;", "setp.lt.f32 %p, 0f00000000, %value;"), ("0xffffffff", "-1")),
    ],
    "06-shared-memory/1-reverse": [
        right(("    bar.sync 0;\n", "    barrier.sync 3, 128;\n")),
        right(("    mad.lo.u32 %place, %t, 4, %b;\n", "    sub.u32 %a, 127, %t;\n    mad.lo.u32 %place, %a, 4, %b;\n"),
              ("    sub.u32 %a, 127, %t;\n    mad.lo.u32 %place, %a, 4, %b;\n    ld.", "    mad.lo.u32 %place, %t, 4, %b;\n    ld.")),
    ],
    "06-shared-memory/2-total": [
        right((SUM_LOOP, "    .reg .f32 %s<8>;\n    ld.shared.v4.f32 {%s0, %s1, %s2, %s3}, [sums];\n    ld.shared.v4.f32 {%s4, %s5, %s6, %s7}, [sums+16];\n"
               "    add.f32 %total, %s0, %s1;\n" + "".join(f"    add.f32 %total, %total, %s{k};\n" for k in range(2, 8)))),
        right((SUM_LOOP, "    and.b32 %b, %t, 7;\n    mov.u32 %place, sums;\n    mad.lo.u32 %place, %b, 4, %place;\n"
               "    ld.shared.f32 %total, [%place];\n" + "".join(
                   f"    shfl.sync.bfly.b32 %other, %total, {k}, 31, 0xffffffff;\n    add.f32 %total, %total, %other;\n" for k in (4, 2, 1)))),
    ],
    "06-shared-memory/3-banks": [
        right(("4224", "4096"), ("    mad.lo.u32 %place, %row, 132, %tile;\n    mad.lo.u32 %place, %column, 4, %place;\n",
              "    xor.b32 %index, %row, %column;\n    mad.lo.u32 %place, %row, 128, %tile;\n    mad.lo.u32 %place, %index, 4, %place;\n"),
              ("    mad.lo.u32 %place, %column, 132, %tile;\n    mad.lo.u32 %place, %row, 4, %place;\n",
              "    mad.lo.u32 %place, %column, 128, %tile;\n    mad.lo.u32 %place, %index, 4, %place;\n")),
        right(("4224", "4480"), ("%row, 132,", "%row, 140,"), ("%column, 132,", "%column, 140,")),
    ],
}  # fmt: skip
