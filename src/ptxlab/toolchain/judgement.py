"""ptxas as the oracle for what is legal, in bulk: `judge` one text, `judge_many` thousands.

A run of ptxas on a tiny file takes about 12 ms, of which 1 ms is the file's: `judge_many` gives one run many files.
ptxas reads each by itself and names the file in its messages, but links them, so only files whose global names are
their own entries go together, under names made unique. Whatever a shared run cannot attribute is run again alone.

The verdict is that of a whole compilation at the default `-O3`: reading alone (`-arch compute_90`) is three times as
fast on big files but accepts too much shared or constant data, unresolved calls, and what crashes the code generator.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ptxlab.toolchain import cache
from ptxlab.toolchain.architecture import architecture_for
from ptxlab.toolchain.header import stated_version, unterminated_comment
from ptxlab.toolchain.messages import read_messages
from ptxlab.toolchain.process import Outcome, run, run_together
from ptxlab.toolchain.tools import Tool, find_assembler

DEFAULT_TIMEOUT = 60.0
_TOGETHER = 64
_TOGETHER_BYTES = 400_000
_FORMAT = "1"


class Verdict(NamedTuple):
    """One thing ptxas says; level is error, warning, info, crash or timeout."""

    line: int | None
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class _Job:
    key: str
    text: str
    architecture: str | None
    tool: Tool
    options: tuple[str, ...]
    timeout: float


def judge(
    text: str,
    target: str | None = None,
    tool: Tool | None = None,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
) -> list[Verdict]:
    """What ptxas says to `text` for `target`, or for the target it states; `options` are ptxas's own, such as `-c`."""
    return judge_many([(text, target)], tool, options, timeout)[0]


def accepted(verdicts: Iterable[Verdict]) -> bool:
    """Whether ptxas made an object: no error, no crash, no time-out."""
    return all(verdict.level in ("warning", "info") for verdict in verdicts)


def judge_many(
    questions: Iterable[tuple[str, str | None]],
    tool: Tool | None = None,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    workers: int = 2,
) -> list[list[Verdict]]:
    """What ptxas says to each (text, target), in order; each is asked once and remembered on disk."""
    jobs = [_job(text, target, tool, tuple(options), timeout) for text, target in questions]
    known = cache.recall(job.key for job in jobs)
    missing = list({job.key: job for job in jobs if job.key not in known}.values())
    fresh = {key: _encode(verdicts) for key, verdicts in _run_all(missing, workers).items()}
    # A time-out tells of the machine's load as much as of the text.
    cache.remember({key: answer for key, answer in fresh.items() if '"timeout"' not in answer})
    known.update(fresh)
    return [[Verdict(*item) for item in json.loads(known[job.key])] for job in jobs]


def _encode(verdicts: Sequence[Verdict]) -> str:
    return json.dumps(verdicts)


def _job(text: str, target: str | None, tool: Tool | None, options: tuple[str, ...], timeout: float) -> _Job:
    chosen = tool or find_assembler(stated_version(text))
    architecture = architecture_for(chosen, target, text)
    key = cache.key("judge", _FORMAT, chosen.version, str(chosen.path), architecture or "", *options, text)
    return _Job(key, text, architecture, chosen, options, timeout)


def _run_all(jobs: Sequence[_Job], workers: int) -> dict[str, list[Verdict]]:
    """Run the jobs in groups, `workers` at a time."""
    tasks = [partial(_run_group, group) for group in _groups(jobs)]
    return {key: verdicts for answers in run_together(tasks, workers) for key, verdicts in answers.items()}


def _groups(jobs: Sequence[_Job]) -> list[list[_Job]]:
    """Jobs that can share a run: same tool, same `-arch`, and no name in common but what renaming parts."""
    groups: list[list[_Job]] = []
    open_groups: dict[tuple[Tool, str | None, float], tuple[list[_Job], int]] = {}
    for job in jobs:
        if _entries(job.text) is None:
            groups.append([job])
            continue
        kind = (job.tool, job.architecture, job.timeout)
        group, size = open_groups.get(kind, ([], 0))
        if not group or len(group) == _TOGETHER or size + len(job.text) > _TOGETHER_BYTES:
            group, size = [], 0
            groups.append(group)
        group.append(job)
        open_groups[kind] = (group, size + len(job.text))
    return groups


