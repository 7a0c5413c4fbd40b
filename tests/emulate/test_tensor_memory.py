"""Tensor memory: what is loaded and stored in each shape, who may, and what is wrong with allocations."""

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.chapters.tcgen05 import REGISTERS
from ptxlab.isa.units.tensor_memory import moved
from tests.emulate.blackwell import HEAD, finds, kernel, launch, silent

WAIT = "tcgen05.wait::ld.sync.aligned;"
STORED = "tcgen05.wait::st.sync.aligned;"


def fill(columns: int) -> str:
    """Cell (lane, column) becomes `lane * 1000 + column`."""
    lines = ["mul.lo.u32 %r0, %t, 1000;"]
    for first in range(0, columns, 64):
        registers = [f"%r{1 + index}" for index in range(64)]
        lines += [f"add.u32 {name}, %r0, {first + index};" for index, name in enumerate(registers)]
        lines.append(f"add.u32 %r200, %band, {first};")
        lines.append(f"tcgen05.st.sync.aligned.32x32b.x64.b32 [%r200], {{{', '.join(registers)}}};")
    return "\n".join([*lines, STORED])


def put_out(registers: int) -> str:
    """Each thread writes its registers `%d` side by side."""
    lines = [f"mul.wide.u32 %rd3, %t, {4 * registers};", "add.u64 %rd3, %rd3, %rd0;"]
    return "\n".join([*lines, *(f"st.global.b32 [%rd3+{4 * index}], %d{index};" for index in range(registers))])


def take_in(registers: int) -> str:
    lines = [f"mul.wide.u32 %rd3, %t, {4 * registers};", "add.u64 %rd3, %rd3, %rd1;"]
    return "\n".join([*lines, *(f"ld.global.b32 %d{index}, [%rd3+{4 * index}];" for index in range(registers))])


def vector(registers: int) -> str:
    return "{" + ", ".join(f"%d{index}" for index in range(registers)) + "}"


CASES = [
    ("32x32b", 1, False), ("32x32b", 128, False), ("32x32b", 4, True),
    ("16x64b", 1, False), ("16x64b", 32, False), ("16x64b", 2, True),
    ("16x128b", 1, True), ("16x128b", 32, False),
    ("16x256b", 2, False), ("16x256b", 16, True),
    ("16x32bx2", 1, True), ("16x32bx2", 64, False),
]  # fmt: skip


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(("shape", "count", "packed"), CASES)
def test_loads(shape: str, count: int, packed: bool) -> None:
    registers = REGISTERS[shape] * count
    layout = moved(shape, count, packed=packed)
    columns = layout.columns
    split = f", {columns // 2}" if shape == "16x32bx2" else ""
    word = ".pack::16b" if packed else ""
    load = f"tcgen05.ld.sync.aligned.{shape}.x{count}{word}.b32 {vector(registers)}, [%band]{split};"
    out = np.zeros((4, 32, registers), np.uint32)
    silent("\n".join([fill(max(columns, 64)), load, WAIT, put_out(registers)]), [out])
    for row, column, (register, lane, bit) in layout.elements():
        expected = (32 * np.arange(4) + row) * 1000 + column
        mask = (1 << layout.bits) - 1
        assert np.array_equal(out[:, lane, register] >> bit & mask, expected & mask)


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("shape", "count", "packed"),
    [pytest.param(*case, marks=[pytest.mark.bulk] * (case[1] > 16)) for case in CASES],
)
def test_stores(shape: str, count: int, packed: bool) -> None:
    registers = REGISTERS[shape] * count
    layout = moved(shape, count, packed=packed)
    columns = min(layout.columns, 128)
    split = f"{layout.columns // 2}, " if shape == "16x32bx2" else ""
    word = ".unpack::16b" if packed else ""
    store = f"tcgen05.st.sync.aligned.{shape}.x{count}{word}.b32 [%band], {split}{vector(registers)};"
    load = f"tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {vector(columns)}, [%band];"
    values = np.random.default_rng(1).integers(0, 1 << 32, (4, 32, registers), np.uint32)
    out = np.zeros((4, 32, columns), np.uint32)
    body = [fill(max(layout.columns, 64)), take_in(registers), store, STORED, load, WAIT, put_out(columns)]
    silent("\n".join(body), [out, values])
    mask = (1 << layout.bits) - 1
    for row, column, (register, lane, bit) in layout.elements():
        if column < columns:
            assert np.array_equal(out[:, row, column] & mask, values[:, lane, register] >> bit & mask)


