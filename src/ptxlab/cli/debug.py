"""`ptxlab debug`: step through a kernel, forwards and backwards, in the terminal or from an editor."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.arguments import arguments_for, parse_argument, parse_setting
from ptxlab.cli.compiling import CUDA, PROGRAMS, Compiling, has_debug_info, options_given
from ptxlab.cli.debugged_programs import DebuggedProgram
from ptxlab.cli.files import cuda_target_option, read_module
from ptxlab.cli.findings import show_failure, status_of
from ptxlab.cli.launching import block_indices, check_first, choose, kernel_warnings, launch_options, required_block
from ptxlab.cli.plain_arguments import Argument
from ptxlab.cli.programs import nvcc_option
from ptxlab.cli.trying import Inputs, try_seeds
from ptxlab.report import KernelError, PtxError

if TYPE_CHECKING:
    from ptxlab.debug.adapter import Opened
    from ptxlab.ir import Module

TRACE = ".ptxtrace"
_PROMPT = "(ptxlab) "
REQUEST = ("program", "entry", "grid", "block", "cluster", "args", "set", "shared", "seed", "target", "blocks", "warps",
           "limit", "deviceDebug", "nvcc", "programArgs", "launch")  # what a request of an editor may say  # fmt: skip
_PATH = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Session:
    """What is to be debugged: a recorded launch, or a kernel with all that it is launched with."""

    path: Path | None = None
    target: str | None = None
    entry: str | None = None
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] | None = None
    cluster: tuple[int, ...] | None = None
    arguments: Sequence[Argument] = ()
    settings: dict[str, Argument] | None = None
    shared: int = 0
    seed: int = 0
    blocks: list[tuple[int, ...]] | None = None
    warps: tuple[int, ...] = ()
    limit: int = 10_000_000
    device_debug: bool = False
    nvcc: str = ""
    program_arguments: Sequence[str] | None = None
    """Of a whole program; None where they are what follows `--`."""
    launch: int = 0
    is_quiet: bool = False
    """Whether standard output is not for what a program prints."""

    def with_request(self, given: dict[str, Any]) -> Session:
        """What a launch request of an editor says, where it says something."""
        changed: dict[str, Any] = {}
        given = {name: given[name] for name in REQUEST if given.get(name) is not None}
        if "program" in given:
            changed["path"] = Path(str(given["program"])).expanduser()
        for name in ("grid", "block", "cluster"):
            if name in given:
                changed[name] = _numbers(name, given[name])
        for name in ("target", "entry", "shared", "seed", "limit", "nvcc", "launch"):
            if name in given:
                changed[name] = given[name]
        if "deviceDebug" in given:
            changed["device_debug"] = bool(given["deviceDebug"])
        if "programArgs" in given:
            changed["program_arguments"] = [str(text) for text in given["programArgs"]]
        if "args" in given:
            changed["arguments"] = [parse_argument(str(text)) for text in given["args"]]
        if "set" in given:
            changed["settings"] = dict(parse_setting(str(text)) for text in given["set"])
        if "blocks" in given:
            changed["blocks"] = [_numbers("blocks", one) for one in given["blocks"]]
        if "warps" in given:
            changed["warps"] = _numbers("warps", given["warps"])
        return replace(self, **changed)

    def open(self) -> Opened:
        """Run the kernel and record it, or read what was recorded."""
        from ptxlab.debug import Debugger, UnknownError
        from ptxlab.debug.adapter import Opened
        from ptxlab.device.trace_file import TraceError
        from ptxlab.emulate.host.recording import describe_finding
        from ptxlab.trace import Trace
        from ptxlab.trace.steps import ReportedFinding

        if self.path is None:
            raise click.UsageError("`program` is missing: the file of the kernel, or of a recorded launch")
        if self.path.suffix == TRACE:
            try:
                return Opened(Debugger(Trace.open(self.path)))
            except TraceError as wrong:
                raise UnknownError(str(wrong)) from None
        if self.is_program:
            opened = self._program().open()
            if self.launch:
                opened.debugger.enter(self.launch)
            return opened
        if self.nvcc or self.launch or self.program_arguments:
            raise click.UsageError("`--nvcc`, `--launch` and arguments of a program are for a `.cu` file with `main()`")
        from ptxlab.device.options import LaunchOptions
        from ptxlab.device.record import Record

        module, warnings = read_module(self.path, self.target, self.entry, debug_info=self.device_debug)
        check_first(module)
        kernel = choose(module, self.entry, self.path)
        record = Record(blocks=self.blocks, warps=self.warps or None, limit=self.limit)
        block = self.block or required_block(kernel)
        options = LaunchOptions(self.grid, block, cluster=self.cluster, shared=self.shared, device="cpu",
                                on_error="collect", record=record)  # fmt: skip
        inputs = Inputs(arguments_for(kernel, self.arguments), self.settings or {})
        result = try_seeds(kernel, inputs, range(self.seed, self.seed + 1), options, None).result
        assert result.trace is not None
        warnings += kernel_warnings(kernel)
        result.trace.findings += [ReportedFinding(**describe_finding(one, module.source)) for one in warnings]
        path = self.path if self.path.suffix == ".ptx" else None
        debugger = Debugger(result.trace, result.diagnostics, self._with_debug_info)
        return Opened(debugger, path, result.output, result)

    @property
    def is_program(self) -> bool:
        """Whether `main()` of a file is to run: it has one, and nothing is said of how a kernel is launched."""
        is_launched = (self.grid, self.block, self.cluster, self.shared) != ((1,), None, None, 0)
        if self.path is None or self.path.suffix not in PROGRAMS or is_launched or self.arguments or self.settings:
            return False
        from ptxlab.programs.building import has_main

        return bool(self.nvcc) or has_main(self.path)

    def _program(self) -> DebuggedProgram:
        assert self.path is not None
        given = options_given() if self.program_arguments is None else self.program_arguments
        return DebuggedProgram(self.path, self.target, self.nvcc, given, self.entry, self.seed, self.blocks, self.warps,
                               self.limit, self.device_debug, self.is_quiet)  # fmt: skip

    def _with_debug_info(self) -> Module | None:
        """The program compiled for its debug information alone; None where that is not there."""
        assert self.path is not None
        if self.path.suffix != CUDA or self.device_debug or has_debug_info():
            return None
        try:
            return read_module(self.path, self.target, self.entry, debug_info=True)[0]
        except PtxError:  # some code compiles with optimization only
            return None


def _numbers(name: str, given: Any) -> tuple[int, ...]:
    """`4`, `[4, 2]` or `"4,2"`."""
    words = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else [given]
    try:
        return tuple(int(word) for word in words)
    except (TypeError, ValueError, OverflowError):
        raise click.UsageError(f"`{name}` is {given!r}: expected whole numbers") from None


device_debug_option = click.option(
    "-G", "--device-debug", is_flag=True,
    help="Compile CUDA C++ without optimization, so that its local variables are known, as for cuda-gdb.",
)  # fmt: skip

launch_option = click.option("--launch", metavar="N", type=click.IntRange(min=0), default=0,
                             help="Start in this launch of a whole program; the first is 0.")  # fmt: skip


@click.command("debug", cls=Compiling, short_help="Step through a kernel, forwards and backwards.")
@click.argument("path", type=_PATH, metavar="[PATH]", required=False)
@cuda_target_option
@launch_options
@click.option("--blocks", metavar="'X,Y X,Y'", callback=block_indices, help="Record only these blocks of the grid.")
@click.option("--warp", "warps", metavar="N", type=click.IntRange(0, 31), multiple=True,
              help="Record only this warp of each block; may be repeated.")  # fmt: skip
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=10_000_000, show_default=True,
              help="Steps of threads that are recorded at most.")  # fmt: skip
@device_debug_option
@nvcc_option
@launch_option
@click.option("--dap", is_flag=True, help="Serve the Debug Adapter Protocol on standard input and output.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help="With --dap: serve one client at this port.")
@click.option("--command", "commands", metavar="COMMAND", multiple=True,
              help="Run this command and end; may be repeated.")  # fmt: skip
@click.pass_context
def command(context: click.Context, /, dap: bool, port: int | None, commands: Sequence[str], **given: Any) -> None:
    """Step through a kernel, forwards and backwards, in the terminal or from an editor.

    The kernel runs once on the emulator and is recorded; then you walk through the recording. PATH is PTX, CUDA C++, or
    a .ptxtrace of `ptxlab run --record`. `help` lists the commands; they are those of gdb, `reverse-` in front of those
    that go back. Arguments are written as for `ptxlab run`.

    A .cu file with a `main()` runs as a program where nothing is said of how a kernel is launched: all its launches are
    recorded, those of one kernel with --entry, and you go through them one after the other. What follows `--` is then
    its arguments, and --nvcc has options for the compiler.

    With --dap the editor says what to run: `program`, `grid`, `block`, `args`, `entry`, `seed`; what its request leaves
    out is taken from here.

    \b
    Examples:
      ptxlab debug saxpy.ptx --grid 4 --block 256 --arg f32[1024]=random \\
          --arg f32[1024]=zeros --arg f32=2.0 --arg u32=1024
      ptxlab debug run.ptxtrace --command "break 12" \\
          --command continue --command registers
      ptxlab debug gemm.cu -G --grid 4,4 --block 16,16 --arg f32[64,64]=random \\
          --arg f32[64,64]=random --arg f32[64,64]=zeros --arg u32=64
      ptxlab debug program.cu -G --nvcc -Iinclude -- --size 64
      ptxlab debug --dap
    """
    names = {field.name for field in fields(Session)}
    session = Session(**{name: value for name, value in given.items() if name in names}, is_quiet=dap)
    if port is not None and not dap:
        raise click.UsageError("`--port` is for `--dap`")
    if dap:
        serve(session, port)
        return
    if session.path is None:
        raise click.UsageError("PATH is required: PTX, CUDA C++, or a recorded launch")
    try:
        opened = session.open()
    except (PtxError, KernelError) as wrong:
        show_failure(wrong.diagnostics, str(session.path), "full")
        context.exit(status_of(wrong.diagnostics))
    except KeyboardInterrupt:
        context.exit(130)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    talk(opened, session.path, commands)


def talk(opened: Opened, path: Path, commands: Sequence[str]) -> None:
    """Answer commands: those that are given, or of the terminal."""
    from ptxlab.debug.terminal import Terminal

    def source(file: str) -> list[str] | None:
        own = str(opened.debugger.trace.description["text"])
        return _lines_of(file, path) if file else own.splitlines()

    terminal = Terminal(opened.debugger, source)
    click.echo(opened.output, nl=False)
    for line in (*_greeting(opened), *terminal.here()):
        click.echo(line)
    for line in commands or _typed():
        if line.strip() in ("quit", "q", "exit"):
            return
        for text in terminal.answer(line):
            click.echo(text)


def _greeting(opened: Opened) -> Iterator[str]:
    launches = opened.debugger.launches
    if len(launches) > 1:
        yield f"{len(launches)} launches are recorded: `info cuda kernels` lists them, `cuda kernel N` goes to one"
    yield repr(opened.debugger.trace).strip("<>")
    for finding in opened.debugger.trace.findings:
        yield f"{finding.place}{': ' * bool(finding.place)}{finding.level}[{finding.code}]: {finding.message}"


def _typed() -> Iterator[str]:
    """Lines of standard input, with a prompt in a terminal; Ctrl-C drops the line."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    import readline  # noqa: F401 - `input` has history by it

    while True:
        try:
            yield input(_PROMPT)
        except KeyboardInterrupt:
            click.echo()
        except EOFError:
            click.echo()
            return