_LINKED = re.compile(r"\.(?:extern|weak|common)\b|\.visible\b(?!\s*\.entry\b)|\.alias\b|\.file\b|\.section\b|@@DWARF")
_ENTRY = re.compile(r"(\.entry\s+)([A-Za-z_$%][\w$]*)")


def _entries(text: str) -> list[str] | None:
    """The names to make unique; None where a text must be run alone."""
    if _LINKED.search(text) or unterminated_comment(text) is not None:
        return None
    names = [found[2] for found in _ENTRY.finditer(text)]
    once = all(len(re.findall(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", text)) == 1 for name in names)
    return names if once and len(names) == text.count(".entry") else None


def _run_group(group: Sequence[_Job]) -> dict[str, list[Verdict]]:
    """The answers for jobs of one run; what the run leaves open is asked again in smaller runs."""
    if len(group) == 1:
        job = group[0]
        endless = unterminated_comment(job.text)
        if endless is not None:
            line = job.text.count("\n", 0, endless) + 1
            return {job.key: [Verdict(line, "error", "the comment never ends, and neither would ptxas")]}
        outcome = _ptxas([job.text], job)
        return {job.key: _verdicts(outcome)}
    answers, open_jobs = _shared_run(group)
    if len(open_jobs) < len(group):
        return answers | (_run_group(open_jobs) if open_jobs else {})
    middle = len(group) // 2
    return _run_group(group[:middle]) | _run_group(group[middle:])


def _shared_run(group: Sequence[_Job]) -> tuple[dict[str, list[Verdict]], list[_Job]]:
    """What one run on all files settles: the files it finds errors in, or all of them when it is silent."""
    mark = "__ptxlab_{}"
    texts = [_ENTRY.sub(rf"\1\2{mark.format(index)}", job.text) for index, job in enumerate(group)]
    outcome = _ptxas(texts, group[0])
    if outcome.timed_out or outcome.signal_name:
        return {}, list(group)
    messages = read_messages(outcome.text)
    if outcome.status == 0 and not messages:
        return {job.key: [] for job in group}, []
    answers: dict[str, list[Verdict]] = {}
    for index, job in enumerate(group):
        own = [message for message in messages if message.file == f"{index}.ptx"]
        if any(message.level == "error" for message in own):
            suffix = mark.format(index)
            answers[job.key] = [Verdict(item.line, item.level, item.text.replace(suffix, "")) for item in own]
    return answers, [job for job in group if job.key not in answers]


def _ptxas(texts: Sequence[str], job: _Job) -> Outcome:
    """Run ptxas on texts, named 0.ptx, 1.ptx and so on."""
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        names = [f"{index}.ptx" for index in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            (Path(folder) / name).write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
        architecture = ["-arch", job.architecture] if job.architecture else []
        command: list[str | Path] = [job.tool.path, *architecture, *job.options, *names, "-o", "object"]
        return run(command, Path(folder), job.timeout * (1 + len(texts) / 8))


def _verdicts(outcome: Outcome) -> list[Verdict]:
    """A run on one file as verdicts; one that ended badly without an error has one all the same."""
    found = [Verdict(message.line, message.level, message.text) for message in read_messages(outcome.text)]
    if outcome.timed_out:
        return [*found, Verdict(None, "timeout", "ptxas did not end within its time limit")]
    if outcome.signal_name:
        return [*found, Verdict(None, "crash", f"ptxas was killed by {outcome.signal_name}")]
    if outcome.status != 0 and accepted(found):
        return [*found, Verdict(None, "error", f"ptxas ended with status {outcome.status} and no message")]
    return found