def test_what_is_not_stored_to_stays() -> None:
    out = np.zeros((128, 2), np.uint32)
    store = "tcgen05.st.sync.aligned.16x64b.x1.b32 [%band], {%t};"
    load = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%d0, %d1}, [%band];"
    silent("\n".join([fill(64), store, STORED, load, WAIT, put_out(2)]), [out])
    kept = np.arange(128) % 32 >= 16
    assert np.array_equal(out[kept], (np.arange(128) * 1000)[kept, None] + np.arange(2))


# What is asynchronous has to be waited for.

LOAD = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%d0, %d1}, [%band];"
STORE = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%band], {%t, %t};"


def test_a_load_after_a_store() -> None:
    silent(f"{STORE}\n{STORED}\n{LOAD}\n{WAIT}\n{put_out(2)}", [np.zeros((128, 2), np.uint32)])
    found = finds(f"{STORE} // with\n{LOAD} // here\n{WAIT}", "data-race")
    assert len(launch(f"{STORE}\n{LOAD}\n{WAIT}", [np.zeros(1, np.uint32)]).diagnostics) == 1  # not of the end, too
    assert found.message == "a load reads tensor memory that a store still writes"


def test_a_store_after_a_load() -> None:
    begin = f"{STORE}\n{STORED}\n"
    silent(f"{begin}{LOAD}\n{WAIT}\n{STORE}\n{STORED}", [np.zeros(1, np.uint32)])
    finds(
        f"{begin}{LOAD} // with\n{STORE} // here\n{STORED}\n{WAIT}",
        "data-race",
        "a store writes tensor memory that a load still reads",
    )


def test_what_is_loaded_is_there_when_it_is_used() -> None:
    # PTX ISA 9.7.16.6.4.5: a register that a load writes may be read before `tcgen05.wait::ld`.
    out = np.zeros((128, 2), np.uint32)
    silent(f"{STORE}\n{STORED}\n{LOAD}\n{put_out(2)}\n{WAIT}", [out])
    assert np.array_equal(out[:, 0], np.arange(128))


OTHER_WARPS = f"""
    setp.lt.u32 %p1, %warp, 4;
    @!%p1 bra reader;
    {STORE} // with
    WAIT
    BEFORE
    bar.sync 1, 256;
    bra joined;
reader:
    bar.sync 1, 256;
    AFTER
    {LOAD} // here
    {WAIT}
joined:
"""


def other_warps(wait: str = STORED, after: str = "tcgen05.fence::after_thread_sync;") -> str:
    body = OTHER_WARPS.replace("    WAIT", f"    {wait}").replace("BEFORE", "tcgen05.fence::before_thread_sync;")
    return body.replace("AFTER", after)


def test_from_warpgroup_to_warpgroup() -> None:
    silent(other_warps(), [np.zeros(1, np.uint32)], block=256)
    finds(other_warps(wait=""), "data-race", block=256)
    found = finds(other_warps(after=""), "missing-tensor-fence", block=256)
    assert found.level == "warning"


def test_a_deallocation_waits_for_no_thread() -> None:
    silent(f"{STORE}\n{STORED}\n{LOAD}\n{WAIT}", [np.zeros(1, np.uint32)])
    (found,) = launch(f"{STORE}\n{STORED}\n{LOAD}", [np.zeros(1, np.uint32)]).diagnostics
    assert found.code == "use-after-free"
    assert found.message == "a load may use tensor memory after `tcgen05.dealloc` has freed it"


