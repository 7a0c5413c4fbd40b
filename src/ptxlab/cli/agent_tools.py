"""The tools of `ptxlab mcp`: each is a command of ptxlab, run with limits, whose answer is short.

Agents send texts or name files below a folder. Python files are refused: to read a kernel in Python is to run it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from mcp.server.mcpserver import MCPServer
from pydantic import Field

from ptxlab import __version__, guides
from ptxlab.cli.limited import CommandOutcome, run_limited

SHORT = 1900  # characters of an answer, without what says how to continue
KEPT = 64  # answers whose rest can be asked for
LARGEST = 1 << 20  # characters of a text
READ = (".ptx", ".cu", ".cubin", ".ptxtrace")
_DATA = re.compile(r"@(?P<path>[^,]+)")
_PTX_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?P<path>(?:[^"\\\n]|\\.)*)"', re.DOTALL)
# What names a file in C++, in comments, too; and those of them that name a header in a folder that the compiler knows.
_HASH = r"(?:\#|%:)(?:\s|/\*.*?\*/)*"
_NAMING = re.compile(
    rf"{_HASH}(?:include|import|embed)[^\n]*|{_HASH}(?:line|\d)[^\n\"]*\"[^\n]*|__has_(?:include|embed)[^\n]*",
    re.DOTALL,
)
_HEADER = re.compile(r'(?:(?:\#|%:)[ \t]*include|__has_include[ \t]*\()[ \t]*[<"](?!/)(?:(?!\.\.)[\w./+-])+[>"]'
                     r'[ \t]*(?://.*|/\*.*|\)[^"<]*)?')  # fmt: skip

Text = Annotated[str, Field(description="PTX, or CUDA C++ where `language` is cu; leave out to name a file by `path`.")]
Language = Annotated[str, Field(description="What `text` is.", pattern="^(ptx|cu)$")]
File = Annotated[str, Field(description="A .ptx or .cu file below the folder that the server was started for.")]
Target = Annotated[str, Field(description="Such as sm_90a; by default the text's own.", pattern="^(sm_[0-9]+[af]?)?$")]
Extent = Annotated[str, Field(description="X, X,Y or X,Y,Z.", pattern=r"^(\d+(,\d+){0,2})?$")]
Block = Annotated[str, Field(description="X, X,Y or X,Y,Z.", pattern=r"^\d+(,\d+){0,2}$")]  # else `main()` would run
Shared = Annotated[int, Field(ge=0, description="Bytes of dynamic shared memory.")]
_ARGUMENTS = """One for each parameter: `f32[1024]=random`, `f32[64,64]=zeros`, `u32=64`, `s32[4]=1,2,3,4`. Types are
f16, bf16, f32, f64, e4m3, e5m2, and u, s, b with 8 to 64 bits; values also arange, ones, random:LOW:HIGH, @FILE.npy."""
Arguments = Annotated[list[str], Field(description=_ARGUMENTS, max_length=64)]
_COMMANDS = "As in gdb: `break 12`, `continue`, `reverse-step`, `registers`, `print`, `origin`; `help` lists them."
_PROBLEM = (
    "Such as softmax, sgemm, reduction, nvfp4_gemm. The kernel's file has a line `// launch: grid=... block=...`."
)
Problem = Annotated[str, Field(description=_PROBLEM, pattern="^[a-z0-9_]{1,40}$")]
Commands = Annotated[list[str], Field(description=_COMMANDS, min_length=1, max_length=40)]
_DRAWN = "As `ptxlab draw` takes them: INSTRUCTION for fragments; 8x64 --type f16 --swizzle 128B for a tile; or --help."
Drawn = Annotated[list[str], Field(description=_DRAWN, max_length=20)]
_INSTRUCTIONS = """Tools for kernels in NVIDIA PTX and CUDA C++; none needs a GPU. `check` finds what ptxas refuses,
and more. `run` executes a kernel on an emulator with detectors of races, hangs, wrong addresses and missing fences.
`equal` says whether two kernels are the same function, `verify` judges one for a problem.
`debug` says what was in a register and who wrote a byte. `explain` describes an instruction or a finding's code."""


