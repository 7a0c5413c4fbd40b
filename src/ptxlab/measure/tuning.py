"""`tune`: which values of a kernel's parameters are fastest.

Every combination is written as PTX, assembled in parallel by any executor of `concurrent.futures`, checked for the
right answer, and timed in turns with the others; what is slow after its first turn drops out. Results are kept in a
file, one a size and machine, and a combination that is there already is not tried again. Only timing needs a GPU:
without one, what assembles is checked on the emulator, and what is right is ranked by the estimate for an H200.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ptxlab import gpu
from ptxlab.estimate import estimate
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError
from ptxlab.measure.checking import WrongAnswerError, check, expect
from ptxlab.measure.data import Host, poison
from ptxlab.measure.entry import Entry, Size
from ptxlab.measure.interleaving import Timer, take_turns
from ptxlab.measure.machine import describe, require_torch
from ptxlab.measure.session import draw_sets, timer, together
from ptxlab.report import KernelError, PtxError, error
from ptxlab.syntax import format
from ptxlab.toolchain import assemble
from ptxlab.values import Json

Maker = Callable[..., Callable[..., Launch | Sequence[Launch]]]
"""Takes the parameters and returns a variant; raises `UnsuitedError` for a combination that is not legal."""
_MOST_BYTES = 64 << 20  # of arrays for an estimate, unless a size is given
_HOPELESS = 1.5  # times the fastest: what takes longer in its first turn has no second


@dataclass(frozen=True)
class Trial:
    """What came of one combination."""

    parameters: Json
    program: str
    """A digest of its PTX: another text is another trial."""
    samples: list[float] = field(default_factory=list)
    """Seconds a run; none where it was not timed."""
    estimated: float | None = None
    """Seconds that a run is estimated to take on an H200; only where nothing was timed."""
    registers: int | None = None
    spilled: int | None = None
    """Bytes of registers that ptxas had to put into memory."""
    is_right: bool = False
    problem: str = ""
    """Why it is out: unsuited, refused as it was written or by ptxas, or wrong."""

    @property
    def seconds(self) -> float | None:
        return statistics.median(self.samples) if self.samples else None

    @property
    def key(self) -> str:
        """Its parameters as text, the same before and after they were kept."""
        return _as_json(self.parameters)


@dataclass(frozen=True)
class Tuned:
    """All trials of a size, on a machine."""

    size: Json
    machine: Mapping[str, Any]
    trials: list[Trial]

    @property
    def best(self) -> Trial:
        """The fastest; where nothing was timed, the one with the lowest estimate, and `by` says so."""
        right = [trial for trial in self.trials if trial.is_right]
        if not right:
            reasons = sorted({trial.problem for trial in self.trials if trial.problem})
            raise UnsuitedError(f"no combination is right: {'; '.join(reasons)}")
        return min(right, key=_rank)

    @property
    def by(self) -> str:
        """What ranks the trials: `time`, `estimate`, or `nothing` where neither is known."""
        right = [trial for trial in self.trials if trial.is_right]
        if any(trial.samples for trial in right):
            return "time"
        return "estimate" if any(trial.estimated is not None for trial in right) else "nothing"

    def __str__(self) -> str:
        how = {
            "time": "timed",
            "estimate": "not timed: estimated for an H200",
            "nothing": "neither timed nor estimated",
        }
        lines = [f"{len(self.trials)} combinations, {how[self.by]}"]
        for trial in sorted(self.trials, key=lambda one: (not one.is_right, _rank(one))):
            found = trial.seconds or trial.estimated
            took = "wrong" if not trial.is_right else "" if found is None else f"{found * 1e6:.1f} µs"
            given = ", ".join(f"{name}={value}" for name, value in trial.parameters.items())
            lines.append(f"{took:>12}  {given}{f': {trial.problem.splitlines()[0]}' if trial.problem else ''}")
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """Keep it as JSON; a file that is there already is replaced at once, or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.write_text(_as_json(asdict(self), indent=1) + "\n", encoding="utf-8")
        written.replace(path)

    @staticmethod
    def read(path: Path) -> Tuned:
        """What `write` kept."""
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            return Tuned(given["size"], given["machine"], [Trial(**trial) for trial in given["trials"]])
        except (ValueError, KeyError, TypeError) as problem:
            message = f"`{path}` holds no results of `tune`: {problem}"
            raise PtxError([error("damaged-results", message, None, helps=["keep them in another file"])]) from problem


def _estimated_size(problem: Entry) -> Size:
    """The last size whose arrays the host draws in a moment, else the first."""
    return [size for size in problem.sizes if problem.work(**size).bytes <= _MOST_BYTES or size is problem.sizes[0]][-1]


def _rank(trial: Trial) -> float:
    return trial.seconds or trial.estimated or float("inf")


def _as_json(value: object, indent: int | None = None) -> str:
    """JSON; what has none, as a type of PTX, by its name."""
    return json.dumps(value, sort_keys=indent is None, indent=indent, default=_plain)


