"""Running a program with the emulator as its GPU."""

from __future__ import annotations

import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ptxlab.programs.device_memory import VIEW_SIZE, DeviceMemory
from ptxlab.programs.elf import Elf
from ptxlab.programs.examples import LaunchExample
from ptxlab.programs.findings import findings_of
from ptxlab.programs.library import NVSHMEM, make_library
from ptxlab.programs.lines import HostLines
from ptxlab.programs.log import LaunchCount, Log, RecordedLaunch, Recorder
from ptxlab.programs.modules import Modules
from ptxlab.programs.pes import Pes, Places
from ptxlab.programs.session import Process
from ptxlab.report import Diagnostic, PtxError, error
from ptxlab.report.reader import whole_program
from ptxlab.toolchain.process import absolute_entries

_SAFE = re.compile(r"[\w./+-]{1,64}")
_HOST_SPACE = 64 << 30  # address space of the host code itself


class Connect(Protocol):
    """What takes a process that has connected."""

    def __call__(self, connection: socket.socket, file: int, *, pe: int) -> Process: ...


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended: its status, negative where a signal ended it; what was found; what it launched."""

    status: int
    findings: list[Diagnostic]
    launches: dict[str, LaunchCount]
    seconds: float
    gpu: str
    recorded: Sequence[tuple[RecordedLaunch, str]] = ()
    """Launches that were recorded, each with the line of the host that launched it."""
    skipped: int = 0
    """Launches that were not run, as they repeat others more often than was asked for."""
    unrecorded: int = 0
    """Operations that were not recorded, as there were too many."""
    examples: Sequence[tuple[LaunchExample, str]] = ()
    """What launches were like, each with the line of the host, where that was asked for."""


class ProgramInterrupted(KeyboardInterrupt):
    """Ctrl-C while a program ran; `result` has what was found by then."""

    def __init__(self, result: ProgramResult) -> None:
        self.result = result
        super().__init__()


@dataclass(frozen=True)
class ProgramOptions:
    """How a program runs: the GPU that it sees, options of each launch, and where its sources may be."""

    gpu: str | None = None
    launch: dict[str, Any] | None = None
    folders: Sequence[Path] = ()
    output_to_stderr: bool = False
    record: Recorder | None = None
    gpus: int = 1
    """How many GPUs the program sees; of one that calls NVSHMEM, how many PEs it has."""
    machines: int = 1
    """On how many machines its PEs are."""
    folder: Path | None = None
    """Where all that runs is recorded: a file for a launch, a folder of files for what runs at the same time."""
    max_repeats: int | None = None
    """How often a launch runs at most that is repeated with the same arguments."""
    keep_examples: bool = False
    """Whether the result says what launches were like, for proofs."""


def run_program(command: Sequence[str], options: ProgramOptions, modules: Modules | None = None) -> ProgramResult:
    """Run an executable; its calls of CUDA go to the emulator. `ProgramInterrupted` after Ctrl-C.

    `modules` are those of another run of the same program with the same options but for the seed: `modules_of` makes
    them.
    """
    if sys.platform != "linux":
        raise PtxError([error("missing-tool", "whole programs run on Linux only", None)])
    program = Path(command[0])
    log = Log(examples=[] if options.keep_examples else None)
    lines = HostLines(_folders(program, options))
    files = _files(program)
    if files and files[0].is_stripped:
        message = "the program was stripped, and has a CUDA runtime of its own, which can't be replaced then"
        helps = ["link it with `-cudart shared`, or leave its symbols in it"]
        raise PtxError([error("stripped-program", message, None, helps=helps)])
    _check_limits()
    modules = modules or modules_of(program, options)
    modules.start_anew()
    is_interrupted = False
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ptxlab-", dir=_place()) as folder, whole_program():
        library = make_library(Path(folder), files)
        places = _places(files, options)
        address = str(Path(folder) / "s")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(address)
            server.listen(16)
            environment = _environment(Path(folder), library, address)
            pes = None if places is None else _pes(places, log)
            children = _start([str(program.absolute()), *command[1:]], environment, options, pes)
            try:
                _serve(server, children, pes, partial(
                    Process, modules=modules, options=options.launch or {}, log=log, record=options.record,
                    max_repeats=options.max_repeats, gpus=options.gpus if places is None else places.each,
                    span_of=lines.span, others=[], folder=options.folder, pes=pes))  # fmt: skip
            except BaseException as stopped:
                for child in children:
                    child.terminate()
                for child in children:
                    try:
                        child.wait(2)
                    except subprocess.TimeoutExpired:
                        child.kill()
                if not isinstance(stopped, KeyboardInterrupt):
                    raise
                is_interrupted = True
            finally:
                if pes is not None:
                    pes.memory.close()
        status = next((one for one in [child.wait() for child in children] if one), 0)
        found = findings_of(log, lines, 0 if is_interrupted else status)
    lines.read([one.frames for one in (*log.recorded, *(log.examples or ()))])
    recorded = [(one, lines.spell(one.frames) or "") for one in log.recorded]
    examples = [(one, lines.spell(one.frames) or "") for one in log.examples or ()]
    spent = time.perf_counter() - started
    result = ProgramResult(status, found, log.launches, spent, modules.gpu.name, recorded,
                           sum(one.skipped for one in log.repeats), log.unrecorded, examples)  # fmt: skip
    if is_interrupted:
        raise ProgramInterrupted(result)
    return result


def _places(files: Sequence[Elf], options: ProgramOptions) -> Places | None:
    """Where the PEs are of a program that calls NVSHMEM; None for another program."""
    if not files or NVSHMEM not in files[0].libraries:
        return None
    if options.gpus % options.machines:
        message = f"{options.gpus} PEs can't be on {options.machines} machines, as many on each"
        raise PtxError([error("bad-argument", message, None)])
    return Places(options.gpus, options.machines)


def _pes(places: Places, log: Log) -> Pes:
    """The PEs of a program, with memory that their processes share."""
    file = os.memfd_create("ptxlab")
    os.ftruncate(file, VIEW_SIZE)
    return Pes(places, DeviceMemory(file, places.count, log.allocations, "PE"))


def _start(
    command: Sequence[str], environment: dict[str, str], options: ProgramOptions, pes: Pes | None
) -> list[subprocess.Popen[bytes]]:
    """Start the processes of a program: one, or one for each PE."""
    output = 2 if options.output_to_stderr else None
    if pes is None:
        return [subprocess.Popen(command, env=environment, stdout=output)]
    places, file = pes.layout, pes.memory.file
    children = []
    for pe in range(places.count):
        own = environment | {"PTXLAB_PE": f"{pe} {places.count} {places.machines} {file}"}
        children.append(subprocess.Popen(command, env=own, stdout=output, pass_fds=[file]))
    return children


def _check_limits() -> None:
    """Refuse limits under which device memory, a file of which little is ever used, could not be mapped."""
    import resource  # which Windows lacks

    for kind, limited, flag, needed in (
        (resource.RLIMIT_AS, "address space of a process", "-v", 2 * VIEW_SIZE + _HOST_SPACE),
        (resource.RLIMIT_FSIZE, "size of a file", "-f", VIEW_SIZE),
    ):
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY and limit < needed:
            message = f"`ulimit {flag}` limits the {limited}, which is too little to map device memory"
            notes = [f"{needed >> 40} TB are mapped, of which only what the program uses takes memory"]
            helps = [f"run it under `ulimit {flag} unlimited`; a cgroup limits the memory that is used"]
            raise PtxError([error("low-limit", message, None, notes=notes, helps=helps)])


def modules_of(program: Path, options: ProgramOptions) -> Modules:
    """What a program loads, to be kept for several runs of it."""
    return Modules(options.gpu, _folders(program, options), program.name)


def _folders(program: Path, options: ProgramOptions) -> list[Path]:
    """Where sources may be."""
    return [folder.resolve() for folder in (*options.folders, program.absolute().parent, Path.cwd())]


def _place() -> str:
    """Where a program's runtime is: its loader splits paths at spaces and colons, and a socket's path is short."""
    usual = tempfile.gettempdir()
    return usual if _SAFE.fullmatch(usual) else "/tmp"


def _files(program: Path) -> list[Elf]:
    """The executable, and libraries beside it, as far as they are files of 64-bit Linux."""
    found = []
    for path in (program, *sorted(program.absolute().parent.glob("*.so*"))):
        try:
            found.append(Elf(path.read_bytes()))
        except (OSError, ValueError):
            continue
    return found


def _environment(folder: Path, library: Path, address: str) -> dict[str, str]:
    """The program's variables, with which the loader finds the runtime."""
    preloaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]
    return os.environ | {
        "LD_PRELOAD": " ".join(preloaded),
        "LD_LIBRARY_PATH": os.pathsep.join([str(folder), *absolute_entries("LD_LIBRARY_PATH")]),
        "PTXLAB_SESSION": address,
        "PTXLAB_PARENT": str(os.getpid()),
    }


