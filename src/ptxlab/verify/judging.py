"""`verify`: the parts of a verdict, one after the other."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxlab.isa.targets import target_named
from ptxlab.report import KernelError, PtxError
from ptxlab.verify import bounds, parts
from ptxlab.verify.equality import equality
from ptxlab.verify.measuring import NotMeasuredError, can_measure, measure_calls
from ptxlab.verify.parts import Judging
from ptxlab.verify.precision import precision
from ptxlab.verify.running import Called, Caller, OutOfTimeError, TimeLeft
from ptxlab.verify.submission import Submission, SubmissionError, open_submission
from ptxlab.verify.task import Sizes, Task, load_task, named_by
from ptxlab.verify.verdict import FAILED, OPEN, PASSED, Finding, Part, Verdict

SECONDS, MEMORY = 300.0, 8.0


def verify(
    task: Task | str | Path,
    kernel: str | Path,
    *,
    seed: int | None = None,
    sizes: Mapping[str, int] | None = None,
    schedule: int | None = None,
    symbolic: bool = True,
    estimate: bool = True,
    prove: bool = False,
    measure: bool = False,
    timeout: float = SECONDS,
    memory: float = MEMORY,
    command: str | None = None,
) -> Verdict:
    """Whether a kernel does what a task says: one verdict, in parts, each with what shows it.

    `task` is a `Task` or the path of a file that has one, `kernel` the path of a submission: `.ptx`, `.cu` or `.py`.
    Python is run in another process, with limits; only PTX and launches come back. The task's own seed draws the hidden
    sizes; `seed` draws the data, and is a new one each time unless it is given. `sizes` has only those tried, and
    `schedule` is the order of threads then. `prove` asks for a proof for all sizes and grids, too. With `measure`, a
    right submission runs on the GPU, where there is one for its target, and its time there takes the place of the
    estimate. `timeout` is in seconds, of all, and `memory` in GB, of the other process.

        assert ptxlab.verify("softmax_task.py", "softmax.ptx")
    """
    path = Path(kernel)
    shown = command or parts.shell("ptxlab", "verify", str(task) if not isinstance(task, Task) else f"{task.name}.py",
                                   "--kernel", str(kernel))  # fmt: skip
    found = task if isinstance(task, Task) else load_task(task)
    drawn = secrets.randbits(32) if seed is None else seed
    clock = TimeLeft(timeout)
    hidden = found.draw_sizes() if sizes is None else [dict(sizes)]
    public = [dict(one) for one in found.shapes] if sizes is None else []

    def verdict(*given: Part) -> Verdict:
        return Verdict(found.name, path.name, given, drawn, clock.launches, clock.spent, hidden)

    try:
        submission = open_submission(path, found, timeout, memory)
    except SubmissionError as wrong:
        return verdict(parts.failure(wrong))
    try:
        judging = Judging(Caller(found, submission, clock, drawn), shown, public, hidden)
        found_parts = _parts(judging, submission, schedule, symbolic, estimate, measure)
        return verdict(*found_parts, *([_proof(judging)] if prove else []))
    except SubmissionError as wrong:
        return verdict(parts.failure(wrong))
    finally:
        submission.close()


def _parts(
    judging: Judging, submission: Submission, schedule: int | None, symbolic: bool, estimate: bool, measure: bool
) -> list[Part]:
    caller = judging.caller
    late = ""
    try:
        for sizes in [*judging.public, *judging.hidden]:
            caller.plan(sizes)
        first = parts.assembles(submission.modules, caller.task.targets, caller.clock.left(120.0))
        if first.findings:
            return [first]
        parts.try_sizes(judging, schedule)
    except OutOfTimeError:
        late = f"the time limit of {caller.clock.seconds:g} s was reached"
        judging.scheduling.append(Finding("out-of-time", late))
        first = Part("assembles", PASSED)
    patched = getattr(submission, "patched", [])
    judging.memory += [Finding("patched-harness", f"the submission's Python replaces {one}") for one in patched[:1]]
    found = [
        first,
        parts.safe(judging),
        parts.schedules(judging, caller.task.seeds if schedule is None and not late else 0),
        equality(judging, symbolic and not late),
        parts.memory(judging),
        precision(caller.task, submission.modules, judging.last),
    ]
    if not estimate or late:
        return [*found, Part("estimate", OPEN, notes=["not asked"])]
    measure = measure and not any(part.findings for part in found)  # what is wrong here does not run there
    return [*found, _estimate(judging, judging.last, measure)]


def _estimate(judging: Judging, called: Called | None, measure: bool) -> Part:
    """The time on an H200, at the sizes that are timed or at the largest that was right; elsewhere a bound of it."""
    if called is None:
        return Part("estimate", OPEN, notes=["no right result"])
    caller = judging.caller
    if measure and can_measure(caller.submission.modules):
        try:
            return _measured(caller, [dict(one) for one in caller.task.timed] or [called.before.sizes])
        except NotMeasuredError:
            pass  # an array at an odd address: the estimate says what is known
    numbers = [target_named(module.target).number for module in caller.submission.modules]
    is_estimated = max(numbers) <= 90
    times = []
    for sizes in caller.task.timed if is_estimated and caller.task.timed else [called.before.sizes]:
        try:
            found = _estimated(caller, dict(sizes)) if is_estimated else _bounded(caller, dict(sizes))
        except (KernelError, PtxError) as wrong:
            return Part("estimate", OPEN, notes=[wrong.diagnostics[0].message])
        except OutOfTimeError:
            return Part("estimate", OPEN, notes=["no time left"])
        if found is None:
            return Part("estimate", OPEN, notes=["nothing is known of the GPU of its target"])
        times.append(found)
    return Part("estimate", PASSED, notes=[str(one) for one in times], figures={"times": [vars(one) for one in times]})


def _proof(judging: Judging) -> Part:
    """What `ptxlab.prove` says of each kernel, with the launches of the last right call as examples."""
    from ptxlab.prove import MissingSolverError, prove

    if judging.last is None:
        return Part("proof", OPEN, notes=["no right result"])
    caller, sizes = judging.caller, dict(judging.last.before.sizes)
    caller.submission.restart()
    notes: list[str] = []
    status = PASSED
    for launch in caller.plan(sizes).launches(caller.draw(sizes)):
        if launch.cluster is not None:
            return Part("proof", OPEN, notes=[f"`{launch.function.name}`: clusters are not followed"])
        try:
            found = prove(launch.function, launch.args, grid=launch.grid, block=launch.block, shared=launch.shared,
                          timeout=caller.clock.left(120.0))  # fmt: skip
        except MissingSolverError as wrong:
            return Part("proof", OPEN, notes=[str(wrong)])
        if found.counterexample is not None:
            wrong_run = found.counterexample
            witness = f"{wrong_run.launch}\n{wrong_run.finding}"
            finding = Finding(wrong_run.finding.code, wrong_run.finding.message, sizes, witness, wrong_run.finding.line)
            return Part("proof", FAILED, [finding])
        notes += [f"`{found.kernel}` is {found.level.replace('-', ' ')}", *map(str, found.gaps[:3])]
        notes += [f"assuming {one}" for one in found.assumptions] if found else []
        status = status if found else OPEN
    return Part("proof", status, notes=list(dict.fromkeys(notes)))


@dataclass(frozen=True)
class Time:
    """How long a call takes at some sizes: an estimate, a bound, or measured."""

    kind: str
    sizes: Sizes
    seconds: float
    gpu: str
    limiter: str
    least: float | None
    """What the problem takes at least: its bytes or operations at the peak rate."""

    def __str__(self) -> str:
        said = "at least " if self.kind == "bound" else ""
        part = (
            "" if self.least is None else f", {'' if said == '' else 'at most '}{self.least / self.seconds:.0%} of peak"
        )
        where = f"on {'an' if self.gpu.startswith('H') else 'a'} {self.gpu} at {parts.spell_sizes(self.sizes)}"
        limited = f", limited by {self.limiter}" if self.limiter else ", measured"
        return f"{said}{1e6 * self.seconds:.3g} µs {where}{part}{limited}"


def _measured(caller: Caller, timed: Sequence[Sizes]) -> Part:
    """The time on the GPU that is there; a submission whose results are wrong there fails."""
    times = []
    for sizes in timed:
        caller.submission.restart()
        try:
            seconds, name, wrong = measure_calls(caller, sizes)
        except KernelError as stopped:
            (first, *_) = stopped.diagnostics
            return Part("estimate", FAILED, [Finding(first.code, f"on the GPU: {first.message}", sizes)])
        if wrong is not None:
            said = f"on {name}, {wrong.count:,} of {wrong.of:,} elements are wrong"
            witness = f"element {wrong.places[0]} is {wrong.found}, and must be {wrong.expected}"
            return Part("estimate", FAILED, [Finding("wrong-values", said, sizes, witness)])
        known = next((one for one in bounds.PEAKS if name.startswith(one)), None)
        times.append(
            Time("measured", sizes, seconds, name, "", None if known is None else _least(caller, sizes, known))
        )
    return Part("estimate", PASSED, notes=[str(one) for one in times], figures={"times": [vars(one) for one in times]})


def _least(caller: Caller, sizes: Sizes, gpu: str) -> float | None:
    work = caller.task.work
    return None if work is None else bounds.of_problem(work(**named_by(work, sizes)), gpu)


def _estimated(caller: Caller, sizes: Sizes) -> Time:
    """What all launches at a size take on an H200, and what limits the longest."""
    from ptxlab.estimate import estimate

    caller.submission.restart()
    found = []
    for launch in caller.plan(sizes).launches(caller.draw(sizes)):
        older = target_named(launch.module.target).number < 90  # PTX for it runs on an H200, too
        found.append(estimate(launch.function, launch.grid, launch.block, launch.args, shared=launch.shared,
                              cluster=launch.cluster, target="sm_90" if older else None,
                              timeout=caller.clock.left()))  # fmt: skip
    longest = max(found, key=lambda one: one.seconds)
    seconds = sum(one.seconds for one in found)
    return Time("estimate", sizes, seconds, longest.gpu, longest.limiter, _least(caller, sizes, longest.gpu))


def _bounded(caller: Caller, sizes: Sizes) -> Time | None:
    """What all launches at a size take at least, by what they did on the emulator."""
    gpu = bounds.gpu_of(caller.submission.modules[0].target)
    if gpu is None:
        return None
    caller.submission.restart()
    data = caller.draw(sizes)
    found = []
    for launch in caller.plan(sizes).launches(data):
        result = launch.run(
            device="cpu", profile=True, detectors=False, on_error="collect", timeout=caller.clock.left()
        )
        found.append(bounds.of_launch(result.counters, gpu))
    return Time("bound", sizes, sum(one[0] for one in found), gpu, max(found)[1], _least(caller, sizes, gpu))
