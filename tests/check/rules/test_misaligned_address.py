"""Constant addresses that an instruction cannot use, by instruction and by the way the address is written."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "misaligned-address"
A100 = {"target": "sm_80", "version": "8.3"}
H100 = {"target": "sm_90a", "version": "8.6"}
B200 = {"target": "sm_100a", "version": "8.6"}
TILE = ".shared .align 1024 .b8 tile[4096];\n.global .align 128 .b8 data[4096];\n.shared .align 8 .b64 bar;"
MAP = "[%rd5, {%r5, %r5}]"
READY = "ld.param.u64 %rd5, [out]; mov.b32 %r5, 0; mov.b32 %r6, 1; mov.b32 %r7, 2; mov.b32 %r8, 3; mov.b32 %f1, 0;\n"
EIGHT = "{%r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18}"
ZEROS = "{%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1}"

# The instruction with `@` where an offset goes, an offset that is wrong, one that is right, the alignment, the module.
CASES = {
    "ld": ("ld.shared.u32 %r11, [tile@];", 2, 4, 4, A100),
    "ld.v2": ("ld.shared.v2.f32 {%f2, %f3}, [tile@];", 4, 8, 8, A100),
    "ld.v4": ("ld.global.v4.f32 {%f2, %f3, %f4, %f5}, [data@];", 8, 16, 16, A100),
    "ld.v2.b64": ("ld.global.v2.u64 {%rd6, %rd7}, [data@];", 8, 16, 16, A100),
    "st": ("st.shared.u64 [tile@], %rd5;", 4, 8, 8, A100),
    "st.v4": ("st.shared.v4.u32 [tile@], {%r5, %r6, %r7, %r8};", 8, 32, 16, A100),
    "ld.v8": (f"ld.global.v8.b32 {EIGHT}, [data@];", 16, 32, 32, B200 | {"version": "8.8"}),
    "atom": ("atom.shared.add.u32 %r11, [tile@], 1;", 2, 4, 4, A100),
    "atom.f16x2": ("atom.global.add.noftz.f16x2 %r11, [data@], %r5;", 2, 4, 4, A100),
    "red": ("red.global.add.u64 [data@], %rd5;", 4, 8, 8, A100),
    "cp.async to": ("cp.async.ca.shared.global [tile@], [data], 8; cp.async.wait_all;", 4, 8, 8, A100),
    "cp.async from": ("cp.async.cg.shared.global [tile], [data@], 16; cp.async.wait_all;", 8, 16, 16, A100),
    "cp.async, part of it": ("cp.async.cg.shared.global [tile], [data@], 16, 4; cp.async.wait_all;", 4, 16, 16, A100),
    "cp.async.mbarrier": ("cp.async.mbarrier.arrive.shared.b64 [tile@];", 4, 8, 8, A100),
    "mbarrier.init": ("mbarrier.init.shared.b64 [tile@], 1;", 4, 8, 8, A100),
    "mbarrier.arrive": ("mbarrier.arrive.shared.b64 %rd6, [tile@];", 12, 16, 8, A100),
    "mbarrier.try_wait": ("mbarrier.try_wait.parity.shared.b64 %p1, [tile@], 0;", 4, 8, 8, H100),
    "ldmatrix": ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r11}, [tile@];", 8, 16, 16, A100),
    "stmatrix": ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [tile@], {%r5};", 8, 16, 16, H100),
    "wmma.load": (f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {EIGHT}, [tile@];", 8, 16, 16, A100),
    "wmma.load from global": (f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {EIGHT}, [data@];", 2, 4, 4, A100),
    "wmma.store": (f"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [tile@], {ZEROS};", 4, 8, 8, A100),
    "bulk copy to": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile@], [data], 64, [bar];",
        8,
        16,
        16,
        H100,
    ),
    "bulk copy from": (
        "cp.async.bulk.global.shared::cta.bulk_group [data], [tile@], 64;",
        8,
        16,
        16,
        H100,
    ),
    "bulk copy's barrier": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+64], [data], 64, [tile@];",
        4,
        8,
        8,
        H100,
    ),
    "bulk prefetch": ("cp.async.bulk.prefetch.L2.global [data@], 64;", 8, 16, 16, H100),
    "bulk reduction": (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [data@], [tile], 64;",
        8,
        16,
        16,
        H100,
    ),
    "tensor copy to": (
        f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile@], {MAP}, [bar];",
        64,
        128,
        128,
        H100,
    ),
    "tensor copy from": (
        f"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group {MAP}, [tile@];",
        16,
        256,
        128,
        H100,
    ),
    "tensor copy's barrier": (
        f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], {MAP}, [tile@];",
        2052,
        2056,
        8,
        H100,
    ),
    "st.async": (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [tile@], {%r5, %r6}, [bar];",
        4,
        8,
        8,
        H100,
    ),
    "st.async's barrier": (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [tile], %r5, [tile@];",
        4,
        8,
        8,
        H100,
    ),
    "red.async": (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [tile@], %rd5, [bar];",
        4,
        8,
        8,
        H100,
    ),
    "tensormap.replace": ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [tile@], 3;", 32, 64, 64, H100),
    "tensor map": ("prefetch.tensormap [data@];", 32, 64, 64, H100),
    "tcgen05.alloc": (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile@], 32; mov.u32 %r20, 0; "
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;",
        2,
        4,
        4,
        B200,
    ),
    "tcgen05.commit": (
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [tile@];",
        4,
        8,
        8,
        B200,
    ),
    "clusterlaunchcontrol": (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile@], [bar];",
        8,
        16,
        16,
        B200,
    ),
    "multimem.ld_reduce": ("multimem.ld_reduce.relaxed.sys.global.add.u64 %rd6, [data@];", 4, 8, 8, H100),
    "multimem.ld_reduce.v4": (
        "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f2, %f3, %f4, %f5}, [data@];",
        8,
        16,
        16,
        H100,
    ),
    "multimem.ld_reduce.v4.f16x2": (
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%r11, %r12, %r13, %r14}, [data@];",
        8,
        16,
        16,
        H100,
    ),
    "multimem.st": ("multimem.st.relaxed.sys.global.u32 [data@], %r5;", 2, 4, 4, H100),
    "multimem.red": ("multimem.red.relaxed.sys.global.add.u64 [data@], %rd5;", 4, 8, 8, H100),
    "discard": ("discard.global.L2 [data@], 128;", 64, 128, 128, A100),
}


def module(instruction: str, offset: int, options: dict[str, str]) -> str:
    return kernel(READY + instruction.replace("@", f"+{offset}"), before=TILE, **options)


@pytest.mark.parametrize("name", CASES)
def test_misaligned(name: str) -> None:
    instruction, wrong, _, align, options = CASES[name]
    text = module(instruction, wrong, options)
    (found,) = findings(text, CODE)
    assert found.level == "warning"
    assert found.message == f"`{instruction.split()[0]}` needs an address that is a multiple of {align}"
    assert found.labels[0].text.endswith(f" plus {wrong}")
    assert found.line == line_of(text, instruction.split()[0])


@pytest.mark.parametrize("name", CASES)
def test_aligned(name: str) -> None:
    instruction, _, right, _, options = CASES[name]
    assert findings(module(instruction, right, options), CODE) == []


V4 = "ld.shared.v4.f32 {{%f2, %f3, %f4, %f5}}, [{}];"
LOAD = V4.format
WAYS = {
    "moved": ("mov.u32 %r11, tile;\n" + LOAD("%r11+8"), "`tile` plus 8"),
    "added": ("mov.u32 %r11, tile; add.u32 %r12, %r11, 24;\n" + LOAD("%r12"), "`tile` plus 24"),
    "subtracted": ("mov.u32 %r11, tile; sub.u32 %r12, %r11, -8;\n" + LOAD("%r12"), "`tile` plus 8"),
    "a constant in a register": (
        "mov.u32 %r11, tile; mov.u32 %r12, 40; add.u32 %r13, %r12, %r11;\n" + LOAD("%r13"),
        "`tile` plus 40",
    ),
    "written again": ("mov.u32 %r11, tile; add.u32 %r11, %r11, 8;\n" + LOAD("%r11"), "`tile` plus 8"),
    "under a guard": (
        "mov.u32 %r11, tile; setp.eq.u32 %p1, %r5, 0; @%p1 add.u32 %r12, %r11, 8;\n@%p1 " + LOAD("%r12"),
        "`tile` plus 8",
    ),
    "multiplied": (
        "mov.u32 %r12, 3; mov.u32 %r13, tile; mad.lo.u32 %r11, %r12, 8, %r13;\n" + LOAD("%r11"),
        "`tile` plus 24",
    ),
    "a sum": ("mov.u32 %r11, tile+4;\n" + LOAD("%r11"), "`tile` plus 4"),
    "an element": (LOAD("numbers[2]").replace("[numbers[2]]", "numbers[2]"), "`numbers` plus 8"),
    "generic": ("cvta.shared.u64 %rd6, tile;\n" + LOAD("%rd6+8").replace(".shared", ""), "`tile` plus 8"),
    "widened": (
        "mov.u32 %r11, tile; cvt.u64.u32 %rd6, %r11; add.s64 %rd7, %rd6, 12;\n" + LOAD("%rd7"),
        "`tile` plus 12",
    ),
    "declared with less": (LOAD("bytes"), "`bytes` is only aligned to 1"),
    "declared by its type": (LOAD("numbers"), "`numbers` is only aligned to 4"),
    "a number": (LOAD("1032").replace(".shared", ".local"), "1032 is not"),
    "memory of the launch": (LOAD("more+8"), "`more` plus 8"),
}
DECLARED = TILE + "\n.shared .b8 bytes[64];\n.shared .f32 numbers[64];\n.extern .shared .align 16 .b8 more[];"
SILENT = {
    "a register": "ld.param.u32 %r11, [n];\n" + LOAD("%r11+8"),
    "written twice": "mov.u32 %r11, tile; setp.eq.u32 %p1, %r5, 0; @%p1 add.u32 %r11, %r11, 8;\n" + LOAD("%r11"),
    "written in a loop": "mov.u32 %r11, tile; setp.eq.u32 %p1, %r5, 0; L:\n"
    + LOAD("%r11")
    + "add.u32 %r11, %r11, 8;\n@%p1 bra L;",
    "past the end of the numbers": "mov.u32 %r11, 0x80000008; mov.u32 %r12, 0x80000008; "
    "add.u32 %r13, %r11, %r12; mov.u32 %r11, tile; add.u32 %r11, %r11, %r13;\n" + LOAD("%r11"),
    "memory of the launch for a tensor copy": "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
    f"{MAP}, [more+1024];",
    "a number": LOAD("1040").replace(".shared", ".local"),
    "an element": LOAD("tile[32]").replace("[tile[32]]", "tile[32]"),
    "a parameter": "ld.param.u64 %rd6, [out];",
    "wmma on what nvcc declares": f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {EIGHT}, [halves+32];",
}


@pytest.mark.parametrize("name", WAYS)
def test_ways_to_write_an_address(name: str) -> None:
    body, label = WAYS[name]
    text = kernel(READY + body, before=DECLARED)
    (found,) = findings(text, CODE)
    assert found.labels[0].text == label
    assert found.line == line_of(text, ".v4.f32")


@pytest.mark.parametrize("name", SILENT)
def test_what_is_not_certain_is_not_said(name: str) -> None:
    before = DECLARED + "\n.shared .align 2 .b8 halves[1024];"
    assert findings(kernel(READY + SILENT[name], before=before, **H100), CODE) == []


def test_a_tensor_map_among_the_parameters() -> None:
    text = """.version 8.6
.target sm_90a
.address_size 64
.entry k(.param .align {} .b8 map[128]) {{
    .reg .b64 %rd<3>;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd2, %rd1;
    prefetch.tensormap [%rd2];
    ret;
}}
"""
    (found,) = findings(text.format(8), CODE)
    assert found.labels[0].text == "`map` is only aligned to 8"
    assert found.helps[0].text == "declare it `.align 64`"
    assert findings(text.format(64), CODE) == []