def _serve(
    server: socket.socket, children: Sequence[subprocess.Popen[bytes]], pes: Pes | None, connect: Connect
) -> None:
    """Answer requests until the program has ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        ended = {os.pidfd_open(child.pid): number for number, child in enumerate(children)}
        open_files = list(ended)
        try:
            for file in ended:
                selector.register(file, selectors.EVENT_READ)
            while True:
                ready = selector.select()
                for key, _ in ready:
                    if isinstance(key.data, Process):
                        if not key.data.serve_one():
                            selector.unregister(key.fileobj)
                            key.data.close()
                    elif key.fileobj is server:
                        connection, _ = server.accept()
                        said, files, _, _ = socket.recv_fds(connection, 1, 1)
                        if files:
                            made = connect(connection, files[0], pe=max(said[0] - 1, 0))
                            selector.register(connection, selectors.EVENT_READ, made)
                        else:  # it has ended before it sent the file of its memory
                            connection.close()
                for key, _ in ready if all(key.fileobj in ended for key, _ in ready) else ():
                    assert isinstance(key.fileobj, int)
                    number = ended.pop(key.fileobj)
                    selector.unregister(key.fileobj)
                    children[number].wait()
                    if pes is not None:
                        pes.end(number)
                if not ended:
                    return
        finally:
            for file in open_files:
                os.close(file)
            for key in list(selector.get_map().values()):
                if isinstance(key.data, Process):
                    key.data.close()
