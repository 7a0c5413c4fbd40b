"""The parts of a verdict, one function each: what is tried, and what is said of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ptxlab import ir
from ptxlab.check import check
from ptxlab.report import Diagnostic, PtxError, render
from ptxlab.toolchain import assemble, find_assembler
from ptxlab.toolchain.header import stated_version
from ptxlab.verify.recognizing import MEMORY_CODES, recognize
from ptxlab.verify.running import Called, Caller, OutOfTimeError
from ptxlab.verify.submission import SubmissionError
from ptxlab.verify.task import KINDS, Sizes
from ptxlab.verify.values import spell
from ptxlab.verify.verdict import FAILED, OPEN, PASSED, Finding, Part

SCHEDULING = frozenset(
    """data-race hang lockstep-dependence unordered-collective missing-proxy-fence missing-tensor-fence
    one-sided-synchronization stale-phase bad-barrier timeout divergent-barrier""".split()
)
LATE = ("timeout", "out-of-time", "ptxas-timeout")
MOST = 4  # findings of a part
TOO_NEW = "ptxas-unsupported-version"  # for the ptxas that is here
CLOCKS = ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi")


@dataclass
class Judging:
    """What is known while a submission is judged."""

    caller: Caller
    command: str
    """How the user judges it, for replays."""
    public: Sequence[Sizes]
    hidden: Sequence[Sizes]
    safe: list[Finding] = field(default_factory=list)
    scheduling: list[Finding] = field(default_factory=list)
    wrong: list[Finding] = field(default_factory=list)
    memory: list[Finding] = field(default_factory=list)
    right: list[Sizes] = field(default_factory=list)
    """Sizes at which all outputs were right."""
    costs: list[int] = field(default_factory=list)
    """Instructions of a call at each of these."""
    last: Called | None = None
    """A call that was right, at the largest size of those."""

    def replay(self, sizes: Mapping[str, int], seed: int = 0) -> str:
        """The command that tries these sizes alone."""
        given = ",".join(f"{name}={value}" for name, value in sizes.items())
        said = f"{self.command} --seed {self.caller.seed}" + (f" --size {given}" if given else "")
        return said + (f" --schedule {seed}" if seed else "")

    def note(self, called: Called) -> bool:
        """Keep what the detectors found in a call; whether that was nothing."""
        errors = [one for one in called.diagnostics if one.level == "error" or one.code in SCHEDULING]
        if errors and errors[0].code == "not-emulated":  # which says nothing of the submission
            raise SubmissionError("unsupported", errors[0].message, errors[:1])
        for one in errors[:MOST]:
            into = self.scheduling if one.code in SCHEDULING else self.safe
            if len(into) < MOST and all((one.code, one.line) != (known.code, known.line) for known in into):
                into.append(_finding(one, called.before.sizes, self.replay(called.before.sizes, called.seed)))
        return not errors


def _finding(found: Diagnostic, sizes: Mapping[str, int] | None = None, replay: str = "") -> Finding:
    return Finding(found.code, found.message, sizes, render([found], "full", False).rstrip(), found.line, replay)


def assembles(modules: Sequence[ir.Module], targets: Sequence[str], seconds: float) -> Part:
    """Whether the rules and ptxas accept all modules, for all targets."""
    findings: list[Finding] = []
    tried = []
    for module in modules:
        findings += [_finding(one) for one in check(module) if one.level == "error"]
    try:
        find_assembler(stated_version(modules[0].source.text) if modules and modules[0].source else None)
    except PtxError as missing:
        return Part("assembles", FAILED if findings else PASSED, findings, [f"ptxas was not asked: {missing}"])
    for module in modules if not findings else ():
        assert module.source is not None
        for target in targets or [module.target]:
            said = assemble(module.source.text, target, module.source.name, timeout=seconds)
            tried.append(f"{said.tool.name} {said.target or target}")
            errors = [one for one in said.diagnostics if one.level == "error"]
            if any(one.code == TOO_NEW for one in errors):
                return Part("assembles", PASSED, notes=[f"ptxas was not asked: {errors[0].message}"])
            findings += map(_finding, errors)
    notes = [f"asked: {', '.join(dict.fromkeys(tried))}"] if tried else []
    return Part("assembles", _failed(findings) if findings else PASSED, findings[:MOST], notes)


def _failed(findings: Sequence[Finding]) -> str:
    """The status of a part with findings: what was late says nothing of the kernel."""
    return OPEN if all(one.code in LATE for one in findings) else FAILED


def try_sizes(judging: Judging, schedule: int | None = None) -> None:
    """Call the submission at all sizes, twice each, and keep what is wrong; `schedule` is the order of threads."""
    caller = judging.caller
    for number, sizes in enumerate([*judging.public, *judging.hidden]):
        if len(judging.wrong) >= MOST:
            break
        kind = KINDS[1 + number % (len(KINDS) - 1)]
        caller.submission.restart()
        seed = number if schedule is None else schedule
        first = caller.call(caller.draw(sizes, "normal", 0), "normal", seed)
        if not judging.note(first):
            continue
        second = caller.call(caller.draw(sizes, kind, 1), kind, seed + 100 if schedule is None else schedule)
        if not judging.note(second):
            continue
        _judge_values(judging, first, second)
        if len(judging.memory) < MOST:
            _judge_memory(judging, first, second)


def _judge_values(judging: Judging, first: Called, second: Called) -> None:
    """Compare two calls with the reference, and name what is wrong."""
    caller = judging.caller
    expected = [caller.task.expected(one.before) for one in (first, second)]
    off = [caller.off(one, values) for one, values in zip((first, second), expected, strict=True)]
    sizes = first.before.sizes
    if not any(off):
        judging.right.append(sizes)
        judging.costs.append(first.instructions)
        if judging.last is None or first.instructions >= judging.last.instructions:
            judging.last = first
        return
    code, text = recognize(caller, (first, second), expected, off)
    name, difference = next(iter((off[0] or off[1]).items()))
    witness = spell(name, difference) + ("" if off[0] else f" (second call, inputs {second.kind})")
    found = Finding(code, text, sizes, witness, replay=judging.replay(sizes))
    into = judging.memory if code in MEMORY_CODES else judging.wrong
    if all(one.code != code for one in into):
        into.append(found)


def _judge_memory(judging: Judging, first: Called, second: Called) -> None:
    """Inputs that were written, and bytes between elements."""
    for array in judging.caller.task.arrays:
        for called in (first, second):
            touched = np.flatnonzero(called.touched(array))
            known = any(one.code in ("written-input", "written-gap") for one in judging.memory)
            if not len(touched) or known:
                continue
            code = "written-input" if array.role == "in" else "written-gap"
            what = (
                "is an input, and is written" if array.role == "in" else "has gaps between its rows, which are written"
            )
            judging.memory.append(
                Finding(code, f"`{array.name}` {what}", called.before.sizes,
                        f"{len(touched)} bytes, the first at offset {touched[0]}",
                        replay=judging.replay(called.before.sizes))
            )  # fmt: skip


def schedules(judging: Judging, count: int) -> Part:
    """Races and hangs, over the sizes, and over more schedules at one of them."""
    caller, findings = judging.caller, judging.scheduling
    tried = 0
    sizes = _middle(judging)
    if not findings and sizes is not None:
        before = caller.draw(sizes, "normal", 2)
        expected = caller.task.expected(before)
        for seed in range(1, count + 1):
            try:
                caller.submission.restart()
                called = caller.call(before, seed=seed)
            except OutOfTimeError:
                break
            tried += 1
            if not judging.note(called):
                break
            off = caller.off(called, expected)
            if off:
                name, difference = next(iter(off.items()))
                said = f"`{name}` is right or wrong by the order of threads"
                replay = judging.replay(sizes, seed)
                findings.append(Finding("schedule-dependent", said, sizes, spell(name, difference), replay=replay))
                break
    notes = [f"{tried + len(judging.right)} schedules, {tried} of them at {spell_sizes(sizes)}"] if sizes else []
    status = _failed(findings) if findings else PASSED if judging.right else OPEN
    return Part("schedules", status, findings, notes)


def _middle(judging: Judging) -> Sizes | None:
    """A size of those that were right: several blocks, and not the largest."""
    caller = judging.caller
    several = [one for one in judging.right if any(np.prod(call.grid) > 1 for call in caller.plan(one).calls)]
    ordered = sorted(several or judging.right, key=lambda one: float(np.prod(list(one.values()))))
    return ordered[len(ordered) // 2] if ordered else None


def spell_sizes(sizes: Mapping[str, int]) -> str:
    """`rows = 3, columns = 70`"""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "its only size"


def clocks(judging: Judging) -> list[Finding]:
    """Reads of a clock: what a kernel does may then depend on whether, and when, it is measured."""
    found = []
    for module in judging.caller.submission.modules:
        for function in module.functions:
            for instruction in function.instructions() if function.body is not None else ():
                read = [one.name for one in instruction.operands if isinstance(one, ir.SpecialRegister)]
                if any(name.lstrip("%") in CLOCKS for name in read):
                    span = module.span(instruction)
                    line = None if span is None else span.source.position(span.start)[0]
                    text = "" if span is None else span.text
                    found.append(Finding("clock-dependent", "the kernel reads a clock: what it does may depend on when "
                                         "it is measured", None, text, line))  # fmt: skip
    return found[:1]


def safe(judging: Judging) -> Part:
    """What detectors found at any size."""
    status = FAILED if judging.safe else PASSED if judging.right or judging.wrong or judging.memory else OPEN
    return Part("safe", status, judging.safe)


def memory(judging: Judging) -> Part:
    """What it writes, and of what."""
    clock = clocks(judging)
    found = [*judging.memory, *clock]
    return Part("memory", FAILED if found else PASSED if judging.right or judging.wrong else OPEN, found)


def failure(wrong: SubmissionError) -> Part:
    """A submission that cannot be launched."""
    findings = [Finding(wrong.code, str(wrong)), *map(_finding, wrong.diagnostics[:MOST])]
    return Part("assembles", OPEN if wrong.code in ("unsupported", *LATE) else FAILED, findings)


def shell(*words: str) -> str:
    """A command as one types it."""
    return " ".join(shlex.quote(word) for word in words)
