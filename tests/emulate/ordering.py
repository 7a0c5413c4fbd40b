"""Kernels for tests of order between threads: statements that name what every such test needs.

In a body, `%t` is the thread's number in its block, `%b` that of its block, `%own` the address of its word of the
shared array `tile`, `%near` of the word of its neighbour (`%t` xor 1), `%far` of that of the thread 32 away (`%t` xor
32). `%out` and `%flag` are addresses of two global arrays. A comment marks the lines that a finding must name:
`// race` the primary one, `// with` the other one, `// both` for a line that races with itself.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import ptxlab
from ptxlab.report import Diagnostic
from tests.emulate import launching

HEAD = """.version 8.6
.target sm_90
.address_size 64
.global .u32 word;
.visible .entry k(.param .u64 out, .param .u64 flag)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<16>, %t, %b, %own, %near, %far;
    .reg .b64 %rd<8>, %out, %flag, %state;
    .shared .align 16 .b8 tile[4096];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    ld.param.u64 %out, [out];
    ld.param.u64 %flag, [flag];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %r15, tile;
    mad.lo.u32 %own, %t, 4, %r15;
    xor.b32 %near, %own, 4;
    xor.b32 %far, %own, 128;
"""


def run(body: str, *, grid: int = 1, block: int = 64, seed: int = 0, same: bool = False) -> list[Diagnostic]:
    """What is found in a kernel of these statements; with `same`, both arguments are one array."""
    module = ptxlab.parse(f"{HEAD}{body}\n    ret;\n}}\n", name="k.ptx")
    out, flag = np.zeros(4096, np.uint32), np.zeros(64, np.uint32)
    how: dict[str, Any] = {"device": "cpu", "seed": seed, "timeout": 20, "on_error": "collect"}
    found: list[Diagnostic] = module["k"].launch((grid,), (block,), [out, out if same else flag], **how).diagnostics
    return found


silent = partial(launching.silent, run, seeds=range(3))
"""Assert that nothing is found in a kernel of these statements."""


def races(body: str, level: str = "error", seeds: Sequence[int] = (2, 1, 0), **how: Any) -> Diagnostic:
    """A race is found between the marked lines by the last seed; others may find it elsewhere, or happen not to."""
    lines = f"{HEAD}{body}".splitlines()
    first = [number for number, line in enumerate(lines, 1) if line.endswith(("// with", "// both"))]
    second = [number for number, line in enumerate(lines, 1) if line.endswith(("// race", "// both"))]
    expected = ("data-race", level, (*second, *(line for line in first if line not in second)))
    for seed in seeds:
        found = run(body, seed=seed, **how)
        reported = [(diagnostic.code, diagnostic.level, lines_of(diagnostic)) for diagnostic in found]
        assert {(code, level) for code, level, _ in reported} <= {expected[:2]}, (seed, expected, reported)
    assert expected in reported, (seed, expected, reported)
    return next(diagnostic for diagnostic in found if lines_of(diagnostic) == expected[2])


def lines_of(found: Diagnostic) -> tuple[int, ...]:
    """The lines of all labels, the primary one first."""
    return tuple(label.span.source.position(label.span.start)[0] for label in found.labels)
