"""Recorded launches: the description, the chunks and the header changed, with right checksums; all of it is read."""

import contextlib
import json
import random
import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from tests.debug.kernels import CALL, EXCHANGE, HANG, RACE
from tests.fuzz.inputs.mutation import EDGES, change_bytes, change_value

FIXED, CHUNK = struct.Struct("<8sIIQQQII"), struct.Struct("<IIQQ")
COPY = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
    .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
    .shared .align 16 .b8 s[64]; .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [a];
    mov.u32 %r1, s; mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r2], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;
    @!%p bra wait;
    ld.shared.u32 %r3, [%r1+4];
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
BASES = ((EXCHANGE, 64), (RACE, 64), (CALL, 32), (HANG, 32), (COPY, 1))


@cache
def bases() -> list[bytes]:
    """Right files."""
    found = []
    for text, threads in BASES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "base.ptxtrace"
            module = ptxlab.parse(text)
            kernel = module[module.entries[0]]
            arguments = [np.arange(64, dtype=np.uint32) for _ in kernel.parameters]
            kernel.launch(1, threads, arguments, record=ptxlab.Record(path), on_error="collect", timeout=5)
            found.append(path.read_bytes())
    return found


def taken_apart(content: bytes) -> tuple[list[Any], Any, list[list[Any]]]:
    """The numbers of the header, the description, and the chunks: kind and bytes of each."""
    header = list(FIXED.unpack_from(content))
    at = FIXED.size + header[5]
    description, chunks = json.loads(zlib.decompress(content[FIXED.size : at])), []
    while at < len(content):
        kind, _, size, packed = CHUNK.unpack_from(content, at)
        data = content[at + CHUNK.size : at + CHUNK.size + packed]
        chunks.append([kind, data if size == packed else zlib.decompress(data)])
        at += CHUNK.size + packed
    return header, description, chunks


def put_together(header: list[Any], description: Any, chunks: list[list[Any]], choose: random.Random) -> bytes:
    packed = zlib.compress(json.dumps(description).encode())
    rest = b""
    for kind, data in chunks:
        is_packed = choose.random() < 0.3
        held = zlib.compress(data) if is_packed else data
        size = choose.choice(EDGES) if choose.random() < 0.01 else len(data)
        rest += CHUNK.pack(kind % (1 << 32), zlib.crc32(held), size % (1 << 64), len(held)) + held
    header[3], header[5], header[6] = FIXED.size + len(packed) + len(rest), len(packed), zlib.crc32(packed)
    return FIXED.pack(*header) + packed + rest


def make(choose: random.Random) -> bytes:
    content = choose.choice(bases())
    if choose.random() < 0.1:
        return change_bytes(content, choose)
    header, description, chunks = taken_apart(content)
    findings = json.loads(chunks[-1][1]) if chunks and chunks[-1][0] == 6 else None
    for _ in range(choose.choice([1, 1, 1, 2, 3])):
        match choose.randrange(8):
            case 0 if chunks:
                one = choose.choice(chunks)
                one[1] = change_bytes(one[1], choose)
            case 1 if chunks:
                one = choose.choice(chunks)  # 8 bytes that are a whole number, as most are
                at = choose.randrange(len(one[1]) // 8 + 1) * 8
                one[1] = one[1][:at] + (choose.choice(EDGES) % (1 << 64)).to_bytes(8, "little") + one[1][at + 8 :]
            case 2 if chunks:
                at = choose.randrange(len(chunks))
                chunks[at : at + 1] = choose.choice([[], [chunks[at]] * 2, [[choose.randrange(9), chunks[at][1]]]])
            case 3:
                header[choose.choice([2, 4])] = choose.choice([0, 1, 2, 6, 9, 10**6])
            case 4 if chunks and findings is not None:
                findings = change_value(findings, choose)
                chunks[-1] = [6, json.dumps(findings).encode()]
            case _:
                description = change_value(description, choose)
    return put_together(header, description, chunks, choose)


def examine(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptxtrace"
        path.write_bytes(data)
        try:
            trace = ptxlab.Trace.open(path)
        except ptxlab.TraceError:
            return
        read(trace)


def read(trace: ptxlab.Trace) -> None:
    """Ask a recording what the debugger and the page ask."""
    from ptxlab.debug import Debugger
    from ptxlab.debug.terminal import Terminal
    from ptxlab.lab import TooLargeError, Views, embedded, write_page

    embedded.SECONDS = 0  # it follows origins for ten

    repr(trace), trace._repr_html_(), trace.blocks, trace.timeline()
    for number in {0, trace.steps // 2, trace.steps - 1}:
        if 0 <= number < trace.steps:
            step = trace.step(number)
            str(step), step.registers(), step.barriers(), step.active, step.depth
            step.memory("global"), step.memory("shared"), step.memory("local")
    terminal = Terminal(Debugger(trace), lambda file: None)
    for command in ("step", "next", "continue", "registers", "barriers", "info warps", "reverse-continue", "where"):
        list(terminal.answer(command))
    with contextlib.suppress(TooLargeError):
        write_page(Views(trace, []))
