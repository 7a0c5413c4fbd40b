"""Kernels in which warpgroups multiply matrices by wgmma, and their memory laid out as descriptors say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.isa.units.descriptor import Descriptor
from ptxlab.isa.units.fragment import ELEMENT_BITS
from ptxlab.isa.units.layouts import Layout, accumulator, multiplicand

Bits = npt.NDArray[np.uint32]  # of the elements of a matrix
DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
THREADS = 128

# Each thread copies a part of the image, executes a proxy fence, and waits for all others.
COPY = """
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, image;
    ld.param.u64 %rd0, [source];
    ld.param.u32 %r3, [bytes];
    mul.wide.u32 %rd1, %r1, %r3;
    add.u64 %rd0, %rd0, %rd1;
    shl.b32 %r4, %r0, 4;
copy:
    setp.ge.u32 %p0, %r4, %r3;
    @%p0 bra copied;
    cvt.u64.u32 %rd1, %r4;
    add.u64 %rd1, %rd1, %rd0;
    ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd1];
    add.u32 %r9, %r2, %r4;
    st.shared.v4.b32 [%r9], {%r5, %r6, %r7, %r8};
    mov.u32 %r10, %ntid.x;
    shl.b32 %r10, %r10, 4;
    add.u32 %r4, %r4, %r10;
    bra copy;
copied:
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""


@dataclass(frozen=True)
class Product:
    """D = A * B + D by each warpgroup of a block, `steps` times with other A and B."""

    dtype: str
    atype: str
    btype: str
    n: int
    steps: int = 1
    groups: int = 1
    in_registers: bool = False
    selector: int | None = None
    saturate: bool = False
    scale_a: int = 1
    scale_b: int = 1
    trans_a: int = 0
    trans_b: int = 0

    @property
    def depth(self) -> int:
        """Products for each element of D in a step."""
        return DEPTHS[self.atype] * (1 if self.selector is None else 2)

    @property
    def stored(self) -> int:
        """Elements that are stored of a row of A."""
        return DEPTHS[self.atype]

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        """Of A and D in the registers of a warp."""
        return multiplicand(16, self.stored, self.atype), accumulator(16, self.n, self.dtype)

    @property
    def opcode(self) -> str:
        """The instruction."""
        sparse = "" if self.selector is None else ".sp"
        more = f"{'.satfinite' * self.saturate}.{self.dtype}.{self.atype}.{self.btype}"
        bits = ".and.popc" if self.atype == "b1" else ""
        return f"wgmma.mma_async{sparse}.sync.aligned.m64n{self.n}k{self.depth}{more}{bits}"

    @property
    def words(self) -> int:
        """Registers of each thread that the kernel is given: D, A and metadata for each step, and whether D counts."""
        return self.layouts[1].registers + 5 * self.steps + 1

    def multiply(self, step: int) -> str:
        """The instruction with its operands."""
        d = ", ".join(f"%d{number}" for number in range(self.layouts[1].registers))
        a = "{%a0, %a1, %a2, %a3}".replace("%a", f"%a{step}_") if self.in_registers else f"%rda{step}"
        operands = [f"{{{d}}}", a, f"%rdb{step}"]
        operands += [] if self.selector is None else [f"%e{step}", str(self.selector)]
        operands += ["%p1" if step == 0 else "1"]
        if self.dtype != "s32":
            operands += [str(self.scale_a), str(self.scale_b)]
        if self.atype in ("f16", "bf16"):
            operands += ([] if self.in_registers else [str(self.trans_a)]) + [str(self.trans_b)]
        return f"    {self.opcode} {', '.join(operands)};\n"

    def text(self, **replaced: str) -> str:
        """The kernel; `replaced` has other statements for its parts: `copy`, `fence`, `commit`, `wait`, `store`."""
        count = self.layouts[1].registers
        kind = "f32" if self.dtype == "f32" else "b32"
        loads = [f"    ld.global.{kind} %d{number}, [%rd4+{4 * number}];\n" for number in range(count)]
        for step in range(self.steps):
            first = count + 5 * step
            loads.append(f"    ld.global.v2.b64 {{%rda{step}, %rdb{step}}}, [%rd2+{16 * step}];\n")
            loads.append(f"    add.u64 %rda{step}, %rda{step}, %rd6;\n    add.u64 %rdb{step}, %rdb{step}, %rd6;\n")
            loads += [f"    ld.global.b32 %a{step}_{part}, [%rd4+{4 * (first + part)}];\n" for part in range(4)]
            loads.append(f"    ld.global.b32 %e{step}, [%rd4+{4 * (first + 4)}];\n")
        parts = {
            "copy": COPY,
            "fence": "    wgmma.fence.sync.aligned;\n",
            "commit": "    wgmma.commit_group.sync.aligned;\n",
            "wait": "    wgmma.wait_group.sync.aligned 0;\n",
            "products": "".join(self.multiply(step) for step in range(self.steps)),
            "store": "".join(f"    st.global.{kind} [%rd7+{4 * number}], %d{number};\n" for number in range(count)),
        } | replaced
        registers = "".join(
            f"    .reg .b64 %rda{step}, %rdb{step};\n    .reg .b32 %a{step}_<4>, %e{step};\n"
            for step in range(self.steps)
        )
        return f""".version 8.5
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 image[];
.visible .entry multiply(.param .u64 source, .param .u32 bytes, .param .u64 descriptors, .param .u64 given,
                         .param .u64 out)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<10>;
    .reg .{kind} %d<{count}>;
{registers}{parts["copy"]}
    // The descriptors of a warpgroup hold offsets from the beginning of the image.
    mov.u32 %r10, %ntid.x;
    mad.lo.u32 %r11, %r1, %r10, %r0;
    shr.u32 %r12, %r11, 7;
    ld.param.u64 %rd2, [descriptors];
    mul.wide.u32 %rd3, %r12, {16 * self.steps};
    add.u64 %rd2, %rd2, %rd3;
    ld.param.u64 %rd4, [given];
    mul.wide.u32 %rd5, %r11, {4 * self.words};
    add.u64 %rd4, %rd4, %rd5;
    ld.param.u64 %rd7, [out];
    mul.wide.u32 %rd8, %r11, {4 * count};
    add.u64 %rd7, %rd7, %rd8;
    shr.u32 %r13, %r2, 4;
    cvt.u64.u32 %rd6, %r13;
{"".join(loads)}    ld.global.b32 %r14, [%rd4+{4 * (self.words - 1)}];
    setp.ne.u32 %p1, %r14, 0;
{parts["fence"]}{parts["products"]}{parts["commit"]}{parts["wait"]}{parts["store"]}    ret;
}}
"""


