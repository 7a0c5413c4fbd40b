"""Short modules that damaged files have taught us about: what `check` says of each, and that ptxas takes the same side.

Most are nonsense that ptxas refuses; some are nonsense that it lets pass, and then `check` only warns.
"""

from pathlib import Path

import pytest

import ptxlab
from ptxlab.report import Diagnostic, render
from ptxlab.toolchain import accepted, judge
from tests.golden import compare_one
from tests.tools import header

from ..tools import each_release, is_accepted, ptxas_of

HEADER = header("9.0", "sm_100a")
KERNEL = "\n.entry j() { ret; }"
REGISTERS = (
    ".reg .pred %p<4>; .reg .b8 %c<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .u32 %u<4>; .reg .f32 %f<8>;"
    " .reg .b64 %d<8>;"
)


def kernel(line: str) -> str:
    """A kernel around one or more instructions, with arrays and scalars to access."""
    return (
        ".global .u32 array[4]; .global .u32 scalar; .shared .u32 tile[4]; .global .surfref s;\n"
        ".global .texref t;\n"
        f".entry k(.param .u64 a) {{ {REGISTERS} {line} ret; }}"
    )


def call(line: str) -> str:
    """A kernel that calls `one`, which takes and returns four bytes, or `many`, which takes an aligned array."""
    return (
        ".func (.param .b32 r) one(.param .b32 p) { ret; }\n.func many(.param .align 8 .b8 p[24]) { ret; }\n"
        ".entry k() { .reg .b64 f; .param .b32 x; .param .b32 y; .param .align 8 .b32 wide; .param .align 8 .b8 b8[24];"
        " .param .align 16 .b8 b16[24]; known: .calltargets one; proto: .callprototype _ (.param .b32 _);"
        f" mov.b64 f, one; L: {line} ret; }}"
    )


def plenty(count: int, target: str) -> str:
    """A kernel with that many bytes of shared memory."""
    return f".version 9.0\n.target {target}\n.entry k() {{ .shared .b8 tile[{count}]; ret; }}"


def textures(mode: str, declaration: str, line: str = "") -> str:
    """A module with a texture `t`, whose `.target` ends in a mode."""
    header = f".version 8.0\n.target sm_80{mode}\n.global .texref t;"
    return f"{header}\n{declaration}\n.entry k() {{ {REGISTERS} {line} ret; }}"


def inlined(before: str, place: str) -> str:
    """A kernel with code that is inlined at a place."""
    code = f"{before}\nmov.b32 %r1, 1;\n.loc 1 8 8, function_name name, inlined_at {place}\nmov.b32 %r2, 2;"
    return f'.file 1 "a"\n.entry k() {{ {REGISTERS}\n{code}\nret; }}\n.section .debug_str {{\nname: .b8 0\n}}'


def section(line: str) -> str:
    return f".entry k() {{ ret; }}\n.section .debug_str {{\nx: .b8 0\n{line}\n}}"


TENSOR = "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes"

