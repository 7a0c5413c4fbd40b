"""A kernel that multiplies on the tensor core of Blackwell: one thread begins all steps, and all read the result.

What it multiplies is in an array of parameters, so that one kernel serves many shapes and layouts.
"""

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab.isa.units.instruction_descriptor import STATIONARY, InstructionDescriptor
from tests.emulate.blackwell import launch
from tests.emulate.tensor_tiles import chunks, tile

SHARED = 40960
TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 16), "bf16": (ml_dtypes.bfloat16, 16), "tf32": (np.float32, 32),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8), "e5m2": (ml_dtypes.float8_e5m2, 8), "e2m3": (ml_dtypes.float6_e2m3fn, 6),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6), "e2m1": (ml_dtypes.float4_e2m1fn, 4), "s8": (np.int8, 8), "u8": (np.uint8, 8),
}  # fmt: skip
INTEGERS = {"e2m3": 7, "e3m2": 8, "e2m1": 3, "u8": 15}

# Parameters: descriptors of A and B, the instruction descriptor, chunks of 16 bytes, columns, steps, and how far apart
# the tiles of two steps are, then the addresses in tensor memory of D and A.
BODY = """
    ld.global.u64 %rd10, [%rd2]; ld.global.u64 %rd11, [%rd2+8]; ld.global.b32 %r10, [%rd2+16];
    ld.global.b32 %r11, [%rd2+24]; ld.global.b32 %r12, [%rd2+32]; ld.global.b32 %r13, [%rd2+40];
    ld.global.u64 %rd12, [%rd2+48]; ld.global.u64 %rd13, [%rd2+56];
    ld.global.b32 %r14, [%rd2+64]; ld.global.b32 %r15, [%rd2+72];
    add.u32 %r14, %r14, %tensor; add.u32 %r15, %r15, %tensor;
    mov.u32 %r0, tile;
    mov.u32 %r1, %t;
copy:
    setp.ge.u32 %p1, %r1, %r11; @%p1 bra copied;
    shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd4, %r2; add.u64 %rd5, %rd1, %rd4; add.u32 %r3, %r0, %r2;
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd5];
    st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};
    add.u32 %r1, %r1, 128; bra copy;
copied:
PREPARE
    fence.proxy.async.shared::cta;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @!%one bra wait;
    shr.u32 %r8, %r0, 4; cvt.u64.u32 %rd6, %r8;
    add.u64 %rd10, %rd10, %rd6; add.u64 %rd11, %rd11, %rd6;
    mov.u32 %r16, 0;
multiply:
    setp.ne.u32 %p2, %r16, 0;
    MULTIPLY
    add.u64 %rd10, %rd10, %rd12; add.u64 %rd11, %rd11, %rd13; add.u32 %r15, %r15, 8;
    add.u32 %r16, %r16, 1; setp.lt.u32 %p1, %r16, %r13; @%p1 bra multiply;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra wait;
    tcgen05.fence::after_thread_sync;
    mul.lo.u32 %r17, %t, %r12; mul.wide.u32 %rd9, %r17, 4; add.u64 %rd9, %rd9, %rd0;
    ld.global.b32 %r18, [%rd2+64]; add.u32 %r18, %r18, %band; and.b32 %r18, %r18, 0xffe0ffff;
read:
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%r18];
    st.global.v4.b32 [%rd9], {%d0, %d1, %d2, %d3}; st.global.v4.b32 [%rd9+16], {%d4, %d5, %d6, %d7};
    add.u32 %r18, %r18, 8; add.u64 %rd9, %rd9, 32; sub.u32 %r12, %r12, 8;
    setp.ne.u32 %p1, %r12, 0; @%p1 bra read;
    tcgen05.wait::ld.sync.aligned;
"""
# D and what of its lanes no product writes is there before, so that all of it can be read.
CLEAR = """
    mov.u32 %r20, 0; add.u32 %r21, %band, 0;
clear:
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r21], {%r20, %r20, %r20, %r20, %r20, %r20, %r20, %r20};
    add.u32 %r21, %r21, 8; and.b32 %r22, %r21, 0x1ff; setp.lt.u32 %p1, %r22, 256; @%p1 bra clear;
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
"""
# Rows of A, a lane of 32 bytes for each step, after the tiles: from 256 columns on.
FILL = """
    add.u32 %r21, %band, 256; mov.u32 %r23, 0; mul.wide.u32 %rd15, %r11, 16; add.u64 %rd15, %rd15, %rd1;
    mul.wide.u32 %rd16, %t, 32; add.u64 %rd15, %rd15, %rd16;
fill:
    ld.global.v4.b32 {%d0, %d1, %d2, %d3}, [%rd15]; ld.global.v4.b32 {%d4, %d5, %d6, %d7}, [%rd15+16];
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r21], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
    add.u32 %r21, %r21, 8; add.u64 %rd15, %rd15, 4096;
    add.u32 %r23, %r23, 1; setp.lt.u32 %p1, %r23, %r13; @%p1 bra fill;
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
"""


@dataclass(frozen=True)
class Case:
    """One MMA: what it is, where A and B are in shared memory, and how many steps it takes."""

    descriptor: InstructionDescriptor
    a_mode: str = "none"
    b_mode: str = "none"
    steps: int = 1
    in_cells: bool = False
    lane: int = 0
    more: str = ""  # operands after `enable-input-d`
    lanes: str = ""  # those that are not written
    seed: int = 0
    exact: bool = True
    edits: tuple[tuple[str, str], ...] = ()  # texts of the kernel, and what replaces them
    how: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        place = "cells" if self.in_cells else self.a_mode
        return f"{self.descriptor.kind} {self.descriptor}, {place}, {self.b_mode}, {self.steps}, {self.lane}".replace(
            "/", ":"
        )


