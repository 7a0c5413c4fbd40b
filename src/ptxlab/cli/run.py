"""`ptxlab run`: run a kernel, on a GPU or on the emulator, and show its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.arguments import arguments_for
from ptxlab.cli.compiling import CUDA, Compiling
from ptxlab.cli.expectation import TOLERANCE, Expectation
from ptxlab.cli.files import cuda_target_option, name_of, path_argument, read_module
from ptxlab.cli.findings import format_option, show_failure, status_of
from ptxlab.cli.gates import failing, gate_options, wanted
from ptxlab.cli.launching import (
    block_indices,
    check_first,
    choose,
    detector_options,
    gpu_option,
    kernel_warnings,
    launch_options,
    required_block,
    time_limit,
    timeout_option,
)
from ptxlab.cli.plain_arguments import Argument
from ptxlab.cli.programs import (
    gpus_option,
    is_program,
    machines_option,
    nvcc_option,
    prove_option,
    repeats_option,
    run_source,
)
from ptxlab.cli.trying import Inputs, try_seeds
from ptxlab.report import Diagnostic, Format, KernelError, PtxError
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.cli.outcome import FinishedRun
    from ptxlab.device.options import LaunchOptions
    from ptxlab.ir import Function
    from ptxlab.timelines import Timeline


TIMELINES = (".pftrace", ".svg", ".txt", ".json")


def _drawn(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, Path | None] | None:
    if value is None:
        return None
    line, _, file = value.partition("=")
    if not line.isdecimal():
        raise click.BadParameter(f"`{value}` is not like 12 or 12=banks.svg")
    return int(line), Path(file) if file else None


def _expectations(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> list[Expectation]:
    return [Expectation.parse(text) for text in value]


@dataclass(frozen=True)
class Request:
    """What the options of the command line ask for."""

    path: Path
    target: str | None
    entry: str | None
    grid: tuple[int, ...]
    block: tuple[int, ...] | None
    cluster: tuple[int, ...] | None
    arguments: Sequence[Argument]
    settings: dict[str, Argument]
    shared: int
    seed: int
    seeds: int | None
    scheduler: str | None
    schedule: str | None
    explore: bool
    limit: int
    blocks: list[tuple[int, ...]] | None
    detectors: bool
    only: tuple[str, ...]
    timeout: float | None
    device: str
    cooperative: bool
    profile: bool
    gpu: str | None
    contract: str | None
    report: bool
    estimate: bool
    draw: tuple[int, Path | None] | None
    save: Path | None
    record: Path | None
    timeline: Path | None
    expect: Sequence[Expectation]
    tolerance: float
    format: Format

    def refuse_contradictions(self) -> None:
        """Refuse options that exclude each other."""
        if self.target is not None and self.path.suffix != CUDA:
            raise click.UsageError("`--target` is for CUDA C++: PTX names its own")
        if self.only and not self.detectors:
            raise click.UsageError("`--detector` and `--no-detectors` exclude each other")
        partial = self.blocks is not None or self.profile or self.draw or self.cooperative
        if self.explore and (self.seeds is not None or self.schedule is not None or partial):
            raise click.UsageError("`--explore` tries all schedules of a whole grid, and nothing else")
        if self.estimate:
            self._refuse_with_estimate()
        if self.scheduler is not None and self.seeds is None:
            raise click.UsageError("`--scheduler` spreads `--seeds`: say how many")
        asked = {"profile": self.profile, "draw": self.draw is not None, "blocks": self.blocks is not None,
                 "explore": self.explore, "record": self.record is not None, "expect": bool(self.expect)}  # fmt: skip
        is_recorded = self.record is not None or bool(self.expect)
        if self.timeline is not None and (is_recorded or partial or self.seeds or self.schedule or self.explore):
            raise click.UsageError("`--timeline` is for one launch of a whole grid: choose it by `--seed`")
        if self.timeline is not None and self.timeline.suffix not in TIMELINES:
            raise click.UsageError(f"`{self.timeline}`: a timeline is saved as {', '.join(TIMELINES)}")
        if self.record is not None and self.record.is_dir():
            raise click.UsageError(f"`--record {self.record}` is a folder: name a file")
        if is_recorded and (self.explore or self.seeds is not None or self.schedule is not None):
            raise click.UsageError("`--record` and `--expect` are for one launch: choose it by `--seed`")
        if self.draw is not None and self.draw[1] is None and self.format != "full":
            raise click.UsageError(f"`--draw` prints a picture, `--format {self.format}` does not: name a file for it")
        for option, given in asked.items():
            if given and self.device in ("cuda", "both"):
                raise click.UsageError(f"`--{option}` is for the emulator: leave out `--device`")

    def _refuse_with_estimate(self) -> None:
        """An estimate runs a few blocks, and shows no results of them."""
        others = {
            "device": self.device not in ("auto", "cpu"), "seeds": self.seeds is not None, "explore": self.explore,
            "schedule": self.schedule is not None, "profile": self.profile, "draw": self.draw is not None,
            "save": self.save is not None, "record": self.record is not None, "timeline": self.timeline is not None,
            "expect": bool(self.expect), "report": self.report, "cooperative": self.cooperative,
        }  # fmt: skip
        if asked := [name for name, given in others.items() if given]:
            raise click.UsageError(f"`--estimate` shows no results: leave out `--{asked[0]}`")
        if self.format not in ("full", "json"):
            raise click.UsageError(f"`--estimate` has no findings to show as {self.format}")

    def options(self, kernel: Function) -> LaunchOptions:
        """How the kernel is to be launched."""
        from ptxlab.device.options import LaunchOptions
        from ptxlab.device.record import Record

        # Schedules are the emulator's.
        is_scheduled = self.seeds is not None or self.schedule is not None or self.explore
        return LaunchOptions(
            self.grid,
            self.block or required_block(kernel),
            cluster=self.cluster,
            shared=self.shared,
            blocks=self.blocks,
            device="cpu" if self.device == "auto" and is_scheduled else self.device,
            detectors=(self.only or True) if self.detectors else False,
            timeout=self.timeout,
            cooperative=self.cooperative,
            on_error="collect",
            profile=self.profile or self.draw is not None,
            gpu=self.gpu,
            contract=self.contract,
            schedule=self.schedule,
            record=Record(self.record) if self.record is not None or self.expect else None,
            timeline=self.timeline is not None,
        )


@click.command("run", cls=Compiling)
@path_argument
@cuda_target_option
@launch_options
@click.option("--seeds", metavar="N", type=click.IntRange(min=1), help="Try N seeds, until one finds something.")
@click.option("--scheduler", metavar="ADDRESS", help="Spread the seeds over the Dask cluster of this scheduler.")
@click.option("--schedule", metavar="STEPS", help="Let these threads take steps, as a finding of --explore says.")
@click.option("--explore", is_flag=True, help="Run a small kernel under all schedules that differ.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=10_000, show_default=True,
              help="Executions that --explore tries at most.")  # fmt: skip
@click.option("--blocks", metavar="'X,Y X,Y'", callback=block_indices, help="Run only these blocks of the grid.")
@detector_options
@timeout_option
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "both"]), default="auto", show_default=True,
              help="Where to run; `both` compares the two bit for bit.")  # fmt: skip
@click.option(
    "--cooperative",
    is_flag=True,
    help="Launch cooperatively: all blocks run at once, as CUDA's `grid.sync()` requires.",
)
@click.option("--profile", is_flag=True, help="Show the costliest lines.")
@gpu_option
@click.option("--contract", type=click.Choice(["none", "all", "ptxas"]),
              help="Which `mul` and `add` become one `fma`: none, all that may, or as ptxas does it.")  # fmt: skip
@click.option("--report", is_flag=True, help="Say which instructions were measured on hardware, which are modelled.")
@click.option("--estimate", is_flag=True,
              help="Say how long the launch takes on an H200, and what limits it; runs a few blocks.")  # fmt: skip
@click.option("--draw", metavar="LINE[=FILE]", callback=_drawn,
              help="Draw the costliest memory request of a warp at a line; FILE is .svg or .txt.")  # fmt: skip
@click.option("--save", metavar="DIRECTORY", type=click.Path(file_okay=False, path_type=Path),
              help="Write the arrays and changed variables, as the kernel left them, to NAME.npy there.")  # fmt: skip
@click.option("--record", metavar="FILE.ptxtrace", type=click.Path(path_type=Path),
              help="Write down what each thread executes, for ptxlab.Trace.open; of a program, a folder.")  # fmt: skip
@click.option("--timeline", metavar="FILE.pftrace", type=click.Path(dir_okay=False, path_type=Path),
              help="Write when warps run and wait, by clocks; also as .svg, .txt or .json.")  # fmt: skip
@click.option("--expect", metavar="[NAME=]FILE.npy", multiple=True, callback=_expectations,
              help="What an array should hold; shows where the first wrong element comes from.")  # fmt: skip
@click.option("--tolerance", metavar="X", type=click.FloatRange(min=0), default=TOLERANCE, show_default=True,
              help="How much floats may differ for --expect, as a part of the largest.")  # fmt: skip
@nvcc_option
@repeats_option
@gpus_option
@machines_option
@prove_option
@gate_options
@format_option
@click.pass_context
def command(
    context: click.Context,
    /,
    nvcc: str,
    max_repeats: int | None,
    gpus: int,
    machines: int,
    prove: bool,
    **given: Any,
) -> None:
    """Run a kernel, on a GPU or on the emulator, and show its results; or a whole program.

    An argument is a number, TYPE=VALUE for one of another type than its parameter, TYPE[SHAPE]=VALUE for an array,
    where VALUE is a number, numbers with commas between them, zeros, ones, arange, random, random:LOW:HIGH, or @FILE, a
    .npy file or the bytes themselves (with TYPE[] the file says the shape); TYPE[SHAPE] alone is zeros. TYPE is f16,
    bf16, f32, f64, e4m3, e5m2, or one of u s i b with 8, 16, 32 or 64 bits. Some shells want quotes.

    \b
    Also an argument is:
      null                               a null pointer
      (f32[64]=ones, 64, 0.5)            a structure by its fields, () an empty
                                         one, {0: 64, 8: 0.5} by offsets;
                                         bytes=HEX, bytes=@FILE
      map:f16[128,256]=random,box=64x64  a tensor map, with the keywords of
                                         Python's tensor_map: swizzle=128B, ...
      im2col:f16[8,14,14,64]=random,...  one for im2col: channels=64,pixels=128,
                                         lower=-1x-1,upper=-1x-1, ...
      x:f32[64]=ones, later =x           an array with a name, and the same one
                                         again; =x,at=32 from an element on,
                                         map:=x,box=... as a tensor map

    After its name, a `.global` or `.const` variable takes a number or an array: --set filter=f32[3]=1,2,1.

    A .cu file is compiled first, for --target, by nvcc or else by NVRTC, which leaves host code out; options for that
    follow `--`, or are the `cuda-options` of `[tool.ptxlab]` in pyproject.toml. --entry is the name in C++, and
    `--entry 'gemm<128, float>'` makes the kernel of its template.

    A .cu file with a `main()` is run as a program where no kernel is asked for by --entry, --grid, --block or --arg:
    its host code runs on this machine, its kernels on the emulator. What follows `--` is then its arguments, and --nvcc
    has options for the compiler. `ptxlab exec` does the same with a program that is built already.

    What `ptxlab check` warns of in the kernel is among the findings. Exits 1 if there is an error or a warning, each of
    which is something to act on, 0 if there is none, 2 if it could not be run as asked, 130 after Ctrl-C.

    \b
    Examples:
      ptxlab run saxpy.ptx --grid 4 --block 256 --arg f32[1024]=random \\
          --arg f32[1024]=zeros --arg f32=2.0 --arg u32=1024
      ptxlab run reduce.ptx --block 128 --seeds 20 \\
          --arg f32[128]=arange --arg f32[1]=zeros
      ptxlab run spin_lock.ptx --grid 3 --block 1 --arg u32[2]=zeros --explore
      ptxlab run gemm.ptx --entry gemm --grid 64,64 --block 16,16 \\
          --blocks "0,0 5,3" --profile --arg f16[1024,1024]=@a.npy \\
          --arg f16[1024,1024]=@b.npy --arg f32[1024,1024]=zeros
      ptxlab run saxpy.ptx --estimate --gpu H200 --grid 65536 --block 256 \\
          --arg f32[16777216]=zeros --arg f32[16777216]=zeros \\
          --arg f32=2.0 --arg u32=16777216
      ptxlab run gemm.cu --target sm_90a --entry 'gemm<128, float>' \\
          --block 128 --arg f32[128]=ones -- -Iinclude
      ptxlab run tma.ptx --block 128 --arg f16[64,64] \\
          --arg map:f16[64,64]=random,box=64x64,swizzle=128B
      ptxlab run program.cu --nvcc '-O2 -Iinclude' -- --size 64
    """
    if is_program(context, given["path"]):
        own = {"max_repeats": max_repeats, "gpus": gpus, "machines": machines, "prove": prove}
        context.exit(run_source(context, nvcc, given | own))
    if prove:
        raise click.UsageError("`--prove` is for whole programs: `ptxlab prove` is for one kernel")
    of_programs = {"--max-repeats": max_repeats is not None, "--gpus": gpus != 1, "--machines": machines != 1}
    if misplaced := [name for name, is_given in of_programs.items() if is_given]:
        raise click.UsageError(f"`{misplaced[0]}` is for whole programs")
    if nvcc:
        raise click.UsageError("`--nvcc` is for whole programs: options for the compiler of a kernel follow `--`")
    request = Request(**given)
    request.refuse_contradictions()
    name, format = name_of(request.path), request.format
    try:
        with time_limit(request.timeout, name):
            module, warnings = read_module(request.path, request.target, request.entry)
            check_first(module)
            kernel = choose(module, request.entry, request.path)
            warnings += kernel_warnings(kernel)
        options = request.options(kernel)
        request = replace(request, arguments=arguments_for(kernel, request.arguments))
        if request.estimate:
            context.exit(estimate(kernel, request))
        if request.explore:
            context.exit(explore(kernel, request, options, warnings))
        run = run_kernel(kernel, request, options, warnings)
    except OSError as problem:
        if request.record is None or str(problem.filename) != str(request.record):
            raise
        raise click.UsageError(f"`{request.record}` cannot be recorded: {problem.strerror}") from None
    except (PtxError, KernelError) as wrong:
        show_failure(wrong.diagnostics, name, format)
        context.exit(status_of(failing(wrong.diagnostics, request.path)))
    except KeyboardInterrupt as interrupt:
        found = getattr(interrupt, "diagnostics", None)
        if found is None:  # no kernel was running yet
            raise
        show_failure(found, name, format)
        context.exit(130)
    if request.save is not None:
        run.save(request.save)
    run.show(format, request.profile, name, request.report)
    if any(one.code == "interrupted" for one in run.result.diagnostics):
        context.exit(130)
    if request.draw is not None:
        draw_accesses(run.result, *request.draw, request.format == "full")
    if request.timeline is not None and run.result.timeline is not None:
        save_timeline(run.result.timeline, request.timeline, request.format)
    context.exit(max(int(expect(request, run)), status_of(failing(run.findings, request.path))))


def expect(request: Request, run: FinishedRun) -> bool:
    """Show what is not as expected; whether there is anything."""
    from ptxlab.cli.expectation import compare

    trace = run.result.trace if request.expect else None
    if trace is None:
        return False
    lines = list(compare(request.expect, run.arrays, trace, request.tolerance))
    for line in lines if request.format == "full" else ():
        click.echo(line)
    return bool(lines)


def save_timeline(timeline: Timeline, path: Path, format: Format) -> None:
    """Write when warps ran and waited, and show it as a table."""
    from ptxlab.draw import timeline as draw

    try:
        if path.suffix == ".pftrace":
            timeline.perfetto(path)
        elif path.suffix == ".json":
            timeline.save(path)
        else:
            draw(timeline).save(path)
    except OSError as problem:
        raise click.UsageError(f"`{path}`: {problem.strerror or problem}") from None
    if format == "full":
        click.echo(timeline.table())


def draw_accesses(result: object, line: int, output: Path | None, says_where: bool) -> None:
    """Draw the costliest request at a line."""
    from ptxlab.cli.draw import show
    from ptxlab.draw import accesses

    try:
        picture = accesses(result, line)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    show(picture, output, says_where)


def estimate(kernel: Function, request: Request) -> int:
    """Show how long the launch takes on a GPU, and what limits it; the exit status."""
    from ptxlab.cli.estimation import show
    from ptxlab.estimate import estimate as estimate_launch
    from ptxlab.isa.gpus import gpu_named

    module = kernel.module
    assert module is not None
    target = module.target if request.gpu is None else gpu_named(request.gpu).architecture_for(module.target)
    if target is None:
        raise click.UsageError(f"`--gpu {request.gpu}` can't run a module of `{module.target}`")
    given = Inputs(request.arguments, request.settings).make(module, request.seed)
    block = request.block or required_block(kernel)
    how: Any = {
        "shared": request.shared, "cluster": request.cluster, "target": target, "blocks": request.blocks,
        "timeout": request.timeout,
    }  # fmt: skip
    show(estimate_launch(kernel, request.grid, block, given, **how), request.format)
    return 0


def explore(kernel: Function, request: Request, options: LaunchOptions, warnings: Sequence[Diagnostic]) -> int:
    """Run the kernel under all schedules that differ, and say what came of it; the exit status."""
    from ptxlab.cli.exploration import show
    from ptxlab.launch import EXPLORED, explore_all

    module = kernel.module
    assert module is not None
    given = Inputs(request.arguments, request.settings).make(module, request.seed)
    found = explore_all(kernel, given, options, request.limit, options.timeout or EXPLORED)
    findings = wanted([*warnings, *found.diagnostics], request.path)
    show(kernel, found, findings, name_of(request.path), request.format)
    return status_of(failing(findings, request.path)) or (0 if found.is_complete else 2)


def run_kernel(
    kernel: Function, request: Request, options: LaunchOptions, warnings: Sequence[Diagnostic]
) -> FinishedRun:
    """Run the kernel with each seed, until one finds something; the last run, after these warnings."""
    from ptxlab.cli.origins import by_source_line
    from ptxlab.cli.outcome import FinishedRun, watched_arguments, watched_variables

    module = kernel.module
    assert module is not None
    seeds = range(request.seed, request.seed + (request.seeds or 1))
    tried = try_seeds(kernel, Inputs(request.arguments, request.settings), seeds, options, request.scheduler)
    result = tried.result
    result.counters = by_source_line(module, result.counters)
    return FinishedRun(
        kernel,
        watched_arguments(kernel, request.arguments, tried.before, tried.after),
        watched_variables(module, request.settings, tried.held),
        result,
        wanted([*warnings, *result.diagnostics], request.path),
        tried.seed,
        request.grid,
        request.block or required_block(kernel),
        None if options.blocks is None else len(options.blocks),
    )