# (text, the code of the error, after a `!` if ptxas accepts it, or that of the warning after a `?`, or None)
CASES: list[tuple[str, str | None]] = [
    # A vector has one type; a predicate has 32 bits to ptxas, and special registers are like others.
    (kernel("ld.global.v2.b32 {%r1, %p1}, [%d1];"), "?operand-type"),
    (kernel("ld.global.v2.b32 {%p1, %p1}, [%d1];"), "operand-type"),
    (kernel("ld.global.v2.f32 {%f1, %p1}, [%d1];"), "operand-type"),
    (kernel("ld.global.v2.f32 {%f1, %tid.x}, [%d1];"), "!operand-type"),
    (kernel("st.global.b32 [%d1], {%tid.x};"), None),
    (kernel("st.global.b32 [%d1], %tid.x;"), "operand-type"),
    (kernel("ld.global.v2.b32 {_, _}, [%d1];"), "operand-type"),
    (kernel("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %tid.x}, [%r2];"), "operand-type"),
    (kernel("mov.b32 %r1, {%h1, _};"), "?operand-type"),
    (kernel("mov.b64 %d1, {%r1, _};"), "operand-type"),
    (kernel("mov.b32 %r1, {0, %r2};"), "?operand-type"),
    (kernel("mov.b32 %r1, {%r2, 0};"), "operand-type"),
    (kernel("st.global.v2.b32 [%d1], {0, %h1};"), "?operand-type"),
    (kernel("st.global.v2.b32 [%d1], {%h1, 0};"), "operand-type"),
    (kernel("sust.b.1d.b32.trap [s, {%r1}], {%r1, %r2};"), None),
    (kernel("sust.b.2d.b32.trap [s, %r1], %r2;"), "?operand-type"),
    (kernel("sust.b.5d.b32.trap [s, {%r1, %r2}], %r2;"), "?ignored-modifier"),
    (kernel("st.global.v2.f32 [%d1], {%u1, %u2};"), None),
    (kernel("st.global.v2.f32 [%d1], {%u1, 1.0};"), "operand-type"),
    (kernel("st.global.v2.u32 [%d1], {%f1, %f2};"), "operand-type"),
    (kernel("st.global.v4.u32 [%d1], %ctaid;"), "operand-type"),
    # A variable that is not an array counts as a register in a vector, whatever that may mean.
    (kernel("ld.global.v2.u32 {%u1, scalar}, [%d1];"), "!operand-type"),
    (kernel("mov.b64 {scalar, %r1}, %d1;"), "!operand-type"),
    (kernel("mov.b64 {array, %r1}, %d1;"), "operand-type"),
    (kernel("mov.b64 {scalar, %h1}, %d1;"), "operand-type"),
    # No register is declared with bf16: ptxas checks the width of what is there, and not whether it is a vector.
    (kernel("add.bf16x2 %r1, {%r2, %r3}, %r4;"), "?refused-spelling"),
    (kernel("neg.bf16 {%h1, _}, %h2;"), "?refused-spelling"),
    (kernel("neg.bf16 {%h1, %h2, %h3}, %h2;"), "vector-size"),
    (kernel("max.bf16x2 {%f1, %f2}, %r3, %r4;"), "operand-type"),
    (kernel("tanh.approx.bf16x2 %r1, {%r2, %r3};"), "vector-size"),
    (kernel("setp.gt.bf16x2 %p1|%p2, %r1, %p3;"), "?refused-spelling"),
    (kernel("setp.gt.bf16x2 %p1|%p2, %p3, %r1;"), "operand-type"),
    (kernel("set.gt.bf16x2.bf16x2 %p1, %r1, %r2;"), "?refused-spelling"),
    (kernel("cvt.rn.bf16x2.ue8m0x2 %p1, %h1;"), "?refused-spelling"),
    (kernel("set.gt.bf16.f16 {_, %h1}, %h2, %h3;"), "?refused-spelling"),
    (kernel("set.gt.bf16.bf16 {%r1}, %h2, %h3;"), "operand-type"),
    (kernel("multimem.st.relaxed.gpu.global.bf16x2 [%d1], {%r1};"), None),
    (kernel("multimem.st.relaxed.gpu.global.v2.f32 [%d1], {%r1, %p1};"), "?refused-spelling"),
    (kernel("multimem.st.relaxed.gpu.global.v2.f32 [%d1], {%r1, _};"), "operand-type"),
    (kernel("multimem.ld_reduce.relaxed.gpu.global.add.v2.bf16x2 {%p1, _}, [%d1];"), "?refused-spelling"),
    (kernel("multimem.ld_reduce.relaxed.gpu.global.add.bf16x2 %p1, [%d1];"), "?refused-spelling"),
    (kernel("multimem.ld_reduce.relaxed.gpu.global.add.f16x2 %p1, [%d1];"), "operand-type"),
    # Results that are not wanted, pairs of halves, sizes.
    (kernel("atom.global.v2.f32.add _, [%d1], {%f1, %f2};"), None),
    (kernel("atom.global.v4.bf16x2.add.noftz _, [%d1], {%r1, %r2, %r3, %r4};"), "vector-size"),
    (kernel("ld.global.v2.f32 _, [%d1];"), "vector-size"),
    (kernel("{ .reg .f16x2 h; cvt.pack.sat.u16.s32 h, %r1, %r2; }"), None),
    (kernel("st.bulk.shared::cta [%r1], %u1, 0;"), None),
    (kernel("st.bulk.shared::cta [tile], 16, 0;"), "operand-type"),
    (kernel("st.bulk.shared::cta [tile+8], %u1, 0;"), "operand-type"),
    (kernel("st.bulk [tile], 16, 0;"), None),
    (kernel("st.bulk.shared::cta [%r1], %r2, 0;"), "operand-type"),
    # An address of 8 or 16 bits, where ptxas looks for 32 only, unless it copies the address.
    (kernel("ld.global.u32 %r1, [%h1];"), "?operand-type"),
    (kernel("ld.global.u32 %r1, [%r1];"), "operand-type"),
    (kernel("st.b32 [%c1+4], %r1;"), "?operand-type"),
    (kernel("atom.shared.add.u32 %u1, [%h1], %u2;"), "?operand-type"),
    (kernel("multimem.red.relaxed.gpu.global.add.u32 [%h1], %u1;"), "operand-type"),
    (kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%h1];"), "?operand-type"),
    (kernel("ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%h1];"), "operand-type"),
    (kernel("prefetch.tensormap [%c1];"), "operand-type"),
    (kernel("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%h1];"), "operand-type"),
    (kernel(f"{STORE}.u32 [%h1], %r2, [%d1];"), "operand-type"),
    (kernel(f"{STORE}.u32 [%d1], %r2, [%h1];"), "?operand-type"),
    # Results of ldmatrix that are not wanted.
    (kernel("ldmatrix.sync.aligned.m8n16.x2.b8x16.b6x16_p32 {%r1, _}, [%d1];"), None),
    (kernel("ldmatrix.sync.aligned.m8n16.x2.b8x16.b6x16_p32 {_, _}, [%d1];"), "operand-type"),
    # An array of surfaces is not one of them.
    (kernel("mov.b64 %d1, many[1]; suq.width.b32 %r1, [%d1];").replace(" s;", " s; .global .surfref many[2];"), None),
    (kernel("suq.width.b32 %r1, [many];").replace(" s;", " s; .global .surfref many[2];"), "operand-type"),
    (kernel("sust.b.1d.b32.trap [many, {%r1}], %r2;").replace(" s;", " s; .global .surfref many[1];"), "operand-type"),
    # Modifiers that mean nothing there.
    (kernel("red.pred.global.add.u32 [%d1], %u1;"), "?ignored-modifier"),
    (kernel("red.b2.global.add.u32 [%d1], %u1;"), "illegal-modifier"),
    (kernel("tanh.approx.f32.pred %f1, %f2;"), "?ignored-modifier"),
    (kernel("ex2.texref.approx.f32 %f1, %f2;"), "?ignored-modifier"),
    (kernel("abs.f32.b2 %f1, %f2;"), "illegal-modifier"),
    (kernel("rsqrt.approx.f32.b2 %f1, %f2;"), "illegal-modifier"),
    (kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b8x16.b16 {%r1}, [%r2];"), "illegal-modifier"),
    (kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b2.b16 {%r1}, [%r2];"), "?refused-spelling"),
    (kernel("tcgen05.cp.cta_group::1.128x256b.b8x16 [%r1], %d1;"), "illegal-modifier"),
    (kernel("tensormap.replace.tile.rank.global_address.global.b1024.b64 [%d1], %d2;"), "illegal-modifier"),
    (kernel("wmma.load.a.sync.aligned.row.m16n16k16.bf16.b2 {%r1, %r2, %r3, %r4}, [%d1];"), "illegal-modifier"),
    (kernel("wmma.load.c.sync.aligned.row.m8n8k32.s32.b2 {%r1, %r2}, [%d1];"), "?ignored-modifier"),
    (kernel("wmma.load.c.b2.sync.aligned.row.m8n8k32.s32 {%r1, %r2}, [%d1];"), "illegal-modifier"),
    # An operand that does nothing, where `.cas` has one.
    (kernel("atom.global.exch.b32 %r1, [%d1], %r2, %r3;"), "?operand-type"),
    (kernel("atom.shared.xor.b32 %f1, [%r1], %f2, %f3;"), "?operand-type"),
    (kernel("atom.global.and.b32 %r1, [%d1], %r2, 5;"), "operand-type"),
    (kernel("atom.global.exch.b64 %d1, [%d1], %d2, %d3;"), "operand-count"),
    (kernel("atom.global.add.u32 %u1, [%d1], %u2, %u3;"), "operand-count"),
    (kernel("red.global.and.b32 [%d1], %r2, %r3;"), "operand-count"),
    # Addresses in tensor memory.
    (kernel("{ .reg .f16x2 h; tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r1}, [h]; }"), "?refused-spelling"),
    (kernel("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r1}, [%r2];"), "?refused-spelling"),
    (kernel("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2, %r1}, [%r2];"), None),
    (kernel("{ .reg .f16x2 h; tcgen05.mma.cta_group::1.kind::f16 [h], %d1, %d2, %r1, %p1; }"), "operand-type"),
    (kernel("tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r1}, [%f1];"), "operand-type"),
    # Elements: only of arrays, and as an address only in loads, stores and tensor copies.
    (kernel("ld.global.u32 %r1, array[1];"), None),
    (kernel("ld.global.u32 %r1, scalar[1];"), "operand-type"),
    (kernel("ld.global.u32 %r1[0], [%d1];"), "operand-type"),
    (kernel("add.u32 %r1, %r2[0], %r3;"), "operand-type"),
    (kernel("ld.global.u32 %r1, array[%f1];"), "operand-type"),
    (kernel("ld.global.u32 %r1, array[nowhere];"), "unknown-name"),
    (kernel("ld.global.u32 %r1, array[scalar];"), None),
    (kernel("atom.global.add.u32 %r1, array[1], %r2;"), "operand-type"),
    (kernel(f"{TENSOR} tile[0], [%d1, {{%r1}}], [%r2];"), "?operand-type"),
    (kernel(f"{TENSOR} %r1, [%d1, {{%r1}}], [%r2];"), "?operand-type"),
    (kernel(f"{TENSOR} %r1+4, [%d1, {{%r1}}], [%r2];"), "?operand-type"),
    (kernel(f"{TENSOR} [%r1], [%d1, {{%r1}}], %r2+8;"), "?operand-type"),
    (kernel(f"{TENSOR} scalar+4, [%d1, {{%r1}}], [%r2];"), "state-space"),
    (kernel(f"{TENSOR} 7, [%d1, {{%r1}}], [%r2];"), "operand-type"),
    (kernel("cp.async.bulk.prefetch.tensor.1d.L2.global [%f1, {%r1}];"), "?operand-type"),
    (kernel("cp.async.bulk.prefetch.tensor.1d.L2.global [1.0, {%r1}];"), "operand-type"),
    # Coordinates of textures, and an offset for a cube map, which ptxas leaves out.
    (kernel("tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2, %f3, %f4}], %u1;"), None),
    (kernel("tld4.r.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2, %f3, %f4}], {%u1, %u2};"), "vector-size"),
    (kernel("tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, %f1];"), "?operand-type"),
    (kernel("tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2, %f3, %f4}], %u1;"), "?operand-type"),
    (kernel("tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2, %f3, %f4}], %r1;"), "operand-type"),
    (
        kernel("tex.grad.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2, %f3, %f4}], {%f1}, {%r1, %r2};"),
        "?operand-type",
    ),
    (
        kernel("tex.grad.acube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%u1, %f2, %f3, %f4}], %f1, {%f1, %f2};"),
        "vector-size",
    ),
    (kernel("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1.0, 1.0}];"), None),
    (kernel("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {1, 1}];"), "operand-type"),
    (kernel("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {1, 1}];"), None),
    # Asynchronous stores without a completion mechanism.
    (kernel(f"{STORE}.u32 [%r1], %r2;"), "?operand-count"),
    (kernel(f"{STORE}.v2.u32 [%r1], {{%r2, %r3}};"), "operand-count"),
    # Headers.
    (".version /* new */ 8.0\n.target sm_80" + KERNEL, "missing-version"),
    (".version\n8.0\n.target sm_80" + KERNEL, "missing-version"),
    (".version\t8.0 /* new */ .target /* old */ sm_80" + KERNEL, None),
    (".version 8.0\n.target sm_80\n.target sm_80\n.address_size 64" + KERNEL, None),
    (".version 8.0\n.target sm_80\n.address_size 64\n.target sm_80" + KERNEL, "unexpected-token"),
    (".version 8.0\n.target debug" + KERNEL, "illegal-header"),
    (".version 8.0\n.target sm_80, debug" + KERNEL, "illegal-header"),
    # The last architecture counts.
    (".version 8.0\n.target sm_52, sm_53\n.entry k() { .reg .b32 %r<3>; add.f16x2 %r1, %r2, %r2; }", None),
    (
        ".version 8.0\n.target sm_53, sm_52\n.entry k() { .reg .b32 %r<3>; add.f16x2 %r1, %r2, %r2; }",
        "unavailable-instruction",
    ),
    (".version 8.0\n.target sm_90\n.target sm_80\n.entry k() { griddepcontrol.wait; }", "unavailable-instruction"),
    (".version 8.0\n.target sm_90, sm_80, sm_90\n.entry k() { griddepcontrol.wait; }", None),
    (".version 8.0\n.target sm_13, sm_12, map_f64_to_f32" + KERNEL, None),
    (".version 8.0\n.target sm_13, map_f64_to_f32, sm_12" + KERNEL, "illegal-header"),
    (".version 8.0\n.target sm_80, map_f64_to_f32" + KERNEL, "illegal-header"),
    # Linkage.
    (".extern .func f() { ret; }" + KERNEL, "illegal-declaration"),
    (".extern .func f();\n.visible .func f() { ret; }" + KERNEL, "inconsistent-declaration"),
    (".visible .func f();\n.func f() { ret; }" + KERNEL, None),
    (".func f();\n.visible .func f() { ret; }" + KERNEL, "inconsistent-declaration"),
    (".func f() { ret; }\n.func f();" + KERNEL, "duplicate-name"),
    (".extern .global .u32 g;\n.global .u32 g;" + KERNEL, "inconsistent-declaration"),
    (".extern .global .u32 g;\n.visible .global .u32 g;" + KERNEL, None),
    (".extern .global .u32 g[];\n.visible .global .u32 g[4];" + KERNEL, None),
    (".visible .global .u32 g[2][4];\n.extern .global .u32 g[][4];" + KERNEL, None),
    (".extern .global .u32 g[][3];\n.visible .global .u32 g[2][4];" + KERNEL, "inconsistent-declaration"),
    (".extern .global .u32 g[5];\n.visible .global .u32 g[4];" + KERNEL, "inconsistent-declaration"),
    (".common .func f() { ret; }" + KERNEL, "unexpected-token"),
    (".common .shared .u32 g;" + KERNEL, "illegal-declaration"),
    (".common .global .texref g;" + KERNEL, "illegal-declaration"),
    (".shared .texref g;" + KERNEL, "illegal-declaration"),
    # Of an array, ptxas does not ask whether a texture may be there, or whether there is a `.b128` yet.
    (".shared .texref g[2]; .const .surfref h[3];" + KERNEL, None),
    (".func f(.param .texref p[2]) { ret; }" + KERNEL, None),
    (".func f(.param .texref p) { ret; }" + KERNEL, "illegal-declaration"),
    (".entry k() { .global .texref t[2]; ret; }", "illegal-declaration"),
    (".global .samplerref g[3];" + KERNEL, None),
    (".global .samplerref g;" + KERNEL, "wrong-texture-mode"),
    (".version 7.8\n.target sm_80\n.global .b128 g[WARP_SZ] = { }; .shared .b128 h[2];" + KERNEL, None),
    (".version 7.8\n.target sm_80\n.global .b128 g;" + KERNEL, "unavailable-feature"),
    (".const .surfref g;" + KERNEL, "illegal-declaration"),
    (".func f(.param .align 8 .u32 p);\n.func f(.param .u32 p) { ret; }" + KERNEL, "inconsistent-declaration"),
    (".func f(.param .align 2 .u32 p);\n.func f(.param .u32 p) { ret; }" + KERNEL, None),
    (".func (.reg .align 8 .u32 r) f();\n.func (.reg .u32 r) f() { ret; }" + KERNEL, "inconsistent-declaration"),
    (".entry k(.param .u32 p);\n.entry k(.param .align 8 .u32 p) { ret; }", "inconsistent-declaration"),
    # Parameters of calls are not memory; those of the function itself are.
    (kernel(".param .b32 x; @%p1 st.param.b32 [x], %r1;"), "misused-parameter"),
    (kernel(".param .b32 x; @%p1 ld.param.b32 %r1, [x];"), "misused-parameter"),
    (kernel(".param .b8 x[8]; @%p1 ld.param.b8 %r1, x[1];"), "misused-parameter"),
    (kernel("@%p1 ld.param.u64 %d1, [a];"), None),
    (kernel(".param .b8 x[8]; mov.b64 %d1, x;"), "misused-parameter"),
    (kernel(".param .b8 x[8]; cvta.param.u64 %d1, x;"), "misused-parameter"),
    (kernel("mov.b64 %d1, a;"), None),
    # Shared memory with a size, of all that a kernel calls.
    (plenty(49152, "sm_80"), None),
    (plenty(49153, "sm_80"), "excessive-shared-memory"),
    (plenty(49153, "sm_100f"), "excessive-shared-memory"),
    (plenty(232448, "sm_90a"), None),
    (plenty(232449, "sm_90a"), "excessive-shared-memory"),
    (plenty(101376, "sm_120a"), None),
    (plenty(101377, "sm_120a"), "excessive-shared-memory"),
    (kernel(".shared .b8 unused[300000];"), "excessive-shared-memory"),
    (".shared .b8 unused[300000];" + KERNEL, None),
    (".extern .shared .b8 big[300000];\n.entry k() { .reg .b32 %r; mov.b32 %r, big; }", "excessive-shared-memory"),
    (".func f() { .shared .b8 big[300000]; ret; }\n.entry k() { call f; ret; }", "excessive-shared-memory"),
    (".func f() { .shared .b8 big[300000]; ret; }" + KERNEL, None),
    # Textures and samplers, together or apart.
    (textures("", ".global .samplerref s;"), "wrong-texture-mode"),
    (textures(", texmode_unified", ".entry j(.param .samplerref s) { ret; }"), "wrong-texture-mode"),
    (textures(", texmode_independent", ".global .samplerref s;"), None),
    (
        textures(", texmode_independent", "", "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1}];"),
        "wrong-texture-mode",
    ),
    (textures(", texmode_independent", "", "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, %d1, {%f1}];"), None),
    (textures(", texmode_independent", "", "txq.filter_mode.b32 %r1, [t];"), "wrong-texture-mode"),
    (textures(", texmode_independent", "", "txq.width.b32 %r1, [t];"), None),
    (textures(", texmode_independent", ".global .samplerref s;", "txq.filter_mode.b32 %r1, [s];"), None),
    # Declarations.
    (".entry k(.param .u64 .ptr .align 3 a) { ret; }", "illegal-declaration"),
    (".entry k(.param .u64 .ptr .ptr a) { ret; }", "unexpected-token"),
    (".func f(.param .u64 .ptr a) { ret; }", "illegal-declaration"),
    (".func f(.param .u32 a[], .param .u32 b) { ret; }", "illegal-declaration"),
    (".extern .func (.param .v2 .f32 r) vprintf(.param .pred a);" + KERNEL, None),
    (".global .v4 .align 4 .u8 g;" + KERNEL, "unexpected-token"),
    (".global .v2 .u32 g = {1};" + KERNEL, "illegal-declaration"),
    (".global .v2 .u32 g[2] = {{1, 2}};" + KERNEL, None),
    (".global .v2 .u32 g[2] = {{1, 2}, {}};" + KERNEL, "illegal-declaration"),
    (".entry k(.param .b8 a[40000]) { ret; }", "illegal-declaration"),
    (".entry k(.param .v2 .f32 a) { ret; }", "illegal-declaration"),
    (".entry k() { .param .align 256 .b8 a[4]; ret; }", "illegal-declaration"),
    (".entry k() { .reg .u32 WARP_SZ; ret; }", "unexpected-token"),
    (".entry k() { .reg .u32 %r<4294967296>; ret; }", "constant-overflow"),
    (".entry k() { .reg .texref t; ret; }", "illegal-declaration"),
    (".tex .u32 t;" + KERNEL, "illegal-declaration"),
    # Initial values.
    (".global .b32 g = 1.0;" + KERNEL, None),
    (".global .u32 g = 1.0;" + KERNEL, "illegal-declaration"),
    (".global .f16 g = 1.0;" + KERNEL, "illegal-declaration"),
    (".global .u32 g[0] = {1, 2};" + KERNEL, None),
    (".global .u32 g[0];" + KERNEL, "illegal-declaration"),
    (".global .u32 g[2][2] = {{1, 2}, 3};" + KERNEL, "illegal-declaration"),
    (".global .u32 g; .global .u64 p = g;" + KERNEL, None),
    (".global .u32 g; .global .s64 p = g;" + KERNEL, "illegal-declaration"),
    (".shared .u32 g; .global .u64 p = g;" + KERNEL, "illegal-declaration"),
    (".global .u32 g; .global .u8 p = 0xff00(g);" + KERNEL, None),
    (".global .u32 g; .global .u8 p = 0xf(g);" + KERNEL, "illegal-declaration"),
    (".global .texref t = { width = 4, filter_mode = linear };" + KERNEL, None),
    (".global .texref t = { breadth = 4 };" + KERNEL, "illegal-declaration"),
    # Calls.
    (call("call (y), f, (x), known;"), None),
    (call("call (y), f, (), known;"), "illegal-call"),
    (call("call (y), f, (x), L;"), "illegal-call"),
    (call("call (y), f, (x), 0d3FF0000000000000;"), "illegal-call"),
    (call("call (y), one, (x), known;"), "illegal-call"),
    (call("call (y), one, (wide);"), "illegal-call"),
    (call("call (y), one, (_);"), "illegal-call"),
    (call("call (_), one, (x);"), None),
    (call("call many, (b8);"), None),
    (call("call many, (b16);"), "illegal-call"),
    # Directives.
    (
        ".entry k() .maxntid 0 .minnctapersm 1 { setmaxnreg.inc.sync.aligned.u32 64; ret; }",
        "illegal-directive",
    ),
    # Pragmas, files, debug data.
    ('.entry k() { .pragma "frequency 5"; ret; }', None),
    ('.entry k() { .pragma "frequency 0"; ret; }', "illegal-directive"),
    ('.entry k() { .pragma "used_bytes_mask"; ret; }', "illegal-directive"),
    ('.pragma "frequency 5";' + KERNEL, "illegal-directive"),
    ('.pragma "enable_smem_spilling";' + KERNEL, "illegal-directive"),
    ('.entry k() { .pragma "no\nunroll"; ret; }', None),
    ('.file 1 "a", 1' + KERNEL, None),
    ('.file 1 "a\nb"' + KERNEL, None),
    ('.file 1 "a\n.file 2 "b"' + KERNEL, "unterminated-string"),
    ('.file 4294967296 "a"' + KERNEL, "constant-overflow"),
    (inlined(".loc 1 5 6", "1 5 6"), None),
    (inlined(".loc 1 5 6", "1 5 7"), "illegal-directive"),
    (section(".b8 255, -128"), None),
    (section("x: .b8 0"), "duplicate-name"),
    (section(".b8 256"), "constant-overflow"),
    (section(".b8 -0"), "constant-overflow"),
    (section(".b8 4294967296"), None),  # cut to 32 bits, it is 0
    (section(".b16 -32769"), "constant-overflow"),
    (section(".b8 x"), "constant-overflow"),
    (section(".b32 x+4"), None),
    (section(".b32 x+-4"), "unexpected-token"),
    (section(".b32 .u32"), "unexpected-token"),
]


# Predicates among the elements of a vector: ptxas 13.0 for x86_64 lets them pass, that for aarch64 does not.
BY_HOST = [
    (kernel("multimem.st.relaxed.gpu.global.v2.f32 [%d1], {%p1, %r1};"), "operand-type"),
    (kernel("multimem.red.relaxed.gpu.global.add.v2.bf16x2 [%d1], {%r1, %p1};"), "operand-type"),
]
# ptxas 13.0 and 13.4 do not end on it.
ENDLESS = [(kernel(f"{TENSOR} %p1+4, [%d1, {{%r1}}], [%r2];"), "operand-type")]


def whole(text: str) -> str:
    return f"{text}\n" if text.startswith(".version") else f"{HEADER}{text}\n"


def findings(text: str) -> list[Diagnostic]:
    try:
        return ptxlab.check(ptxlab.parse(whole(text)))
    except ptxlab.PtxError as problem:
        return list(problem.diagnostics)


@pytest.mark.parametrize(("text", "code"), [*CASES, *BY_HOST, *ENDLESS])
def test_each_is_judged_as_written(text: str, code: str | None) -> None:
    found = findings(text)
    errors = [finding.code for finding in found if finding.level == "error"]
    if code is not None and code.startswith("?"):
        assert errors == []
        assert code[1:] in [finding.code for finding in found if finding.level == "warning"]
    else:
        assert errors[:1] == ([code.removeprefix("!")] if code else [])
    compare_one(Path(__file__).with_name("odd_verdicts.txt"), text, render(found))


def test_billions_of_registers_take_no_time() -> None:
    found = findings(".entry k() { .reg .u32 %r1; .reg .u32 %r<4000000000>; ret; }")  # ptxas does not end on it
    assert [finding.code for finding in found] == ["duplicate-name"]


@pytest.mark.bulk(one_in=7)
@each_release
@pytest.mark.parametrize(("text", "code"), CASES)
def test_ptxas_takes_the_same_side(text: str, code: str | None, release: str) -> None:
    verdicts = judge(whole(text), tool=ptxas_of(release))
    if any(one.level == "crash" or one.message.startswith("Internal compiler error") for one in verdicts):
        pytest.skip(f"ptxas {release} gives no answer")
    refused_here_alone = code is not None and code.startswith("!")
    assert accepted(verdicts) == (refused_here_alone or is_accepted(whole(text), release))


@pytest.mark.parametrize("result", ["%tid.x", "scalar"])
def test_a_result_that_cannot_be_written_says_so(result: str) -> None:
    text = whole(kernel(f"mov.b64 {{%r1, {result}}}, %d1;"))
    with pytest.raises(ptxlab.PtxError) as raised:
        ptxlab.parse(text)["k"].launch(1, 1, [0], device="cpu")
    assert f"operand 1 of `mov.b64` has `{result}` among its results" in str(raised.value)