def test_unwritten_tensor_memory() -> None:
    silent(f"{STORE}\n{STORED}\n{LOAD}\n{WAIT}", [np.zeros(1, np.uint32)])
    finds(f"{LOAD} // here\n{WAIT}", "uninitialized-read", "a thread reads tensor memory that no thread has written")


# Addresses.


def test_columns_that_are_not_allocated() -> None:
    good = f"add.u32 %band, %band, 30;\n{STORE}\n{STORED}"
    silent(good, [np.zeros(1, np.uint32)], columns=32)
    found = finds(good.replace("30", "31").replace(STORE, f"{STORE} // here"), "out-of-bounds", columns=32)
    assert "columns 31..33 of tensor memory, which are not all allocated" in found.message
    found = finds(good.replace("30", "511").replace(STORE, f"{STORE} // here"), "out-of-bounds")
    assert "which has 128 lanes and 512 columns" in found.message


def test_lanes_of_other_warps() -> None:
    other = "xor.b32 %r1, %band, 0x600000;"
    body = f"{other}\n{STORE.replace('%band', '%r1')} // here\n{STORED}"
    found = finds(body, "out-of-bounds", "warp 0 accesses lanes 96..128 of tensor memory, of which it reaches 0..32",
                  columns=32, block=32)  # fmt: skip
    assert "modelled, not measured" in found.notes[0]
    half = "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r1], {%t};"
    silent(f"add.u32 %r1, %band, 0x100000;\n{half}\n{STORED}", [np.zeros(1, np.uint32)], columns=32)
    finds(f"add.u32 %r1, %band, 0x110000;\n{half} // here\n{STORED}", "out-of-bounds", columns=32)


def test_addresses_that_differ() -> None:
    store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};"
    found = finds(f"add.u32 %r1, %band, %t;\n{store} // here\n{STORED}", "out-of-bounds")
    assert found.message == "the lanes of a warp have different addresses of tensor memory"


# Allocation.

ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot{}], {};"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 {}, {};"
ALONE = """
    .reg .b32 %r<10>;
    .shared .align 4 .b32 slot[4];
"""


def alone(body: str) -> list[ptxlab.Diagnostic]:
    """What is found in a kernel of one warp."""
    text = f"{HEAD}.entry k()\n{{{ALONE}{body}\n ret;\n}}\n"
    found: list[ptxlab.Diagnostic] = (
        ptxlab.parse(text, name="k.ptx")["k"].launch(1, 32, device="cpu", on_error="collect").diagnostics
    )
    return found


def test_several_allocations() -> None:
    lines = [ALLOCATE.format("", 256), ALLOCATE.format("+4", 128), ALLOCATE.format("+8", 128)]
    loads = [f"ld.shared.b32 %r{index}, [slot+{4 * index}];" for index in range(3)]
    frees = [FREE.format(f"%r{index}", size) for index, size in enumerate((256, 128, 128))]
    assert alone("\n".join([*lines, *loads, *frees])) == []
    (found,) = alone("\n".join([*lines, *loads, *frees[:2]]))
    assert (found.code, found.message) == (
        "tensor-memory-leak",
        "128 columns of tensor memory are still allocated when the block ends",
    )
    (found,) = alone("\n".join([*lines, ALLOCATE.format("+12", 32), *loads, *frees]))
    assert found.code == "bad-allocation"
    assert found.message.startswith("`tcgen05.alloc` waits for 32 columns of tensor memory")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"{ALLOCATE.format('', 32)} {ALLOCATE.format('+4', 64)}",
            "64 columns of tensor memory are asked for, after an allocation of 32",
        ),
        (f"mov.u32 %r1, 96; {ALLOCATE.format('', '%r1')}", "96 columns of tensor memory are asked for"),
        (
            f"{ALLOCATE.format('', 32)} tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; "
            f"{ALLOCATE.format('+4', 32)}",
            "`tcgen05.alloc` after `tcgen05.relinquish_alloc_permit`",
        ),
        (
            f"{ALLOCATE.format('', 64)} {FREE.format('32', 32)}",
            "`tcgen05.dealloc` of address 0x20 (lane 0, column 32), where no allocation begins",
        ),
        (
            f"{ALLOCATE.format('', 64)} {FREE.format('0', 32)}",
            "`tcgen05.dealloc` of 32 columns, where 64 have been allocated",
        ),
        (
            f"{ALLOCATE.format('', 64)} {FREE.format('0', 64)} {FREE.format('0', 64)}",
            "`tcgen05.dealloc` of address 0x0 (lane 0, column 0), where no allocation begins",
        ),
    ],
)
def test_bad_allocations(body: str, message: str) -> None:
    (found,) = alone(body)
    assert found.code == "bad-allocation"
    assert found.message.startswith(message)