Source = tuple[str, str, str]
"""A text, its language, or the path of a file."""


class ToolRefusedError(Exception):
    """What a tool was asked for and does not do; the text is the answer."""


class Tools:
    """Runs commands, and keeps the rest of long answers."""

    def __init__(self, root: Path, seconds: float, memory: float) -> None:
        self.root, self.seconds, self.memory = root, seconds, memory
        self._answers: OrderedDict[str, str] = OrderedDict()
        self._count = 0
        self._turns: CapacityLimiter | None = None
        """As many tools at once as there are cores."""

    async def run(self, arguments: list[str], *sources: Source, is_last: bool = False, **launch: object) -> str:
        """The answer of a command; `sources` are its first arguments or its last, `launch` has options of a launch."""
        self._turns = self._turns or CapacityLimiter(os.cpu_count() or 1)
        try:
            work = partial(self._run, arguments, sources, is_last, launch)
            answer: str = await run_sync(work, limiter=self._turns)
        except ToolRefusedError as refused:
            answer = self.shorten(f"refused: {refused}")
        return answer

    def _run(self, arguments: list[str], sources: Sequence[Source], is_last: bool, launch: dict[str, Any]) -> str:
        with tempfile.TemporaryDirectory(prefix="ptxlab-") as name:
            folder = Path(name)
            files = [str(self._file(folder, f"kernel{n or ''}", *source)) for n, source in enumerate(sources)]
            options = [*arguments[1:], *self._launch(**launch)]
            command = [arguments[0], *options, *files] if is_last else [arguments[0], *files, *options]
            if any("\0" in one for one in command):
                raise ToolRefusedError("an argument holds a NUL character")
            outcome = run_limited(command, folder, self.seconds, self.memory)
            return self.shorten(_answer(outcome).replace(f"{folder}/", "").replace(f"{self.root}/", ""))

    def _file(self, folder: Path, name: str, text: str, language: str, path: str) -> Path:
        """The file of a source; the lines of files that it names are shown only if these are below the root."""
        if bool(text) == bool(path):
            raise ToolRefusedError("give either `text` or `path`")
        if "\0" in text:
            raise ToolRefusedError("`text` holds a NUL character")
        found = self.below_root(path, READ) if path else folder / f"{name}.{language}"
        if path and found.suffix != ".ptx":
            return found
        given = found.read_text("utf-8", "replace") if path else text
        if len(text) > LARGEST:
            raise ToolRefusedError(f"`text` has {len(text):,} characters, and {LARGEST:,} are allowed")
        if found.suffix == ".cu":
            self._check_names(given)
            written = given
        else:
            written = _PTX_STRING.sub(self._named, given)
        if not path or written != given:
            found = folder / found.name
            found.write_text(written, encoding="utf-8", errors="replace")
        return found

    def _named(self, string: re.Match[str]) -> str:
        """A path in PTX: whole if it is below the root, and otherwise the name alone."""
        if string["path"] is None or "/" not in string["path"]:
            return string[0]
        found = (self.root / string["path"]).resolve()
        return f'"{found if found.is_relative_to(self.root) else found.name}"'

    def _check_names(self, text: str) -> None:
        """Refuse C++ that names a file by more than a folder and a name: compilers read any file, and cite it."""
        for found in _NAMING.finditer(re.sub(r"(?:\\|\?\?/)[ \t]*\r?\n", "", text)):
            if not _HEADER.fullmatch(found[0]):
                raise ToolRefusedError(
                    f"`{found[0][:80]}`: expected a header by its name, without `..` or a folder from /"
                )

    def below_root(self, path: str, suffixes: tuple[str, ...]) -> Path:
        """A file that may be read."""
        try:
            found = (self.root / path).resolve()
            is_file = found.is_file()
        except (OSError, ValueError) as wrong:  # it is too long, or holds a NUL character
            raise ToolRefusedError(f"`path` is not one: {wrong}") from None
        if not found.is_relative_to(self.root):
            raise ToolRefusedError(f"`{path}` is not below the folder of this server")
        if found.suffix not in suffixes:
            raise ToolRefusedError(f"`{path}`: expected a file that ends in {' or '.join(suffixes)}")
        if not is_file:
            raise ToolRefusedError(f"there is no file `{path}`")
        return found

    def _launch(self, args: Sequence[str] = (), **options: Any) -> list[str]:
        """Options of a launch; data is read from files below the folder only."""
        given = [f"--{option.replace('_', '-')}={value}" for option, value in options.items() if value]
        for one in args:
            allowed = _DATA.sub(lambda data: f"@{self.below_root(data['path'], ('.npy',))}", one)
            given.append(f"--arg={allowed}")
        return given

    def shorten(self, text: str) -> str:
        """The beginning of an answer, and how to get the rest."""
        if len(text) <= SHORT:
            return text
        self._count += 1
        handle = f"a{self._count}"
        self._answers[handle] = text
        while len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        return self.part(handle, 0)

    def part(self, handle: str, start: int) -> str:
        """A part of an answer that was shortened."""
        if handle not in self._answers:
            return f"refused: there is no answer `{handle}`, or it is too old"
        text = self._answers[handle]
        end = min(start + SHORT, len(text))
        cut = text.rfind("\n", start + 1, end) + 1 if end < len(text) else end
        end = cut if cut > start else end
        if end == len(text):
            return text[start:]
        return f"{text[start:end]}\n[{len(text) - end:,} more characters: more(handle={handle!r}, start={end})]"


