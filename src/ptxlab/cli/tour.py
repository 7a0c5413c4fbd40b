"""`ptxlab tour`: a short demonstration of what works.

Each step runs the command it shows, in a directory with the tour's files, so that the tour can't promise too much.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ptxlab.cli.findings import has_color
from ptxlab.report import PtxError

SAXPY = """\
.version 8.0
.target sm_80
.address_size 64

// y[i] = a * x[i] + y[i]
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<6>;

    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r1, [n];
    setp.ge.u32 %p, %r4, %r1;
    @%p bra done;

    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f4;
done:
    ret;
}
"""

WRONG = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry wrong(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<2>;

    ld.param.u64 %rd1, [data];
    ld.global.f32 %f1, [%rd1];
    add.u32 %r1, %r2, %f1;
    shl.b32 %r3, %r1, %r4;
    cp.async.bulk.commit_group;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""

UGLY = """\
.version 8.0 .target sm_80 .address_size 64
.visible .entry ugly() { .reg .b32 %r<3>; // two registers
mov.b32 %r1,0x10;  shl.b32   %r2 , %r1,2; ret; }
"""


REDUCE = """\
.version 8.6
.target sm_80
.address_size 64

.visible .entry reduce(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;

    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %laneid;
    redux.sync.add.s32 %r2, %r1, -1;
    bfind.u32 %r3, %r2;
    st.global.b32 [%rd1], %r3;
    ret;
}
"""


SUM = """\
.version 8.0
.target sm_80
.address_size 64

// total = the sum of 64 numbers: each warp adds its own, the first thread adds both sums
.visible .entry sum(.param .u64 numbers, .param .u64 total)
{
    .shared .align 8 .u32 parts[2];
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;

    ld.param.u64 %rd1, [numbers];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    redux.sync.add.u32 %r3, %r2, -1;
    and.b32 %r4, %r1, 31;
    shr.u32 %r5, %r1, 3;
    mov.u32 %r6, parts;
    add.u32 %r6, %r6, %r5;
    setp.eq.u32 %p, %r4, 0;
    @%p st.shared.u32 [%r6], %r3;

    setp.ne.u32 %p, %r1, 0;
    @%p bra done;
    ld.shared.v2.u32 {%r7, %r8}, [parts];
    add.u32 %r7, %r7, %r8;
    ld.param.u64 %rd3, [total];
    st.global.u32 [%rd3], %r7;
done:
    ret;
}
"""


LITMUS = """\
PTX MP
{ data = 0; flag = 0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0          ;
 st.weak data, 42       | ld.acquire.gpu r0, flag ;
 st.release.gpu flag, 1 | beq r0, 0, END          ;
                        | ld.weak r1, data        ;
                        | END:                    ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""

SCALE = """\
from ptxlab.author import f32, kernel, pointer, ptx


@kernel(target="sm_80")
def scale(x: pointer[f32], a: f32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    x[i] = ptx.mul.rn.f32(x[i], a)
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the tour, and what it shows."""

    text: str
    arguments: tuple[str, ...]


STEPS = (
    Step("A correct kernel passes:", ("check", "saxpy.ptx")),
    Step("A wrong one is explained, every mistake in one run:", ("check", "wrong.ptx")),
    Step("Editors and scripts read one line each, programs read JSON:", ("check", "--format", "concise", "wrong.ptx")),
    Step("Each kind of mistake has its page:", ("explain", "operand-type")),
    Step("So has each word of PTX:", ("explain", "%tid")),
    Step("And so has each instruction:", ("explain", "cp.async.bulk.commit_group")),
    Step("A safe fix can be applied:", ("check", "--fix", "typo.ptx")),
    Step("Any PTX can be printed in its canonical form:", ("format", "ugly.ptx")),
    Step("And become Python that writes it:", ("python", "saxpy.ptx")),
    Step("A kernel in Python, CUDA C++ or a built program shows its PTX:", ("ptx", "scale.py")),
    Step(
        "A kernel runs on this machine, without a GPU:",
        ("run", "saxpy.ptx", "--grid", "4", "--block", "256", "--arg", "f32[1024]=random", "--arg", "f32[1024]=zeros",
         "--arg", "f32=2.0", "--arg", "u32=1024"),
    ),
    Step(
        "This one lacks a barrier, and its sum is wrong: 2016 would be right. The race is found in every run:",
        ("run", "sum.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros"),
    ),
    Step(
        "With the barrier it is right:",
        ("run", "fixed.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros"),
    ),
    Step(
        "A run can be walked through backwards: who wrote the sum, and what was it before?",
        ("debug", "fixed.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros",
         "--command", "watch total[0]", "--command", "continue", "--command", "reverse-stepi",
         "--command", "print total[0]"),
    ),
    Step(
        "Or be shown in the browser; here as a file to open:",
        ("lab", "sum.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[1]=zeros", "--html", "sum.html"),
    ),
    Step("Which outcomes the memory model allows is decided by its axioms, and tried:",
         ("litmus", "mp.litmus")),
    Step("Layouts are drawn, also as SVG: here a tile without bank conflicts:",
         ("draw", "tile", "8x32", "--type", "f16", "--swizzle", "64B")),
    Step("A course teaches PTX from zero, with exercises that are checked here:", ("learn",)),
    Step("The guides are there, too:", ("docs", "--search", "proxy fence")),
    Step("It would run on a GPU too:", ("devices",)),
    Step("The gallery has kernels to learn from; each can be measured on a GPU by its name:", ("bench",)),
)  # fmt: skip
WITH_TOOLS = (
    Step("NVIDIA's assembler says what a kernel needs:", ("assemble", "saxpy.ptx")),
    Step("This is the SASS that the GPU executes:", ("sass", "saxpy.ptx")),
    Step(
        "And this, instruction by instruction, for several targets:",
        ("sass", "--targets", "sm_80,sm_90a,sm_100a", "--instructions", "reduce.ptx"),
    ),
)


@click.command("tour")
def command() -> None:
    """Show what ptxlab can do, in a minute.

    \b
    Example:
      ptxlab tour
    """
    from ptxlab.toolchain import find

    typo = SAXPY.replace("%tid.x;", "%tid.x")
    texts = {"saxpy": SAXPY, "wrong": WRONG, "typo": typo, "ugly": UGLY, "reduce": REDUCE, "sum": SUM}
    texts["fixed"] = SUM.replace("%r3;\n\n", "%r3;\n    bar.sync 0;\n\n")
    with TemporaryDirectory(prefix="ptxlab-tour-") as directory, chdir(directory):
        for name, text in texts.items():
            Path(f"{name}.ptx").write_text(text)
        Path("mp.litmus").write_text(LITMUS)
        Path("scale.py").write_text(SCALE)
        for step in STEPS:
            show(step)
        try:
            find("ptxas"), find("nvdisasm")
        except PtxError as missing:
            click.echo(f"\nThe rest of the tour needs NVIDIA's tools.\n{missing}")
            return
        for step in WITH_TOOLS:
            show(step)


def show(step: Step) -> None:
    """Say what comes, show the command, and run it."""
    from ptxlab.cli.group import ptxlab

    color = has_color(sys.stdout)
    click.secho(f"\n# {step.text}", fg="cyan", color=color)
    words = [f'"{word}"' if " " in word else word for word in step.arguments]
    click.secho(f"$ ptxlab {' '.join(words)}", bold=True, color=color)
    ptxlab.main(step.arguments, prog_name="ptxlab", standalone_mode=False)