def values(type: str, rows: int, columns: int, random: np.random.Generator, exact: bool) -> np.ndarray:
    """Numbers that the type has: small integers, or any."""
    kind, _ = TYPES[type]
    if exact or type in ("s8", "u8"):
        most = INTEGERS.get(type, 8)
        low = 0 if type == "u8" else -most
        found = random.integers(low, most + 1, (rows, columns)).astype(np.float32)
    else:
        found = random.standard_normal((rows, columns)).astype(np.float32)
    found = found.astype(kind)
    if type == "tf32":
        found = (found.view(np.uint32) & 0xFFFFE000).view(np.float32)
    return found


def patterns(array: np.ndarray, type: str) -> np.ndarray:
    """The bits of each value."""
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32}[array.dtype.itemsize]
    found = array.view(unsigned).astype(np.uint32)
    mask: np.ndarray = found & ((1 << TYPES[type][1]) - 1)
    return mask


def laid_out(
    array: np.ndarray, type: str, start: int, mode: str, transposed: bool, padded: bool = True
) -> tuple[bytes, int]:
    """The bytes of a matrix, and its descriptor."""
    bits = TYPES[type][1]
    found = patterns(array.T if transposed else array, type)
    padding = -found.shape[1] % (16 if bits < 8 else 128 // bits)
    filled = chunks(np.pad(found, ((0, 0), (0, padding))), bits, padded=padded)
    made = tile(filled, start, mode=mode, transposed=transposed)
    return made.data, made.descriptor


def multiply(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[ptxlab.Diagnostic]]:
    """What a kernel computes, what it should, how large the sum of magnitudes is, and what was found."""
    said = case.descriptor
    random = np.random.default_rng(case.seed)
    a = values(said.atype, said.rows, said.depth * case.steps, random, case.exact)
    b = values(said.btype, said.columns, said.depth * case.steps, random, case.exact)
    data, starts, first = b"", [], {}
    for name, array, type, mode, transposed in (
        ("a", a, said.atype, case.a_mode, said.transpose_a),
        ("b", b, said.btype, case.b_mode, said.transpose_b),
    ):
        data = data.ljust(-(-len(data) // 1024) * 1024, b"\0")
        for step in range(case.steps):
            data = data.ljust(-(-len(data) // 1024) * 1024, b"\0")
            part = array[:, step * said.depth : (step + 1) * said.depth]
            bytes_, descriptor = laid_out(part, type, len(data), mode, transposed)
            first.setdefault(name, (len(data), descriptor))
            if step == 1:
                starts.append((len(data) - first[name][0]) >> 4)
            data += bytes_
        starts += [0] * (case.steps == 1)
    data = data.ljust(-(-len(data) // 2048) * 2048, b"\0")
    count = len(data) // 16
    lanes = np.arange(said.rows) if said.rows == 128 else np.arange(64) % 16 + np.arange(64) // 16 * 32 + case.lane
    prepare, operand = CLEAR, "%rd10"
    if case.in_cells:
        prepare, operand = CLEAR + FILL, "[%r15]"
        rows = np.zeros((case.steps, 128, 32), np.uint8)
        for step in range(case.steps):
            part = a[:, step * said.depth : (step + 1) * said.depth]
            rows[step, lanes] = chunks(patterns(part, said.atype), TYPES[said.atype][1]).reshape(said.rows, 32)
        data += rows.tobytes()
    given = [first["a"][1], first["b"][1], said.encode(), count, said.columns, case.steps, *starts]
    given += [case.lane << 16, (case.lane << 16) + 256]
    masks = f"{case.lanes}, " if case.lanes else ""
    more = f", {case.more}" if case.more else ""
    stationary = ".ws" if said.form == STATIONARY else ""
    instruction = (
        f"tcgen05.mma{stationary}.cta_group::1.kind::{said.kind} [%r14], {operand}, %rd11, %r10, {masks}%p2{more};"
    )
    body = BODY.replace("PREPARE", prepare).replace("MULTIPLY", instruction)
    for old, new in case.edits:
        assert old in body
        body = body.replace(old, new)
    out = np.zeros((128, said.columns), np.uint32)
    assert len(data) <= SHARED + case.steps * 4096
    args = [out, np.frombuffer(data, np.uint8).copy(), np.array(given, np.uint64)]
    found = launch(body, args, shared=SHARED, **case.how).diagnostics
    left, right = (array.astype(np.float64) for array in (a, b))
    left, right = left * (-1 if said.negate_a else 1), right * (-1 if said.negate_b else 1)
    if said.form == STATIONARY:
        out = np.concatenate(np.split(out[:, : said.columns * said.rows // 128], 128 // said.rows), axis=1)
        lanes = np.arange(said.rows)
    result = np.ascontiguousarray(out[lanes]).view({"f32": np.float32, "s32": np.int32, "f16": np.uint32}[said.dtype])
    if said.dtype == "f16":
        result = result.astype(np.uint16).view(np.float16)
    return result, left @ right.T, np.abs(left) @ np.abs(right).T, found