def _answer(outcome: CommandOutcome) -> str:
    said = outcome.text.strip()
    if isinstance(outcome.status, str):
        return f"{said}\n[{outcome.status}]".strip()
    return f"{said or 'nothing was found'}\n[exit status {outcome.status}]"


def server(root: Path, seconds: float, memory: float) -> MCPServer[Any]:
    """The server with its tools."""
    tools = Tools(root, seconds, memory)
    made: MCPServer[Any] = MCPServer("ptxlab", version=__version__, log_level="ERROR", instructions=_INSTRUCTIONS)
    for tool in (*_on_kernels(tools), *_on_words(tools)):
        made.tool()(tool)
    return made


def _on_kernels(tools: Tools) -> list[Callable[..., Any]]:
    """Tools that take a kernel."""

    async def check(text: Text = "", language: Language = "ptx", path: File = "", target: Target = "") -> str:
        """Report every problem in PTX or CUDA C++, with places and fixes."""
        options = ["--target", target] if target else []
        return await tools.run(["check", *options], (text, language, path))

    async def run(
        block: Block,
        text: Text = "",
        language: Language = "ptx",
        path: File = "",
        entry: str = "",
        grid: Extent = "1",
        cluster: Extent = "",
        shared: Shared = 0,
        args: Arguments = [],  # noqa: B006
        target: Target = "",
        seeds: Annotated[int, Field(ge=1, le=1000, description="Schedules to try.")] = 1,
        profile: bool = False,
    ) -> str:
        """Run a kernel on the emulator with all detectors: results, races, hangs, wrong addresses, each explained."""
        options = ["--device", "cpu", *(["--seeds", str(seeds)] if seeds > 1 else []), *["--profile"] * profile]
        return await tools.run(["run", *options], (text, language, path), entry=entry, grid=grid, block=block,
                               cluster=cluster, shared=shared, args=args, target=target)  # fmt: skip

    async def equal(
        block: Block,
        text: Text = "",
        text_b: Text = "",
        language: Language = "ptx",
        path: File = "",
        path_b: File = "",
        entry: str = "",
        entry_b: str = "",
        grid: Extent = "1",
        grid_b: Extent = "",
        block_b: Extent = "",
        cluster: Extent = "",
        shared: Shared = 0,
        args: Arguments = [],  # noqa: B006
        assume_paths: bool = False,
    ) -> str:
        """Say whether two kernels are the same function of their float inputs, and where they part; integers count."""
        return await tools.run(["equal", *["--assume-paths"] * assume_paths], (text, language, path),
                               (text_b, language, path_b), entry=entry, entry_b=entry_b, grid=grid, grid_b=grid_b,
                               block=block, block_b=block_b, cluster=cluster, shared=shared, args=args)  # fmt: skip

    async def estimate(
        block: Block,
        text: Text = "",
        language: Language = "ptx",
        path: File = "",
        entry: str = "",
        grid: Extent = "1",
        args: Arguments = [],  # noqa: B006
        shared: Shared = 0,
    ) -> str:
        """Estimate how long a launch takes on an H200, and what limits it."""
        return await tools.run(["run", "--estimate"], (text, language, path), entry=entry, grid=grid, block=block,
                               shared=shared, args=args)  # fmt: skip

    async def debug(
        commands: Commands,
        block: Block = "1",
        text: Text = "",
        language: Language = "ptx",
        path: File = "",
        entry: str = "",
        grid: Extent = "1",
        cluster: Extent = "",
        shared: Shared = 0,
        args: Arguments = [],  # noqa: B006
    ) -> str:
        """Run and record a kernel, then walk through it: who wrote a byte, why a warp waits, what a register holds."""
        asked = [f"--command={one}" for one in commands]
        return await tools.run(["debug", *asked], (text, language, path), entry=entry, grid=grid, block=block,
                               cluster=cluster, shared=shared, args=args)  # fmt: skip

    async def verify(
        problem: Problem,
        text: Text = "",
        language: Language = "ptx",
        path: File = "",
        seed: Annotated[int, Field(ge=0, description="Draw the same data again; 0 draws new data.")] = 0,
    ) -> str:
        """Judge a kernel for a problem, at sizes it does not know: races, wrong or missing outputs, precision, time."""
        options = ["--seed", str(seed)] if seed else []
        limit = ["--timeout", str(max(tools.seconds - 5, 1.0)), "--history", os.devnull]
        return await tools.run(["grade", *options, *limit, problem], (text, language, path), is_last=True)

    async def sass(text: Text = "", language: Language = "ptx", path: File = "", target: Target = "") -> str:
        """Show PTX and the machine code that ptxas makes of it, side by side."""
        options = ["--target", target] if target else []
        return await tools.run(["sass", *options], (text, language, path))

    return [check, run, equal, estimate, debug, verify, sass]