def _plain(value: object) -> Any:
    return value.item() if isinstance(value, np.generic) else getattr(value, "__name__", str(value))


@dataclass(frozen=True)
class _Candidate:
    """A combination on its way."""

    trial: Trial
    launches: Callable[[Arrays], list[Launch]]


def tune(
    kernel: Maker,
    parameters: Mapping[str, Sequence[object]],
    problem: Entry,
    size: Size | None = None,
    *,
    executor: Executor | None = None,
    keep: Path | str | None = None,
    rounds: int = 7,
    target: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Tuned:
    """Try every combination of `parameters` on a problem, at its last size unless another is given.

    Without a GPU that is its last size of at most 64 MB, and nothing is timed: combinations are ranked by the estimate
    for an H200, and `found.by` says so.

    best = tune(make, {"rows": [64, 128], "stages": [2, 3, 4]}, entry, keep=Path("gemm.json")).best

    `executor` assembles; by default it is this machine's cores, and that of a Dask cluster is the cluster. `target` is
    what to assemble for where there is no GPU; by default what each kernel states.
    """
    report = progress or (lambda _: None)
    has_gpu = gpu.absence() is None
    chosen = dict(size or (problem.sizes[-1] if has_gpu else _estimated_size(problem)))
    machine = describe(require_torch()) if has_gpu else {"gpu": None}
    file = None if keep is None else Path(keep)
    kept = [] if file is None or not file.exists() else _kept(file, chosen, machine)
    known = {(trial.key, trial.program): trial for trial in kept if machine["gpu"] is None or _is_done(trial)}
    sets = draw_sets(require_torch(), problem, chosen, 0) if has_gpu else []
    shapes = sets[0] if has_gpu else problem.arrays(Host(0), **problem.small[-1])
    candidates, done = [], []
    combinations = _combinations(parameters)
    for combination in combinations:
        candidate = _write(kernel, combination, shapes)
        found = known.get((candidate.trial.key, candidate.trial.program))
        if found is not None or candidate.trial.problem:
            done.append(found or candidate.trial)
        else:
            candidates.append(candidate)
    asked = {_as_json(combination) for combination in combinations}
    others = [trial for trial in kept if trial.key not in asked]

    def save() -> None:
        if file is not None:
            Tuned(chosen, machine, [*others, *done]).write(file)

    save()  # a file that cannot be written is reported before all the work, not after it
    try:
        with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
            architecture = gpu.gpu(0).architecture_for if has_gpu else (lambda stated: target or stated)
            ready, refused, cubins = _assemble(candidates, shapes, architecture, executor, Path(folder), report)
            done += refused
            if has_gpu:
                _time(problem, chosen, sets, ready, cubins, rounds, report, done)
            else:
                _check(problem, chosen, ready, report, done)
    finally:  # also what was found before Ctrl-C
        save()
    return Tuned(chosen, machine, done)


def _combinations(parameters: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(parameters, values, strict=True)) for values in product(*parameters.values())]


def _kept(file: Path, size: Size, machine: Mapping[str, object]) -> list[Trial]:
    """The trials that a file holds; one of another size or machine is refused, since it would be lost."""
    kept = Tuned.read(file)
    for what, there, here in (("size", kept.size, size), ("machine", kept.machine, machine)):
        if _as_json(there) != _as_json(here):
            message = f"`{file}` holds results of another {what}: {_as_json(there)}, and this is {_as_json(here)}"
            raise PtxError([error("other-results", message, None, helps=["keep these in another file"])])
    return kept.trials


def _is_done(trial: Trial) -> bool:
    return bool(trial.problem or trial.samples)


def _write(kernel: Maker, parameters: dict[str, object], arrays: Arrays) -> _Candidate:
    """Write the PTX of a combination; the arrays are there for their types alone."""
    try:
        variant = kernel(**parameters)
        texts = [format(launch.module) for launch in _launches(variant, arrays)]
    except (UnsuitedError, PtxError) as reason:
        return _Candidate(Trial(parameters, "", problem=str(reason)), lambda arrays: [])
    digest = sha256("\n".join(texts).encode()).hexdigest()[:16]
    return _Candidate(Trial(parameters, digest), lambda arrays: _launches(variant, arrays))


def _launches(variant: Callable[..., Launch | Sequence[Launch]], arrays: Arrays) -> list[Launch]:
    found = variant(**arrays)
    return [found] if isinstance(found, Launch) else list(found)


def assemble_text(text: str, target: str) -> tuple[bytes | None, str, int, int]:
    """What ptxas makes of a text: the cubin or why there is none, registers of a thread, bytes spilled.

    A function of a module that takes and returns plain values, so that an executor can send it to another machine.
    """
    made = assemble(text, target)
    registers = max((one.registers or 0 for one in made.resources), default=0)
    spilled = sum((one.spill_stores or 0) for one in made.resources)
    return made.cubin, "; ".join(found.message for found in made.diagnostics), registers, spilled