def _lines_of(file: str, beside: Path) -> list[str] | None:
    for path in (Path(file), beside.parent / Path(file).name):
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return None


def opener(session: Session) -> Callable[[dict[str, Any]], Opened]:
    """What answers launch requests; all that is wrong with one is said in one text."""
    from ptxlab.debug import UnknownError

    def open(given: dict[str, object]) -> Opened:
        try:
            return session.with_request(given).open()
        except (PtxError, KernelError) as wrong:
            raise UnknownError("\n".join(map(str, wrong.diagnostics))) from None
        except (click.ClickException, OSError) as wrong:
            raise UnknownError(getattr(wrong, "message", None) or str(wrong)) from None

    return open


def serve(session: Session, port: int | None) -> None:
    """Serve one client, over standard input and output or at a port."""
    from ptxlab.debug.adapter import Adapter
    from ptxlab.debug.protocol import ProtocolError

    open = opener(session)
    try:
        if port is None:
            Adapter(open, sys.stdin.buffer, sys.stdout.buffer).serve()
            return
        with socket.create_server(("127.0.0.1", port)) as server:
            click.echo(f"waiting for a client at port {server.getsockname()[1]}", err=True)
            client, _ = server.accept()
            with client, client.makefile("rb") as received, client.makefile("wb") as sent:
                Adapter(open, received, sent).serve()
    except ProtocolError as wrong:
        raise click.UsageError(f"the client: {wrong}") from None