def test_blocks_one_after_the_other_have_tensor_memory_of_their_own() -> None:
    kernel_of_blocks = kernel(f"{STORE}\n{STORED}\n{LOAD}\n{WAIT}")
    none = np.zeros(1, np.uint32)
    assert kernel_of_blocks.launch(40, 128, [none, none, none], device="cpu", on_error="collect").diagnostics == []


def test_loads_that_reduce() -> None:
    random = np.random.default_rng(5)
    words = random.standard_normal((128, 8)).astype(np.float32)
    words[3, 2], words[4], words[5, :4], words[6] = np.nan, np.nan, (0.0, -0.0, 0.0, -0.0), -np.inf
    rounds = [("min", "f32"), ("max", "f32"), ("max.abs", "f32"), ("min.NaN", "f32"), ("max.abs.NaN", "f32"),
              ("min", "s32"), ("max", "u32"), ("min", "u32")]  # fmt: skip
    body = """
        mul.wide.u32 %rd3, %t, 32; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd0, %rd3;
        ld.global.v4.b32 {%d0, %d1, %d2, %d3}, [%rd4]; ld.global.v4.b32 {%d4, %d5, %d6, %d7}, [%rd4+16];
        tcgen05.st.sync.aligned.32x32b.x8.b32 [%band], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
        tcgen05.wait::st.sync.aligned;
    """
    for at, (operation, type) in enumerate(rounds):
        body += f"""tcgen05.ld.red.sync.aligned.32x32b.x8.{operation}.{type} {{%d10, %d11, %d12, %d13, %d14, %d15,
            %d16, %d17}}, %r{at}, [%band];
            tcgen05.wait::ld.sync.aligned; st.global.b32 [%rd5+{4 * at}], %r{at};
            """
    out = np.zeros((128, 8), np.uint32)
    module = kernel(body).module
    text = ptxlab.format(module).replace("sm_100a", "sm_103a").replace(".version 8.7", ".version 8.8")
    found = ptxlab.parse(text)["k"].launch(1, 128, [out, words, words], device="cpu")
    assert found.diagnostics == []
    with np.errstate(invalid="ignore"):
        expected = [np.fmin.reduce(words, 1), np.fmax.reduce(words, 1), np.fmax.reduce(np.abs(words), 1),
                    words.min(1), np.abs(words).max(1)]  # fmt: skip
    for at, floats in enumerate(expected):
        assert np.array_equal(out[:, at].view(np.float32), floats, equal_nan=True)
    assert (out[3, 3], out[3, 4], out[4, 0]) == (0x7FFFFFFF,) * 3
    bits = words.view(np.uint32)
    integers = [words.view(np.int32).min(1).view(np.uint32), bits.max(1), bits.min(1)]
    assert np.array_equal(out[:, 5:], np.stack(integers, axis=1))