def _assemble(
    candidates: Sequence[_Candidate],
    arrays: Arrays,
    architecture: Callable[[str], str | None],
    executor: Executor | None,
    folder: Path,
    report: Callable[[str], None],
) -> tuple[list[_Candidate], list[Trial], dict[str, Path]]:
    """Those that assemble, those that don't, and a file with the cubin of each text."""
    ready, refused, cubins = [], [], {}
    own = ThreadPoolExecutor() if executor is None else None  # ptxas is a process of its own: threads serve
    try:
        pool = executor or own
        assert pool is not None
        jobs = []
        for candidate in candidates:
            modules = {format(launch.module): launch.module for launch in candidate.launches(arrays)}
            targets = {text: architecture(module.target) or module.target for text, module in modules.items()}
            jobs.append([(text, pool.submit(assemble_text, text, target)) for text, target in targets.items()])
        for number, (candidate, job) in enumerate(zip(candidates, jobs, strict=True), 1):
            made = [(text, *future.result()) for text, future in job]
            report(f"assembled {number} of {len(candidates)}")
            problems = [problem for _, cubin, problem, _, _ in made if cubin is None]
            trial = asdict(candidate.trial) | {
                "registers": max(registers for *_, registers, _ in made),
                "spilled": sum(spilled for *_, spilled in made),
                "problem": problems[0] if problems else "",
            }
            if problems:
                refused.append(Trial(**trial))
                continue
            for text, cubin, *_ in made:
                assert cubin is not None
                cubins[text] = folder / f"{sha256(text.encode()).hexdigest()}.cubin"
                cubins[text].write_bytes(cubin)
            ready.append(_Candidate(Trial(**trial), candidate.launches))
    finally:
        if own is not None:
            own.shutdown(cancel_futures=True)
    return ready, refused, cubins


def _check(
    problem: Entry,
    chosen: Size,
    candidates: Sequence[_Candidate],
    report: Callable[[str], None],
    tried: list[Trial],
) -> None:
    """Whether each is right on the emulator, with all detectors, at the problem's last small size; and its estimate."""
    size = problem.small[-1]
    for number, candidate in enumerate(candidates, 1):
        arrays = problem.arrays(Host(number), **size)
        expected = expect(np, problem, arrays)
        wrong = ""
        try:
            for launch in candidate.launches(arrays):
                launch.run(device="cpu")
            check(np, problem, size, arrays, expected, "it")
        except (WrongAnswerError, KernelError, PtxError, UnsuitedError) as found:
            wrong = str(found)
        known = None if wrong else _estimate(candidate.launches(problem.arrays(Host(0), **chosen)))
        tried.append(Trial(**asdict(candidate.trial) | {"is_right": not wrong, "problem": wrong, "estimated": known}))
        report(f"checked {number} of {len(candidates)}")


def _estimate(launches: Sequence[Launch]) -> float | None:
    """Seconds on an H200; None for a kernel that it can't run, or without the tools that this needs."""
    total = 0.0
    for one in launches:
        target = one.module.target if one.module.target.startswith("sm_90") else "sm_90"
        try:
            total += estimate(one.kernel, one.grid, one.block, one.args, shared=one.shared, cluster=one.cluster,
                              target=target).seconds  # fmt: skip
        except PtxError:
            return None
    return total


def _time(
    problem: Entry,
    size: Size,
    sets: Sequence[Arrays],
    candidates: Sequence[_Candidate],
    cubins: Mapping[str, Path],
    rounds: int,
    report: Callable[[str], None],
    tried: list[Trial],
) -> None:
    """Check each on the GPU and time those that are right, in turns; what is hopeless has one turn only."""
    torch = require_torch()
    expected = expect(torch, problem, sets[0])
    stream = torch.cuda.Stream()
    first = len(tried)
    timers: dict[str, Timer] = {}
    with torch.cuda.stream(stream):
        for candidate in candidates:
            wrong = ""
            try:
                actions = [together(candidate.launches(arrays), stream, cubins) for arrays in sets]
                for answer in expected:
                    poison(torch, sets[0][answer])
                actions[0]()
                torch.cuda.synchronize()
                check(torch, problem, size, sets[0], expected, "it")
                timers[str(len(tried))] = timer(torch, actions, stream)
            except (WrongAnswerError, KernelError, PtxError, UnsuitedError) as found:
                wrong = str(found)
            tried.append(Trial(**asdict(candidate.trial) | {"is_right": not wrong, "problem": wrong}))
            report(f"checked {len(tried) - first} of {len(candidates)}")
        samples = {name: tried[int(name)].samples for name in timers}
        take_turns(timers, 1, into=samples)
        fastest = min((times[0] for times in samples.values()), default=0.0)
        hopeful = {name: timers[name] for name, times in samples.items() if times[0] <= _HOPELESS * fastest}
        take_turns(
            hopeful, rounds - 1, lambda turn: report(f"turn {turn + 1} of {rounds}, {len(hopeful)} take part"), samples
        )
