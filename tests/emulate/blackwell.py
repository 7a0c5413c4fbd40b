"""Kernels on tensor memory from their middle part: it is allocated before and freed after it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.device.result import Result
from tests.emulate import launching
from tests.tools import header

HEAD = header("8.8", "sm_100a")
REGISTERS = """    .reg .b32 %r<256>, %d<128>, %t, %warp, %tensor, %band;
    .reg .b64 %rd<32>;
    .reg .pred %p<10>, %first, %one;
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;
    .shared .align 1024 .b8 tile[{shared}];
"""
# `%tensor` is the address of all that is allocated, `%band` where the lanes of this warp begin; `%one` is one thread.
BEGIN = """    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    setp.eq.u32 %first, %warp, 0;
    setp.eq.u32 %one, %t, 0;
    @!%first bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {columns};
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    @%one mbarrier.init.shared::cta.b64 [done], 1;
allocated:
    bar.sync 0;
    ld.shared.b32 %tensor, [slot];
    and.b32 %band, %warp, 3;
    shl.b32 %band, %band, 21;
    add.u32 %band, %band, %tensor;
    ld.param.u64 %rd0, [out];
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
"""
END = """    bar.sync 0;
    @!%first bra freed;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tensor, {columns};
freed:
    ret;
"""
PARAMETERS = "(.param .u64 out, .param .u64 a, .param .u64 b)"


def kernel(body: str, *, columns: int = 512, shared: int = 1024, target: str = "sm_100a") -> ir.Function:
    """The kernel `k` with that middle part."""
    lines = "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
    text = REGISTERS.format(shared=shared) + BEGIN.format(columns=columns) + lines + "\n" + END.format(columns=columns)
    head = HEAD.replace("sm_100a", target)
    return ptxlab.parse(f"{head}.visible .entry k{PARAMETERS}\n{{\n{text}}}\n", name="k.ptx")["k"]


def launch(body: str, args: Sequence[Any], *, columns: int = 512, shared: int = 1024, **how: Any) -> Result:
    """Run it with 128 threads and up to three arrays."""
    given = [*args, *[np.zeros(1, np.uint32)] * (3 - len(args))]
    settings = {"block": 128, "device": "cpu", "timeout": 100, "on_error": "collect", "target": "sm_100a"} | how
    made = kernel(body, columns=columns, shared=shared, target=settings.pop("target"))
    result: Result = made.launch(1, settings.pop("block"), given, **settings)
    return result


def findings(body: str, args: Sequence[Any], **how: Any) -> list[ptxlab.Diagnostic]:
    """What is found when it runs."""
    return launch(body, args, **how).diagnostics


silent = partial(launching.silent, findings, seeds=range(3))
"""Assert that nothing is found when it runs."""


def finds(body: str, code: str, message: str = "", **how: Any) -> ptxlab.Diagnostic:
    """What is found, in every run, on the line that ends with `// here`; the other one ends with `// with`."""
    for seed in (1, 0):
        diagnostics = launch(body, [np.zeros(1 << 16, np.uint32)], seed=seed, **how).diagnostics
        found = next((d for d in diagnostics if d.code == code), None)
        assert found is not None, ptxlab.report.render(diagnostics)
        assert found.message == (message or found.message)
        lines = [label.span.source.line(label.span.source.position(label.span.start)[0]) for label in found.labels]
        assert any(line.endswith("// here") for line in lines), lines
        if "// with" in body:
            assert any(line.endswith("// with") for line in lines), lines
    return found