def _on_words(tools: Tools) -> list[Callable[..., Any]]:
    """Tools that take words."""

    async def explain(topic: Annotated[str, Field(max_length=400)]) -> str:
        """Explain an instruction (`mma.sync`), a special register, or the code of a finding (`data-race`)."""
        return await tools.run(["explain", "--", topic])

    async def draw(
        what: Annotated[str, Field(pattern="^(box|descriptor|fragments|im2col|tensor-memory|tile)$")],
        arguments: Drawn,
    ) -> str:
        """Draw a layout as text: fragments of an MMA, banks of a tile in shared memory, a TMA box, a descriptor."""
        if any(one.startswith(("-o", "--output")) for one in arguments):
            return "refused: nothing is written to files"
        return await tools.run(["draw", what, *arguments])

    async def docs(words: Annotated[str, Field(max_length=200)] = "") -> str:
        """Search the guides for a section that has all words; without words, list the guides."""
        if not words:
            listed = (f"{name}: {guides.title_of(file)}" for name, file in guides.guides().items())
            return tools.shorten("\n".join(listed))
        found = guides.search(words)
        if not found:
            return f"no section has all of `{words}`"
        others = "".join(f"\n[also: {one.guide}: {one.heading}]" for one in found[1:5])
        return tools.shorten(f"[{found[0].guide}]\n{found[0].text}{others}")

    async def more(handle: str, start: Annotated[int, Field(ge=0)]) -> str:
        """Show the next part of an answer that was cut."""
        return tools.part(handle, start)

    return [explain, draw, docs, more]


def serve(root: Path, seconds: float, memory: float) -> None:
    """Serve on standard input and output until the client leaves."""
    server(root, seconds, memory).run("stdio")
