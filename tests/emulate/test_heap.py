"""Memory that kernels allocate: it outlives the launch, for the kernels of its module."""

import gc
import weakref

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.host import heap
from ptxlab.launch.contexts import context_of
from tests.emulate.launching import HEAD, REGISTERS

# `make` allocates eight words and fills all but the last; `read` gives a word of them to each block.
KERNELS = {
    "make": """
    .param .b64 size;
    .param .b64 address;
    mov.u64 %rd1, 32;
    st.param.b64 [size], %rd1;
    call (address), malloc, (size);
    ld.param.b64 %rd2, [address];
    st.global.u64 [table], %rd2;
    mov.u32 %r1, 0;
fill:
    st.global.u32 [%rd2], %r1;
    add.u64 %rd2, %rd2, 4;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 7;
    @%p1 bra fill;
    LAST""",
    "read": """
    ld.param.u64 %rd1, [out];
    ld.global.u64 %rd2, [table];
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    add.u64 %rd5, %rd1, %rd3;
    st.global.u32 [%rd5], %r2;
    add.u32 %r2, %r2, 10;
    st.global.u32 [%rd4], %r2;""",
    "drop": """
    .param .b64 address;
    ld.global.u64 %rd1, [table];
    st.param.b64 [address], %rd1;
    call free, (address);""",
}


def module(last: str = "") -> ptxlab.ir.Module:
    text = f"""{HEAD}.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
.global .u64 table;
"""
    for name, body in KERNELS.items():
        parameters = ".param .u64 out" if name == "read" else ""
        text += f".visible .entry {name}({parameters})\n{{\n{REGISTERS}{body.replace('LAST', last)}\n    ret;\n}}\n"
    return ptxlab.parse(text)


def read(found: ptxlab.ir.Module, blocks: int = 7, **how: object) -> list[int]:
    out = np.zeros(8, np.uint32)
    found["read"].launch(blocks, 1, [out], timeout=60, **how)
    return [int(word) for word in out[:blocks]]


def test_later_kernels_find_it_until_one_frees_it() -> None:
    found = module()
    found["make"].launch(1, 1)
    assert read(found) == list(range(7))
    assert read(found, workers=1) == [10 + number for number in range(7)]
    found["drop"].launch(1, 1)
    with pytest.raises(ptxlab.KernelError, match="out-of-bounds"):
        read(found)
    with pytest.raises(ptxlab.KernelError, match="bad-free"):
        found["drop"].launch(1, 1)
    found["make"].launch(1, 1)
    assert read(found) == list(range(7))


def test_every_seed_finds_the_same() -> None:
    found = module()
    found["make"].launch(1, 1, seeds=3)
    assert len(context_of(found).memory.heap.regions) == 1
    assert read(found, seeds=3) == list(range(7))
    assert read(found, seeds=3) == [10 + number for number in range(7)]
    found["drop"].launch(1, 1, seeds=3)
    assert len(context_of(found).memory.heap.regions) == 0


def test_what_no_kernel_wrote_is_reported_where_it_is_allocated() -> None:
    last = "ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd2], %r2;"
    (found,) = module(last)["make"].launch(1, 1).diagnostics
    assert (found.level, found.code) == ("warning", "uninitialized-read")
    assert module(f"st.global.u32 [%rd2], 7;\n{last}")["make"].launch(1, 1).diagnostics == []


def test_it_is_limited_for_all_launches_and_goes_with_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "LIMIT", 64)
    found = module()
    for _ in range(2):
        found["make"].launch(1, 1)
    with pytest.raises(ptxlab.KernelError, match="out-of-bounds"):
        found["make"].launch(1, 1)  # where `malloc` gives null
    memory = weakref.ref(next(iter(context_of(found).memory.heap.regions.values())).owner)
    del found
    gc.collect()
    assert memory() is None