def lay_out(image: npt.NDArray[np.uint8], descriptor: Descriptor, matrix: Bits, bits: int, major: int) -> None:
    """Put the elements of a matrix (of B transposed) where a descriptor says."""
    if bits == 1:
        matrix = np.packbits(matrix.astype(np.uint8), axis=1, bitorder="little").astype(np.uint32)
        bits = 8
    for row, elements in enumerate(matrix.tolist()):
        for column, element in enumerate(elements):
            at = descriptor.offset(row, column, bits, major)
            image[at : at + bits // 8] = list(element.to_bytes(bits // 8, "little"))


def spread(matrix: Bits, layout: Layout) -> Bits:
    """The registers of 128 threads that hold a matrix of 64 rows: thread by register."""
    found = np.zeros((THREADS, layout.registers), np.uint32)
    for row in range(64):
        for column in range(layout.columns):
            register, lane, bit = layout.position(row % 16, column)
            found[row // 16 * 32 + lane, register] |= np.uint32(int(matrix[row, column]) << bit)
    return found


def gather(registers: Bits, layout: Layout) -> Bits:
    """The matrix of 64 rows that 128 threads hold."""
    found = np.zeros((64, layout.columns), np.uint32)
    mask = (1 << layout.bits) - 1
    for row in range(64):
        for column in range(layout.columns):
            register, lane, bit = layout.position(row % 16, column)
            found[row, column] = int(registers[row // 16 * 32 + lane, register]) >> bit & mask
    return found


def given(product: Product, c: Bits | None = None, a: Sequence[Bits] = (), e: Bits | None = None) -> Bits:
    """What the threads of one warpgroup are given in registers; without `c`, D begins with the product itself."""
    words = np.zeros((THREADS, product.words), np.uint32)
    held, layout = product.layouts
    count = layout.registers
    if c is not None:
        words[:, :count] = spread(c, layout)
        words[:, -1] = 1
    for step, matrix in enumerate(a):
        patterns = matrix >> 13 if product.atype == "tf32" else matrix
        words[:, count + 5 * step : count + 5 * step + 4] = spread(patterns, held)
    if e is not None:
        for step in range(product.steps):
            words[:, count + 5 * step + 4] = e[step]
    return words


def launch(
    kernel: Any,
    product: Product,
    image: npt.NDArray[np.uint8],
    descriptors: Sequence[Sequence[Descriptor]],
    words: Any,
    **how: Any,
) -> tuple[Bits, Any]:
    """Run it: D of each warpgroup, and the result of the launch. `descriptors` are A and B of each step and group."""
    count = product.layouts[1].registers
    threads = THREADS * product.groups
    codes = np.array([[one.encode() for one in row] for row in descriptors], np.uint64)
    out = np.zeros((threads, count), np.uint32)
    args = [image, len(image), codes, np.ascontiguousarray(words).reshape(threads, -1), out]
    result = kernel.launch(1, threads, args, shared=len(image), **{"device": "cpu"} | how)
    parts = [gather(out[at : at + THREADS], product.layouts[1]) for at in range(0, threads, THREADS)]
    return np.stack(parts), result


def element_bits(product: Product) -> int:
    """Bits of an element of A or B."""
    return ELEMENT_BITS[product.atype]
